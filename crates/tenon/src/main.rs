//! The command line: parses arguments, calls the library crates and prints the result.

mod agent_config;
mod alias;
mod cli;
mod commands;
mod daemon_client;
mod exit;
mod failure;
mod invocation;
mod language_servers;
mod work;

fn main() -> std::process::ExitCode {
    cli::run().into()
}
