//! System packages: checked, installed with apt when run as root, otherwise reported with the command to run.

use std::process::Command;

use super::{Error, log};
use crate::shell::{on_path, run_checked, succeeds};

/// A system program that the tests need.
struct Component {
    name: &'static str,
    present: fn() -> bool,
    /// The Debian packages that contain it.
    packages: &'static [&'static str],
}

const COMPONENTS: [Component; 8] = [
    // clangd reads the headers of the installed compiler.
    Component { name: "a C++ compiler", present: || succeeds("c++", &["--version"]), packages: &["g++"] },
    Component { name: "npm", present: || succeeds("npm", &["--version"]), packages: &["nodejs", "npm"] },
    Component {
        name: "Python 3.10 or later with venv",
        present: || {
            succeeds("python3", &["-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))"])
        },
        packages: &["python3", "python3-venv"],
    },
    Component { name: "PostgreSQL", present: has_postgres, packages: &["postgresql"] },
    // A pooler in front of it.
    Component {
        name: "PgBouncer",
        present: || succeeds("pgbouncer", &["--version"]),
        packages: &["pgbouncer"],
    },
    // Tests use it to prove that Tenon opens no outbound connection.
    Component { name: "strace", present: || succeeds("strace", &["-V"]), packages: &["strace"] },
    // A language server that neither npm nor PyPI carries.
    Component {
        name: "Go with gopls",
        present: || succeeds("go", &["version"]) && succeeds("gopls", &["version"]),
        packages: &["golang-go", "gopls"],
    },
    // Tests use the web console with it.
    Component { name: "Chromium", present: || succeeds("chromium", &["--version"]), packages: &["chromium"] },
];

/// Installs missing components.
pub(super) fn ensure() -> Result<(), Error> {
    ensure_cargo_components()?;
    let missing: Vec<&Component> = COMPONENTS.iter().filter(|component| !(component.present)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.iter().map(|component| component.name).collect::<Vec<_>>().join(", ");
    let packages: Vec<&str> = missing.iter().flat_map(|component| component.packages).copied().collect();
    let missing_error = || Error::new(format!("missing on this machine: {names}"));
    if !on_path("apt-get") {
        return Err(
            missing_error().hint("install them with the system's package manager, then run this again")
        );
    }
    let install = format!("apt-get install -y --no-install-recommends {}", packages.join(" "));
    if !is_root() {
        return Err(missing_error().hint(format!("sudo {install}")));
    }
    log(&format!("missing: {names}; installing with apt"));
    apt(&["update", "-q"])?;
    apt(&[&["install", "-y", "--no-install-recommends"], packages.as_slice()].concat())?;
    match missing.iter().find(|component| !(component.present)()) {
        Some(still) => Err(Error::new(format!("{} is still missing after apt", still.name)).hint(install)),
        None => Ok(()),
    }
}

/// `cargo fmt` and `cargo clippy` are rustup components, not always installed.
fn ensure_cargo_components() -> Result<(), Error> {
    for (component, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if succeeds("cargo", &[subcommand, "--version"]) {
            continue;
        }
        let hint = format!("rustup component add {component}");
        if !on_path("rustup") {
            return Err(Error::new(format!("`cargo {subcommand}` is missing")).hint(hint));
        }
        run_checked(Command::new("rustup").args(["component", "add", component]))?;
    }
    Ok(())
}

/// Debian installs the server outside `PATH`, in one folder per version.
fn has_postgres() -> bool {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    on_path("postgres") || versions.into_iter().any(|version| version.path().join("bin/postgres").is_file())
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|this| this.uid() == 0)
}

fn apt(arguments: &[&str]) -> Result<(), Error> {
    run_checked(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}
