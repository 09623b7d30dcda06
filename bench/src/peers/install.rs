//! Installs the peers at pinned versions into `target/tools/peers`, once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenon_testkit::program;

use crate::error::BenchError;
use crate::output::log;

const SERENA: &str = "serena-agent==2.1.0";
const CCLSP: &str = "cclsp@0.7.0";
const RIPGREP: &str = "14.1.1";

fn folder(name: &str) -> PathBuf {
    program::tools().join("peers").join(name)
}

/// The program `serena`.
pub(crate) fn serena() -> Result<PathBuf, BenchError> {
    let folder = folder("serena");
    install_once(&folder, SERENA, || {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let mut pip = Command::new(folder.join("bin/python"));
        run(pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", SERENA]))
    })?;
    Ok(folder.join("bin/serena"))
}

/// The program `cclsp`.
pub(crate) fn cclsp() -> Result<PathBuf, BenchError> {
    let folder = folder("cclsp");
    install_once(&folder, CCLSP, || {
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
        run(npm.arg(&folder).arg(CCLSP))
    })?;
    Ok(folder.join("node_modules/.bin/cclsp"))
}

/// The program `rg`: the one on `PATH`, or else one that cargo builds.
pub(crate) fn ripgrep() -> Result<PathBuf, BenchError> {
    if Command::new("rg").arg("--version").output().is_ok() {
        return Ok("rg".into());
    }
    let folder = folder("ripgrep");
    install_once(&folder, RIPGREP, || {
        let mut cargo = Command::new("cargo");
        cargo.args(["install", "--quiet", "--locked", "ripgrep", "--version", RIPGREP, "--root"]);
        run(cargo.arg(&folder))
    })?;
    Ok(folder.join("bin/rg"))
}

/// Runs `install` unless the stamp in `folder` equals `pin`.
fn install_once(
    folder: &Path,
    pin: &str,
    install: impl FnOnce() -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let stamp = folder.join(".stamp");
    if fs::read_to_string(&stamp).is_ok_and(|text| text == pin) {
        return Ok(());
    }
    log(&format!("installing {pin} into {}", folder.display()));
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir_all(folder)?,
    }
    install()?;
    Ok(fs::write(stamp, pin)?)
}

fn run(command: &mut Command) -> Result<(), BenchError> {
    // Results go to stdout; what an installer says does not belong there.
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(BenchError::new(format!("{command:?}: {said}")))
}
