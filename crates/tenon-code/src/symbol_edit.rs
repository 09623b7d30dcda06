//! Edits by name: renames, edits of a declaration, fixes of language servers, and edits that are only tried.
//!
//! A change is computed from the texts on disk and written only to exactly these texts, in all files or none. What only a
//! language server can know is never guessed without saying so. All answer with text: the change, then what it did to the
//! diagnostics.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;
use tenon_index::{IndexedFile, SymbolRef};
use tenon_lsp::CallContext;
use tenon_lsp::model::{Doubt, Gap, GapReason, LspAnswer};
use tenon_lsp::orchestrator::{AskError, Orchestrator, Proposal, TryError};
use tenon_lsp::server_edit::{EditRefusal, ServerEdit};

use crate::EditText;
use crate::edit::{EditDiagnostics, EditError, Editor, FileEdit, MultiEditError};
use crate::explore::{ExploreError, Explorer, NamedSymbol, Notes, allowed, fitted, gap_notes};
use crate::summary::count;
use crate::symbol_choice::{ChosenSymbol, Declaration};

mod edit_symbol;
mod fix;
mod indentation;
mod placement;
mod rename;
mod try_edit;

pub use edit_symbol::{EditOp, EditSymbol};
pub use fix::{ApplyFix, ListedFix};
pub use rename::Rename;
pub use try_edit::TryEdit;

/// How often an edit is computed again because a file changed before it was written.
const TRIES: usize = 3;
/// The most places that an error lists.
const MAX_PLACES: usize = 20;

/// An edit by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SymbolEditRequest {
    Rename(Rename),
    EditSymbol(EditSymbol),
    Fix(ApplyFix),
}

/// Why there is no change. The first line says it, with a next step; lines after it list places.
#[derive(Debug, thiserror::Error)]
pub enum SymbolEditError {
    #[error("{0}")]
    Explore(#[from] ExploreError),
    #[error("{0}; nothing was changed")]
    Files(#[from] MultiEditError),
    #[error("{0}")]
    Edit(#[from] EditError),
    #[error("{0}")]
    Refused(#[from] EditRefusal),
    #[error("{0}")]
    Arguments(String),
    #[error("`{name}` has {} declarations; name one by its line: {}", places.len(), places.join(", "))]
    Overloaded { name: String, places: Vec<String> },
    #[error("`{name}` is no longer in {file}; find it again")]
    Gone { name: String, file: String },
    #[error("`{name}` shares its line with other code; use `edit_file`")]
    SharesLine { name: String },
    #[error("{file} would not parse any more, at line {line}; `force` writes it anyway")]
    Syntax { file: String, line: u32 },
    #[error("`{name}` is used in {}{}; change them first, or `force`:\n{}", count(*.total, "place"), how(*.by_name), places.join("\n"))]
    Used { name: String, total: usize, places: Vec<String>, by_name: bool },
    #[error("cannot tell whether `{name}` is used: {why}; `force` deletes it anyway")]
    UseUnknown { name: String, why: String },
    #[error("`{to}` is not a valid name in {language}")]
    InvalidName { to: String, language: String },
    #[error("`{to}` exists already: {place}")]
    Taken { to: String, place: String },
    #[error("`{name}` has this name already")]
    SameName { name: String },
    #[error("`{name}` cannot be renamed{}", because(.why.as_deref()))]
    NotRenamable { name: String, why: Option<String> },
    #[error("{what} needs a language server: {why}")]
    NoServer { what: &'static str, why: String },
    #[error("the change may be incomplete: {0}")]
    Incomplete(String),
    #[error("no fix `{action}` in {file}; `problems` with `fixes` lists them")]
    NoFix { action: String, file: String },
    #[error("fix `{action}` applies to lines {}; choose one with `line`", numbers(.lines))]
    AmbiguousFix { action: String, lines: Vec<u32> },
    #[error("{file}: nothing to change")]
    Unchanged { file: String },
    #[error("{0}")]
    Try(#[from] TryError),
}

impl SymbolEditError {
    fn overloaded(name: &str, symbol: &ChosenSymbol) -> Self {
        let places = symbol.declarations.iter().map(|one| format!("{}:{}", one.path, one.range.first_line));
        Self::Overloaded { name: name.to_owned(), places: places.collect() }
    }

    fn gone(declaration: &Declaration) -> Self {
        Self::Gone { name: declaration.name_path.clone(), file: declaration.path.clone() }
    }
}

fn how(by_name: bool) -> &'static str {
    if by_name { " (by name only, no language server)" } else { "" }
}

fn because(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| format!(": {why}"))
}

fn numbers(lines: &[u32]) -> String {
    let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
    lines.join(", ")
}

/// Edits one workspace by name.
pub struct SymbolEditor {
    editor: Arc<Editor>,
    explorer: Arc<Explorer>,
    /// How long diagnostics of other files may take.
    wait: Duration,
}

/// The text of a file, with its declarations.
struct ParsedText {
    path: WorkspacePath,
    lines: LineIndex,
    file: IndexedFile,
}

impl SymbolEditor {
    pub fn new(editor: Arc<Editor>, explorer: Arc<Explorer>, wait: Duration) -> Self {
        Self { editor, explorer, wait }
    }

    /// Runs an edit and answers with text.
    pub async fn run(
        &self,
        request: SymbolEditRequest,
        call: &CallContext,
    ) -> Result<String, SymbolEditError> {
        match request {
            SymbolEditRequest::Rename(input) => self.rename(input, call).await,
            SymbolEditRequest::EditSymbol(input) => self.edit_symbol(input, call).await,
            SymbolEditRequest::Fix(input) => self.fix(input, call).await,
        }
    }

    fn servers(&self) -> &Orchestrator {
        self.explorer.servers()
    }

    /// The symbol that an argument means, or the answer that lists equally good ones.
    async fn named(
        &self,
        symbol: &str,
        max_bytes: Option<usize>,
        call: &CallContext,
    ) -> Result<NamedSymbol, SymbolEditError> {
        // Another symbol may have the name in a file that was not read.
        if !self.explorer.refresh(call).await {
            return Err(ExploreError::FilesUnread.into());
        }
        Ok(match self.explorer.named_symbol(symbol, &Notes::default(), max_bytes)? {
            NamedSymbol::Listed(list) => NamedSymbol::Listed(format!("nothing was changed\n{list}")),
            one @ NamedSymbol::One(_) => one,
        })
    }

    /// The text of a declaration's file as it is on disk now.
    async fn parsed(&self, relative: &str) -> Result<ParsedText, SymbolEditError> {
        let (path, lines) = self.explorer.read(relative).await?;
        let file = self.explorer.index().parse(path.as_path(), lines.text());
        let unknown = || SymbolEditError::Arguments(format!("{relative}: unknown language; use `edit_file`"));
        Ok(ParsedText { path, lines, file: file.ok_or_else(unknown)? })
    }

    /// Writes all files or none, and tells what that did to the diagnostics.
    async fn write(
        &self,
        edits: Vec<FileEdit>,
        call: &CallContext,
    ) -> Result<EditDiagnostics, SymbolEditError> {
        Ok(self.editor.edit_all(edits, self.wait, call).await?)
    }

    /// What a change did to the diagnostics, in a text that begins with `heading`.
    fn report(
        heading: &str,
        found: &EditDiagnostics,
        notes: Vec<String>,
        max_bytes: Option<usize>,
    ) -> String {
        let most = allowed(max_bytes);
        let noted = notes.iter().map(|note| note.len() + "\nnote: ".len()).sum::<usize>().min(most / 2);
        let room = most.saturating_sub(noted + heading.len());
        fitted(&format!("{heading}{}", EditText::within(found, room)), notes, max_bytes)
    }
}

/// A file that another program changed while an edit of it was computed.
fn is_stale(error: &SymbolEditError) -> bool {
    matches!(error, SymbolEditError::Files(MultiEditError::Stale { .. }) | SymbolEditError::Gone { .. })
}

/// The changes of a server, to be written.
fn file_edits(edit: ServerEdit) -> Vec<FileEdit> {
    let edits = edit.files.into_iter().map(|file| FileEdit {
        path: file.path,
        before: file.before.text().to_string(),
        after: file.after,
    });
    edits.collect()
}

/// The change that a server proposes, unless servers that may have to say something did not; `None` if they propose nothing.
fn proposed(
    answer: LspAnswer<Option<Proposal>>,
    what: &'static str,
) -> Result<Option<ServerEdit>, SymbolEditError> {
    let is_unavailable = |gap: &Gap| matches!(gap.why, GapReason::Unavailable(_));
    let is_partial = |gap: &Gap| match gap.why {
        GapReason::Unavailable(_) | GapReason::Unproven(Doubt::NoProgress | Doubt::HeaderErrors) => false,
        // Another server answered.
        GapReason::Refused(_) | GapReason::Broken => answer.value.is_none(),
        _ => true,
    };
    if answer.gaps.iter().any(is_partial) {
        return Err(SymbolEditError::Incomplete(gap_notes(&answer).join("; ")));
    }
    if answer.value.is_none()
        && answer.gaps.iter().filter(|gap| is_unavailable(gap)).count() == answer.servers.len()
    {
        let why = match gap_notes(&answer).join("; ") {
            none if none.is_empty() => "none is known for this file".to_owned(),
            why => why,
        };
        return Err(SymbolEditError::NoServer { what, why });
    }
    Ok(answer.value.transpose()?)
}

impl From<AskError> for SymbolEditError {
    fn from(error: AskError) -> Self {
        Self::Arguments(error.to_string())
    }
}

impl ParsedText {
    /// The declaration that was found in an earlier version of the file.
    fn find(&self, wanted: &Declaration, all: &ChosenSymbol) -> Option<SymbolRef<'_>> {
        let same: Vec<SymbolRef<'_>> = self
            .file
            .symbols()
            .filter(|one| {
                one.name() == wanted.name && one.kind() == wanted.kind && one.name_path() == wanted.name_path
            })
            .collect();
        match same.as_slice() {
            [one] => Some(*one),
            // Several of one name: the same one only if nothing above it changed.
            _ => {
                let at_place = |one: &&SymbolRef<'_>| one.range().first_line == wanted.range.first_line;
                same.iter().find(at_place).copied().filter(|_| !all.declarations.is_empty())
            }
        }
    }
}
