//! Runs npm and pip on a lock.

use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

use super::lock::{PackageLock, PackageManager};
use crate::find::SearchPath;

/// How many bytes of a failed command's output are kept. The end usually has the reason.
const OUTPUT_TAIL: usize = 2_000;

#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error("`{program}` is not installed")]
    Missing { program: &'static str, fix: &'static str },
    #[error("Python has no module `venv`")]
    NoVenv,
    #[error("`{command}` cannot reach its package registry")]
    Offline { command: &'static str },
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
    pub(super) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing { fix, .. } => Some(fix),
            Self::NoVenv => Some("run `apt install python3-venv`"),
            Self::Offline { .. } => {
                Some("connect, or point npm and pip at a registry that can be reached, then try again")
            }
            Self::Failed { .. } | Self::Spawn { .. } | Self::Write(_) => None,
        }
    }
}

/// The package managers of this machine.
#[derive(Debug, Clone)]
pub struct Tools {
    npm: Option<Utf8PathBuf>,
    python: Option<Utf8PathBuf>,
    path: String,
}

impl Tools {
    /// Looks on PATH, never inside `forbidden`, the workspace to install for.
    pub fn find(search: &SearchPath, forbidden: Option<&Utf8Path>) -> Self {
        Self {
            npm: search.which("npm", forbidden),
            python: search.which("python3", forbidden),
            path: search.join(forbidden),
        }
    }

    pub(super) fn has(&self, manager: PackageManager) -> bool {
        match manager {
            PackageManager::Npm => self.npm.is_some(),
            PackageManager::Pip => self.python.is_some(),
        }
    }

    /// Installs a lock into an empty folder.
    pub(super) fn build(
        &self,
        lock: &PackageLock,
        folder: &Utf8Path,
        step: &mut dyn FnMut(&'static str),
    ) -> Result<(), ToolError> {
        for (name, text) in lock.files {
            fs_err::write(folder.join(name), text)?;
        }
        match lock.manager {
            PackageManager::Npm => self.npm(folder, step),
            PackageManager::Pip => self.pip(folder, step),
        }
    }

    fn npm(&self, folder: &Utf8Path, step: &mut dyn FnMut(&'static str)) -> Result<(), ToolError> {
        let npm = self.npm.as_deref().ok_or(ToolError::Missing {
            program: "npm",
            fix: "install Node.js 20 or newer, for instance with `apt install npm`",
        })?;
        step("fetching with npm");
        let flags =
            ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--engine-strict"];
        self.run("npm ci", npm, &flags, folder)
    }

    fn pip(&self, folder: &Utf8Path, step: &mut dyn FnMut(&'static str)) -> Result<(), ToolError> {
        let python = self.python.as_deref().ok_or(ToolError::Missing {
            program: "python3",
            fix: "run `apt install python3 python3-venv`",
        })?;
        step("creating a virtual environment");
        self.run("python3 -m venv", python, &["-m", "venv", "venv"], folder).map_err(
            |error| match error {
                ToolError::Failed { output, .. }
                    if output.contains("ensurepip") || output.contains("No module named venv") =>
                {
                    ToolError::NoVenv
                }
                other => other,
            },
        )?;
        step("fetching with pip");
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
        self.run("pip install", &folder.join("venv/bin/python"), &flags, folder)
    }

    fn run(
        &self,
        command: &'static str,
        program: &Utf8Path,
        args: &[&str],
        folder: &Utf8Path,
    ) -> Result<(), ToolError> {
        let output = Command::new(program)
            .args(args)
            .current_dir(folder)
            .env("PATH", &self.path)
            .stdin(Stdio::null())
            .output()
            .map_err(|source| ToolError::Spawn { command, source })?;
        if output.status.success() {
            return Ok(());
        }
        // Debian's `venv` reports errors on stdout, other commands on stderr.
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        if is_offline(&text) {
            return Err(ToolError::Offline { command });
        }
        Err(ToolError::Failed { command, output: tail(&text).to_owned() })
    }
}

/// Texts that npm and pip print when they have no connection.
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
    ]
    .iter()
    .any(|word| output.contains(word))
}

fn tail(text: &str) -> &str {
    let text = text.trim();
    let start = text.len().saturating_sub(OUTPUT_TAIL);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[start..]
}
