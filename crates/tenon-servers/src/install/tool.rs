//! Runs npm, pip and cargo on a lock.
//!
//! The programs that we run hold the lock of the managed folder as their standard input, an empty file: if this process is
//! killed, the next installation waits until they have ended.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::compiler::{Compiler, CompilerVersion};
use super::lock::{PackageLock, PackageManager, SourceBuild};
use super::system::{self, Need};
use crate::find::SearchPath;

/// How much of a failed command's output is shown.
const REASON_LINES: usize = 5;
const REASON_LINE_BYTES: usize = 200;

/// How long a command may fetch. Behind a proxy that refuses connections, npm may never end by itself.
const FETCH_LIMIT: Duration = Duration::from_secs(15 * 60);
/// How long a build from source may take.
const BUILD_LIMIT: Duration = Duration::from_secs(2 * 60 * 60);

const VENV: &str = "python3 -m venv";
const BUILD: &str = "cargo install";

/// How many bytes of output are kept to look for the reason.
const OUTPUT_KEPT: usize = 256 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error("`{program}` is not installed")]
    Missing { program: &'static str, fix: String },
    #[error("Python has no module `venv`")]
    NoVenv { fix: String },
    #[error("`rustc` is missing or does not work")]
    NoCompiler { fix: String },
    #[error("Rust {found} cannot build it; it needs {needed} or newer")]
    OldCompiler { found: CompilerVersion, needed: CompilerVersion },
    #[error("`{command}` cannot reach its package registry")]
    Offline {
        command: &'static str,
        /// The variable that names a proxy.
        proxy: Option<&'static str>,
    },
    #[error("`{command}` did not end within {} minutes", limit.as_secs() / 60)]
    TimedOut { command: &'static str, limit: Duration },
    #[error("`{command}` failed: {output}")]
    Failed { command: &'static str, output: String },
    #[error("cannot run `{command}`")]
    Spawn {
        command: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot write the lock files")]
    Write(#[from] std::io::Error),
}

impl ToolError {
    /// What the user can do, if anything.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { fix, .. } | Self::NoVenv { fix } | Self::NoCompiler { fix } => Some(fix.clone()),
            Self::OldCompiler { .. } => Some("run `rustup update`".to_owned()),
            Self::Offline { command, proxy } => {
                let manager = command.split(' ').next().unwrap_or(command);
                Some(match proxy {
                    Some(variable) => format!(
                        "check the proxy that `{variable}` names, or point {manager} at a registry that it reaches, then try again"
                    ),
                    None => format!(
                        "connect, or point {manager} at a registry that can be reached, then try again"
                    ),
                })
            }
            Self::TimedOut { .. } => Some("check the connection and the proxy, then try again".to_owned()),
            Self::Failed { .. } | Self::Spawn { .. } | Self::Write(_) => None,
        }
    }
}

/// What an installation is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolStep {
    Begins(&'static str),
    /// So many packages are compiled or about to be.
    Built(usize),
}

/// The package managers of this machine.
#[derive(Debug, Clone)]
pub struct Tools {
    npm: Option<Utf8PathBuf>,
    python: Option<Utf8PathBuf>,
    cargo: Option<Utf8PathBuf>,
    rustc: Option<Utf8PathBuf>,
    path: String,
    search: SearchPath,
    /// Asked once, when a lock needs it.
    compiler: OnceLock<Option<Compiler>>,
}

impl Tools {
    /// Looks on PATH, never inside `forbidden`, the workspace to install for.
    pub fn find(search: &SearchPath, forbidden: Option<&Utf8Path>) -> Self {
        Self {
            npm: search.which("npm", forbidden),
            python: search.which("python3", forbidden),
            cargo: search.which("cargo", forbidden),
            rustc: search.which("rustc", forbidden),
            path: search.join(forbidden),
            search: search.clone(),
            compiler: OnceLock::new(),
        }
    }

    /// Whether the programs that a lock needs are there.
    pub fn check(&self, lock: &PackageLock) -> Result<(), ToolError> {
        match lock.manager {
            PackageManager::Npm => self.npm_program().map(drop),
            PackageManager::Pip => self.python_program().map(drop),
            PackageManager::Cargo => self.cargo_program(lock.source.as_ref()).map(drop),
        }
    }

    fn missing(&self, program: &'static str, need: Need) -> ToolError {
        ToolError::Missing { program, fix: system::fix(&self.search, need) }
    }

    fn npm_program(&self) -> Result<&Utf8Path, ToolError> {
        self.npm.as_deref().ok_or_else(|| self.missing("npm", Need::Npm))
    }

    fn python_program(&self) -> Result<&Utf8Path, ToolError> {
        self.python.as_deref().ok_or_else(|| self.missing("python3", Need::Python))
    }

    fn cargo_program(&self, build: Option<&SourceBuild>) -> Result<(&Utf8Path, &Compiler), ToolError> {
        let cargo = self.cargo.as_deref().ok_or_else(|| self.missing("cargo", Need::Cargo))?;
        let compiler = self.compiler.get_or_init(|| self.ask_compiler()).as_ref();
        let compiler =
            compiler.ok_or_else(|| ToolError::NoCompiler { fix: system::fix(&self.search, Need::Cargo) })?;
        match build {
            Some(build) if compiler.version < build.compiler => {
                Err(ToolError::OldCompiler { found: compiler.version, needed: build.compiler })
            }
            _ => Ok((cargo, compiler)),
        }
    }

    /// Asked in the top folder: rustup's proxies obey files in the working directory, which may be a workspace.
    fn ask_compiler(&self) -> Option<Compiler> {
        let mut command = Command::new(self.rustc.as_deref()?);
        command.arg("-vV").current_dir("/").env("PATH", &self.path).stdin(Stdio::null());
        let output = command.output().ok().filter(|output| output.status.success())?;
        Compiler::parse(&String::from_utf8_lossy(&output.stdout))
    }

    /// Installs a lock into an empty folder. `guard` is the lock file of the managed folder.
    pub(super) fn build(
        &self,
        lock: &PackageLock,
        folder: &Utf8Path,
        guard: &File,
        step: &mut dyn FnMut(ToolStep),
    ) -> Result<(), ToolError> {
        self.check(lock)?;
        for (name, text) in lock.files {
            fs_err::write(folder.join(name), text)?;
        }
        let job = Job { path: &self.path, folder, guard, search: &self.search };
        match lock.manager {
            PackageManager::Npm => self.npm(&job, step),
            PackageManager::Pip => self.pip(&job, step),
            PackageManager::Cargo => self.cargo(lock, &job, step),
        }
    }

    fn npm(&self, job: &Job<'_>, step: &mut dyn FnMut(ToolStep)) -> Result<(), ToolError> {
        step(ToolStep::Begins("fetching with npm"));
        let flags = [
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
            "--engine-strict",
            // By default npm retries every package for more than a minute, also if a proxy refuses all of them.
            "--fetch-retry-mintimeout=1000",
            "--fetch-retry-maxtimeout=5000",
        ];
        job.run("npm ci", self.npm_program()?, &flags, &mut |_| {})
    }

    fn pip(&self, job: &Job<'_>, step: &mut dyn FnMut(ToolStep)) -> Result<(), ToolError> {
        step(ToolStep::Begins("creating a virtual environment"));
        job.run(VENV, self.python_program()?, &["-m", "venv", "venv"], &mut |_| {})?;
        step(ToolStep::Begins("fetching with pip"));
        let flags = [
            "-m",
            "pip",
            "install",
            "--require-hashes",
            "--only-binary=:all:",
            "--no-deps",
            "--no-input",
            "--disable-pip-version-check",
            "--requirement",
            "requirements.txt",
        ];
        job.run("pip install", &job.folder.join("venv/bin/python"), &flags, &mut |_| {})
    }

    /// Fetches what our lock file names, which checks the hashes, then builds from that. Not offline: cargo looks up packages
    /// of features that are off, too.
    fn cargo(
        &self,
        lock: &PackageLock,
        job: &Job<'_>,
        step: &mut dyn FnMut(ToolStep),
    ) -> Result<(), ToolError> {
        let build = lock.source.as_ref().expect("a test checks that locks of cargo name their package");
        let (cargo, compiler) = self.cargo_program(lock.source.as_ref())?;
        step(ToolStep::Begins("fetching with cargo"));
        job.run("cargo fetch", cargo, &["fetch", "--locked", "--target", &compiler.host], &mut |_| {})?;
        step(ToolStep::Begins("building with cargo, which takes minutes"));
        let target = job.folder.join("target");
        let flags = [
            "install",
            build.package,
            "--version",
            lock.version,
            "--locked",
            "--no-track",
            "--root",
            job.folder.as_str(),
            "--target-dir",
            target.as_str(),
        ];
        let mut built = 0;
        job.run(BUILD, cargo, &flags, &mut |line| {
            if line.trim_start().starts_with("Compiling ") {
                built += 1;
                step(ToolStep::Built(built));
            }
        })?;
        Ok(fs_err::remove_dir_all(target)?)
    }
}

/// Where the commands of an installation run.
struct Job<'a> {
    path: &'a str,
    folder: &'a Utf8Path,
    guard: &'a File,
    search: &'a SearchPath,
}

impl Job<'_> {
    /// Runs a command and passes its output to `line`, line by line.
    fn run(
        &self,
        command: &'static str,
        program: &Utf8Path,
        args: &[&str],
        line: &mut dyn FnMut(&str),
    ) -> Result<(), ToolError> {
        let spawn_error = |source| ToolError::Spawn { command, source };
        let (output, input) = std::io::pipe().map_err(spawn_error)?;
        let child = {
            let mut spawned = Command::new(program);
            spawned.args(args).current_dir(self.folder).env("PATH", self.path);
            spawned.stdin(Stdio::from(self.guard.try_clone().map_err(spawn_error)?));
            // Debian's `venv` reports errors on stdout, other commands on stderr.
            spawned.stdout(input.try_clone().map_err(spawn_error)?).stderr(input);
            spawned.spawn().map_err(spawn_error)?
        };
        let limit = if command == BUILD { BUILD_LIMIT } else { FETCH_LIMIT };
        let child = LimitedChild::new(child, limit);
        let mut text = String::new();
        let mut bytes = Vec::new();
        let mut output = BufReader::new(output);
        while output.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
            let read = String::from_utf8_lossy(&bytes);
            line(&read);
            text.push_str(&read);
            bytes.clear();
            if text.len() > 2 * OUTPUT_KEPT {
                text = tail(&text, OUTPUT_KEPT).to_owned();
            }
        }
        let Some(status) = child.wait().map_err(spawn_error)? else {
            return Err(ToolError::TimedOut { command, limit });
        };
        if status.success() {
            return Ok(());
        }
        if command == VENV && (text.contains("ensurepip") || text.contains("No module named venv")) {
            return Err(ToolError::NoVenv { fix: system::fix(self.search, Need::Venv) });
        }
        if is_offline(&text) {
            let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
            let proxy = PROXIES.into_iter().find(is_set);
            return Err(ToolError::Offline { command, proxy });
        }
        Err(ToolError::Failed { command, output: failure_reason(&text) })
    }
}

/// A process that is killed when its time is over.
struct LimitedChild {
    child: Arc<Mutex<Child>>,
    /// Ends the timer when it is dropped.
    ended: mpsc::Sender<()>,
    /// Whether it killed the process.
    timer: thread::JoinHandle<bool>,
}

impl LimitedChild {
    fn new(child: Child, limit: Duration) -> Self {
        let child = Arc::new(Mutex::new(child));
        let (ended, wait) = mpsc::channel();
        let timed = Arc::clone(&child);
        let timer = thread::spawn(move || {
            let is_over = wait.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            // It fails if the process has just ended.
            is_over && timed.lock().unwrap_or_else(PoisonError::into_inner).kill().is_ok()
        });
        Self { child, ended, timer }
    }

    /// Call it after the process closed its output. `None` if its time was over.
    fn wait(self) -> std::io::Result<Option<ExitStatus>> {
        drop(self.ended);
        let is_killed = self.timer.join().unwrap_or(false);
        let status = self.child.lock().unwrap_or_else(PoisonError::into_inner).wait()?;
        Ok((!is_killed).then_some(status))
    }
}

/// The lines from the first that begins with `error` on, else the last ones, as one line.
fn failure_reason(output: &str) -> String {
    let lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<String> = lines.map(shortened).collect();
    let is_error = |line: &String| {
        let line = line.trim_start_matches("npm ").to_ascii_lowercase();
        line.starts_with("error")
    };
    let from = lines.iter().position(is_error).unwrap_or(lines.len().saturating_sub(REASON_LINES));
    lines.into_iter().skip(from).take(REASON_LINES).collect::<Vec<_>>().join("; ")
}

/// A long line without its middle: cargo prints the whole command of a compiler that was killed, and why at the end.
fn shortened(line: &str) -> String {
    match line.len() <= REASON_LINE_BYTES {
        true => line.to_owned(),
        false => {
            let start = &line[..line.floor_char_boundary(REASON_LINE_BYTES / 2)];
            format!("{start} … {}", tail(line, REASON_LINE_BYTES / 2))
        }
    }
}

/// The variables in which npm, pip and cargo look for a proxy.
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Texts that npm, pip and cargo print when they have no connection, or a proxy refuses it.
fn is_offline(output: &str) -> bool {
    [
        "ENOTFOUND",
        "EAI_AGAIN",
        "ECONNREFUSED",
        "ECONNRESET",
        "ENETUNREACH",
        "ETIMEDOUT",
        "ENOTCACHED",
        "NewConnectionError",
        "ConnectTimeoutError",
        "ProxyError",
        "Proxy Authentication Required",
        "CONNECT tunnel failed",
        "tunneling socket could not be established",
        "spurious network error",
        "Could not resolve host",
        "Could not connect to server",
        "Couldn't connect to server",
        "Failed to connect to",
    ]
    .iter()
    .any(|word| output.contains(word))
}

/// The end of a text, at most this many bytes.
fn tail(text: &str, most: usize) -> &str {
    let start = text.len().saturating_sub(most);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_killed_when_its_time_is_over() {
        let spawn = |program: &str, argument: &str| Command::new(program).arg(argument).spawn().unwrap();
        let short = LimitedChild::new(spawn("sleep", "600"), Duration::from_millis(1));
        // Its output would end with it; `wait` alone would end the timer first.
        while !short.timer.is_finished() {
            thread::yield_now();
        }
        assert!(short.wait().unwrap().is_none());
        let long = LimitedChild::new(spawn("sleep", "0"), FETCH_LIMIT);
        assert!(long.wait().unwrap().is_some_and(|status| status.success()));
    }

    #[test]
    fn reason_begins_with_the_first_error_and_is_short() {
        let npm = "npm warn old\nnpm error code E404\nnpm error 404 Not Found\n";
        assert_eq!(failure_reason(npm), "npm error code E404; npm error 404 Not Found");
        let killed = format!(
            "Compiling a\nerror: could not compile `a`\n  rustc {} (signal: 9, SIGKILL: kill)",
            "x".repeat(5_000)
        );
        let reason = failure_reason(&killed);
        assert!(reason.starts_with("error: could not compile `a`; rustc xxx"), "{reason}");
        assert!(reason.ends_with("x (signal: 9, SIGKILL: kill)") && reason.len() < 300, "{reason}");
        let plain: String = (0..20).map(|number| format!("line {number}\n")).collect();
        assert_eq!(failure_reason(&plain), "line 15; line 16; line 17; line 18; line 19");
        assert_eq!(failure_reason(""), "");
    }
}
