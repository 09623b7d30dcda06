//! Checks that questions are answered: the most used symbol and one diagnostic for each language of the workspace.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use tenon_code::explore::Explorer;
use tenon_contract::position::Position;
use tenon_contract::root::WorkspacePath;
use tenon_lsp::CallContext;
use tenon_lsp::orchestrator::Orchestrator;
use tenon_servers::registry::{Capability, Registry};

use crate::daemon::protocol::LanguageProbe;

/// The time limit per language.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many files to check per language.
const FILES: usize = 12;

/// Finds the most used symbol of each language, and checks files until one has a diagnostic.
pub(super) async fn probe(
    orchestrator: &Orchestrator,
    explorer: &Explorer,
    registry: &Registry,
) -> Vec<LanguageProbe> {
    let coverage = orchestrator.covered(Capability::Definition, &CallContext::within(PATIENCE)).await;
    let mut languages: BTreeMap<&str, Vec<WorkspacePath>> = BTreeMap::new();
    for file in &coverage.files {
        let mut servers = registry.for_file(file.as_path());
        if let Some(entry) = servers.find(|entry| entry.has(Capability::Definition)) {
            languages.entry(&entry.language).or_default().push(file.clone());
        }
    }
    let probes = languages.iter().map(|(language, files)| probe_one(orchestrator, explorer, language, files));
    join_all(probes).await
}

async fn probe_one(
    orchestrator: &Orchestrator,
    explorer: &Explorer,
    language: &str,
    files: &[WorkspacePath],
) -> LanguageProbe {
    let call = CallContext::within(PATIENCE);
    let symbol = explorer.most_used(files, &call).await;
    let mut probed = LanguageProbe { language: language.to_owned(), symbol, diagnostic: None };
    for file in files.iter().take(FILES) {
        probed.diagnostic = diagnostic(orchestrator, file, &call).await;
        if probed.diagnostic.is_some() {
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

fn place(orchestrator: &Orchestrator, path: &WorkspacePath, position: Position) -> String {
    format!("{}:{}:{}", orchestrator.gate().display(path), position.line + 1, position.character + 1)
}
