//! The command that installs a missing program with the package manager of this system.

use crate::find::SearchPath;

/// A program that installations need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Npm,
    Python,
    /// Debian packages Python without it.
    Venv,
    Cargo,
}

/// A package manager with its names for what we need.
struct System {
    program: &'static str,
    install: &'static str,
    needs_root: bool,
    npm: &'static str,
    python: &'static str,
}

const SYSTEMS: [System; 6] = [
    System {
        program: "apt-get",
        install: "apt install",
        needs_root: true,
        npm: "npm",
        python: "python3 python3-venv",
    },
    System { program: "dnf", install: "dnf install", needs_root: true, npm: "nodejs-npm", python: "python3" },
    System { program: "pacman", install: "pacman -S", needs_root: true, npm: "npm", python: "python" },
    System { program: "zypper", install: "zypper install", needs_root: true, npm: "npm", python: "python3" },
    System { program: "apk", install: "apk add", needs_root: true, npm: "npm", python: "python3" },
    System { program: "brew", install: "brew install", needs_root: false, npm: "node", python: "python" },
];

/// What the user can do about a missing program.
pub(super) fn fix(search: &SearchPath, need: Need) -> String {
    let what = match need {
        Need::Npm => "Node.js 20 or newer with npm",
        Need::Python => "Python 3.9 or newer with venv",
        Need::Venv => "Python's module `venv`",
        // The compilers of most distributions are too old.
        Need::Cargo => return "install Rust with rustup: see https://rustup.rs".to_owned(),
    };
    let Some(system) = SYSTEMS.iter().find(|system| search.which(system.program, None).is_some()) else {
        return format!("install {what} with your system's package manager");
    };
    let package = match need {
        Need::Npm => system.npm,
        Need::Venv if system.program == "apt-get" => "python3-venv",
        Need::Python | Need::Venv | Need::Cargo => system.python,
    };
    let sudo = if system.needs_root && search.which("sudo", None).is_some() { "sudo " } else { "" };
    format!("run `{sudo}{} {package}` to install {what}", system.install)
}
