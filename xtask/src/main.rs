//! Developer commands: set up, test, keep tidy, generate, measure.
//!
//! Talk goes to stderr, results to stdout. A command that cannot go on says what is missing and
//! the command that fixes it.

mod schemas;
mod setup;
mod shell;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::shell::{Failure, say};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of Tenon", disable_help_subcommand = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Set up, then check format and lints and run every test of every kind
    Test {
        /// Run one stage (`format`, `lints`, `tests`, `conformance`), or the tests whose name contains this
        filter: Option<String>,
    },
    /// Install what the tests need into `target/tools`, and nothing else
    Setup,
    /// Check the rules of the tree that no compiler checks
    Tidy,
    /// Write the generated files anew
    Schemas,
}

fn main() -> ExitCode {
    match run(Args::parse().command) {
        Ok(code) => code,
        Err(failure) => {
            say(&failure.to_string());
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Test { filter } => test::run(filter.as_deref()),
        Command::Setup => setup::run().map(|()| ExitCode::SUCCESS),
        Command::Tidy => tidy::run(),
        Command::Schemas => schemas::run(),
    }
}
