//! `try_edit`: what an edit would break, here and in other files. Nothing is written.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenon_index::View;
use tenon_lsp::CallContext;
use tenon_lsp::ServerId;
use tenon_lsp::orchestrator::TriedChange;

use super::edit_symbol::changed;
use super::{EditOp, SymbolEditError, SymbolEditor};
use crate::edit::{EditDiagnostics, Editor, FileEdit};
use crate::explore::NamedSymbol;

/// How long to wait for other files, at least. An edit reports later what is late; a tried one cannot.
const WAIT: Duration = Duration::from_secs(20);

/// The arguments of `try_edit`: a text to replace in a file, or a new text for a declaration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TryEdit {
    pub file: Option<String>,
    pub old_text: Option<String>,
    pub new_text: Option<String>,
    pub symbol: Option<String>,
    pub text: Option<String>,
    pub max_bytes: Option<usize>,
}

impl SymbolEditor {
    /// Shows a text to the language servers, and tells what it would do to the diagnostics.
    pub async fn try_edit(&self, input: TryEdit, call: &CallContext) -> Result<String, SymbolEditError> {
        let TryEdit { file, old_text, new_text, symbol, text, max_bytes } = input;
        let edit = match (file, old_text, new_text, symbol, text) {
            (Some(file), Some(old), Some(new), None, None) => self.of_text(&file, &old, &new).await?,
            (None, None, None, Some(symbol), Some(text)) => match self.named(&symbol, max_bytes, call).await?
            {
                NamedSymbol::Listed(list) => return Ok(list),
                NamedSymbol::One(chosen) => {
                    let [declaration] = chosen.declarations.as_slice() else {
                        return Err(SymbolEditError::overloaded(&symbol, &chosen));
                    };
                    let parsed = self.parsed(&declaration.path).await?;
                    let found = parsed
                        .find(declaration, &chosen)
                        .ok_or_else(|| SymbolEditError::gone(declaration))?;
                    let after = changed(&parsed, found, EditOp::Replace, &text)?;
                    FileEdit { before: parsed.lines.text().to_string(), after, path: parsed.path }
                }
            },
            _ => {
                let expected = "give `file`, `old_text` and `new_text`, or `symbol` and `text`";
                return Err(SymbolEditError::Arguments(expected.to_owned()));
            }
        };
        let file = self.servers().gate().display(&edit.path);
        if edit.before == edit.after {
            return Err(SymbolEditError::Unchanged { file });
        }
        self.explorer.refresh(call).await;
        let after = edit.after.clone();
        let (mut found, tried) = self.editor.try_all(vec![edit], self.wait.max(WAIT), call).await?;
        self.name_symbols(&mut found, &file, &after);
        let mut notes = vec!["nothing was written".to_owned()];
        notes.extend(limits(&tried, &file));
        Ok(Self::report("", &found, notes, max_bytes))
    }

    async fn of_text(&self, file: &str, old: &str, new: &str) -> Result<FileEdit, SymbolEditError> {
        let (path, lines) = self.explorer.read(file).await?;
        let before = lines.text().to_string();
        let after = Editor::replaced(&before, old, new)?;
        Ok(FileEdit { path, before, after })
    }

    /// Names the declarations around new diagnostics, from the syntax index: servers see other texts again.
    fn name_symbols(&self, found: &mut EditDiagnostics, file: &str, after: &str) {
        let view: View = self.explorer.index().view();
        let tried = self.explorer.index().parse(camino::Utf8Path::new(file), after);
        for one in &mut found.new {
            let symbol = match &tried {
                Some(tried) if one.file == file => tried.enclosing(one.line.line),
                _ => view.enclosing(&one.file, one.line.line),
            };
            one.symbol = symbol.map(|symbol| symbol.name_path());
        }
    }
}

/// What servers cannot tell about a text that is not on disk.
fn limits(tried: &TriedChange, file: &str) -> Vec<String> {
    let named = |servers: &[ServerId]| {
        let names: Vec<&str> = servers.iter().map(ServerId::as_str).collect();
        names.join(", ")
    };
    let mut notes = Vec::new();
    if !tried.saved_only.is_empty() {
        notes.push(format!(
            "{} checks saved files; what that check finds is not included",
            named(&tried.saved_only)
        ));
    }
    if !tried.disk_readers.is_empty() {
        let servers = named(&tried.disk_readers);
        notes.push(format!(
            "{servers} reads other files from disk; files that depend on {file} were not checked"
        ));
    }
    notes
}
