//! The command line: parsing, printing and wiring, no logic.

mod agents;
mod alias;
mod cli;
mod commands;
mod exit;
mod invocation;
mod link;
mod report;
mod servers;
mod work;

fn main() -> std::process::ExitCode {
    cli::run().into()
}
