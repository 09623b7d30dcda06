//! References, with or without the declarations of the symbol.
//!
//! What a server leaves out when it is asked for references without declarations differs: the queried use, imports, or nothing.
//! So servers are always asked for all of them, and the definitions tell which ones are declarations.

use std::collections::BTreeSet;

use futures::future::join_all;
use tenon_contract::position::Position;
use tenon_contract::root::WorkspacePath;

use super::convert::Converter;
use super::navigate::{Question, sorted};
use super::{AskError, Orchestrator};
use crate::call_context::CallContext;
use crate::message::Payload;
use crate::model::{Gap, GapReason, Location, LspAnswer, SymbolKind};
use tenon_servers::registry::Capability;

/// The most definitions of one symbol that are followed to further declarations.
const MAX_FOLLOWED: usize = 16;

/// The start of a name in a file.
type Start = (WorkspacePath, Position);

/// The declarations of a symbol, and the servers that did not help to find them.
#[derive(Default)]
struct Declarations {
    starts: BTreeSet<Start>,
    gaps: Vec<Gap>,
}

impl Declarations {
    fn note(&mut self, gaps: Vec<Gap>) {
        let is_loss = |gap: &Gap| !matches!(gap.why, GapReason::Unproven(_) | GapReason::Unavailable(_));
        self.gaps.extend(gaps.into_iter().filter(is_loss));
    }
}

impl Orchestrator {
    /// The references to the symbol at a position.
    pub async fn references(
        &self,
        path: &WorkspacePath,
        position: Position,
        include_declaration: bool,
        call: &CallContext,
    ) -> Result<LspAnswer<Vec<Location>>, AskError> {
        let lines = self.read_at(Capability::References, path, position, call).await?;
        let call = &call.clone().caught_up();
        let declared =
            if include_declaration { None } else { self.declarations(path, position, call).await? };
        let question = Question {
            include_declaration: include_declaration || declared.is_some(),
            ..Question::at(Capability::References, path, &lines, position)
        };
        let convert = |converter: &mut Converter<'_>, payload: &Payload| converter.locations(payload);
        let mut answer = self.all(&question, call, convert).await;
        if answer.value.is_empty()
            && answer.is_answered()
            && let Some((at, note)) = self.name_beside(&question, call).await
        {
            answer = self.all(&Question { position: Some(at), ..question }, call, convert).await;
            if !answer.value.is_empty() {
                answer.notes.push(note);
            }
        }
        if let Some(declared) = declared {
            answer.value.retain(|one| !declared.starts.contains(&start(one)));
            let is_new = |gap: &Gap| !answer.gaps.contains(gap);
            let more: Vec<Gap> = declared.gaps.into_iter().filter(is_new).collect();
            answer.gaps.extend(more);
        }
        Ok(answer.map(sorted))
    }

    /// Where the symbol at a position is declared: its definitions, what these are defined by (an overload's implementation, a
    /// declaration in a header), and overloads beside them. `None` if the servers do not say; then their own list without
    /// declarations is taken.
    async fn declarations(
        &self,
        path: &WorkspacePath,
        position: Position,
        call: &CallContext,
    ) -> Result<Option<Declarations>, AskError> {
        let mut near = self.definition(path, position, call).await?;
        let is_refused = |gap: &Gap| matches!(gap.why, GapReason::Refused(_));
        if near.servers.is_empty() || near.gaps.iter().any(is_refused) {
            return Ok(None);
        }
        let mut declared = Declarations::default();
        declared.note(std::mem::take(&mut near.gaps));
        near.value.truncate(MAX_FOLLOWED);
        let followed = join_all(near.value.iter().map(|one| self.followed(one, call))).await;
        for (one, (is_declaration, further)) in near.value.iter().zip(followed) {
            declared.starts.extend(is_declaration.then(|| start(one)));
            if let Ok(further) = further {
                declared.starts.extend(further.value.iter().map(start));
                declared.note(further.gaps);
            }
        }
        self.add_overloads(&mut declared, call).await;
        Ok(Some(declared))
    }

    /// Whether a definition is a declaration itself and not an alias such as an import; and what it is defined by, if its file
    /// can be read.
    async fn followed(
        &self,
        one: &Location,
        call: &CallContext,
    ) -> (bool, Result<LspAnswer<Vec<Location>>, AskError>) {
        let further = match self.definition(&one.path, one.range.start, call).await {
            Ok(further) => further,
            unreadable => return (true, unreadable),
        };
        let leads_to = |found: &[Location]| found.iter().any(|other| start(other) == start(one));
        let mut is_declaration = further.value.is_empty() || leads_to(&further.value);
        for other in further.value.iter().take(MAX_FOLLOWED) {
            if is_declaration {
                break;
            }
            // A declaration in a header leads to the definition, which leads back.
            let back = self.definition(&other.path, other.range.start, call).await;
            is_declaration = back.is_ok_and(|back| leads_to(&back.value));
        }
        (is_declaration, Ok(further))
    }

    /// Adds functions of the same name and container in the same file.
    async fn add_overloads(&self, declared: &mut Declarations, call: &CallContext) {
        let files: BTreeSet<WorkspacePath> = declared.starts.iter().map(|(path, _)| path.clone()).collect();
        for file in files.into_iter().take(MAX_FOLLOWED) {
            let Ok(symbols) = self.document_symbols(&file, call).await else {
                continue;
            };
            let is_declared = |at: Position| declared.starts.contains(&(file.clone(), at));
            let functions = || symbols.value.iter().filter(|one| is_function(one.kind));
            let overloaded: BTreeSet<_> = functions()
                .filter(|one| is_declared(one.selection.start))
                .map(|one| (&one.name, &one.container))
                .collect();
            let overloads = functions().filter(|one| overloaded.contains(&(&one.name, &one.container)));
            declared.starts.extend(overloads.map(|one| (file.clone(), one.selection.start)));
        }
    }
}

fn start(location: &Location) -> Start {
    (location.path.clone(), location.range.start)
}

/// Methods, constructors and functions.
fn is_function(kind: SymbolKind) -> bool {
    matches!(kind.name(), "method" | "constructor" | "function")
}
