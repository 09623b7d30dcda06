//! `cargo xtask bench`: what the built product costs, measured from outside.
//!
//! A bench drives the release build over its public surfaces and prints a Markdown table on stdout: a
//! number, what it is compared with, and what was aimed at. It never fails over a number; machines differ.

mod code;
mod compose;
mod context;
mod echo;
mod edit;
mod hook;
mod hyper_echo;
mod lines;
mod lsp;
mod measure;
mod spine;
mod subject;
mod work;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::ValueEnum;

use crate::shell::{self, Failure, built, cargo, must};

pub(crate) use compose::parse;
pub(crate) use echo::relay;
pub(crate) use hyper_echo::serve as echo;

/// One file each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bench {
    /// The seven code tools over stdio and HTTP, against the bare language server
    Code,
    /// Composing workspaces of up to 10,000 modules, against parsing the same JSON
    Compose,
    /// Document caches: build, one-shot and warm resolve, memory, against hashing the same files
    Context,
    /// Edits that answer with what they broke, against the bare language servers; and the hook by itself
    Edit,
    /// The engine behind the code tools as `tenon lsp-service`, against the bare language servers
    Lsp,
    /// Start, ping, requests per second and memory of the daemon and its transports
    Spine,
    /// Plans, tasks and memory on SQLite and PostgreSQL, against a bare SQLite commit
    Work,
}

/// Runs one bench, or all of them.
pub(crate) fn run(which: Option<Bench>) -> Result<ExitCode, Failure> {
    if cfg!(debug_assertions) {
        return run_optimised(which);
    }
    let tenon = built("tenon")?;
    let chosen = Bench::value_variants().iter().filter(|bench| which.is_none_or(|which| which == **bench));
    for bench in chosen {
        match bench {
            Bench::Compose => compose::run(&tenon)?,
            Bench::Code => code::run(&tenon)?,
            Bench::Context => context::run(&tenon)?,
            Bench::Edit => edit::run(&tenon)?,
            Bench::Lsp => lsp::run(&tenon)?,
            Bench::Spine => spine::run(&tenon)?,
            Bench::Work => work::run(&tenon)?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A client that was built without optimisation would measure itself: builds both ends and starts over.
fn run_optimised(which: Option<Bench>) -> Result<ExitCode, Failure> {
    must(cargo().args(["build", "--release", "--package", "tenon", "--package", "xtask"]))?;
    let mut command = Command::new(release("xtask")?);
    command.arg("bench");
    if let Some(name) = which.and_then(|which| which.to_possible_value()) {
        command.arg(name.get_name());
    }
    Ok(if shell::run(&mut command)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A program of the release profile, whose folder lies next to that of ours.
fn release(program: &str) -> Result<PathBuf, Failure> {
    let ourselves = std::env::current_exe()?;
    let target = ourselves.ancestors().nth(2).unwrap_or(Path::new("."));
    Ok(target.join("release").join(program))
}
