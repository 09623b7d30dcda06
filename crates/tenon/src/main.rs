//! The command line: parses arguments, calls the library crates and prints the result.
//!
//! Everything is printed through `Invocation`, which keeps terminal control characters out of text for people.

#![warn(clippy::print_stderr)]

mod agent_config;
mod alias;
mod cli;
mod commands;
mod config_edit;
mod daemon_client;
mod exit;
mod explore_text;
mod failure;
mod invocation;
mod language_servers;
mod server_choices;
mod styled_text;
mod user_config;
mod work;
mod work_text;

fn main() -> std::process::ExitCode {
    cli::run().into()
}
