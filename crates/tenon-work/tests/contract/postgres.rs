//! A PostgreSQL server of the tests' own: in a temporary folder, on a unix socket, gone when they are.
//!
//! Test processes share one server. The first to come starts it; a small watchdog, which is not a test's child,
//! stops it and removes its folder once no test process has held the lock of its users for a moment. The server
//! refuses to run as root, so it runs as `nobody` there.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

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

struct Server {
    folder: PathBuf,
    /// Held as long as this process lives.
    _user: File,
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let root = is_root();
        let folder =
            std::env::temp_dir().join(format!("tenon-work-postgres-{}", if root { "root" } else { "user" }));
        fs::create_dir_all(&folder).unwrap();
        let starting = File::create(folder.with_extension("lock")).unwrap();
        starting.lock().unwrap();
        fs::create_dir_all(&folder).unwrap();
        let user = File::create(folder.join("users")).unwrap();
        user.lock_shared().unwrap();
        if !folder.join("data/postmaster.pid").exists() {
            start(&folder, root);
        }
        starting.unlock().unwrap();
        Server { folder, _user: user }
    })
}

fn is_root() -> bool {
    fs::metadata("/proc/self").map(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0).unwrap_or(false)
}

fn start(folder: &Path, root: bool) {
    let bin = binaries();
    let data = folder.join("data");
    let _ = fs::remove_dir_all(&data);
    fs::create_dir(&data).unwrap();
    if root {
        chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
        chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let run = |program: &str, args: &[&str]| {
        let mut command = Command::new(bin.join(program));
        command.args(args).arg("--pgdata").arg(&data).current_dir(folder).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        if root {
            command.uid(NOBODY).gid(NOBODY);
        }
        assert!(command.status().unwrap().success(), "{program} failed in {}", folder.display());
    };
    run("initdb", &["--username=tenon", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
    let options = format!(
        "-c listen_addresses= -c unix_socket_directories={} -c fsync=off -c max_connections=200",
        folder.display()
    );
    run("pg_ctl", &["start", "--silent", "--wait", "--options", &options]);
    let mut watchdog = Command::new("setsid");
    watchdog.args(["--fork", "sh", "-c", WATCHDOG, "watchdog"]).arg(folder).arg(&bin).stdin(Stdio::null());
    watchdog.stdout(Stdio::null()).stderr(Stdio::null());
    if root {
        watchdog.uid(NOBODY).gid(NOBODY);
    }
    assert!(watchdog.status().unwrap().success(), "the watchdog did not start");
}

/// Debian keeps the server's programs out of the path.
fn binaries() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    found.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let usable = |folder: &PathBuf| folder.join("initdb").exists() && folder.join("pg_ctl").exists();
    found
        .into_iter()
        .find(usable)
        .expect("PostgreSQL is needed for these tests: install the package `postgresql`")
}

/// A database of its own; its URL.
pub async fn database() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let socket = server().folder.display().to_string().replace('/', "%2F");
    let name = format!("t{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mut admin = PgConnection::connect(&format!("postgres://tenon@{socket}/postgres")).await.unwrap();
    admin.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    admin.close().await.unwrap();
    format!("postgres://tenon@{socket}/{name}")
}
