//! Asks servers for changes: renames, fixes, organised imports, formatting. Nothing is written here.
//!
//! A change counts only if it is for exactly the texts on disk. An open document must have the version that the server names;
//! a file that the server read by itself must not have changed since the question. Otherwise the question is repeated.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use tenon_contract::position::{Encoding, Position};
use tenon_contract::root::WorkspacePath;

use super::convert::{Converter, converted};
use super::navigate::{AskedChange, Question, Worth};
use super::{AskError, Candidate, Orchestrator};
use crate::call_context::CallContext;
use crate::client::gap_reason;
use crate::message::Payload;
use crate::model::{Diagnostic, Gap, GapReason, LspAnswer};
use crate::server_edit::{self, DocumentEdit, EditRefusal, EditedText, Misfit, ServerEdit};
use tenon_servers::registry::{Capability, IdleCommand, ServerId};

/// How often a question is asked if files change meanwhile.
const TRIES: usize = 3;
/// The most diagnostics of one file and server whose fixes are requested.
const MAX_DIAGNOSTICS: usize = 100;

/// A server's proposal, or why it is not accepted.
pub type Proposal = Result<ServerEdit, EditRefusal>;

/// A fix that a server offers for a diagnostic.
#[derive(Debug, Clone)]
pub struct OfferedFix {
    pub server: ServerId,
    pub title: String,
    /// Whether the server prefers it among the fixes of the diagnostic.
    pub is_preferred: bool,
    pub diagnostic: Diagnostic,
    /// As the server sent it.
    action: Value,
    /// The last entry of the change journal before the question.
    since: u64,
}

/// A code action, as far as we use it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAction {
    title: String,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    is_preferred: bool,
    #[serde(default)]
    disabled: Option<Value>,
    #[serde(default)]
    edit: Option<Value>,
    #[serde(default)]
    command: Option<Value>,
    #[serde(default)]
    data: Option<Value>,
}

impl WireAction {
    /// Whether it can be applied without running a command. Without an edit, it may get one from the server later.
    fn is_usable(&self, kind: &str) -> bool {
        let has_kind = self.kind.as_deref().is_none_or(|found| {
            found.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        has_kind
            && self.command.as_ref().is_none_or(Value::is_null)
            && self.disabled.as_ref().is_none_or(Value::is_null)
            && (self.edit.is_some() || self.data.is_some())
    }
}

impl Orchestrator {
    /// What a rename of the symbol at a position changes, from the first server that renames it.
    pub async fn rename(
        &self,
        path: &WorkspacePath,
        position: Position,
        to: &str,
        call: &CallContext,
    ) -> Result<LspAnswer<Option<Proposal>>, AskError> {
        for _ in 0..TRIES {
            let lines = self.read_at(Capability::Rename, path, position, call).await?;
            let since = self.changes_since(0).last;
            let asking = &call.clone().caught_up();
            let question = Question::at(Capability::Rename, path, &lines, position);
            let prepared = Question { change: Some(AskedChange::PrepareRename), ..question };
            let can = |_: &mut Converter<'_>, payload: &Payload| !payload.is_null();
            let worth = |can: &bool| if *can { Worth::Answer } else { Worth::Fallback };
            let prepared = self.first(&prepared, asking, can, worth).await;
            if prepared.value == Some(false) || is_refused(&prepared) {
                return Ok(prepared.map(|_| None));
            }
            let question = Question { change: Some(AskedChange::Rename { to }), ..question };
            let convert =
                |converter: &mut Converter<'_>, payload: &Payload| converter.workspace_edit(payload);
            let worth = |found: &Option<Proposal>| match found {
                Some(_) => Worth::Answer,
                None => Worth::Nothing,
            };
            let answer = self.first(&question, asking, convert, worth).await.map(Option::flatten);
            if self.is_current(answer.value.as_ref(), since, call).await {
                return Ok(answer);
            }
        }
        Ok(changing())
    }

    /// The fixes that servers offer for the diagnostics of a file, or of one line of it, counted from 0.
    pub async fn fixes(
        &self,
        path: &WorkspacePath,
        line: Option<u32>,
        call: &CallContext,
    ) -> Result<LspAnswer<Vec<OfferedFix>>, AskError> {
        let checked = self.check(path, None, call).await?;
        let lines = self.read_for(Capability::CodeActions, path, call).await?;
        let since = self.changes_since(0).last;
        let call = &call.clone().caught_up();
        let question = Question::about(Capability::CodeActions, path, &lines);
        let mut answer =
            LspAnswer { value: Vec::new(), servers: Vec::new(), gaps: checked.gaps, notes: Vec::new() };
        for candidate in self.candidates_for(&question).await {
            let id = candidate.entry.id.clone();
            answer.servers.push(id.clone());
            let client = match self.client(&candidate, call).await {
                Ok(client) => client,
                Err(why) => {
                    answer.gaps.push(Gap { server: id, why });
                    continue;
                }
            };
            let (mut found, encoding) = (client.document_diagnostics(path), client.encoding());
            drop(client);
            found.retain(|one| {
                line.is_none_or(|line| one.range.start.line <= line && line <= one.range.end.line)
            });
            if found.len() > MAX_DIAGNOSTICS {
                found.truncate(MAX_DIAGNOSTICS);
                answer.gaps.push(Gap { server: id.clone(), why: GapReason::Limit });
            }
            for one in found {
                let question = Question { change: Some(AskedChange::Fixes(&one)), ..question };
                let idle = candidate.entry.idle_command.clone();
                let actions = move |_: &mut Converter<'_>, payload: &Payload| {
                    actions(payload, "quickfix", idle.as_ref())
                };
                let share = self.ask_one(&candidate, &question, call, actions).await;
                answer.gaps.extend(share.why.clone().map(|why| Gap { server: id.clone(), why }));
                let mut diagnostic = one;
                diagnostic.range = lines.convert_range_clamped(diagnostic.range, encoding, Encoding::Utf16);
                for (action, wire) in share.value.into_iter().flatten() {
                    answer.value.push(OfferedFix {
                        server: id.clone(),
                        title: wire.title,
                        is_preferred: wire.is_preferred,
                        diagnostic: diagnostic.clone(),
                        action,
                        since,
                    });
                }
            }
        }
        answer.gaps.dedup();
        Ok(answer)
    }

    /// What an offered fix changes.
    pub async fn fix(
        &self,
        path: &WorkspacePath,
        fix: &OfferedFix,
        call: &CallContext,
    ) -> Result<LspAnswer<Option<Proposal>>, AskError> {
        let lines = self.read_for(Capability::CodeActions, path, call).await?;
        let question = Question::about(Capability::CodeActions, path, &lines);
        let candidates = self.candidates_for(&question).await;
        let mut answer =
            LspAnswer { value: None, servers: vec![fix.server.clone()], gaps: Vec::new(), notes: Vec::new() };
        let Some(candidate) = candidates.iter().find(|one| one.entry.id == fix.server) else {
            return Ok(answer);
        };
        match self.resolved(candidate, fix.action.clone(), &call.clone().caught_up()).await {
            Ok(proposal) => answer.value = proposal,
            Err(why) => answer.gaps.push(Gap { server: fix.server.clone(), why }),
        }
        match self.is_current(answer.value.as_ref(), fix.since, call).await {
            true => Ok(answer),
            false => Ok(changing()),
        }
    }

    /// What organising the imports of a file changes, from the first server that does it without a command.
    pub async fn organize_imports(
        &self,
        path: &WorkspacePath,
        call: &CallContext,
    ) -> Result<LspAnswer<Option<Proposal>>, AskError> {
        for _ in 0..TRIES {
            let lines = self.read_for(Capability::CodeActions, path, call).await?;
            let since = self.changes_since(0).last;
            let asking = &call.clone().caught_up();
            let asked = Some(AskedChange::OrganizeImports);
            let question =
                Question { change: asked, ..Question::about(Capability::CodeActions, path, &lines) };
            let mut answer =
                LspAnswer { value: None, servers: Vec::new(), gaps: Vec::new(), notes: Vec::new() };
            for candidate in self.candidates_for(&question).await {
                let id = candidate.entry.id.clone();
                let list = |_: &mut Converter<'_>, payload: &Payload| {
                    actions(payload, "source.organizeImports", None)
                };
                let share = self.ask_one(&candidate, &question, asking, list).await;
                if share.is_none() {
                    continue;
                }
                answer.servers.push(id.clone());
                answer.gaps.extend(share.why.map(|why| Gap { server: id.clone(), why }));
                let Some((action, _)) = share.value.into_iter().flatten().next() else {
                    continue;
                };
                match self.resolved(&candidate, action, asking).await {
                    Ok(proposal) => answer.value = proposal,
                    Err(why) => answer.gaps.push(Gap { server: id, why }),
                }
                if answer.value.is_some() {
                    break;
                }
            }
            if self.is_current(answer.value.as_ref(), since, call).await {
                return Ok(answer);
            }
        }
        Ok(changing())
    }

    /// What formatting a file changes. A server that the project configures goes before one that is there anyway.
    pub async fn format(
        &self,
        path: &WorkspacePath,
        call: &CallContext,
    ) -> Result<LspAnswer<Option<Proposal>>, AskError> {
        for _ in 0..TRIES {
            let lines = self.read_for(Capability::Formatting, path, call).await?;
            let since = self.changes_since(0).last;
            let asking = &call.clone().caught_up();
            let (tab_size, insert_spaces) = indentation(lines.text());
            let asked = Some(AskedChange::Format { tab_size, insert_spaces });
            let question =
                Question { change: asked, ..Question::about(Capability::Formatting, path, &lines) };
            let mut candidates = self.candidates_for(&question).await;
            candidates.sort_by_key(|candidate| !candidate.entry.needs_marker);
            let mut answer =
                LspAnswer { value: None, servers: Vec::new(), gaps: Vec::new(), notes: Vec::new() };
            for candidate in candidates {
                let document = path.clone();
                let convert = move |converter: &mut Converter<'_>, payload: &Payload| {
                    converter.formatted(payload, &document)
                };
                let share = self.ask_one(&candidate, &question, asking, convert).await;
                if share.is_none() {
                    continue;
                }
                answer.servers.push(share.server.clone());
                answer.gaps.extend(share.why.map(|why| Gap { server: share.server, why }));
                answer.value = share.value;
                if answer.value.is_some() {
                    break;
                }
            }
            if self.is_current(answer.value.as_ref(), since, call).await {
                return Ok(answer);
            }
        }
        Ok(changing())
    }

    /// The change of a code action, which the server may have to be asked for.
    async fn resolved(
        &self,
        candidate: &Candidate,
        mut action: Value,
        call: &CallContext,
    ) -> Result<Option<Proposal>, GapReason> {
        let client = self.client(candidate, call).await?;
        let resolves = client.has_option(Capability::CodeActions, "resolveProvider");
        if action.get("edit").is_none_or(Value::is_null) && resolves {
            let answer = client.ask(call, "codeAction/resolve", &action).await;
            let payload = answer.map_err(|error| gap_reason(&error))?;
            action = payload.parse().unwrap_or_default();
        }
        if action.get("command").is_some_and(|command| !command.is_null()) {
            return Ok(Some(Err(EditRefusal::Command)));
        }
        let edit = action.get("edit").cloned().unwrap_or_default();
        let found = converted(&self.0.gate, &client, Payload::of(&edit), |converter, payload| {
            converter.workspace_edit(payload)
        });
        found.await.ok_or(GapReason::Pending)
    }

    /// Whether no file of a proposal has changed since an entry of the journal.
    async fn is_current(&self, proposal: Option<&Proposal>, since: u64, call: &CallContext) -> bool {
        let edit = match proposal {
            None => return true,
            // A version or a range that does not fit may come from a text that changed meanwhile.
            Some(Err(EditRefusal::Version(_) | EditRefusal::Range(_) | EditRefusal::Changing)) => None,
            Some(Err(_)) => return true,
            Some(Ok(edit)) => Some(edit),
        };
        self.catch_up(call).await;
        let Some(changed) = self.changes_since(since).files else {
            return false;
        };
        match edit {
            Some(edit) => !edit.files.iter().any(|file| changed.contains(&file.path)),
            None => changed.is_empty(),
        }
    }
}

/// Whether a server answered with an error.
fn is_refused<T>(answer: &LspAnswer<T>) -> bool {
    answer.gaps.iter().any(|gap| matches!(gap.why, GapReason::Refused(_)))
}

/// The answer if files kept changing.
fn changing() -> LspAnswer<Option<Proposal>> {
    let value = Some(Err(EditRefusal::Changing));
    LspAnswer { value, servers: Vec::new(), gaps: Vec::new(), notes: Vec::new() }
}

/// The usable code actions of an answer, as they are and as far as we use them.
fn actions(payload: &Payload, kind: &str, idle: Option<&IdleCommand>) -> Vec<(Value, WireAction)> {
    let list: Vec<Value> = payload.parse().unwrap_or_default();
    let parsed = list.into_iter().filter_map(|mut raw| {
        if idle.is_some_and(|idle| does_nothing(&raw, idle)) {
            raw["command"] = Value::Null;
        }
        let wire = WireAction::deserialize(&raw).ok()?;
        wire.is_usable(kind).then_some((raw, wire))
    });
    parsed.collect()
}

/// Whether the command of an action does nothing beyond the change.
fn does_nothing(action: &Value, idle: &IdleCommand) -> bool {
    let command = &action["command"];
    let further = command["arguments"].pointer(&idle.unless);
    let is_nothing =
        further.is_none_or(|further| further.is_null() || further.as_array().is_some_and(Vec::is_empty));
    command["command"] == idle.command.as_str() && action["edit"].is_object() && is_nothing
}

/// The width of an indentation, and whether it consists of spaces, from the lines of a text.
fn indentation(text: &str) -> (u32, bool) {
    let mut widths: BTreeMap<usize, usize> = BTreeMap::new();
    let (mut tabs, mut spaces, mut last) = (0, 0, 0);
    for line in text.lines().filter(|line| !line.trim().is_empty()).take(10_000) {
        if line.starts_with('\t') {
            tabs += 1;
            continue;
        }
        let width = line.len() - line.trim_start_matches(' ').len();
        spaces += usize::from(width > 0);
        if width > last && width - last <= 8 {
            *widths.entry(width - last).or_default() += 1;
        }
        last = width;
    }
    let width = widths.into_iter().filter(|(width, _)| *width > 1).max_by_key(|(_, count)| *count);
    (width.map_or(4, |(width, _)| width as u32), tabs <= spaces)
}

impl Converter<'_> {
    /// A `WorkspaceEdit`, on the texts that the server has; `None` if there is none.
    fn workspace_edit(&mut self, payload: &Payload) -> Option<Proposal> {
        let value: Value = payload.parse().unwrap_or_default();
        if value.is_null() {
            return None;
        }
        let edit = server_edit::workspace_edit(&value).and_then(|documents| self.server_edit(documents));
        match edit {
            Ok(edit) if edit.files.is_empty() => None,
            edit => Some(edit),
        }
    }

    /// The edits that format a document.
    fn formatted(&mut self, payload: &Payload, document: &WorkspacePath) -> Proposal {
        let value: Value = payload.parse().unwrap_or_default();
        let edits = server_edit::formatting(&value)?;
        let uri = document.uri().as_str().to_owned();
        self.server_edit(vec![DocumentEdit { uri, version: None, edits }])
    }

    fn server_edit(&mut self, documents: Vec<DocumentEdit>) -> Proposal {
        let mut by_path: BTreeMap<WorkspacePath, DocumentEdit> = BTreeMap::new();
        for document in documents {
            let Some(path) = self.admit(&document.uri) else {
                let name = self.named(&document.uri);
                return Err(match self.is_outside(&document.uri) {
                    true => EditRefusal::Outside(name),
                    false => EditRefusal::Missing(name),
                });
            };
            match by_path.get_mut(&path) {
                Some(known) if known.version == document.version => known.edits.extend(document.edits),
                Some(_) => return Err(EditRefusal::Version(self.named(&document.uri))),
                None => drop(by_path.insert(path, document)),
            }
        }
        let files = by_path.into_iter().map(|(path, document)| self.edited_text(path, &document));
        let mut files = files.collect::<Result<Vec<EditedText>, EditRefusal>>()?;
        files.retain(|file| **file.before.text() != *file.after);
        Ok(ServerEdit { files })
    }

    fn edited_text(
        &mut self,
        path: WorkspacePath,
        document: &DocumentEdit,
    ) -> Result<EditedText, EditRefusal> {
        let name = self.gate().display(&path);
        let on_disk = self.text_on_disk(&path).ok_or_else(|| EditRefusal::Unreadable(name.clone()))?;
        let before = match self.client().open_version(path.as_str()) {
            Some((open, version)) => {
                let is_named = document.version.is_none_or(|named| named == i64::from(version));
                if !is_named || open.text() != on_disk.text() {
                    return Err(EditRefusal::Version(name));
                }
                open
            }
            // Some servers give files that they read by themselves the version 0.
            None if matches!(document.version, None | Some(0)) => on_disk,
            None => return Err(EditRefusal::Version(name)),
        };
        let (after, places) =
            server_edit::apply(&before, self.encoding(), &document.edits).map_err(|misfit| match misfit {
                Misfit::Range => EditRefusal::Range(name.clone()),
                Misfit::Overlap => EditRefusal::Overlap(name.clone()),
            })?;
        Ok(EditedText { path, before, after, places })
    }
}
