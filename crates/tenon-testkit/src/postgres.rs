//! Temporary PostgreSQL servers for tests.
//!
//! [`database`] creates a database on a server that all test processes share; it listens on a unix socket only and does
//! not sync to disk. The first process starts it. A detached watchdog stops it and removes its folder when no test
//! process holds the `users` lock any more. [`PostgresServer`] is a separate server on loopback. PostgreSQL does not run
//! as root, so tests that run as root start it as an unprivileged user.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

/// The unprivileged user and group, the same on every Linux.
const UNPRIVILEGED_ID: u32 = 65_534;

/// Waits until the `users` lock is free twice in a row, then stops the server and removes its folder while it holds the
/// start lock.
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
    /// The shared `users` lock, held as long as this process lives.
    _users_lock: File,
}

fn shared() -> &'static Shared {
    static SERVER: OnceLock<Shared> = OnceLock::new();
    SERVER.get_or_init(|| {
        let user = if is_root() { "root" } else { "user" };
        let folder = std::env::temp_dir().join(format!("tenon-postgres-{user}"));
        let starting = File::create(folder.with_extension("lock")).expect("a lock in the temporary folder");
        starting.lock().expect("locks work here");
        fs::create_dir_all(&folder).expect("a folder in the temporary folder");
        let users = File::create(folder.join("users")).expect("a lock in our folder");
        users.lock_shared().expect("locks work here");
        if !folder.join("data/postmaster.pid").exists() {
            initialise(&folder);
            let socket = folder.display();
            start(&folder, &format!("-c listen_addresses= -c unix_socket_directories={socket} -c fsync=off"));
            watch(&folder);
        }
        starting.unlock().expect("locked above");
        Shared { folder, _users_lock: users }
    })
}

/// The URL of an empty database on the server that all tests share.
pub fn database() -> String {
    let folder = &shared().folder;
    let name = create(folder, None);
    format!("postgres://tenon@{}/{name}", folder.display().to_string().replace('/', "%2F"))
}

/// A separate server that listens on loopback and syncs to disk. Stopped when dropped.
#[derive(Debug)]
pub struct PostgresServer {
    folder: TempDir,
    port: u16,
}

impl PostgresServer {
    #[expect(clippy::new_without_default, reason = "a default should not start a server")]
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

impl Drop for PostgresServer {
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
        chown(folder, Some(UNPRIVILEGED_ID), Some(UNPRIVILEGED_ID)).expect("root may");
        chown(&data, Some(UNPRIVILEGED_ID), Some(UNPRIVILEGED_ID)).expect("root may");
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("the folder is ours");
    let arguments = ["--username=tenon", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
    run(folder, "initdb", &arguments);
}

fn start(folder: &Path, options: &str) {
    let options = format!("{options} -c max_connections=200");
    run(folder, "pg_ctl", &["start", "--silent", "--wait", "--options", &options]);
}

/// Runs a PostgreSQL program on a data folder, as the user that runs the server.
fn run(folder: &Path, program: &str, args: &[&str]) {
    let mut command = Command::new(binaries().join(program));
    command.args(args).arg("--pgdata").arg(folder.join("data")).current_dir(folder);
    let status = as_server_user(&mut command).status().expect("the program can be started");
    assert!(status.success(), "{program} failed in {}", folder.display());
}

fn as_server_user(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if is_root() { command.uid(UNPRIVILEGED_ID).gid(UNPRIVILEGED_ID) } else { command }
}

fn watch(folder: &Path) {
    let mut watchdog = Command::new("setsid");
    watchdog.args(["--fork", "sh", "-c", WATCHDOG, "watchdog"]).arg(folder).arg(binaries());
    assert!(
        as_server_user(&mut watchdog).status().expect("setsid is there").success(),
        "the watchdog did not start"
    );
}

/// Creates a database; returns its name.
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

/// The folder with PostgreSQL's programs; Debian does not put it on `PATH`.
fn binaries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
        found.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let usable = |folder: &PathBuf| folder.join("initdb").exists() && folder.join("pg_ctl").exists();
        found.into_iter().find(usable).expect("these tests need PostgreSQL: install the package `postgresql`")
    })
}
