//! Unix: starts the daemon process, with a clean environment and detached from the process that starts it.
//!
//! The daemon outlives its first client and serves others, so it must not inherit that client's virtualenv, secrets,
//! terminal, working folder or open pipes. It keeps the variables that programs need to run, and the user's settings for
//! Tenon.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::DaemonError;
use crate::config::{Environment, env, key::KEYS};

/// How long a daemon may take to accept connections; it may first wait for another one to exit.
pub const START_DEADLINE: Duration = Duration::from_secs(30);

/// Variables that are kept, besides Tenon's own.
const KEPT: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "PATH",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "GOMODCACHE",
    "JAVA_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// The part of a client's environment that the daemon of `root` gets.
pub fn environment(client: &Environment, root: &Utf8Path) -> BTreeMap<String, String> {
    let ours = |name: &str| {
        env::VARIABLES.iter().any(|(known, _)| *known == name)
            || KEYS.iter().any(|key| key.variables.contains(&name))
    };
    let kept = |name: &str| KEPT.contains(&name) || name.starts_with("LC_") || ours(name);
    let mut environment: BTreeMap<String, String> = client
        .iter()
        .filter(|(name, _)| kept(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    if let Some(path) = environment.get_mut("PATH") {
        // Drops programs of an active virtualenv, of the workspace, and of relative folders.
        let virtualenv = client.get("VIRTUAL_ENV").map(Utf8Path::new);
        let foreign = |folder: &Utf8Path| {
            !folder.is_absolute()
                || folder.starts_with(root)
                || virtualenv.is_some_and(|virtualenv| folder.starts_with(virtualenv))
        };
        let stays: Vec<&str> = path.split(':').filter(|folder| !foreign(Utf8Path::new(folder))).collect();
        *path = stays.join(":");
    }
    environment
}

/// What a starting daemon writes to its stdout, once.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartReport {
    /// It accepts connections.
    Ready,
    Failed(String),
}

/// Starts `program` as a daemon and waits until it accepts connections.
pub(crate) async fn start(
    mut program: Command,
    environment: BTreeMap<String, String>,
) -> Result<(), DaemonError> {
    program
        .env_clear()
        .envs(environment)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = program.spawn().map_err(|error| DaemonError::Start(error.to_string()))?;
    let output = child.stdout.take().expect("stdout is a pipe");
    let (sender, said) = oneshot::channel();
    std::thread::Builder::new().name("daemon".to_owned()).spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(output.take(64 * 1024)).read_line(&mut line);
        let _ = sender.send(line);
        // If it ends before this process, it must not stay a zombie.
        let _ = child.wait();
    })?;
    let waited = tokio::time::timeout(START_DEADLINE, said).await;
    let line = waited.map_err(|_| DaemonError::Timeout { seconds: START_DEADLINE.as_secs(), pid: None })?;
    match line.ok().and_then(|line| serde_json::from_str(&line).ok()) {
        Some(StartReport::Ready) => Ok(()),
        Some(StartReport::Failed(reason)) => Err(DaemonError::Start(reason)),
        None => Err(DaemonError::Start("it exited without a message".to_owned())),
    }
}

/// Detaches from the process that started this one. Call it before anything else is opened.
pub fn detach() -> io::Result<()> {
    // An ancestor may wait for the end of a pipe that this process has inherited.
    let inherited: Vec<i32> = std::fs::read_dir("/dev/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|descriptor| *descriptor > 2)
        .collect();
    for descriptor in inherited {
        // The descriptor that listed the folder is closed already.
        let _ = nix::unistd::close(descriptor);
    }
    // Fails only if this process already leads a session or group.
    let _ = nix::unistd::setsid();
    Ok(())
}

/// Reports the start to the parent, and releases its pipe.
pub fn announce(started: &StartReport) -> io::Result<()> {
    let mut line = serde_json::to_vec(started)?;
    line.push(b'\n');
    let mut output = io::stdout().lock();
    // A parent that has exited does not keep the daemon from serving others.
    let _ = output.write_all(&line).and_then(|()| output.flush());
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    Ok(nix::unistd::dup2_stdout(null)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_specific_variables_do_not_reach_the_daemon() {
        let client = Environment::from([
            ("PATH", "/w/node_modules/.bin:/venv/bin:.::/usr/bin:bin:/bin"),
            ("VIRTUAL_ENV", "/venv"),
            ("PYTHONPATH", "/w"),
            ("NODE_OPTIONS", "--require /w/evil.js"),
            ("LD_PRELOAD", "/w/evil.so"),
            ("GITHUB_TOKEN", "secret"),
            ("HOME", "/home/ada"),
            ("LC_ALL", "C"),
            ("TENON_MCP_SURFACES", "code"),
            ("TENON_STATE_DIR", "/state"),
            ("TENON_UNKNOWN", "x"),
        ]);
        let environment = environment(&client, Utf8Path::new("/w"));
        let lines: Vec<String> = environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        HOME=/home/ada
        LC_ALL=C
        PATH=/usr/bin:/bin
        TENON_MCP_SURFACES=code
        TENON_STATE_DIR=/state
        ");
    }

    #[tokio::test]
    async fn daemon_that_fails_to_start_reports_why() {
        let shell = |script: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]);
            start(command, BTreeMap::new())
        };
        assert!(shell("echo '\"ready\"'").await.is_ok());
        let error = shell("echo '{\"failed\": \"no room\"}'").await.unwrap_err();
        assert_eq!(error.to_string(), "cannot start the daemon: no room");
        assert!(matches!(shell("exit 1").await, Err(DaemonError::Start(_))));
        let missing = start(Command::new("/nowhere/tenon"), BTreeMap::new()).await;
        assert!(matches!(missing, Err(DaemonError::Start(_))));
    }
}
