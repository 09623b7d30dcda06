//! `references`: where a symbol is used, by file, with the enclosing symbol and the line of code; counts first.
//!
//! The places are the language server's. Where no server knows the file, words that equal the name are listed instead, and the
//! answer says so.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tenon_contract::position::{Encoding, LineIndex, Position, Range};
use tenon_index::{DeclarationKind, NamePosition, PathFilter, SymbolRef};
use tenon_lsp::CallContext;
use tenon_lsp::model::{Gap, GapReason, Location};

use super::hit_list::{Hit, HitList};
use super::notes::Notes;
use super::reference_role::ReferenceRole;
use super::{ExploreError, Explorer, NamedSymbol, allowed, source};
use crate::summary::count;
use crate::symbol_choice::{ChosenSymbol, Declaration};

/// The arguments of `references`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct References {
    pub symbol: String,
    pub only: Option<OnlyRole>,
    pub path: Option<String>,
    pub cursor: Option<String>,
    pub max_bytes: Option<usize>,
}

/// Which references are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnlyRole {
    Calls,
    Imports,
    Writes,
}

impl OnlyRole {
    fn role(self) -> ReferenceRole {
        match self {
            Self::Calls => ReferenceRole::Call,
            Self::Imports => ReferenceRole::Import,
            Self::Writes => ReferenceRole::Write,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Calls => "call",
            Self::Imports => "import",
            Self::Writes => "write",
        }
    }
}

/// A use of a symbol.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reference {
    /// Relative to the root.
    pub(super) path: String,
    pub(super) range: Range,
    pub(super) role: ReferenceRole,
}

/// The uses of a symbol.
pub(super) struct FoundReferences {
    pub(super) references: Vec<Reference>,
    /// Whether they are words that equal the name, not what a server knows.
    pub(super) by_name: bool,
}

impl Explorer {
    pub(super) async fn references(
        &self,
        input: References,
        mut notes: Notes,
        call: &CallContext,
    ) -> Result<String, ExploreError> {
        let References { symbol, only, path, cursor, max_bytes } = input;
        let filter = path.as_deref().map(|path| self.path_filter(path)).transpose()?;
        let symbol = match self.named_symbol(&symbol, &notes, max_bytes)? {
            NamedSymbol::One(symbol) => symbol,
            NamedSymbol::Listed(text) => return Ok(text),
        };
        let found = self.references_of(&symbol, &mut notes, call).await?;
        let is_wanted = |one: &Reference| {
            only.is_none_or(|only| only.role() == one.role) && is_inside(filter.as_ref(), &one.path)
        };
        let wanted: Vec<Reference> = found.references.into_iter().filter(is_wanted).collect();
        let files: BTreeSet<&str> = wanted.iter().map(|one| one.path.as_str()).collect();
        let what = only.map_or("reference", OnlyRole::word);
        let heading = match wanted.len() {
            0 => format!("{}: no {what}s", symbol.main().name_path),
            many => {
                let (found, files) = (count(many, what), count(files.len(), "file"));
                format!("{}: {found} in {files}", symbol.main().name_path)
            }
        };
        let hits = self.hits(&wanted).await;
        let list = HitList { heading, hits, narrow: "path, only" };
        Ok(list.answer(cursor.as_deref())?.with_notes(notes.into_lines()).fit(allowed(max_bytes)))
    }

    /// The uses of a symbol without its declarations, by path and position.
    pub(super) async fn references_of(
        &self,
        symbol: &ChosenSymbol,
        notes: &mut Notes,
        call: &CallContext,
    ) -> Result<FoundReferences, ExploreError> {
        let declaration = symbol.main();
        let path = self.admit(&declaration.path)?;
        let at = name_position(declaration);
        let call = Self::server_call(call);
        let answer = self.servers().references(&path, at, false, &call).await;
        let answer = answer.map_err(|error| ExploreError::unreadable(&declaration.path, &error))?;
        let is_absent = |why: &GapReason| matches!(why, GapReason::Unavailable(_));
        let unserved = answer.gaps.iter().filter(|gap| is_absent(&gap.why)).count() == answer.servers.len();
        if !unserved {
            notes.add_gaps(&answer);
        }
        if unserved || (answer.value.is_empty() && !answer.is_answered()) {
            let language = self.language_of(&declaration.path);
            notes.add(match unserved {
                true => match answer.gaps.first() {
                    Some(Gap { server, why: GapReason::Unavailable(why) }) => {
                        format!("by name only, {server} is not available: {why}")
                    }
                    _ => format!("by name only, no language server for {language}"),
                },
                false => "by name only, until the language server has answered".to_owned(),
            });
            return Ok(FoundReferences { references: self.uses_by_name(symbol).await, by_name: true });
        }
        let mut references = self.with_roles(answer.value, declaration).await;
        references.retain(|one| !self.is_declared_at(declaration, one));
        Ok(FoundReferences { references, by_name: false })
    }

    /// Whether a place is another declaration of the symbol, as in a header. An `impl` has the name of a type that it uses.
    fn is_declared_at(&self, declaration: &Declaration, place: &Reference) -> bool {
        let view = self.index().view();
        let Some(file) = view.file(&place.path) else { return false };
        let line = place.range.start.line + 1;
        let at_name = |symbol: &SymbolRef<'_>| {
            let NamePosition { line: named, column, .. } = symbol.name_position();
            named == line && (place.range.start.character..=place.range.end.character).contains(&column)
        };
        let is_same = |symbol: SymbolRef<'_>| {
            symbol.name_path() == declaration.name_path && symbol.kind() != DeclarationKind::Impl
        };
        file.symbols().filter(at_name).any(is_same)
    }

    async fn with_roles(&self, locations: Vec<Location>, declaration: &Declaration) -> Vec<Reference> {
        let gate = self.servers().gate();
        let bare_calls = self.has_bare_calls(declaration);
        let mut references = Vec::with_capacity(locations.len());
        let mut text: Option<(Location, LineIndex)> = None;
        for location in locations {
            if text.as_ref().is_none_or(|(known, _)| known.path != location.path) {
                text = self.servers().read(&location.path).await.ok().map(|lines| (location.clone(), lines));
            }
            let role = text.as_ref().map_or(ReferenceRole::Other, |(_, lines)| role(lines, location.range));
            let role = if bare_calls { role.or_call() } else { role };
            references.push(Reference { path: gate.display(&location.path), range: location.range, role });
        }
        references
    }

    /// The words that equal a symbol's name, except in its own declarations.
    async fn uses_by_name(&self, symbol: &ChosenSymbol) -> Vec<Reference> {
        let name = &symbol.main().name;
        let language = self.language_of(&symbol.main().path);
        let bare_calls = self.has_bare_calls(symbol.main());
        let files: Vec<String> = {
            let view = self.index().view();
            let same = view.files_mentioning(name).into_iter();
            same.filter(|file| family(file.language().name()) == family(&language))
                .map(|file| file.path().to_owned())
                .collect()
        };
        let is_declared = |path: &str, start: u32| {
            symbol.declarations.iter().any(|one| one.path == path && one.name_at.start == start)
        };
        let mut found = Vec::new();
        for path in files {
            let Ok((_, lines)) = self.read(&path).await else { continue };
            for start in words(lines.text(), name) {
                let end = start + name.len();
                if is_declared(&path, u32::try_from(start).unwrap_or(u32::MAX)) {
                    continue;
                }
                let position = |offset| lines.position_clamped(offset, Encoding::Utf16);
                let range = Range::new(position(start), position(end));
                let role = ReferenceRole::of(lines.text(), start, end);
                let role = if bare_calls { role.or_call() } else { role };
                found.push(Reference { path: path.clone(), range, role });
            }
        }
        found
    }

    /// Lines of code with their enclosing declarations.
    pub(super) async fn hits(&self, references: &[Reference]) -> Vec<Hit> {
        let mut hits = Vec::with_capacity(references.len());
        let mut text: Option<(&str, LineIndex)> = None;
        for Reference { path, range, .. } in references {
            if text.as_ref().is_none_or(|(known, _)| known != path) {
                text = self.read(path).await.ok().map(|(_, lines)| (path.as_str(), lines));
            }
            let line = range.start.line;
            let code = text.as_ref().map(|(_, lines)| source::code_line(lines, line)).unwrap_or_default();
            let within = self.enclosing_name(path, line + 1);
            hits.push(Hit { path: path.clone(), line: line + 1, within, code });
        }
        hits
    }

    /// The name path of the innermost declaration at a line, counted from 1.
    pub(super) fn enclosing_name(&self, path: &str, line: u32) -> Option<String> {
        let view = self.index().view();
        Some(view.file(path)?.enclosing(line)?.name_path())
    }

    /// Whether a use of the symbol calls it even without brackets.
    pub(super) fn has_bare_calls(&self, declaration: &Declaration) -> bool {
        let language = self.language_of(&declaration.path);
        declaration.kind.is_callable() && ["ruby", "bash"].contains(&language.as_str())
    }

    pub(super) fn language_of(&self, path: &str) -> String {
        let view = self.index().view();
        view.file(path).map(|file| file.language().name().to_owned()).unwrap_or_default()
    }
}

/// The place of a declaration in a request.
pub(super) fn name_position(declaration: &Declaration) -> Position {
    Position::new(declaration.name_at.line.saturating_sub(1), declaration.name_at.column)
}

/// Languages whose files use each other's declarations.
fn family(language: &str) -> &str {
    match language {
        "cpp" => "c",
        "tsx" | "javascript" => "typescript",
        language => language,
    }
}

fn is_inside(filter: Option<&PathFilter>, path: &str) -> bool {
    filter.is_none_or(|filter| filter.matches(path))
}

fn role(lines: &LineIndex, range: Range) -> ReferenceRole {
    let offset = |position| lines.offset_clamped(position, Encoding::Utf16);
    ReferenceRole::of(lines.text(), offset(range.start), offset(range.end))
}

/// Where a text contains a name as a word.
pub(super) fn words<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name)
        .map(|(at, _)| at)
        .filter(move |at| !text[..*at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
}
