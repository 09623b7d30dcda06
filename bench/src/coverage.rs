//! Whether answers depend on earlier questions: references and symbols of random names, asked cold and warm, compared with a
//! word search and with the bare language server.

mod bare_server;
mod exact_names;
mod monorepo;
mod project;
mod references;
mod repeats;
mod undefined;
mod word_search;

use std::path::{Path, PathBuf};

use tenon_testkit::RealProject;

use crate::error::BenchError;
use crate::output::{log, print};
use project::Project;

/// The projects that `cargo xtask setup` installs, with a server for each.
const CASES: [(RealProject, &str); 4] = [
    (RealProject::Django, "pyright"),
    (RealProject::Django, "ty"),
    (RealProject::Rxjs, "typescript-language-server"),
    (RealProject::Eigen, "clangd"),
];

/// The size of a run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Symbols per project whose references are compared
    #[arg(long, default_value_t = 50)]
    symbols: usize,
    /// Other questions before the warm round
    #[arg(long, default_value_t = 200)]
    questions: usize,
    /// At most so many definitions per symbol, to explain what a word search finds beyond its references; all by default
    #[arg(long)]
    explained: Option<usize>,
    /// Exact names to look up as workspace symbols
    #[arg(long, default_value_t = 40)]
    names: usize,
    /// Definitions and hovers to compare with the bare server
    #[arg(long, default_value_t = 40)]
    positions: usize,
    /// Questions to compare between five processes, byte for byte
    #[arg(long, default_value_t = 30)]
    repeats: usize,
    /// The seed of the choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the server with this id
    #[arg(long)]
    only: Option<String>,
    /// Another project: a folder, which is copied
    #[arg(long, requires = "server")]
    tree: Option<PathBuf>,
    /// The server for `--tree`
    #[arg(long)]
    server: Option<String>,
    /// Only the TypeScript monorepos
    #[arg(long)]
    monorepos: bool,
}

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    if let (Some(tree), Some(server)) = (&options.tree, &options.server) {
        return measure(&Project::copied(tenon, tree, server)?, options);
    }
    let is_chosen = |server: &str| options.only.as_ref().is_none_or(|only| server == only);
    for (source, server) in CASES.into_iter().filter(|(_, server)| is_chosen(server) && !options.monorepos) {
        measure(&Project::installed(tenon, source, server)?, options)?;
    }
    if is_chosen("typescript-language-server") {
        monorepo::measure(tenon)?;
    }
    Ok(())
}

/// Prints one section for a project.
fn measure(project: &Project, options: &Options) -> Result<(), BenchError> {
    log(&project.title);
    print(&format!("\n## {}\n", project.title));
    if options.symbols > 0 {
        references::measure(project, options)?;
    }
    if options.names > 0 {
        exact_names::measure(project, options)?;
    }
    if options.positions > 0 {
        bare_server::measure(project, options)?;
    }
    if options.repeats > 0 {
        repeats::measure(project, options)?;
    }
    Ok(())
}
