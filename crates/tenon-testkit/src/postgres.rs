//! PostgreSQL servers of the tests' own: in a temporary folder, gone when the tests are.
//!
//! [`database`] makes a database on one server that all test processes share and that forgets about disks, on a unix
//! socket alone. The first process to come starts it; a small watchdog, which is no test's child, stops it and removes its
//! folder once no test process has held the lock of its users for a moment. [`Server`] is a server of one's own, on
//! loopback. The server refuses to run as root, so it runs as `nobody` there.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

const NOBODY: u32 = 65_534;

/// Waits until nobody has held the lock of the users twice in a row, then stops the server and cleans up, under the
/// lock that whoever starts one holds.
const WATCHDOG: &str = r#"
cd / && free=0
while sleep 2; do
    if flock --nonblock --exclusive "$1/users" true; then free=$((free + 1)); else free=0; fi
    [ $free -lt 2 ] && continue
    exec 9< "$1.lock" && flock --exclusive 9
    if flock --nonblock --exclusive "$1/users" true; then
        "$2/pg_ctl" stop --silent --mode=immediate --pgdata="$1/data"
        rm -rf "$1"
        exit
    fi
    exec 9<&-
done
"#;

/// The server that all test processes share.
struct Shared {
    folder: PathBuf,
    /// Held as long as this process lives.
    _user: File,
}

fn shared() -> &'static Shared {
    static SERVER: OnceLock<Shared> = OnceLock::new();
    SERVER.get_or_init(|| {
        let whose = if is_root() { "root" } else { "user" };
        let folder = std::env::temp_dir().join(format!("tenon-postgres-{whose}"));
        let starting = File::create(folder.with_extension("lock")).expect("a lock in the temporary folder");
        starting.lock().expect("locks work here");
        fs::create_dir_all(&folder).expect("a folder in the temporary folder");
        let user = File::create(folder.join("users")).expect("a lock in our folder");
        user.lock_shared().expect("locks work here");
        if !folder.join("data/postmaster.pid").exists() {
            initialise(&folder);
            let socket = folder.display();
            start(&folder, &format!("-c listen_addresses= -c unix_socket_directories={socket} -c fsync=off"));
            watch(&folder);
        }
        starting.unlock().expect("locked above");
        Shared { folder, _user: user }
    })
}

/// The URL of an empty database on the server that all tests share.
pub fn database() -> String {
    let folder = &shared().folder;
    let name = create(folder, None);
    format!("postgres://tenon@{}/{name}", folder.display().to_string().replace('/', "%2F"))
}

/// A server of one's own that listens on loopback and keeps what it has acknowledged. Stopped when dropped.
#[derive(Debug)]
pub struct Server {
    folder: TempDir,
    port: u16,
}

impl Server {
    #[expect(clippy::new_without_default, reason = "starting a server is no default")]
    pub fn new() -> Self {
        let folder = TempDir::with_prefix("tenon-postgres-").expect("a temporary folder");
        initialise(folder.path());
        let free = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let socket = folder.path().display();
        let listen = "-c listen_addresses=127.0.0.1";
        start(folder.path(), &format!("{listen} -p {port} -c unix_socket_directories={socket}"));
        Self { folder, port }
    }

    /// The URL of an empty database, without parameters.
    pub fn database(&self) -> String {
        let name = create(self.folder.path(), Some(self.port));
        format!("postgres://tenon@127.0.0.1:{}/{name}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let stop = ["stop", "--silent", "--mode=immediate"];
        run(self.folder.path(), "pg_ctl", &stop);
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn initialise(folder: &Path) {
    let data = folder.join("data");
    let _ = fs::remove_dir_all(&data);
    fs::create_dir(&data).expect("the folder is ours");
    if is_root() {
        chown(folder, Some(NOBODY), Some(NOBODY)).expect("root may");
        chown(&data, Some(NOBODY), Some(NOBODY)).expect("root may");
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("the folder is ours");
    let how = ["--username=tenon", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
    run(folder, "initdb", &how);
}

fn start(folder: &Path, options: &str) {
    let options = format!("{options} -c max_connections=200");
    run(folder, "pg_ctl", &["start", "--silent", "--wait", "--options", &options]);
}

/// Runs one of the server's programs on the data of a folder, as the user that the server runs as.
fn run(folder: &Path, program: &str, args: &[&str]) {
    let mut command = Command::new(binaries().join(program));
    command.args(args).arg("--pgdata").arg(folder.join("data")).current_dir(folder);
    let status = as_server(&mut command).status().expect("the program can be started");
    assert!(status.success(), "{program} failed in {}", folder.display());
}

fn as_server(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if is_root() { command.uid(NOBODY).gid(NOBODY) } else { command }
}

fn watch(folder: &Path) {
    let mut watchdog = Command::new("setsid");
    watchdog.args(["--fork", "sh", "-c", WATCHDOG, "watchdog"]).arg(folder).arg(binaries());
    assert!(
        as_server(&mut watchdog).status().expect("setsid is there").success(),
        "the watchdog did not start"
    );
}

/// Makes a database and says its name.
fn create(folder: &Path, port: Option<u16>) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("t{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mut command = Command::new(binaries().join("createdb"));
    command.arg("--username=tenon").arg("--host").arg(folder).arg(&name).current_dir("/");
    if let Some(port) = port {
        command.arg(format!("--port={port}"));
    }
    let output = command.stdin(Stdio::null()).output().expect("createdb can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    name
}

/// Debian keeps the server's programs out of the path.
fn binaries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
        found.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let usable = |folder: &PathBuf| folder.join("initdb").exists() && folder.join("pg_ctl").exists();
        found
            .into_iter()
            .find(usable)
            .expect("PostgreSQL is needed for these tests: install the package `postgresql`")
    })
}
