//! A PgBouncer in transaction mode in front of a PostgreSQL server, for tests.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::postgres::PostgresServer;

/// A running PgBouncer. Stopped when dropped.
#[derive(Debug)]
pub struct PgBouncer {
    process: Child,
    port: u16,
    _folder: TempDir,
}

impl PgBouncer {
    /// Gives every transaction one of two connections to the server.
    pub fn in_transaction_mode(server: &PostgresServer) -> Self {
        let folder = TempDir::with_prefix("tenon-pgbouncer-").expect("a temporary folder");
        let free = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let users = folder.path().join("users.txt");
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
            unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = transaction\ndefault_pool_size = 2\n\
            ignore_startup_parameters = extra_float_digits\n",
            server.port(),
            users.display(),
        );
        fs::write(&users, "\"tenon\" \"\"\n").expect("the folder is ours");
        let file = folder.path().join("pgbouncer.ini");
        fs::write(&file, settings).expect("the folder is ours");
        let mut command = Command::new("pgbouncer");
        command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        if rustix::process::geteuid().is_root() {
            for path in [folder.path(), &users, &file] {
                std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).expect("root may");
            }
            command.uid(65_534).gid(65_534);
        }
        let mut process =
            command.spawn().expect("these tests need PgBouncer: install the package `pgbouncer`");
        let mut log = BufReader::new(process.stderr.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("process up") {
            line.clear();
            assert!(log.read_line(&mut line).expect("it writes text") > 0, "PgBouncer ended");
        }
        // Its log must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { process, port, _folder: folder }
    }

    /// The URL of a database of the server, through this pooler.
    pub fn url(&self, database: &str) -> String {
        let name = database.rsplit('/').next().unwrap_or_default();
        format!("postgres://tenon@127.0.0.1:{}/{name}?statement-cache-capacity=0", self.port)
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
