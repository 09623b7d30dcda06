//! Node 22, and the servers, SDKs and suites written in JavaScript, all from one npm lock file.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{Failure, once};
use crate::shell::{must, repository, tools};

/// What the tests call by name.
const PROGRAMS: [&str; 15] = [
    "bash-language-server",
    "conformance",
    "eslint",
    "node",
    "playwright-core",
    "pyright",
    "pyright-langserver",
    "tsc",
    "typescript-language-server",
    "vscode-css-language-server",
    "vscode-eslint-language-server",
    "vscode-html-language-server",
    "vscode-json-language-server",
    "vscode-markdown-language-server",
    "yaml-language-server",
];

pub(super) fn install() -> Result<bool, Failure> {
    let pins = repository().join("tests/tools/node");
    let package = fs::read_to_string(pins.join("package.json"))?;
    let lock = fs::read_to_string(pins.join("package-lock.json"))?;
    let folder = tools().join("node");
    once(&folder, &format!("{package}{lock}"), || {
        fs::write(folder.join("package.json"), &package)?;
        fs::write(folder.join("package-lock.json"), &lock)?;
        // No package's script runs: all of these work as unpacked.
        must(
            Command::new("npm")
                .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"])
                .arg(&folder),
        )
    })
}

pub(super) fn programs() -> Vec<(&'static str, PathBuf)> {
    let bin = tools().join("node/node_modules/.bin");
    PROGRAMS.iter().map(|name| (*name, bin.join(name))).collect()
}
