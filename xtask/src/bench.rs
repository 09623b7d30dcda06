//! `cargo xtask bench`: builds the product and the benchmarks (`bench/`) in release mode and runs them.

use std::process::Command;

use crate::shell::{self, Error, cargo, repository, run_checked};

pub(crate) fn run(arguments: &[String]) -> Result<bool, Error> {
    // Both at once: the bench program takes the `tenon` next to it.
    run_checked(cargo().args(["build", "--release", "--package", "tenon", "--package", "tenon-bench"]))?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), std::path::PathBuf::from);
    let program = repository().join(target).join("release/tenon-bench");
    shell::run(Command::new(program).args(arguments))
}
