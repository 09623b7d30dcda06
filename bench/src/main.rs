//! Benchmarks of the `dist` build over its public surfaces. Run them with `cargo xtask bench`.
//!
//! Each bench prints a Markdown table on stdout: a number, a baseline and the target. A bench never fails because of a
//! number, since machines differ; only `soak` judges. Published results are the `*.md` files in this folder.

mod changes;
mod checkers;
mod code;
mod compile_commands;
mod compose;
mod console;
mod context;
mod coverage;
mod declarations;
mod echo;
mod edit;
mod error;
mod hook;
mod hyper_echo;
mod json_lines;
mod load;
mod lsp;
mod mcp_session;
mod measure;
mod oracle;
mod output;
mod peers;
mod product;
mod renames;
mod rounds;
mod soak;
mod source_sample;
mod spine;
mod subject;
mod symbols;
mod tasks;
mod tries;
mod work;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::BenchError;
use crate::output::log;

#[derive(Parser)]
#[command(name = "cargo xtask bench", about = "Measure the `dist` build", disable_help_subcommand = true)]
struct Args {
    /// Without one, all benches run
    #[command(subcommand)]
    command: Option<Command>,
}

/// One bench each, in the file of the same name. `changes`, `checkers`, `coverage`, `declarations`, `load`, `oracle`, `peers`, `renames`, `rounds`, `soak`, `symbols`, `tasks` and `tries` take long and run only by
/// name. The hidden ones are
/// the baselines that a bench starts as processes.
#[derive(Subcommand)]
enum Command {
    /// Files that another process changes, each followed by a question whose answer is known
    Changes(changes::Options),
    /// The four type checkers for Python on Django, through Tenon
    Checkers(checkers::Options),
    /// The seven code tools over stdio and HTTP, against the bare language server
    Code,
    /// Composing workspaces of up to 10,000 modules, against parsing the same JSON
    Compose,
    /// The web console: pages, updates and idle cost with 10,000 files and 100,000 tasks
    Console,
    /// Passages for questions: quality and speed; document caches, against hashing the same files
    Context(context::Options),
    /// References of random symbols, cold and after other questions, against a word search
    Coverage(coverage::Options),
    /// The declarations of the syntax index, against the document symbols of language servers
    Declarations(declarations::Options),
    /// Edits that report what they broke, against the bare language servers; and the hook by itself
    Edit,
    /// Many clients that ask for diagnostics and edit at the same time, against one client
    Load(load::Options),
    /// The engine behind the code tools as `tenon lsp-service`, against the bare language servers
    Lsp(lsp::Options),
    /// Random edits, compared with command-line checkers: what is new, missing and wrong
    Oracle(oracle::Options),
    /// Tenon, Serena, cclsp and the bare language servers: start, questions, edits, ten agents at once
    Peers(peers::Options),
    /// Random renames by name, compared with command-line checkers: errors that they add
    Renames(renames::Options),
    /// Workspace diagnostics of large trees: the first time and after edits
    Rounds(rounds::Options),
    /// Agents at work while servers and the daemon are killed, compared with the truth; fails on any violation
    Soak(soak::Options),
    /// Start, ping, requests per second and memory of the daemon and its transports
    Spine,
    /// `find`, `references` and `hierarchy` of random symbols of this repository, against rust-analyzer
    Symbols(symbols::Options),
    /// Everyday tasks with Tenon and with Serena: calls, bytes, time, right or wrong; and the aims of `explore`
    Tasks(tasks::Options),
    /// Tried edits under concurrent questions: whether another answer shows the tried text
    Tries(tries::Options),
    /// Plans, tasks and memory on SQLite and PostgreSQL, against a bare SQLite commit
    Work(work::Options),
    /// Parse a JSON file and exit: the baseline of `compose`
    #[command(hide = true)]
    Parse { file: PathBuf },
    /// Answer HTTP requests with their own bodies: the HTTP baseline of `spine`
    #[command(hide = true)]
    Echo,
    /// Pass bytes between stdin, stdout and a unix socket: the bridge baseline of `spine`
    #[command(hide = true)]
    Relay { socket: PathBuf },
}

const ALL: [Command; 8] = [
    Command::Code,
    Command::Compose,
    Command::Console,
    Command::Context(context::Options { only: None }),
    Command::Edit,
    Command::Lsp(lsp::Options { only: None }),
    Command::Spine,
    Command::Work(work::Options { only: None }),
];

fn main() -> ExitCode {
    match run(Args::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn run(command: Option<Command>) -> Result<(), BenchError> {
    let compares = matches!(
        command,
        Some(
            Command::Changes(_)
                | Command::Checkers(_)
                | Command::Coverage(_)
                | Command::Declarations(_)
                | Command::Load(_)
                | Command::Oracle(_)
                | Command::Peers(_)
                | Command::Renames(_)
                | Command::Rounds(_)
                | Command::Soak(_)
                | Command::Symbols(_)
                | Command::Tasks(_)
                | Command::Tries(_)
        )
    );
    let tenon = product::binary(compares)?;
    match command {
        Some(command) => run_one(&command, &tenon),
        None => ALL.iter().try_for_each(|bench| run_one(bench, &tenon)),
    }
}

fn run_one(command: &Command, tenon: &Path) -> Result<(), BenchError> {
    match command {
        Command::Changes(options) => changes::run(tenon, options),
        Command::Checkers(options) => checkers::run(tenon, options),
        Command::Code => code::run(tenon),
        Command::Compose => compose::run(tenon),
        Command::Console => console::run(tenon),
        Command::Context(options) => context::run(tenon, options),
        Command::Coverage(options) => coverage::run(tenon, options),
        Command::Declarations(options) => declarations::run(options),
        Command::Edit => edit::run(tenon),
        Command::Load(options) => load::run(tenon, options),
        Command::Lsp(options) => lsp::run(tenon, options),
        Command::Oracle(options) => oracle::run(tenon, options),
        Command::Peers(options) => peers::run(tenon, options),
        Command::Renames(options) => renames::run(tenon, options),
        Command::Rounds(options) => rounds::run(tenon, options),
        Command::Soak(options) => soak::run(tenon, options),
        Command::Spine => spine::run(tenon),
        Command::Symbols(options) => symbols::run(tenon, options),
        Command::Tasks(options) => tasks::run(tenon, options),
        Command::Tries(options) => tries::run(tenon, options),
        Command::Work(options) => work::run(tenon, options),
        Command::Parse { file } => compose::parse(file),
        Command::Echo => Ok(hyper_echo::serve()?),
        Command::Relay { socket } => Ok(echo::relay(socket)?),
    }
}
