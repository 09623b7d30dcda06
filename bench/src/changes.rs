//! Whether answers follow files that another process creates, changes, renames and deletes.
//!
//! A generator changes files and knows what every answer must be. Each change is followed at once by a question. An answer is
//! right, or it says that something is missing (pending, incomplete), or it is wrong.

pub(crate) mod question;
mod real_project;

use std::fmt;
use std::path::Path;
use std::process::Stdio;

use tenon_testkit::direct_server::InstalledServer;
use tenon_testkit::file_changes::{FileChanges, Language};
use tenon_testkit::{McpClient, RealProject, Sandbox};

use crate::error::BenchError;
use crate::output::{log, print};
use crate::source_sample::Random;
use question::{Outcome, Surface, ask};

const GENERATED: [(InstalledServer, Language); 3] = [
    (InstalledServer::Pyright, Language::Python),
    (InstalledServer::TypeScript, Language::TypeScript),
    (InstalledServer::Clangd, Language::Cpp),
];

const REAL: [(InstalledServer, RealProject); 2] =
    [(InstalledServer::Pyright, RealProject::Django), (InstalledServer::TypeScript, RealProject::Rxjs)];

/// The size of a run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Changes per language server in a generated project, each followed by a question
    #[arg(long, default_value_t = 340)]
    operations: usize,
    /// Checkouts there and back in a real project
    #[arg(long, default_value_t = 20)]
    checkouts: usize,
    /// Files that are deleted and come back in a real project
    #[arg(long, default_value_t = 20)]
    returns: usize,
    /// New files in a real project
    #[arg(long, default_value_t = 30)]
    new_files: usize,
    /// The seed of the changes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only servers whose id contains this
    #[arg(long)]
    only: Option<String>,
}

/// How many answers were what.
#[derive(Debug, Default)]
struct Counts {
    /// Right at once.
    right: usize,
    /// Said to be pending, and right when asked again.
    pending: usize,
    /// Different, but marked as possibly incomplete.
    marked: usize,
    wrong: usize,
}

impl Counts {
    fn add(&mut self, what: impl fmt::Display, outcome: Outcome) {
        match outcome {
            Outcome::Right { pending: false } => self.right += 1,
            Outcome::Right { pending: true } => self.pending += 1,
            Outcome::Marked(found) => {
                self.marked += 1;
                log(&format!("marked: {what}: {found}"));
            }
            Outcome::Wrong(found) => {
                self.wrong += 1;
                log(&format!("wrong: {what}: {found}"));
            }
        }
    }

    fn report(&self, what: &str) {
        let Self { right, pending, marked, wrong } = self;
        let total = right + pending + marked + wrong;
        print(&format!("| {what} | {total} | {right} | {pending} | {marked} | {wrong} |"));
    }
}

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    print("# Files that other processes change\n");
    print("| what | questions | right | pending, then right | marked as incomplete | wrong |");
    print("|---|---|---|---|---|---|");
    let chosen = |server: InstalledServer| {
        options.only.as_ref().is_none_or(|only| server.id().contains(only.as_str()))
    };
    for (server, language) in GENERATED.into_iter().filter(|(server, _)| chosen(*server)) {
        generated(tenon, server, language, options)?;
    }
    for (server, source) in REAL.into_iter().filter(|(server, _)| chosen(*server)) {
        real_project::run(tenon, server, source, options)?;
    }
    Ok(())
}

fn generated(
    tenon: &Path,
    server: InstalledServer,
    language: Language,
    options: &Options,
) -> Result<(), BenchError> {
    if options.operations == 0 {
        return Ok(());
    }
    log(server.id());
    let sandbox = Sandbox::new();
    let mut changes = FileChanges::new(sandbox.root(), &[language], options.seed);
    let mut client = connect(tenon, &sandbox, server);
    let mut random = Random::new(options.seed);
    let mut counts = Counts::default();
    for step in 0..options.operations {
        let question = changes.step();
        let surface =
            *random.choose(&[Surface::Code, Surface::CodeWorkspace, Surface::Nav]).expect("there are three");
        let outcome = ask(&mut client, &sandbox, surface, &question)?;
        let change = changes.last_change();
        counts.add(format_args!("{step}, {change}, {surface:?}: {question:?}"), outcome);
    }
    counts.report(&format!("{}: random changes", server.id()));
    Ok(())
}

/// A fresh process that starts only this language server for its language.
fn connect(tenon: &Path, sandbox: &Sandbox, server: InstalledServer) -> McpClient {
    let switches =
        ["pyright", "ty", "ruff"].map(|id| format!("[servers.{id}]\nenabled = {}\n", id == server.id()));
    sandbox.write_user_config(&switches.concat());
    let mut command = sandbox.command(tenon);
    command.args(["mcp", "--no-daemon", "--surface", "code,nav"]).stderr(Stdio::null());
    McpClient::connect(&mut command)
}
