//! `cargo xtask bench`: builds the product and the benchmarks (`bench/`) with the `dist` profile and runs them.

use std::process::Command;

use crate::shell::{self, Error, cargo, repository, run_checked};

/// The benches in `bench/src/main.rs`, checked here before the build.
pub(crate) const NAMES: [&str; 20] = [
    "changes",
    "checkers",
    "code",
    "compose",
    "console",
    "context",
    "coverage",
    "declarations",
    "edit",
    "load",
    "lsp",
    "oracle",
    "peers",
    "renames",
    "rounds",
    "spine",
    "symbols",
    "tasks",
    "tries",
    "work",
];

pub(crate) fn run(name: Option<&str>, options: &[String]) -> Result<bool, Error> {
    // Both at once: the bench program takes the `tenon` next to it.
    run_checked(cargo().args([
        "build",
        "--profile",
        "dist",
        "--package",
        "tenon",
        "--package",
        "tenon-bench",
    ]))?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), std::path::PathBuf::from);
    let program = repository().join(target).join("dist/tenon-bench");
    shell::run(Command::new(program).args(name).args(options))
}
