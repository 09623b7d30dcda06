//! The list of commands, and the way from the command line to one of them.

use camino::Utf8PathBuf;
use clap::{CommandFactory, Parser, Subcommand};

use crate::commands;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::report::Failure;

/// The joint between coding agents and a workspace.
///
/// One local daemon per workspace answers every agent, editor and person on this machine: what the code says, what an
/// edit broke, which documents fit the budget, what the plan is. `tenon up` in a workspace sets everything up and
/// shows how to connect an agent.
#[derive(Debug, Parser)]
#[command(
    name = "tenon",
    version,
    after_help = "Settings: `tenon config show`. What a repository may do before it is trusted: nothing; see `tenon trust --help`."
)]
pub(crate) struct Cli {
    /// The workspace root; otherwise the nearest folder above with a `tenon.toml` or under version control
    #[arg(long, global = true, value_name = "DIR", env = "TENON_ROOT")]
    root: Option<Utf8PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(commands::up::Args),
    Mcp(commands::mcp::Args),
    Serve(commands::serve::Args),
    Status(commands::status::Args),
    Stop(commands::stop::Args),
    Trust(commands::trust::Args),
    Config(commands::config::Args),
    Token(commands::token::Args),
    Doctor(commands::doctor::Args),
    Completions(commands::completions::Args),
    #[command(hide = true)]
    Daemon(commands::daemon::Args),
}

/// The definition of the command line, for completions.
pub(crate) fn definition() -> clap::Command {
    Cli::command()
}

/// Runs the command that the command line names and reports how it went.
pub(crate) fn run() -> Exit {
    let Cli { root, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, not mistakes.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Success };
            let _ = error.print();
            return exit;
        }
    };
    let mut invocation = Invocation::new(root);
    let outcome = dispatch(command, &mut invocation);
    outcome.unwrap_or_else(|failure| {
        let _ = write!(invocation.err, "{}", failure.render());
        failure.exit
    })
}

fn dispatch(command: Command, invocation: &mut Invocation) -> Result<Exit, Failure> {
    match command {
        Command::Up(args) => commands::up::run(args, invocation),
        Command::Mcp(args) => commands::mcp::run(args, invocation),
        Command::Serve(args) => commands::serve::run(args, invocation),
        Command::Status(args) => commands::status::run(args, invocation),
        Command::Stop(args) => commands::stop::run(args, invocation),
        Command::Trust(args) => commands::trust::run(args, invocation),
        Command::Config(args) => commands::config::run(args, invocation),
        Command::Token(args) => commands::token::run(args, invocation),
        Command::Doctor(args) => commands::doctor::run(args, invocation),
        Command::Completions(args) => commands::completions::run(args, invocation),
        Command::Daemon(args) => commands::daemon::run(args, invocation),
    }
}
