//! `rename`: gives a symbol another name, in all files or none; by default only shows where.

use serde::{Deserialize, Serialize};
use tenon_contract::position::{Encoding, Position, Range};
use tenon_index::{DeclarationKind, ParseOutcome, SymbolRef};
use tenon_lsp::CallContext;
use tenon_lsp::diagnostic_line::one_line;
use tenon_lsp::model::{GapReason, LspAnswer};
use tenon_lsp::orchestrator::Proposal;
use tenon_lsp::server_edit::{EditRefusal, ServerEdit};

use super::{ParsedText, SymbolEditError, SymbolEditor, TRIES, file_edits, is_stale, proposed};
use crate::explore::{NamedSymbol, gap_notes, places_text};
use crate::symbol_choice::Declaration;

/// The arguments of `rename`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    pub symbol: String,
    pub to: String,
    #[serde(default)]
    pub apply: bool,
    pub max_bytes: Option<usize>,
}

/// Longer lines of code are cut, in code points.
const MAX_CODE: usize = 160;
/// The most bytes of a name.
const MAX_NAME: usize = 200;

impl SymbolEditor {
    pub(super) async fn rename(&self, input: Rename, call: &CallContext) -> Result<String, SymbolEditError> {
        let mut tries = 1;
        loop {
            match self.try_rename(&input, call).await {
                Err(error) if is_stale(&error) && tries < TRIES => tries += 1,
                done => return done,
            }
        }
    }

    async fn try_rename(&self, input: &Rename, call: &CallContext) -> Result<String, SymbolEditError> {
        let Rename { symbol, to, apply, max_bytes } = input;
        let symbol = match self.named(symbol, *max_bytes, call).await? {
            NamedSymbol::Listed(list) => return Ok(list),
            NamedSymbol::One(symbol) => symbol,
        };
        let declaration = symbol.main();
        let (name, file) = (&declaration.name_path, &declaration.path);
        if declaration.name == *to {
            return Err(SymbolEditError::SameName { name: name.clone() });
        }
        let parsed = self.parsed(file).await?;
        let found = parsed.find(declaration, &symbol).ok_or_else(|| SymbolEditError::gone(declaration))?;
        check_name(to, &parsed)?;
        check_free(to, &parsed, found)?;
        let at = found.name_position();
        let position = Position::new(at.line - 1, at.column);
        let answer = self.servers().rename(&parsed.path, position, to, call).await?;
        let mut notes = gap_notes(&answer);
        notes.extend(structural_note(found));
        let edit = self.renamed(answer, declaration)?;
        self.check_renamed(to, &parsed, found, &edit)?;
        let places: usize = edit.files.iter().map(|file| file.places.len()).sum();
        let count = format!("{places} places in {} files", edit.files.len());
        if !apply {
            let heading =
                format!("rename {name} to {to}: {count}; nothing was changed, `apply: true` does it");
            return Ok(places_text(heading, self.places(&edit), notes, *max_bytes));
        }
        let found = self.write(file_edits(edit), call).await?;
        let heading = format!("renamed {name} to {to}: {count}\n");
        Ok(Self::report(&heading, &found, notes, *max_bytes))
    }

    /// The change that a server proposes, if it is known to be complete.
    fn renamed(
        &self,
        answer: LspAnswer<Option<Proposal>>,
        declaration: &Declaration,
    ) -> Result<ServerEdit, SymbolEditError> {
        let not_renamable = |why| SymbolEditError::NotRenamable { name: declaration.name_path.clone(), why };
        let refused = answer.gaps.iter().find_map(|gap| match &gap.why {
            GapReason::Refused(why) if answer.value.is_none() => Some(one_line(why, 300)),
            _ => None,
        });
        if refused.is_some() {
            return Err(not_renamable(refused));
        }
        let edit = proposed(answer, "rename")?.ok_or_else(|| not_renamable(None))?;
        // A place with another text means that the server saw another one.
        for file in &edit.files {
            let offset = |at| file.before.offset_clamped(at, Encoding::Utf16);
            let is_other = |place: &&Range| {
                let replaced = &file.before.text()[offset(place.start)..offset(place.end)];
                !replaced.is_empty() && !replaced.contains(&declaration.name)
            };
            if file.places.iter().any(|place| is_other(&place)) {
                return Err(EditRefusal::Range(self.servers().gate().display(&file.path)).into());
            }
        }
        Ok(edit)
    }

    /// The declaration must have the new name afterwards, else the name is a keyword or the like.
    fn check_renamed(
        &self,
        to: &str,
        parsed: &ParsedText,
        found: SymbolRef<'_>,
        edit: &ServerEdit,
    ) -> Result<(), SymbolEditError> {
        let Some(file) = edit.files.iter().find(|file| file.path == parsed.path) else {
            return Ok(());
        };
        let now = self.explorer.index().parse(parsed.path.as_path(), &file.after);
        let is_whole = parsed.file.outcome() == ParseOutcome::Whole;
        // A name may decide about the kind: `LIMIT` is a constant, `limit` a variable.
        let is_same_kind =
            |kind: DeclarationKind| kind == found.kind() || kind.is_value() && found.kind().is_value();
        match now {
            Some(now)
                if (is_whole && now.outcome() == ParseOutcome::SyntaxErrors)
                    || !now.symbols().any(|one| one.name() == to && is_same_kind(one.kind())) =>
            {
                Err(invalid_name(to, parsed))
            }
            _ => Ok(()),
        }
    }

    fn places(&self, edit: &ServerEdit) -> Vec<(String, u32, String)> {
        let gate = self.servers().gate();
        let mut places = Vec::new();
        for file in &edit.files {
            let path = gate.display(&file.path);
            for place in &file.places {
                let line = place.start.line;
                let code = one_line(file.before.line(line).unwrap_or_default().trim(), MAX_CODE);
                places.push((path.clone(), line + 1, code));
            }
        }
        places
    }
}

/// Where types match by structure, a member's new name can break files that mention neither the member nor, through another
/// type, the class. Those are not found by references.
fn structural_note(found: SymbolRef<'_>) -> Option<String> {
    let is_structural = matches!(found.file().language().name(), "typescript" | "tsx" | "javascript" | "go");
    let owner = found.parent().filter(|parent| parent.kind().is_type())?;
    is_structural.then(|| {
        format!(
            "files that use {} without `{}` were not checked; `problems` with scope `all` checks them",
            owner.name(),
            found.name()
        )
    })
}

fn invalid_name(to: &str, parsed: &ParsedText) -> SymbolEditError {
    SymbolEditError::InvalidName { to: one_line(to, 80), language: parsed.file.language().name().to_owned() }
}

/// A name is one word.
fn check_name(to: &str, parsed: &ParsedText) -> Result<(), SymbolEditError> {
    let is_part =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '?' | '!' | '@' | '#' | '-' | '\'');
    let begins = to.chars().next().is_some_and(|c| !c.is_numeric());
    match begins && to.len() <= MAX_NAME && to.chars().all(is_part) {
        true => Ok(()),
        false => Err(invalid_name(to, parsed)),
    }
}

/// No other declaration in the same place has the name.
fn check_free(to: &str, parsed: &ParsedText, found: SymbolRef<'_>) -> Result<(), SymbolEditError> {
    let around = |one: SymbolRef<'_>| one.parent().map(|parent| parent.name_path());
    let taken = parsed.file.symbols().find(|one| one.name() == to && around(*one) == around(found));
    match taken {
        Some(one) => {
            let place = format!("{} {}:{}", one.kind(), one.path(), one.range().first_line);
            Err(SymbolEditError::Taken { to: to.to_owned(), place })
        }
        None => Ok(()),
    }
}
