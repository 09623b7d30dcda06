//! What must come from the system: found, installed when we may, else named with its fix.

use std::process::Command;

use super::{Failure, say};
use crate::shell::{must, on_path, works};

/// A part of the system that the tests cannot do without.
struct Component {
    name: &'static str,
    present: fn() -> bool,
    /// The Debian packages that bring it.
    packages: &'static [&'static str],
}

const COMPONENTS: [Component; 5] = [
    // clangd reads the headers of the compiler that it finds.
    Component { name: "a C++ compiler", present: || works("c++", &["--version"]), packages: &["g++"] },
    Component { name: "npm", present: || works("npm", &["--version"]), packages: &["nodejs", "npm"] },
    Component {
        name: "Python 3.10 or later with venv",
        present: || {
            works("python3", &["-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))"])
        },
        packages: &["python3", "python3-venv"],
    },
    Component { name: "PostgreSQL", present: has_postgres, packages: &["postgresql"] },
    // Watches whether anything connects while Tenon serves.
    Component { name: "strace", present: || works("strace", &["-V"]), packages: &["strace"] },
];

/// Makes sure of every component and of cargo's own.
pub(super) fn ensure() -> Result<(), Failure> {
    ensure_cargo_components()?;
    let missing: Vec<&Component> = COMPONENTS.iter().filter(|component| !(component.present)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.iter().map(|component| component.name).collect::<Vec<_>>().join(", ");
    let packages: Vec<&str> = missing.iter().flat_map(|component| component.packages).copied().collect();
    let lacking = || Failure::new(format!("missing on this machine: {names}"));
    if !on_path("apt-get") {
        return Err(lacking().fix("install them with the system's package manager, then run this again"));
    }
    let fix = format!("apt-get install -y --no-install-recommends {}", packages.join(" "));
    if !is_root() {
        return Err(lacking().fix(format!("sudo {fix}")));
    }
    say(&format!("{names}: missing, installing with apt"));
    apt(&["update", "-q"])?;
    apt(&[&["install", "-y", "--no-install-recommends"], packages.as_slice()].concat())?;
    match missing.iter().find(|component| !(component.present)()) {
        Some(still) => Err(Failure::new(format!("{} is still missing after apt", still.name)).fix(fix)),
        None => Ok(()),
    }
}

/// `cargo fmt` and `cargo clippy` are rustup components, not always installed.
fn ensure_cargo_components() -> Result<(), Failure> {
    for (component, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if works("cargo", &[subcommand, "--version"]) {
            continue;
        }
        let fix = format!("rustup component add {component}");
        if !on_path("rustup") {
            return Err(Failure::new(format!("`cargo {subcommand}` is missing")).fix(fix));
        }
        must(Command::new("rustup").args(["component", "add", component]))?;
    }
    Ok(())
}

/// Debian keeps the server outside `PATH`, one folder per version.
fn has_postgres() -> bool {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    on_path("postgres") || versions.into_iter().any(|version| version.path().join("bin/postgres").is_file())
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|this| this.uid() == 0)
}

fn apt(arguments: &[&str]) -> Result<(), Failure> {
    must(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}
