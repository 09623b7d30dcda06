//! Installs Node 22 and the JavaScript servers, SDKs and test suites from one npm lock file.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{Error, install_once};
use crate::shell::{repository, run_checked, tools};

/// Programs that the tests call by name.
const PROGRAMS: [&str; 17] = [
    "bash-language-server",
    "biome",
    "conformance",
    "eslint",
    "intelephense",
    "node",
    "playwright-core",
    "pyright",
    "pyright-langserver",
    "svelteserver",
    "typescript-language-server",
    "vscode-css-language-server",
    "vscode-eslint-language-server",
    "vscode-html-language-server",
    "vscode-json-language-server",
    "vscode-markdown-language-server",
    "yaml-language-server",
];

pub(super) fn install() -> Result<bool, Error> {
    let pins = repository().join("tests/tools/node");
    let package = fs::read_to_string(pins.join("package.json"))?;
    let lock = fs::read_to_string(pins.join("package-lock.json"))?;
    let folder = tools().join("node");
    install_once(&folder, &format!("{package}{lock}"), || {
        fs::write(folder.join("package.json"), &package)?;
        fs::write(folder.join("package-lock.json"), &lock)?;
        // No package needs its install scripts.
        run_checked(
            Command::new("npm")
                .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"])
                .arg(&folder),
        )
    })
}

pub(super) fn programs() -> Vec<(&'static str, PathBuf)> {
    let packages = tools().join("node/node_modules");
    // Two packages have a program of this name.
    let compilers = [("tsc", "typescript/bin/tsc"), ("tsgo", "typescript-7/bin/tsc")];
    let compilers = compilers.map(|(name, path)| (name, packages.join(path)));
    PROGRAMS.iter().map(|name| (*name, packages.join(".bin").join(name))).chain(compilers).collect()
}
