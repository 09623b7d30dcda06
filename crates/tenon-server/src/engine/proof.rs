//! Proof that language servers answer: one definition and one diagnostic for a file of each language.

use std::time::Duration;

use tenon_contract::position::Position;
use tenon_contract::root::WorkspacePath;
use tenon_lsp::call::Call;
use tenon_lsp::model::Diagnostic;
use tenon_lsp::orchestrator::Orchestrator;

use crate::daemon::hello::Proof;

/// How long one file may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many symbols of a file are asked about before the file counts as having no definition.
const SYMBOLS: usize = 10;

/// Asks about `file`, relative to the root.
pub(super) async fn prove(orchestrator: &Orchestrator, file: &str) -> Proof {
    let mut proof = Proof { file: file.to_owned(), symbol: None, definition: None, diagnostic: None };
    let call = Call::within(PATIENCE);
    let Ok(path) = orchestrator.gate().admit_path(file) else { return proof };
    let checked = orchestrator.check(&path, None, &call).await;
    let found = checked.map(|answer| answer.value).unwrap_or_default();
    proof.diagnostic = match found.first() {
        Some(first) => Some(show(orchestrator, &path, first)),
        None => of_language(orchestrator, &path).await,
    };
    let Ok(symbols) = orchestrator.document_symbols(&path, &call).await else { return proof };
    for symbol in symbols.value.iter().take(SYMBOLS) {
        let Ok(answer) = orchestrator.definition(&path, symbol.selection.start, &call).await else {
            continue;
        };
        if let Some(definition) = answer.value.first() {
            proof.symbol = Some(symbol.name.clone());
            proof.definition = Some(place(orchestrator, &definition.path, definition.range.start));
            break;
        }
    }
    proof
}

/// What is known of another file with the same extension.
async fn of_language(orchestrator: &Orchestrator, path: &WorkspacePath) -> Option<String> {
    let known = orchestrator.diagnostics().await;
    let (path, found) =
        known.iter().find(|(other, _)| other.as_path().extension() == path.as_path().extension())?;
    found.first().map(|first| show(orchestrator, path, first))
}

fn show(orchestrator: &Orchestrator, path: &WorkspacePath, diagnostic: &Diagnostic) -> String {
    let message = diagnostic.message.lines().next().unwrap_or_default();
    format!("{}: {message}", place(orchestrator, path, diagnostic.range.start))
}

fn place(orchestrator: &Orchestrator, path: &WorkspacePath, position: Position) -> String {
    format!("{}:{}:{}", orchestrator.gate().display(path), position.line + 1, position.character + 1)
}
