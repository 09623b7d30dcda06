//! `cargo xtask soak`: builds the product and runs agents on it for minutes (`bench/src/soak.rs`).

use std::process::Command;

use crate::shell::{self, Error, cargo, repository, run_checked};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How long to run
    #[arg(long, default_value_t = 5)]
    minutes: u64,
    /// Decides what agents do and what is killed; random by default
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs a debug build, which also checks overflows and assertions. Returns whether nothing was violated.
pub(crate) fn run(options: &Options) -> Result<bool, Error> {
    run_checked(cargo().args(["build", "--package", "tenon", "--package", "tenon-bench"]))?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), std::path::PathBuf::from);
    let mut command = Command::new(repository().join(target).join("debug/tenon-bench"));
    command.args(["soak", "--minutes", &options.minutes.to_string()]);
    if let Some(seed) = options.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    shell::run(&mut command)
}
