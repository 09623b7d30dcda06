//! `tenon compose`: composes a workspace from a file, and shows saved diagnostics.
//!
//! Exit codes: 0 when it composes, 1 on error diagnostics, 2 on unreadable input. The outcome goes to stdout in every
//! format; stderr has only the summary and errors.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use serde_json::json;
use tenon_compose::kind::ContributionKind;
use tenon_compose::{
    CompositionInput, CompositionOutcome, ParseError, WorkspaceDiagnostic, compose, read_diagnostics,
};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

mod text;

use text::Source;

/// Compose a workspace from the modules and built-ins that a file declares
///
/// Prints the composition, or structured diagnostics that explain why there is none. The order of the input does not
/// change the output.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, flatten_help = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    compose: Compose,
}

#[derive(Debug, clap::Args)]
struct Compose {
    /// Input file as JSON [default: stdin; `-` also reads stdin]
    file: Option<PathBuf>,
    /// Use this policy instead of the input's policy
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check and show saved diagnostics: a list, or a whole outcome
    Diagnostics {
        /// File to read; `-` reads stdin
        file: PathBuf,
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    /// One line of canonical JSON
    #[default]
    Json,
    /// Indented JSON
    Pretty,
    /// Text for people: every mistake with its position and a fix
    Text,
}

/// Exit code for unreadable input.
const UNREADABLE: Exit = Exit::Contract(2);

/// Help for input that is not valid JSON.
const JSON_HELP: &str = "the input must be one UTF-8 JSON document without duplicate keys";

/// Help for a file that does not hold diagnostics.
const SAVED_HELP: &str =
    "the file must hold a list of diagnostics or an outcome, as written by `tenon compose`";

/// The maximum input size, in bytes.
const MAX_INPUT: u64 = 1 << 28;

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    match args.command {
        Some(Command::Diagnostics { file, format }) => show_saved(&file, format, invocation),
        // A composition is not typed: a terminal on stdin means that the file is missing.
        None if args.compose.file.is_none() && io::stdin().is_terminal() => {
            Err(Failure::new(Exit::Usage, "no input: pass a file, or pipe one to stdin")
                .hint("run `tenon compose FILE`; `tenon compose --help` shows all options"))
        }
        None => compose_file(args.compose, invocation),
    }
}

fn compose_file(args: Compose, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let input = Source::new(args.file.as_deref(), read(args.file.as_deref())?);
    let policy = match &args.policy {
        Some(file) => Some(Source::new(Some(file), read(Some(file))?)),
        None => None,
    };
    let parsed = match CompositionInput::parse(&input.bytes) {
        Ok(parsed) => parsed,
        Err(error) => return unreadable(&input, &error, JSON_HELP, invocation),
    };
    let parsed = match &policy {
        None => parsed,
        Some(policy) => match CompositionInput::parse(&policy.bytes) {
            Ok(replacement) => parsed.with_policy(replacement),
            Err(error) => return unreadable(policy, &error, JSON_HELP, invocation),
        },
    };
    let outcome = compose(&parsed);
    match args.format {
        Format::Json => invocation.print_data(canonical(&outcome))?,
        Format::Pretty => invocation.print_data(pretty(&outcome))?,
        Format::Text => {
            let text = text::render(&outcome.diagnostics, Some(&input), policy.as_ref());
            invocation.print_styled(&text)?;
            invocation.eprint(summary(&outcome));
        }
    }
    Ok(if outcome.ok() { Exit::Success } else { Exit::No })
}

fn show_saved(file: &Path, format: Format, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let source = Source::new(Some(file), read(Some(file))?);
    let diagnostics = match read_diagnostics(&source.bytes) {
        Ok(diagnostics) => diagnostics,
        Err(error) => return unreadable(&source, &error, SAVED_HELP, invocation),
    };
    let ok = !diagnostics.iter().any(WorkspaceDiagnostic::is_error);
    let output = json!({"ok": ok, "diagnostics": diagnostics});
    match format {
        Format::Json => invocation.print_data(canonical(&output))?,
        Format::Pretty => invocation.print_data(pretty(&output))?,
        Format::Text => {
            let text = text::render(&diagnostics, None, None);
            invocation.print_styled(&text)?;
            invocation.eprint(counts(&diagnostics));
        }
    }
    Ok(if ok { Exit::Success } else { Exit::No })
}

fn unreadable(
    source: &Source,
    error: &ParseError,
    help: &str,
    invocation: &mut Invocation,
) -> Result<Exit, Failure> {
    invocation.eprint_styled(&text::parse_error(source, error, help));
    Ok(UNREADABLE)
}

/// The bytes of a file, or of stdin.
fn read(file: Option<&Path>) -> Result<Vec<u8>, Failure> {
    let stdin = file.is_none_or(|file| file == Path::new("-"));
    let name = if stdin { "stdin".into() } else { file.unwrap_or(Path::new("-")).display().to_string() };
    let failed = |error: &io::Error| {
        Failure::new(UNREADABLE, format!("cannot read `{name}`")).caused_by(error.to_string())
    };
    let mut bytes = Vec::new();
    let read = match file {
        Some(file) if !stdin => {
            std::fs::File::open(file).and_then(|file| file.take(MAX_INPUT + 1).read_to_end(&mut bytes))
        }
        _ => io::stdin().lock().take(MAX_INPUT + 1).read_to_end(&mut bytes),
    };
    read.map_err(|error| failed(&error))?;
    if bytes.len() as u64 > MAX_INPUT {
        let message = format!("`{name}` exceeds {} MiB", MAX_INPUT >> 20);
        return Err(Failure::new(UNREADABLE, message));
    }
    Ok(bytes)
}

fn summary(outcome: &CompositionOutcome) -> String {
    let Some(composition) = &outcome.composition else {
        return counts(&outcome.diagnostics);
    };
    let entries: usize = ContributionKind::ALL.iter().map(|kind| composition.entries(*kind).len()).sum();
    format!("composed: {}, {}", number(composition.owners.len(), "owner"), number(entries, "contribution"))
}

fn counts(diagnostics: &[WorkspaceDiagnostic]) -> String {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    match diagnostics.len() - errors {
        0 => number(errors, "error"),
        notes => format!("{}, {}", number(errors, "error"), number(notes, "note")),
    }
}

fn number(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn canonical(value: &impl serde::Serialize) -> String {
    tenon_contract::json::canonical(value).expect("outcomes are plain JSON")
}

fn pretty(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("outcomes are plain JSON")
}
