//! `tenon context`: document caches from the command line.
//!
//! The same commands answer when the binary is called `context`, with the exit codes that scripts know: 1 usage, 2 query,
//! 3 budget, 4 no cache, 5 invalid cache, 6 I/O, 7 internal. A command that fails writes nothing to stdout.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use serde::Serialize;
use tenon_context::{Code, Error, Existing, Query, build, inspect, list, resolve, verify};
use tenon_contract::clock::Clock;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Build document caches and ask them
///
/// A cache is a folder that holds the Markdown documents of another folder, frozen. `resolve` picks those that answer a
/// query best and fit a token budget: same cache, query and budget, same bytes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Build a cache of every `.md` file below a folder
    Build {
        /// The folder of documents
        #[arg(long, value_name = "DIR")]
        sources: PathBuf,
        /// The cache to make
        #[arg(long, value_name = "DIR")]
        cache: PathBuf,
        /// Replace the cache that is there, in one step, once the new one is complete
        #[arg(long)]
        force: bool,
    },
    /// Print the documents that answer a query best and fit a budget, as JSON
    Resolve {
        #[arg(long, value_name = "DIR")]
        cache: PathBuf,
        /// Words to look for; may be empty
        #[arg(long, allow_hyphen_values = true)]
        query: OsString,
        /// The most tokens that all documents together may have
        #[arg(long, value_name = "TOKENS", allow_hyphen_values = true)]
        budget: OsString,
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Print what a cache holds and whether it is valid, as JSON
    Inspect {
        #[arg(long, value_name = "DIR")]
        cache: PathBuf,
    },
    /// Check every rule of a cache and name each that is broken
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

/// The command line is wrong. Other commands have another code for this.
pub(crate) const USAGE: Exit = Exit::Contract(1);

/// The exit code of each of the contract's error codes.
pub(crate) fn exit(code: Code) -> Exit {
    Exit::Contract(match code {
        Code::InvalidQuery => 2,
        Code::InvalidBudget => 3,
        Code::CacheMissing => 4,
        Code::CacheInvalid => 5,
        Code::IoError => 6,
        Code::InternalError => 7,
    })
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    match args.command {
        Command::Build { sources, cache, force } => {
            let existing = if force { Existing::Replace } else { Existing::Keep };
            let built = build(&sources, &cache, existing, &Clock::system())?;
            invocation.eprint(format!("built: {} documents, {}", built.document_count, built.cache_version));
        }
        Command::Resolve { cache, query, budget, format } => {
            let budget =
                budget.to_str().and_then(|budget| budget.parse().ok()).ok_or(Error::BudgetNotANumber)?;
            let query = Query::new(query.into_string().map_err(|_| Error::QueryNotUtf8)?)?;
            let selection = resolve(&cache, query, budget)?;
            match format {
                Format::Json => print(&selection.to_json())?,
                Format::Pretty => print_pretty(&selection)?,
            }
        }
        Command::Inspect { cache } => print_pretty(&inspect(&cache)?)?,
        Command::Verify { cache } => check(&cache, invocation)?,
        Command::List { root } => print_pretty(&list(root.as_std_path())?)?,
    }
    Ok(Exit::Success)
}

fn check(cache: &Path, invocation: &mut Invocation) -> Result<(), Failure> {
    match verify(cache) {
        Ok(found) => {
            invocation.eprint(format!("valid: {} documents, {}", found.document_count, found.cache_version))
        }
        Err(Error::CacheInvalid { violations, .. }) => {
            let message = format!("the cache at `{}` is invalid", cache.display());
            let failure = Failure::new(exit(Code::CacheInvalid), message);
            let name = |failure: Failure, violation| failure.caused_by(ToString::to_string(violation));
            return Err(violations.iter().fold(failure, name));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn print_pretty(value: &impl Serialize) -> Result<(), Failure> {
    print(&serde_json::to_string_pretty(value).expect("strings, numbers and flags are JSON"))
}

/// Writes data as it is: what strips colours could strip more than that.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}
