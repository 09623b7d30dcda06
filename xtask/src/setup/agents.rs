//! Installs the coding agents that the tests connect to Tenon, from one npm lock file.
//!
//! They are not linked into `target/tools/bin`: most tests must not find an agent.

use std::fs;
use std::process::Command;

use super::{Error, install_once};
use crate::shell::{repository, run_checked, tools};

pub(super) fn install() -> Result<bool, Error> {
    let pins = repository().join("tests/tools/agents");
    let package = fs::read_to_string(pins.join("package.json"))?;
    let lock = fs::read_to_string(pins.join("package-lock.json"))?;
    let folder = tools().join("agents");
    install_once(&folder, &format!("{package}{lock}"), || {
        fs::write(folder.join("package.json"), &package)?;
        fs::write(folder.join("package-lock.json"), &lock)?;
        // The install scripts only copy programs that the tests start directly.
        run_checked(
            Command::new("npm")
                .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"])
                .arg(&folder),
        )
    })
}
