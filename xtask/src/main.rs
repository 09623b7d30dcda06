//! Developer commands: set up, test, check the rules of the tree, generate, measure.
//!
//! Progress goes to stderr, results to stdout. A command that fails names the command that fixes it.

mod attack;
mod bench;
mod book;
mod deny;
mod dist;
mod fuzz;
mod non_unix;
mod schemas;
mod setup;
mod shell;
mod soak;
mod test;
mod tidy;
mod workflows;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::shell::{Error, log};

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "Developer commands of Tenon", disable_help_subcommand = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Set up, then run every check and every test
    Test {
        /// Run one stage (`format`, `lints`, `non-unix`, `deny`, `workflows`, `tests`), or the tests whose name contains this
        filter: Option<String>,
    },
    /// Open hostile repositories with the built program and real language servers
    Attack {
        /// Leave out the slow attacks, as the tests do
        #[arg(long)]
        quick: bool,
        /// Instead, kill each process that writes tasks or edits files this often, at random moments
        #[arg(long, value_name = "N", conflicts_with = "quick", value_parser = clap::value_parser!(u32).range(1..))]
        kills: Option<u32>,
    },
    /// Install what the tests need into `target/tools`
    Setup,
    /// Check the rules of the tree that no compiler checks
    Tidy,
    /// Check that the shipped crates compile on systems other than Unix
    NonUnix,
    /// Check licences, duplicate versions and sources of dependencies against `deny.toml`
    Deny,
    /// Check the workflows in `.github` with actionlint
    Workflows,
    /// Change links for the book; mdBook runs this
    Book(book::Options),
    /// Regenerate the generated files
    Schemas,
    /// Build the packages of a release: archive, wheel, npm packages, checksums, SBOM, install script
    Dist(dist::Options),
    /// Run the fuzz targets with a nightly toolchain
    Fuzz(fuzz::Options),
    /// Run agents for minutes while servers and the daemon are killed, and compare answers with the truth
    Soak(soak::Options),
    /// Measure the `dist` build
    Bench {
        /// Which bench to run; all by default
        #[arg(value_parser = bench::NAMES)]
        name: Option<String>,
        /// Options of that bench
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, requires = "name")]
        options: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Args::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            log(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Runs a command. Returns whether everything that it checked passed.
fn run(command: Command) -> Result<bool, Error> {
    match command {
        Command::Test { filter } => test::run(filter.as_deref()),
        Command::Attack { quick, kills } => attack::run(quick, kills),
        Command::Setup => setup::run().map(|()| true),
        Command::Tidy => tidy::run(),
        Command::NonUnix => non_unix::check(),
        Command::Deny => deny::check(),
        Command::Workflows => workflows::check(),
        Command::Book(options) => book::run(&options),
        Command::Schemas => schemas::run(),
        Command::Dist(options) => dist::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Soak(options) => soak::run(&options),
        Command::Bench { name, options } => bench::run(name.as_deref(), &options),
    }
}
