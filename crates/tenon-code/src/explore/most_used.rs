//! The most used declaration of some files, as a proof that questions by name are answered.

use std::cmp::Reverse;

use tenon_contract::root::WorkspacePath;
use tenon_index::{DeclarationKind, SymbolRef};
use tenon_lsp::CallContext;

use super::Explorer;
use crate::summary::count;
use crate::symbol_choice::{ChosenSymbol, Declaration};

/// The most declarations that are compared.
const MAX_COMPARED: usize = 2_000;

impl Explorer {
    /// The type that most files mention, else the function, with the number of references:
    /// `class Shape src/shape.py:3-20: 14 references in 5 files`.
    pub async fn most_used(&self, files: &[WorkspacePath], call: &CallContext) -> Option<String> {
        let mut notes = self.refreshed(call).await;
        let declaration = self.most_mentioned(files)?;
        let heading = declaration.heading();
        let symbol = ChosenSymbol { declarations: vec![declaration] };
        let found = self.references_of(&symbol, &mut notes, call).await.ok()?;
        let mut used: Vec<&str> = found.references.iter().map(|one| one.path.as_str()).collect();
        used.dedup();
        let notes = notes.into_lines();
        let note = notes.first().map(|note| format!(" ({note})")).unwrap_or_default();
        let (references, files) = (count(found.references.len(), "reference"), count(used.len(), "file"));
        Some(format!("{heading}: {references} in {files}{note}"))
    }

    fn most_mentioned(&self, files: &[WorkspacePath]) -> Option<Declaration> {
        let view = self.index().view();
        let gate = self.servers().gate();
        let indexed = files.iter().filter_map(|path| view.file(&gate.display(path)));
        let is_candidate = |symbol: &SymbolRef<'_>| {
            let kind = symbol.kind();
            (kind.is_type() || kind.is_callable()) && kind != DeclarationKind::Impl && !symbol.is_test()
        };
        let candidates = indexed.flat_map(|file| file.symbols()).filter(is_candidate).take(MAX_COMPARED);
        let rank = |symbol: &SymbolRef<'_>| {
            let mentions = view.files_mentioning(symbol.name()).len();
            (
                symbol.kind().is_type(),
                mentions,
                Reverse(symbol.path().to_owned()),
                Reverse(symbol.range().start),
            )
        };
        candidates.max_by_key(rank).map(Declaration::new)
    }
}
