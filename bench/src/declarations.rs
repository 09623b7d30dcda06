//! The declarations of the syntax index, compared with the document symbols of the language servers.
//!
//! Two declarations are the same if their names start at the same place; then their kinds are compared. Every difference belongs
//! to a class that explains it ([`difference`]), or is counted and shown as unexplained.

mod difference;
mod server_symbol;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::clock::Clock;
use tenon_index::{DeclarationKind, IndexOptions, IndexedFile, SymbolRef, SyntaxIndex};
use tenon_testkit::direct_server::{DirectServer, InstalledServer};
use tenon_testkit::{RealProject, Sandbox, program, repository_root};

use crate::compile_commands;
use crate::error::BenchError;
use crate::output::{log, print};
use crate::source_sample;
use difference::{ComparedFile, Difference};
use server_symbol::ServerSymbol;

/// The projects that are compared.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Only the server with this id
    #[arg(long)]
    only: Option<String>,
    /// A C++ project for clangd: a folder, which is copied
    #[arg(long)]
    cpp: Option<PathBuf>,
    /// Differences that are shown for each class; all unexplained ones are shown
    #[arg(long, default_value_t = 1)]
    examples: usize,
}

/// Where the code of a case comes from.
enum CaseSource {
    Installed(RealProject),
    Folder(PathBuf),
    /// The crates of this repository.
    Repository,
}

struct Case {
    source: CaseSource,
    server: InstalledServer,
    extensions: &'static [&'static str],
}

pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    let mut cases = vec![
        Case {
            source: CaseSource::Installed(RealProject::Django),
            server: InstalledServer::Pyright,
            extensions: &["py"],
        },
        Case {
            source: CaseSource::Installed(RealProject::Rxjs),
            server: InstalledServer::TypeScriptNative,
            extensions: &["ts"],
        },
    ];
    match program::rust_analyzer() {
        Some(_) => {
            cases.extend(
                [CaseSource::Repository, CaseSource::Installed(RealProject::RegexSyntax)].map(|source| {
                    Case { source, server: InstalledServer::RustAnalyzer, extensions: &["rs"] }
                }),
            )
        }
        None => log("rust-analyzer is not in PATH: Rust is left out"),
    }
    let cpp = options.cpp.clone().map_or(CaseSource::Installed(RealProject::Eigen), CaseSource::Folder);
    cases.push(Case { source: cpp, server: InstalledServer::Clangd, extensions: &["h", "cc", "cpp"] });
    let is_chosen = |case: &Case| options.only.as_ref().is_none_or(|only| case.server.id() == only);
    for case in cases.iter().filter(|case| is_chosen(case)) {
        compare(case, options)?;
    }
    Ok(())
}

impl Case {
    fn name(&self) -> String {
        let source = match &self.source {
            CaseSource::Installed(project) => format!("{project:?}"),
            CaseSource::Folder(folder) => {
                folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            CaseSource::Repository => "this repository".to_owned(),
        };
        format!("{source}, {}", self.server.id())
    }

    fn copy(&self) -> Sandbox {
        let sandbox = match &self.source {
            CaseSource::Installed(project) => return Sandbox::with_project(*project),
            CaseSource::Folder(folder) => {
                let sandbox = Sandbox::new();
                sandbox.tree().copy_from(folder);
                sandbox
            }
            CaseSource::Repository => {
                let sandbox = Sandbox::new();
                for folder in ["crates", "bench", "xtask"] {
                    tenon_testkit::FileTree::at(sandbox.tree().path(folder))
                        .copy_from(&repository_root().join(folder));
                }
                sandbox
            }
        };
        if self.server == InstalledServer::Clangd {
            compile_commands::write(&sandbox);
        }
        sandbox
    }
}

/// A declaration of the index.
#[derive(Debug, Clone)]
struct IndexSymbol {
    name: String,
    kind: DeclarationKind,
    /// From the outermost to the innermost.
    containers: Vec<DeclarationKind>,
    container_names: Vec<String>,
}

/// Line and column of a name, counted from 0.
type NamePlace = (u64, u64);

/// Prints one section for a project.
fn compare(case: &Case, options: &Options) -> Result<(), BenchError> {
    log(&case.name());
    let sandbox = case.copy();
    let root = Utf8PathBuf::from_path_buf(sandbox.root().to_owned());
    let root = root.map_err(|path| BenchError::new(format!("{} is not UTF-8", path.display())))?;
    let index = SyntaxIndex::open(IndexOptions { root, store: None, clock: Clock::system() });
    let mut server = DirectServer::start(case.server, &sandbox)?;
    let mut total = Totals::default();
    let mut files: Vec<String> =
        case.extensions.iter().flat_map(|extension| source_sample::files(&sandbox, extension)).collect();
    files.sort_unstable();
    for file in &files {
        let text = sandbox.tree().read(file);
        let Some(parsed) = index.parse(Utf8Path::new(file), &text) else { continue };
        server.open(file)?;
        let symbols = server_symbol::flat(&server.document_symbols(file)?);
        server.close(file)?;
        total.add(case.server, file, &text, &parsed, &symbols);
    }
    print(&format!("\n## {}\n", case.name()));
    print(&format!(
        "{} files; {} declarations in the index, {} symbols of the server; {} the same, with the same kind.\n",
        files.len(),
        total.indexed,
        total.served,
        total.same
    ));
    print("| difference | found | example |");
    print("|---|---|---|");
    for ((side, class), found) in &total.differences {
        let examples: Vec<String> =
            found.iter().take(options.examples).map(|one| format!("`{one}`")).collect();
        print(&format!(
            "| {}: {} | {} | {} |",
            side,
            class.unwrap_or("**unexplained**"),
            found.len(),
            examples.join(", ")
        ));
    }
    let unexplained = total.differences.iter().filter(|((_, class), _)| class.is_none());
    let shown =
        unexplained.flat_map(|((side, _), found)| found.iter().map(move |one| format!("- {side}: {one}")));
    for line in shown {
        print(&line);
    }
    Ok(())
}

#[derive(Default)]
struct Totals {
    indexed: usize,
    served: usize,
    same: usize,
    /// By side and class.
    differences: BTreeMap<(&'static str, Option<&'static str>), Vec<String>>,
}

impl Totals {
    fn add(
        &mut self,
        server: InstalledServer,
        file: &str,
        text: &str,
        parsed: &IndexedFile,
        symbols: &[ServerSymbol],
    ) {
        let indexed = index_symbols(parsed);
        let mut served: BTreeMap<NamePlace, &ServerSymbol> = BTreeMap::new();
        for symbol in symbols {
            served.entry(symbol.place).or_insert(symbol);
        }
        let compared = ComparedFile {
            server,
            lines: text.lines().collect(),
            indexed_names: indexed.values().map(|one| one.name.as_str()).collect(),
            repeated_names: repeated(indexed.values().map(|one| one.name.as_str())),
            served_names: served.values().map(|one| one.name.as_str()).collect(),
        };
        self.indexed += indexed.len();
        self.served += served.len();
        let places: BTreeSet<NamePlace> = indexed.keys().chain(served.keys()).copied().collect();
        for place in places {
            let (ours, theirs) = (indexed.get(&place), served.get(&place).copied());
            let one = Difference { file: &compared, place, ours, theirs };
            if one.is_none() {
                self.same += 1;
                continue;
            }
            let shown = format!("{file}:{}:{} {}", place.0 + 1, place.1, one.summary());
            self.differences.entry((one.side(), one.class())).or_default().push(shown);
        }
    }
}

/// The declarations of a file by the place of their name.
fn index_symbols(file: &IndexedFile) -> BTreeMap<NamePlace, IndexSymbol> {
    let symbols = file.symbols().map(|symbol| {
        let at = symbol.name_position();
        let mut around: Vec<SymbolRef<'_>> =
            std::iter::successors(symbol.parent(), |one| one.parent()).collect();
        around.reverse();
        let found = IndexSymbol {
            name: symbol.name().to_owned(),
            kind: symbol.kind(),
            containers: around.iter().map(|one| one.kind()).collect(),
            container_names: around.iter().map(|one| one.name().to_owned()).collect(),
        };
        ((u64::from(at.line) - 1, u64::from(at.column)), found)
    });
    symbols.collect()
}

/// The names that occur more than once.
fn repeated<'n>(names: impl Iterator<Item = &'n str>) -> BTreeSet<&'n str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).collect()
}
