//! `tenon pack`: one bounded bundle of context for a task or question.

use tenon_context::{PackFormat, PackPart, PackRequest, Tokenizer};
use tenon_server::daemon::protocol::DaemonRequest;

use super::ask::parse_tokenizer;
use crate::exit::Exit;
use crate::explore_text;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Write one bundle of context for a task or question
///
/// Contains the focused or named task with its notes, the symbols that task and question name, who uses them, matching
/// passages and current problems, each with its reason, and a table of what was left out. The budget holds for the whole
/// text.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A question; without one, the focused task decides
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    /// The id of a task
    #[arg(long)]
    task: Option<String>,
    /// Maximum number of tokens
    #[arg(long, value_name = "TOKENS", default_value_t = DEFAULT_BUDGET)]
    budget: usize,
    /// Only this part: `task`, `notes`, `symbols`, `users`, `passages` or `problems`; may be repeated
    #[arg(long = "include", value_name = "PART", value_parser = parse_part)]
    include: Vec<PackPart>,
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// How tokens are counted: `estimate`, `o200k_base` or `cl100k_base`
    #[arg(long, default_value = "estimate", value_parser = parse_tokenizer)]
    tokenizer: Tokenizer,
}

/// What most models read without trouble.
const DEFAULT_BUDGET: usize = 8000;

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    #[default]
    Markdown,
    Xml,
    Json,
}

fn parse_part(name: &str) -> Result<PackPart, String> {
    PackPart::parse(name).ok_or_else(|| {
        let names: Vec<&str> = PackPart::ALL.iter().map(|part| part.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let Args { query, task, budget, include, format, tokenizer } = args;
    let query = Some(query.join(" ")).filter(|query| !query.is_empty());
    let format = match format {
        Format::Markdown => PackFormat::Markdown,
        Format::Xml => PackFormat::Xml,
        Format::Json => PackFormat::Json,
    };
    let request = PackRequest { task, query, budget, include, format, tokenizer };
    explore_text::ask_daemon(DaemonRequest::Pack(request), invocation)
}
