//! `edit_symbol`: replaces or deletes a declaration, or puts text before or after it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tenon_contract::position::Position;
use tenon_index::{ParseOutcome, SymbolRef};
use tenon_lsp::CallContext;
use tenon_lsp::model::{Gap, GapReason};

use super::placement::{Placed, Placement};
use super::{MAX_PLACES, ParsedText, SymbolEditError, SymbolEditor, TRIES, is_stale};
use crate::edit::{EditDiagnostics, FileEdit};
use crate::explore::{NamedSymbol, gap_notes};
use crate::symbol_choice::{ChosenSymbol, Declaration};

/// The arguments of `edit_symbol`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditSymbol {
    pub symbol: String,
    pub op: EditOp,
    pub text: Option<String>,
    #[serde(default)]
    pub force: bool,
    pub max_bytes: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditOp {
    Replace,
    Before,
    After,
    Delete,
}

/// Where a symbol is used.
struct Users {
    /// `path:line`, sorted.
    places: BTreeSet<(String, u32)>,
    by_name: bool,
}

impl SymbolEditor {
    pub(super) async fn edit_symbol(
        &self,
        input: EditSymbol,
        call: &CallContext,
    ) -> Result<String, SymbolEditError> {
        check_arguments(&input)?;
        let mut tries = 1;
        loop {
            match self.try_edit_symbol(&input, call).await {
                Err(error) if is_stale(&error) && tries < TRIES => tries += 1,
                Ok(Edited::Listed(list)) => return Ok(list),
                Ok(Edited::Written { found, notes }) => {
                    return Ok(Self::report("", &found, notes, input.max_bytes));
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn try_edit_symbol(
        &self,
        input: &EditSymbol,
        call: &CallContext,
    ) -> Result<Edited, SymbolEditError> {
        let symbol = match self.named(&input.symbol, input.max_bytes, call).await? {
            NamedSymbol::Listed(list) => return Ok(Edited::Listed(list)),
            NamedSymbol::One(symbol) => symbol,
        };
        let [declaration] = symbol.declarations.as_slice() else {
            return Err(SymbolEditError::overloaded(&input.symbol, &symbol));
        };
        let parsed = self.parsed(&declaration.path).await?;
        let found = parsed.find(declaration, &symbol).ok_or_else(|| SymbolEditError::gone(declaration))?;
        let after = changed(&parsed, found, input.op, input.text.as_deref().unwrap_or_default())?;
        let mut notes = Vec::new();
        if !input.force {
            self.check_syntax(&parsed, &declaration.path, &after)?;
            if input.op == EditOp::Delete {
                notes = self.check_unused(&parsed, found, &symbol, call).await?;
            }
        }
        let before = parsed.lines.text().to_string();
        if before == after {
            return Err(SymbolEditError::Unchanged { file: declaration.path.clone() });
        }
        let edit = FileEdit { path: parsed.path.clone(), before, after };
        Ok(Edited::Written { found: Box::new(self.write(vec![edit], call).await?), notes })
    }

    /// A file that parsed before must parse after.
    pub(super) fn check_syntax(
        &self,
        parsed: &ParsedText,
        file: &str,
        after: &str,
    ) -> Result<(), SymbolEditError> {
        if parsed.file.outcome() != ParseOutcome::Whole {
            return Ok(());
        }
        let now = self.explorer.index().parse(parsed.path.as_path(), after);
        match now {
            Some(now) if now.outcome() == ParseOutcome::SyntaxErrors => {
                let line = first_difference(parsed.lines.text(), after);
                Err(SymbolEditError::Syntax { file: file.to_owned(), line })
            }
            _ => Ok(()),
        }
    }

    /// Fails if a symbol is used outside the declaration itself. Returns what to say about the search.
    async fn check_unused(
        &self,
        parsed: &ParsedText,
        found: SymbolRef<'_>,
        symbol: &ChosenSymbol,
        call: &CallContext,
    ) -> Result<Vec<String>, SymbolEditError> {
        let declaration = symbol.main();
        let users = self.users(parsed, found, declaration, call).await?;
        if users.places.is_empty() {
            let note = "used nowhere by name; no language server was asked".to_owned();
            return Ok(users.by_name.then_some(note).into_iter().collect());
        }
        let mut places: Vec<String> =
            users.places.iter().take(MAX_PLACES).map(|(path, line)| format!("{path}:{line}")).collect();
        if users.places.len() > MAX_PLACES {
            places.push(format!("and {} more", users.places.len() - MAX_PLACES));
        }
        let (name, total) = (declaration.name_path.clone(), users.places.len());
        Err(SymbolEditError::Used { name, total, places, by_name: users.by_name })
    }

    /// Where a symbol is used, from language servers, or else by name.
    async fn users(
        &self,
        parsed: &ParsedText,
        found: SymbolRef<'_>,
        declaration: &Declaration,
        call: &CallContext,
    ) -> Result<Users, SymbolEditError> {
        let name = found.name_position();
        let own = found.range();
        let gate = self.servers().gate();
        let is_own = |path: &str, line: u32| {
            path == declaration.path && (own.first_line..=own.last_line).contains(&line)
        };
        let position = Position::new(name.line - 1, name.column);
        let answer = self.servers().references(&parsed.path, position, false, call).await?;
        if !answer.is_answered() {
            let why = gap_notes(&answer).join("; ");
            return Err(SymbolEditError::UseUnknown { name: declaration.name_path.clone(), why });
        }
        let is_unavailable = |gap: &&Gap| matches!(gap.why, GapReason::Unavailable(_));
        let answered = answer.servers.len() > answer.gaps.iter().filter(is_unavailable).count();
        if answered {
            let places = answer.value.iter().map(|one| (gate.display(&one.path), one.range.start.line + 1));
            let places = places.filter(|(path, line)| !is_own(path, *line)).collect();
            return Ok(Users { places, by_name: false });
        }
        let view = self.explorer.index().view();
        let mut places = BTreeSet::new();
        for file in view.files_mentioning(&declaration.name) {
            let Ok((_, lines)) = self.explorer.read(file.path()).await else {
                continue;
            };
            let named =
                lines.text().lines().enumerate().filter(|(_, line)| has_word(line, &declaration.name));
            let numbers = named.map(|(at, _)| at as u32 + 1);
            places.extend(
                numbers.filter(|line| !is_own(file.path(), *line)).map(|line| (file.path().to_owned(), line)),
            );
        }
        Ok(Users { places, by_name: true })
    }
}

/// What became of an edit.
enum Edited {
    /// Nothing was changed: the candidates.
    Listed(String),
    Written {
        found: Box<EditDiagnostics>,
        notes: Vec<String>,
    },
}

fn check_arguments(input: &EditSymbol) -> Result<(), SymbolEditError> {
    let is_given = input.text.as_deref().is_some_and(|text| !text.trim().is_empty());
    match (input.op, is_given) {
        (EditOp::Delete, true) => Err(SymbolEditError::Arguments("`delete` takes no `text`".to_owned())),
        (EditOp::Delete, false) | (_, true) => Ok(()),
        (_, false) => {
            Err(SymbolEditError::Arguments("`text` is empty; `delete` removes a declaration".to_owned()))
        }
    }
}

/// The text of a file after an edit of a declaration.
pub(super) fn changed(
    parsed: &ParsedText,
    symbol: SymbolRef<'_>,
    op: EditOp,
    text: &str,
) -> Result<String, SymbolEditError> {
    let placed = Placed::new(parsed.lines.text(), &parsed.file, symbol);
    let placed = match op {
        EditOp::Replace => placed.with(Placement::Replace, text),
        EditOp::Before => placed.with(Placement::Before, text),
        EditOp::After => placed.with(Placement::After, text),
        EditOp::Delete => placed.without(),
    };
    placed.map_err(|_| SymbolEditError::SharesLine { name: symbol.name_path() })
}

/// The first line that differs, counted from 1.
fn first_difference(before: &str, after: &str) -> u32 {
    let same = before.lines().zip(after.lines()).take_while(|(before, after)| before == after).count();
    u32::try_from(same).unwrap_or(u32::MAX - 1) + 1
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(is_part) && !line[at + word.len()..].starts_with(is_part))
}
