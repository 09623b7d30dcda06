//! Checks that language servers answer: one definition and one diagnostic for each language of the workspace.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use tenon_contract::position::Position;
use tenon_contract::root::WorkspacePath;
use tenon_lsp::CallContext;
use tenon_lsp::orchestrator::Orchestrator;
use tenon_servers::registry::{Capability, Registry};

use crate::daemon::protocol::LanguageProbe;

/// The time limit per language.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many files to try per language, and how many symbols per file.
const FILES: usize = 12;
const SYMBOLS: usize = 10;

/// Tries the first files of each language until both are found.
pub(super) async fn probe(orchestrator: &Orchestrator, registry: &Registry) -> Vec<LanguageProbe> {
    let coverage = orchestrator.covered(Capability::Definition, &CallContext::within(PATIENCE)).await;
    let mut languages: BTreeMap<&str, Vec<&WorkspacePath>> = BTreeMap::new();
    for file in &coverage.files {
        let mut servers = registry.for_file(file.as_path());
        if let Some(entry) = servers.find(|entry| entry.has(Capability::Definition)) {
            languages.entry(&entry.language).or_default().push(file);
        }
    }
    join_all(languages.iter().map(|(language, files)| probe_one(orchestrator, language, files))).await
}

async fn probe_one(orchestrator: &Orchestrator, language: &str, files: &[&WorkspacePath]) -> LanguageProbe {
    let call = CallContext::within(PATIENCE);
    let mut probed = LanguageProbe { language: language.to_owned(), definition: None, diagnostic: None };
    for file in files.iter().take(FILES) {
        if probed.diagnostic.is_none() {
            probed.diagnostic = diagnostic(orchestrator, file, &call).await;
        }
        if probed.definition.is_none() {
            probed.definition = definition(orchestrator, file, &call).await;
        }
        if probed.diagnostic.is_some() && probed.definition.is_some() {
            break;
        }
    }
    probed
}

async fn diagnostic(orchestrator: &Orchestrator, file: &WorkspacePath, call: &CallContext) -> Option<String> {
    let answer = orchestrator.check(file, None, call).await.ok()?;
    let Some(first) = answer.value.first() else {
        let unfinished = answer.pending().next()?;
        return Some(format!(
            "{}: unknown, `{unfinished}` did not finish",
            orchestrator.gate().display(file)
        ));
    };
    let message = first.message.lines().next().unwrap_or_default();
    Some(format!("{}: {message}", place(orchestrator, file, first.range.start)))
}

async fn definition(orchestrator: &Orchestrator, file: &WorkspacePath, call: &CallContext) -> Option<String> {
    let symbols = orchestrator.document_symbols(file, call).await.ok()?;
    for symbol in symbols.value.iter().take(SYMBOLS) {
        let answer = orchestrator.definition(file, symbol.selection.start, call).await.ok()?;
        if let Some(found) = answer.value.first() {
            let place = place(orchestrator, &found.path, found.range.start);
            return Some(format!("{place}: `{}` is defined here", symbol.name));
        }
    }
    None
}

fn place(orchestrator: &Orchestrator, path: &WorkspacePath, position: Position) -> String {
    format!("{}:{}:{}", orchestrator.gate().display(path), position.line + 1, position.character + 1)
}
