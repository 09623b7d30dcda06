//! `tenon ask`: passages of the workspace that answer a question.

use tenon_context::{FindRequest, PassageKind, Tokenizer};
use tenon_server::daemon::protocol::DaemonRequest;

use crate::exit::Exit;
use crate::explore_text;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Answer a question with passages of the workspace
///
/// Searches documentation by section, code by declaration, other texts, tasks and notes. The best passages that fit the
/// budget are shown, best first, each with its place, score and matching words.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The question, in words or identifiers
    #[arg(value_name = "QUERY", required = true)]
    query: Vec<String>,
    /// Maximum number of tokens
    #[arg(long, value_name = "TOKENS", default_value_t = FindRequest::DEFAULT_BUDGET)]
    budget: usize,
    /// Only in this file, folder or glob
    #[arg(long)]
    path: Option<String>,
    /// Only passages of this kind; may be repeated
    #[arg(long = "kind", value_name = "KIND", value_parser = parse_kind)]
    kinds: Vec<PassageKind>,
    /// How tokens are counted: `estimate`, `o200k_base` or `cl100k_base`
    #[arg(long, default_value = "estimate", value_parser = parse_tokenizer)]
    tokenizer: Tokenizer,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn parse_kind(name: &str) -> Result<PassageKind, String> {
    PassageKind::parse(name).ok_or_else(|| {
        let names: Vec<&str> = PassageKind::ALL.iter().map(|kind| kind.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

pub(super) fn parse_tokenizer(name: &str) -> Result<Tokenizer, String> {
    Tokenizer::parse(name).ok_or_else(|| {
        let names: Vec<&str> = Tokenizer::ALL.iter().map(|tokenizer| tokenizer.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let Args { query, budget, path, kinds, tokenizer, json } = args;
    let request = FindRequest { query: query.join(" "), budget: Some(budget), path, kinds, tokenizer };
    explore_text::ask_daemon(DaemonRequest::Ask { request, json }, invocation)
}
