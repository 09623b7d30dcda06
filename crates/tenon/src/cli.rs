//! The list of commands, argument parsing and dispatch.

use std::ffi::OsString;

use camino::Utf8PathBuf;
use clap::{CommandFactory, Parser, Subcommand};
use tenon_contract::visible::visible;

use crate::alias;
use crate::commands;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Connects coding agents to a workspace
///
/// One local daemon per workspace serves every agent, editor and terminal: code navigation with real language servers,
/// fresh diagnostics after each edit, documents within a token budget, plans and memory. Run `tenon up` in a workspace to
/// set it up and to see how to connect an agent.
#[derive(Debug, Parser)]
#[command(
    name = "tenon",
    version,
    after_help = "Run `tenon config show` to see the settings. Nothing in a repository runs until you trust it; see `tenon trust --help`."
)]
pub(crate) struct Cli {
    /// Workspace root [default: the nearest parent folder with a `tenon.toml` or under version control]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "TENON_ROOT",
        hide_env_values = true,
        help_heading = "Global options"
    )]
    root: Option<Utf8PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(commands::up::Args),
    Connect(commands::connect::Args),
    Console(commands::console::Args),
    Mcp(commands::mcp::Args),
    Serve(commands::serve::Args),
    Status(commands::status::Args),
    Stop(commands::stop::Args),
    Restart(commands::restart::Args),
    Logs(commands::logs::Args),
    Find(commands::find::Args),
    Refs(commands::refs::Args),
    Outline(commands::outline::Args),
    Search(commands::search::Args),
    Ask(commands::ask::Args),
    Pack(commands::pack::Args),
    Check(commands::check::Args),
    Servers(commands::servers::Args),
    Hook(commands::hook::Args),
    Trust(commands::trust::Args),
    AllowEdit(commands::allow_edit::Args),
    Config(commands::config::Args),
    #[command(version)]
    Context(commands::context::Args),
    Tasks(Box<commands::tasks::Args>),
    Memory(commands::memory::Args),
    Store(commands::store::Args),
    Compose(commands::compose::Args),
    #[cfg(unix)]
    LspService(commands::lsp_service::Args),
    ContextServer(commands::context_server::Args),
    Token(commands::token::Args),
    Doctor(commands::doctor::Args),
    Completions(commands::completions::Args),
    Version(commands::version::Args),
    Man(commands::man::Args),
    #[command(hide = true)]
    Daemon(commands::daemon::Args),
}

/// The command-line definition, for shell completions and manual pages.
pub(crate) fn definition() -> clap::Command {
    Cli::command()
}

/// Parses the command line, runs the command and reports its failure.
pub(crate) fn run() -> Exit {
    let line = alias::expand(std::env::args_os().collect());
    let Cli { root, command } = match Cli::try_parse_from(&line) {
        Ok(cli) => cli,
        Err(error) => {
            // `--help` and `--version` arrive as errors, too.
            let exit = if error.use_stderr() { usage(&line) } else { Exit::Success };
            // The error repeats arguments, which may be names of files.
            let shown = line.iter().map(|one| visible(&one.to_string_lossy()).into_owned());
            let _ = Cli::try_parse_from(shown).err().unwrap_or(error).print();
            return exit;
        }
    };
    let mut invocation = Invocation::new(root);
    let outcome = dispatch(command, &mut invocation);
    outcome.unwrap_or_else(|failure| {
        invocation.eprint_styled(&failure.render());
        failure.exit
    })
}

/// The exit code for an invalid command line; `tenon context` has its own code.
fn usage(line: &[OsString]) -> Exit {
    let parsed = definition().ignore_errors(true).try_get_matches_from(line).ok();
    match parsed.as_ref().and_then(|matches| matches.subcommand_name()) {
        Some("context" | "context-server") => commands::context::USAGE,
        _ => Exit::Usage,
    }
}

fn dispatch(command: Command, invocation: &mut Invocation) -> Result<Exit, Failure> {
    match command {
        Command::Up(args) => commands::up::run(args, invocation),
        Command::Connect(args) => commands::connect::run(args, invocation),
        Command::Console(args) => commands::console::run(args, invocation),
        Command::Mcp(args) => commands::mcp::run(args, invocation),
        Command::Serve(args) => commands::serve::run(args, invocation),
        Command::Status(args) => commands::status::run(args, invocation),
        Command::Stop(args) => commands::stop::run(args, invocation),
        Command::Restart(args) => commands::restart::run(args, invocation),
        Command::Logs(args) => commands::logs::run(args, invocation),
        Command::Find(args) => commands::find::run(args, invocation),
        Command::Refs(args) => commands::refs::run(args, invocation),
        Command::Outline(args) => commands::outline::run(args, invocation),
        Command::Search(args) => commands::search::run(args, invocation),
        Command::Ask(args) => commands::ask::run(args, invocation),
        Command::Pack(args) => commands::pack::run(args, invocation),
        Command::Check(args) => commands::check::run(args, invocation),
        Command::Servers(args) => commands::servers::run(args, invocation),
        Command::Hook(args) => commands::hook::run(args, invocation),
        Command::Trust(args) => commands::trust::run(args, invocation),
        Command::AllowEdit(args) => commands::allow_edit::run(args, invocation),
        Command::Config(args) => commands::config::run(args, invocation),
        Command::Context(args) => commands::context::run(args, invocation),
        Command::Tasks(args) => commands::tasks::run(*args, invocation),
        Command::Memory(args) => commands::memory::run(args, invocation),
        Command::Store(args) => commands::store::run(args, invocation),
        Command::Compose(args) => commands::compose::run(args, invocation),
        Command::ContextServer(args) => commands::context_server::run(args),
        #[cfg(unix)]
        Command::LspService(args) => commands::lsp_service::run(args, invocation),
        Command::Token(args) => commands::token::run(args, invocation),
        Command::Doctor(args) => commands::doctor::run(args, invocation),
        Command::Completions(args) => commands::completions::run(args, invocation),
        Command::Version(args) => commands::version::run(args, invocation),
        Command::Man(args) => commands::man::run(args, invocation),
        Command::Daemon(args) => commands::daemon::run(args, invocation),
    }
}
