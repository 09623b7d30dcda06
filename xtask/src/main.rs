//! Developer commands: set up, test, keep tidy, generate, measure.
//!
//! Talk goes to stderr, results to stdout. A command that cannot go on says what is missing and
//! the command that fixes it.

mod bench;
mod portable;
mod product;
mod schemas;
mod setup;
mod shell;
mod test;
mod tidy;

use std::path::PathBuf;
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
        /// Run one stage (`format`, `lints`, `tests`, `clients`, `conformance`), or the tests whose name contains this
        filter: Option<String>,
    },
    /// Install what the tests need into `target/tools`, and nothing else
    Setup,
    /// Check the rules of the tree that no compiler checks
    Tidy,
    /// Check that the shipped crates compile where there is no Unix
    Portable,
    /// Write the generated files anew
    Schemas,
    /// Measure the release build
    Bench {
        /// Which one; all without a choice
        which: Option<bench::Bench>,
    },
    /// Parse a JSON file and end: what `bench compose` compares the composer with
    #[command(hide = true)]
    Parse { file: PathBuf },
    /// Answer HTTP requests with their own bodies: what `bench spine` compares our HTTP with
    #[command(hide = true)]
    Echo,
    /// Pass bytes between stdin, stdout and a unix socket: what `bench spine` compares the bridge with
    #[command(hide = true)]
    Relay { socket: PathBuf },
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
        Command::Portable => Ok(if portable::check()? { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        Command::Schemas => schemas::run(),
        Command::Bench { which } => bench::run(which),
        Command::Parse { file } => bench::parse(&file).map(|()| ExitCode::SUCCESS),
        Command::Echo => Ok(bench::echo().map(|()| ExitCode::SUCCESS)?),
        Command::Relay { socket } => Ok(bench::relay(&socket).map(|()| ExitCode::SUCCESS)?),
    }
}
