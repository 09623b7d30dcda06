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
    /// Of the server program.
    options: String,
}

/// A certificate authority, and certificates that it signed and that another one signed, made with `openssl`.
#[derive(Debug)]
pub struct Certificates {
    /// The root that signed the server's certificate for `localhost`.
    pub root: PathBuf,
    /// A root that signed nothing here.
    pub other_root: PathBuf,
    /// Certificate and key of the client `certified`.
    pub client: (PathBuf, PathBuf),
}

impl Certificates {
    fn make(folder: &Path) -> Self {
        let openssl = |arguments: &str| {
            let mut command = Command::new("openssl");
            command.args(arguments.split(' ')).current_dir(folder).stdin(Stdio::null());
            let output = command.output().expect("these tests need openssl");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        for root in ["ca", "other"] {
            openssl(&format!(
                "req -x509 {key} -keyout {root}.key -out {root}.crt -subj /CN={root} -days 2 -addext basicConstraints=critical,CA:TRUE"
            ));
        }
        fs::write(folder.join("server.ext"), "subjectAltName=DNS:localhost\n").expect("the folder is ours");
        fs::write(folder.join("client.ext"), "extendedKeyUsage=clientAuth\n").expect("the folder is ours");
        for (name, subject) in [("server", "localhost"), ("client", "certified")] {
            openssl(&format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={subject}"));
            openssl(&format!(
                "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out {name}.crt -days 2 -extfile {name}.ext"
            ));
            let mode = fs::Permissions::from_mode(0o600);
            fs::set_permissions(folder.join(format!("{name}.key")), mode).expect("the folder is ours");
        }
        let at = |name: &str| folder.join(name);
        Self { root: at("ca.crt"), other_root: at("other.crt"), client: (at("client.crt"), at("client.key")) }
    }
}

impl PostgresServer {
    #[expect(clippy::new_without_default, reason = "a default should not start a server")]
    pub fn new() -> Self {
        Self::started(|_| String::new())
    }

    /// A server that accepts TCP connections only with TLS. The role `certified` needs a certificate, others nothing.
    pub fn with_tls() -> (Self, Certificates) {
        let mut made = None;
        let server = Self::started(|folder| {
            let certificates = Certificates::make(folder);
            let rules = "local all all trust\nhostssl all certified 127.0.0.1/32 cert\nhostssl all all 127.0.0.1/32 trust\n";
            fs::write(folder.join("data/pg_hba.conf"), rules).expect("the folder is ours");
            if is_root() {
                for file in ["server.key", "server.crt", "ca.crt"] {
                    chown(folder.join(file), Some(UNPRIVILEGED_ID), Some(UNPRIVILEGED_ID)).expect("root may");
                }
            }
            let at = folder.display();
            made = Some(certificates);
            format!(
                "-c ssl=on -c ssl_cert_file={at}/server.crt -c ssl_key_file={at}/server.key -c ssl_ca_file={at}/ca.crt"
            )
        });
        server.psql("CREATE ROLE certified LOGIN SUPERUSER");
        (server, made.expect("made above"))
    }

    /// A server that also accepts connections from a private network, `10.203.0.0/16`.
    pub fn on_private_network() -> Self {
        Self::started(|folder| {
            let file = folder.join("data/pg_hba.conf");
            let rules = fs::read_to_string(&file).expect("initdb wrote it");
            fs::write(&file, format!("{rules}\nhost all all 10.203.0.0/16 trust\n"))
                .expect("the folder is ours");
            "-c listen_addresses=*".to_owned()
        })
    }

    /// `prepare` may change the new data folder; it returns further options.
    fn started(prepare: impl FnOnce(&Path) -> String) -> Self {
        let folder = TempDir::with_prefix("tenon-postgres-").expect("a temporary folder");
        initialise(folder.path());
        let free = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let socket = folder.path().display().to_string();
        let more = prepare(folder.path());
        let options =
            format!("-c listen_addresses=127.0.0.1 -p {port} -c unix_socket_directories={socket} {more}");
        start(folder.path(), &options);
        Self { folder, port, options }
    }

    /// Stops the server and starts it again.
    pub fn restart(&self) {
        run(self.folder.path(), "pg_ctl", &["stop", "--silent", "--mode=fast"]);
        start(self.folder.path(), &self.options);
    }

    /// Runs a statement in the database `postgres`.
    pub fn psql(&self, sql: &str) {
        let url = format!("postgres://tenon@127.0.0.1:{}/postgres", self.port);
        // Servers that want TLS accept any client on their socket.
        let url = url.replace("127.0.0.1", &self.folder.path().display().to_string().replace('/', "%2F"));
        if let Err(error) = self.psql_in(&url, sql) {
            panic!("{error}");
        }
    }

    /// Runs statements in the database of a URL, as its role.
    ///
    /// # Errors
    /// What `psql` says about the first statement that fails.
    pub fn psql_in(&self, url: &str, sql: &str) -> Result<(), String> {
        let mut command = Command::new(binaries().join("psql"));
        command.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--command", sql, url]);
        let output = command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).output();
        let output = output.expect("psql can be started");
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// The TCP port on loopback.
    pub fn port(&self) -> u16 {
        self.port
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
