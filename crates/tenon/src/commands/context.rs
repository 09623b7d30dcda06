//! `tenon context`: document caches from the command line.
//!
//! The binary runs the same commands if it is called `context`. Exit codes are fixed by the contract: 1 usage, 2 query,
//! 3 budget, 4 missing cache, 5 invalid cache, 6 I/O, 7 internal. A failing command writes nothing to stdout.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use serde::Serialize;
use tenon_context::{
    ContextErrorCode, Error, Existing, Query, SourceRules, WatchEvent, build_with, document_extensions,
    inspect, list, resolve, verify, watch,
};
use tenon_contract::clock::Clock;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Build and query document caches
///
/// A cache is a folder with an immutable copy of the Markdown documents of another folder. `resolve` selects the
/// documents that best match a query and fit a token budget. The same cache, query and budget give the same bytes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Build a cache of every `.md` file below a folder
    Build {
        /// The folder with the documents
        #[arg(long, value_name = "DIR")]
        sources: PathBuf,
        /// The cache to create
        #[arg(long, value_name = "DIR")]
        cache: PathBuf,
        /// Replace an existing cache atomically once the new one is complete
        #[arg(long)]
        force: bool,
        /// Documents with this extension instead of `md`, without hidden and ignored files; may be repeated
        #[arg(long = "extension", value_name = "EXT")]
        extensions: Vec<String>,
    },
    /// Build a cache, and again whenever a document changes
    Watch {
        /// The folder with the documents
        #[arg(long, value_name = "DIR")]
        sources: PathBuf,
        /// The cache to create or replace
        #[arg(long, value_name = "DIR")]
        cache: PathBuf,
        /// Documents with this extension instead of `md`, without hidden and ignored files; may be repeated
        #[arg(long = "extension", value_name = "EXT")]
        extensions: Vec<String>,
    },
    /// Print the documents that best match a query and fit a budget, as JSON
    Resolve {
        #[arg(long, value_name = "DIR")]
        cache: PathBuf,
        /// Words to search for; may be empty
        #[arg(long, allow_hyphen_values = true)]
        query: OsString,
        /// Maximum number of tokens in all selected documents together
        #[arg(long, value_name = "TOKENS", allow_hyphen_values = true)]
        budget: OsString,
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Print version, size and validity of a cache, as JSON
    Inspect {
        #[arg(long, value_name = "DIR")]
        cache: PathBuf,
    },
    /// Check a cache and list every violation of the format
    Verify {
        #[arg(long, value_name = "DIR")]
        cache: PathBuf,
    },
    /// Print the caches directly below a folder, as JSON
    List {
        #[arg(long, value_name = "DIR")]
        root: Utf8PathBuf,
    },
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    /// One line
    #[default]
    Json,
    /// Indented
    Pretty,
}

/// Usage error. Other commands use another code.
pub(crate) const USAGE: Exit = Exit::Contract(1);

/// The exit code for each error code of the contract.
pub(crate) fn exit(code: ContextErrorCode) -> Exit {
    Exit::Contract(match code {
        ContextErrorCode::InvalidQuery => 2,
        ContextErrorCode::InvalidBudget => 3,
        ContextErrorCode::CacheMissing => 4,
        ContextErrorCode::CacheInvalid => 5,
        ContextErrorCode::IoError => 6,
        ContextErrorCode::InternalError => 7,
    })
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    match args.command {
        Command::Build { sources, cache, force, extensions } => {
            let existing = if force { Existing::Replace } else { Existing::Keep };
            let built = build_with(&sources, &cache, &rules(extensions), existing, &Clock::system())?;
            invocation.eprint(format!("built: {} documents, {}", built.document_count, built.cache_version));
            if built.document_count == 0 {
                invocation.eprint(empty_build(&sources));
            }
        }
        Command::Watch { sources, cache, extensions } => {
            let report = |event: WatchEvent| {
                match event {
                    WatchEvent::Built(built) if built.document_count == 0 => {
                        invocation.eprint(empty_build(&sources))
                    }
                    WatchEvent::Built(built) => invocation.eprint(format!(
                        "built: {} documents, {}",
                        built.document_count, built.cache_version
                    )),
                    WatchEvent::Failed(error) => invocation.eprint(format!("not built: {error}")),
                }
                true
            };
            watch(&sources, &cache, &rules(extensions), &Clock::system(), report)?;
        }
        Command::Resolve { cache, query, budget, format } => {
            let budget =
                budget.to_str().and_then(|budget| budget.parse().ok()).ok_or(Error::BudgetNotANumber)?;
            let query = Query::new(query.into_string().map_err(|_| Error::QueryNotUtf8)?)?;
            let selection = resolve(&cache, query, budget)?;
            match format {
                Format::Json => invocation.print_data(selection.to_json())?,
                Format::Pretty => print_pretty(&selection, invocation)?,
            }
        }
        Command::Inspect { cache } => print_pretty(&inspect(&cache)?, invocation)?,
        Command::Verify { cache } => run_verify(&cache, invocation)?,
        Command::List { root } => print_pretty(&list(root.as_std_path())?, invocation)?,
    }
    Ok(Exit::Success)
}

fn rules(extensions: Vec<String>) -> SourceRules {
    match extensions.is_empty() {
        true => SourceRules::Contract,
        false => SourceRules::Extensions(
            extensions.into_iter().map(|extension| extension.trim_start_matches('.').to_owned()).collect(),
        ),
    }
}

/// Why a cache has no documents, and what helps.
fn empty_build(sources: &Path) -> String {
    let found = document_extensions(sources);
    let folder = sources.display();
    match found.is_empty() {
        true => format!("warning: `{folder}` has no documents"),
        false => {
            let found: Vec<String> = found.iter().map(|(name, count)| format!("{count} `.{name}`")).collect();
            format!(
                "warning: no documents in `{folder}`; it has {}: name one with `--extension`",
                found.join(", ")
            )
        }
    }
}

fn run_verify(cache: &Path, invocation: &mut Invocation) -> Result<(), Failure> {
    match verify(cache) {
        Ok(valid) => {
            invocation.eprint(format!("valid: {} documents, {}", valid.document_count, valid.cache_version))
        }
        Err(Error::CacheInvalid { violations, .. }) => {
            let message = format!("cache `{}` is invalid", cache.display());
            let failure = Failure::new(exit(ContextErrorCode::CacheInvalid), message);
            let add = |failure: Failure, violation| failure.caused_by(ToString::to_string(violation));
            return Err(violations.iter().fold(failure, add));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn print_pretty(value: &impl Serialize, invocation: &mut Invocation) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(value).expect("strings, numbers and flags are JSON");
    invocation.print_data(json)
}
