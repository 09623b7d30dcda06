//! `fix`: applies a fix of a language server, organises the imports of a file, or formats it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tenon_contract::id::sha256_hex;
use tenon_contract::root::WorkspacePath;
use tenon_lsp::CallContext;
use tenon_lsp::model::LspAnswer;
use tenon_lsp::orchestrator::{OfferedFix, Orchestrator, Proposal};

use super::{SymbolEditError, SymbolEditor, TRIES, file_edits, is_stale, proposed};
use crate::explore::gap_notes;

/// The arguments of `fix`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyFix {
    pub file: String,
    pub action: String,
    /// Counted from 1.
    pub line: Option<u32>,
    pub max_bytes: Option<usize>,
}

/// A fix that can be applied by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFix {
    /// The same for the same fix of the same problem, wherever in the file it is.
    pub id: String,
    pub title: String,
    /// The first line of the problem, counted from 1.
    pub line: u32,
    /// The message of the problem.
    pub message: String,
    pub is_preferred: bool,
}

/// The number of hexadecimal digits of an id.
const ID_DIGITS: usize = 6;
/// The words that are not ids.
const IMPORTS: &str = "imports";
const FORMAT: &str = "format";

fn id(fix: &OfferedFix) -> String {
    let facts = [fix.server.as_str(), &fix.title, &fix.diagnostic.message];
    sha256_hex(facts.join("\0"))[..ID_DIGITS].to_owned()
}

fn listed(fix: &OfferedFix) -> ListedFix {
    ListedFix {
        id: id(fix),
        title: fix.title.clone(),
        line: fix.diagnostic.range.start.line + 1,
        message: fix.diagnostic.message.clone(),
        is_preferred: fix.is_preferred,
    }
}

impl ListedFix {
    /// The fixes of the problems of a file, or of one line of it, by line.
    pub async fn of(
        servers: &Orchestrator,
        path: &WorkspacePath,
        line: Option<u32>,
        call: &CallContext,
    ) -> Result<LspAnswer<Vec<Self>>, SymbolEditError> {
        let answer = servers.fixes(path, line.map(|line| line.saturating_sub(1)), call).await?;
        Ok(answer.map(|fixes| {
            let mut fixes: Vec<Self> = fixes.iter().map(listed).collect();
            fixes.sort_by(|a, b| (a.line, &a.message, &a.title).cmp(&(b.line, &b.message, &b.title)));
            fixes.dedup();
            fixes
        }))
    }
}

impl SymbolEditor {
    pub(super) async fn fix(&self, input: ApplyFix, call: &CallContext) -> Result<String, SymbolEditError> {
        let mut tries = 1;
        loop {
            match self.try_fix(&input, call).await {
                Err(error) if is_stale(&error) && tries < TRIES => tries += 1,
                done => return done,
            }
        }
    }

    async fn try_fix(&self, input: &ApplyFix, call: &CallContext) -> Result<String, SymbolEditError> {
        let ApplyFix { file, action, line, max_bytes } = input;
        let path = self.explorer.admit(file)?;
        let (what, answer) = match action.as_str() {
            IMPORTS => ("imports", self.servers().organize_imports(&path, call).await?),
            FORMAT => ("format", self.servers().format(&path, call).await?),
            action => ("fix", self.offered(&path, file, action, *line, call).await?),
        };
        let notes = gap_notes(&answer);
        let Some(edit) = proposed(answer, what)?.filter(|edit| !edit.files.is_empty()) else {
            return Err(SymbolEditError::Unchanged { file: file.clone() });
        };
        let found = self.write(file_edits(edit), call).await?;
        Ok(Self::report("", &found, notes, *max_bytes))
    }

    /// What the fix with an id changes.
    async fn offered(
        &self,
        path: &WorkspacePath,
        file: &str,
        action: &str,
        line: Option<u32>,
        call: &CallContext,
    ) -> Result<LspAnswer<Option<Proposal>>, SymbolEditError> {
        let answer = self.servers().fixes(path, line.map(|line| line.saturating_sub(1)), call).await?;
        let named: Vec<&OfferedFix> = answer.value.iter().filter(|fix| id(fix) == action).collect();
        let lines: BTreeSet<u32> = named.iter().map(|fix| fix.diagnostic.range.start.line + 1).collect();
        if lines.len() > 1 {
            return Err(SymbolEditError::AmbiguousFix {
                action: action.to_owned(),
                lines: lines.into_iter().collect(),
            });
        }
        let Some(fix) = named.first() else {
            if !answer.is_answered() {
                return Err(SymbolEditError::Incomplete(gap_notes(&answer).join("; ")));
            }
            return Err(SymbolEditError::NoFix { action: action.to_owned(), file: file.to_owned() });
        };
        Ok(self.servers().fix(path, fix, call).await?)
    }
}
