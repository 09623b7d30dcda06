//! Code queries, sent to every capable server and merged.
//!
//! Definition, hover, implementation: the first non-empty answer in registry order. References and symbols: all answers,
//! sorted, without duplicates. A query waits until the server is ready, unless the server answers it completely before that;
//! if the server stops being ready while it answers, the query is repeated. A position beside the name of a declaration, where
//! no server finds anything, means the name.

use std::sync::Arc;

use futures::future::join_all;
use futures::stream::{FuturesOrdered, StreamExt};
use serde_json::{Value, json};
use tenon_contract::position::{Encoding, LineIndex, Position};
use tenon_contract::root::WorkspacePath;

use super::convert::{Converter, Found, SHORT_ALONE_BYTES, SHORT_BYTES, converted, converted_up_to};
use super::project_coverage::{AskedName, NeededFiles};
use super::warm_up::Project;
use super::{AskError, Candidate, Orchestrator, declared_name};
use crate::call_context::CallContext;
use crate::client::{Client, gap_reason};
use crate::from_protocol;
use crate::identifiers;
use crate::message::Payload;
use crate::model::{AnswerNote, Diagnostic, Doubt, Gap, GapReason, HoverInfo, Location, LspAnswer, Symbol};
use tenon_servers::registry::{Capability, ServerEntry, ServerId};

/// What one server contributed.
pub(super) struct Share<T> {
    pub(super) server: ServerId,
    pub(super) value: Option<T>,
    pub(super) why: Option<GapReason>,
}

impl<T> Share<T> {
    fn missing(server: &ServerId, why: GapReason) -> Self {
        Self { server: server.clone(), value: None, why: Some(why) }
    }

    /// The server does not support such queries.
    fn none(server: &ServerId) -> Self {
        Self { server: server.clone(), value: None, why: None }
    }

    pub(super) fn is_none(&self) -> bool {
        self.value.is_none() && self.why.is_none()
    }
}

impl<T> Share<Found<T>> {
    /// Both answers of one server.
    fn with(mut self, other: Self) -> Self {
        match (&mut self.value, other.value) {
            (Some(found), Some(more)) => {
                found.items.extend(more.items);
                found.count += more.count;
            }
            (value, more) => *value = value.take().or(more),
        }
        self.why = self.why.or(other.why);
        self
    }
}

/// A query about a position or a document.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) capability: Capability,
    pub(super) path: &'a WorkspacePath,
    pub(super) lines: &'a LineIndex,
    /// UTF-16; `None` asks about the document.
    pub(super) position: Option<Position>,
    /// Only for references.
    pub(super) include_declaration: bool,
    /// Only for changes.
    pub(super) change: Option<AskedChange<'a>>,
}

/// What a query for a change asks for besides the position.
#[derive(Clone, Copy)]
pub(super) enum AskedChange<'a> {
    /// Whether the symbol can be renamed.
    PrepareRename,
    Rename {
        to: &'a str,
    },
    /// The fixes of a diagnostic, in the server's encoding.
    Fixes(&'a Diagnostic),
    OrganizeImports,
    Format {
        tab_size: u32,
        insert_spaces: bool,
    },
}

impl<'a> Question<'a> {
    pub(super) fn at(
        capability: Capability,
        path: &'a WorkspacePath,
        lines: &'a LineIndex,
        position: Position,
    ) -> Self {
        let (position, change) = (Some(position), None);
        Self { capability, path, lines, position, include_declaration: false, change }
    }

    /// A query about the document.
    pub(super) fn about(capability: Capability, path: &'a WorkspacePath, lines: &'a LineIndex) -> Self {
        Self { capability, path, lines, position: None, include_declaration: false, change: None }
    }

    fn method(&self) -> &'static str {
        match self.change {
            Some(AskedChange::PrepareRename) => "textDocument/prepareRename",
            _ => crate::client::method(self.capability),
        }
    }

    /// Whether a server answers such queries.
    fn is_offered(&self, client: &Client) -> bool {
        client.has(self.capability)
            && match self.change {
                Some(AskedChange::PrepareRename) => client.has_option(Capability::Rename, "prepareProvider"),
                _ => true,
            }
    }

    fn params(&self, client: &Client) -> Value {
        let mut params = json!({ "textDocument": { "uri": self.path.uri().as_str() } });
        if let Some(position) = self.position {
            let encoding = client.encoding();
            params["position"] = json!(self.lines.convert_clamped(position, Encoding::Utf16, encoding));
        }
        if self.capability == Capability::References {
            params["context"] = json!({ "includeDeclaration": self.include_declaration });
        }
        match self.change {
            None | Some(AskedChange::PrepareRename) => {}
            Some(AskedChange::Rename { to }) => params["newName"] = json!(to),
            Some(AskedChange::Fixes(found)) => {
                params["range"] = json!(found.range);
                let asked = from_protocol::to_wire(found);
                params["context"] = json!({ "diagnostics": [asked], "only": ["quickfix"], "triggerKind": 1 });
            }
            Some(AskedChange::OrganizeImports) => {
                let end = self.lines.end(client.encoding());
                params["range"] = json!({ "start": Position::default(), "end": end });
                params["context"] =
                    json!({ "diagnostics": [], "only": ["source.organizeImports"], "triggerKind": 1 });
            }
            Some(AskedChange::Format { tab_size, insert_spaces }) => {
                params["options"] = json!({ "tabSize": tab_size, "insertSpaces": insert_spaces });
            }
        }
        params
    }

    /// The size up to which an answer is short.
    fn short(&self, encoding: Encoding) -> usize {
        match (self.capability, encoding) {
            (Capability::DocumentSymbols | Capability::Hover, _) => SHORT_ALONE_BYTES,
            (
                Capability::Definition | Capability::Implementation | Capability::References,
                Encoding::Utf16,
            ) => SHORT_ALONE_BYTES,
            _ => SHORT_BYTES,
        }
    }

    /// Whether a server must have loaded its project to answer. The symbols and the format of a document depend on its
    /// text alone.
    fn needs_project(&self, entry: &ServerEntry) -> bool {
        !matches!(self.capability, Capability::DocumentSymbols | Capability::Formatting)
            && !entry.early.contains(&self.capability)
    }
}

impl Orchestrator {
    /// The definitions of the symbol at a position.
    pub async fn definition(
        &self,
        path: &WorkspacePath,
        position: Position,
        call: &CallContext,
    ) -> Result<LspAnswer<Vec<Location>>, AskError> {
        self.places(Capability::Definition, path, position, call).await
    }

    /// The implementations of the symbol at a position.
    pub async fn implementation(
        &self,
        path: &WorkspacePath,
        position: Position,
        call: &CallContext,
    ) -> Result<LspAnswer<Vec<Location>>, AskError> {
        self.places(Capability::Implementation, path, position, call).await
    }

    async fn places(
        &self,
        capability: Capability,
        path: &WorkspacePath,
        position: Position,
        call: &CallContext,
    ) -> Result<LspAnswer<Vec<Location>>, AskError> {
        let lines = self.read_at(capability, path, position, call).await?;
        let question = Question::at(capability, path, &lines, position);
        let convert = |converter: &mut Converter<'_>, payload: &Payload| converter.locations(payload);
        let worth = |found: &Found<Location>| match (found.items.is_empty(), found.outside.is_empty()) {
            (false, _) => Worth::Answer,
            (true, false) => Worth::Fallback,
            (true, true) => Worth::Nothing,
        };
        let mut answer = self.first_at(&question, call, convert, worth).await;
        if let Some(found) = &mut answer.value {
            let mut outside = std::mem::take(&mut found.outside);
            outside.sort();
            outside.dedup();
            answer.notes.extend(outside.into_iter().map(AnswerNote::Outside));
        }
        Ok(answer.map(|found| sorted(found.map(|found| found.items).unwrap_or_default())))
    }

    /// The hover at a position.
    pub async fn hover(
        &self,
        path: &WorkspacePath,
        position: Position,
        call: &CallContext,
    ) -> Result<LspAnswer<Option<HoverInfo>>, AskError> {
        let lines = self.read_at(Capability::Hover, path, position, call).await?;
        let question = Question::at(Capability::Hover, path, &lines, position);
        let convert = |converter: &mut Converter<'_>, payload: &Payload| {
            from_protocol::hover(payload).map(|hover| (hover, converter.encoding()))
        };
        let worth = |found: &Option<_>| if found.is_some() { Worth::Answer } else { Worth::Nothing };
        let answer = self.first_at(&question, call, convert, worth).await;
        Ok(answer.map(|hover| {
            let (mut hover, encoding) = hover.flatten()?;
            hover.range =
                hover.range.map(|range| lines.convert_range_clamped(range, encoding, Encoding::Utf16));
            Some(hover)
        }))
    }

    /// The symbols of a document, parents before their children.
    pub async fn document_symbols(
        &self,
        path: &WorkspacePath,
        call: &CallContext,
    ) -> Result<LspAnswer<Vec<Symbol>>, AskError> {
        let lines = self.read_for(Capability::DocumentSymbols, path, call).await?;
        let question = Question::about(Capability::DocumentSymbols, path, &lines);
        let document = path.clone();
        let convert = move |converter: &mut Converter<'_>, payload: &Payload| {
            converter.symbols(payload, Some(&document))
        };
        let mut answer = self.all(&question, call, convert).await;
        // A stable sort by position keeps parents before children that start at the same position.
        answer.value.sort_by_key(|one| (one.range.start, one.depth));
        Ok(answer.map(each_once))
    }

    /// The symbols of the whole workspace that match a query, by each server's own matching. Queries every project with files for
    /// a server, even if its server was not started yet.
    pub async fn workspace_symbols(&self, query: &str, call: &CallContext) -> LspAnswer<Vec<Symbol>> {
        let caught_up = self.catch_up(call).await;
        let call = &call.clone().caught_up();
        let (projects, more) = self.projects(call).await;
        let unavailable = self.covered(Capability::WorkspaceSymbols, call).await.unavailable;
        let asked = projects.iter().filter(|one| one.candidate.entry.has(Capability::WorkspaceSymbols));
        let shares = join_all(asked.map(|project| self.project_symbols(project, query, call))).await;
        let mut answer = merge(shares);
        answer.gaps.extend(more.into_iter().map(|server| Gap { server, why: GapReason::Limit }));
        for server in unavailable {
            let why = GapReason::Unavailable(self.why_unavailable(&server));
            answer.servers.push(server.clone());
            answer.gaps.push(Gap { server, why });
        }
        if !caught_up {
            answer.notes.push(AnswerNote::FilesUnread);
        }
        answer.value.sort_by(Symbol::compare);
        answer.value.dedup();
        answer
    }

    /// The symbols of one server: from the projects, and from files outside of them, which are opened first.
    async fn project_symbols(
        &self,
        project: &Project,
        query: &str,
        call: &CallContext,
    ) -> Share<Found<Symbol>> {
        let candidate = &project.candidate;
        let id = &candidate.entry.id;
        let client = match self.client(candidate, call).await {
            Ok(client) => client,
            Err(why) => return Share::missing(id, why),
        };
        if candidate.stores_index()
            && let Err(why) = self.settle(&client, &project.sample, call).await
        {
            return Share::missing(id, why);
        }
        let needed = self.needed_for_symbols(candidate).await;
        let opened = match self.cover(&client, &needed, call).await {
            Ok(opened) => opened,
            Err(error) => return Share::missing(id, gap_reason(&error)),
        };
        if let Err(why) = self.settle(&client, &project.sample, call).await {
            return Share::missing(id, why);
        }
        let within = if client.entry().symbols_per_project { needed.asked(&opened) } else { Vec::new() };
        let mut share = if within.is_empty() {
            self.ask_workspace(&client, None, query, call).await
        } else {
            let asked = within.iter().map(|path| self.ask_workspace(&client, Some(path), query, call));
            join_all(asked).await.into_iter().reduce(Share::with).unwrap_or_else(|| Share::none(id))
        };
        if let Some(found) = &mut share.value {
            // clangd knows macros of open files only, and reports them as strings.
            let is_macro = |symbol: &Symbol| candidate.stores_index() && symbol.kind.name() == "string";
            found.items.retain(|symbol| needed.covers(&symbol.path) && !is_macro(symbol));
            match self.unlisted_symbols(candidate, &client, query, call).await {
                Ok(more) => found.items.extend(more),
                Err(why) => return Share::missing(id, why),
            }
        }
        if share.why.as_ref().is_none_or(|why| matches!(why, GapReason::Unproven(_))) && !share.is_none() {
            share.why = needed.gap.or(share.why);
        }
        share
    }

    /// The symbols with exactly the queried name in files outside the projects, if the server does not list those: from the
    /// symbols of the documents.
    async fn unlisted_symbols(
        &self,
        candidate: &Candidate,
        client: &Arc<Client>,
        query: &str,
        call: &CallContext,
    ) -> Result<Vec<Symbol>, GapReason> {
        let lists_all = candidate.entry.projects.is_none_or(|kind| kind.lists_open_files());
        let is_name = query.chars().nth(2).is_some() && query.chars().all(identifiers::is_part);
        let (false, true, Ok(root)) = (lists_all, is_name, &candidate.place) else {
            return Ok(Vec::new());
        };
        let asked = AskedName { name: query.to_owned(), file: root.as_path().to_owned() };
        let needed = self.needed_for_name(candidate, Some(asked)).await;
        let opened = self.cover(client, &needed, call).await.map_err(|error| gap_reason(&error))?;
        let mut found = Vec::new();
        for path in opened.outside.iter().map(|synced| synced.path().clone()) {
            let params = json!({ "textDocument": { "uri": path.uri().as_str() } });
            let answer = client.ask(call, "textDocument/documentSymbol", &params).await;
            let payload = answer.map_err(|error| gap_reason(&error))?;
            let symbols = converted(&self.0.gate, client, payload, move |converter, payload| {
                converter.symbols(payload, Some(&path)).items
            });
            let symbols = symbols.await.ok_or(GapReason::Pending)?;
            let named = symbols.into_iter().filter(|symbol| symbol.name == query);
            // Its lists of the workspace have the range of the name.
            found.extend(named.map(|symbol| Symbol { range: symbol.selection, depth: 0, ..symbol }));
        }
        Ok(found)
    }

    /// The symbols that a server finds, or those of the project of one document.
    async fn ask_workspace(
        &self,
        client: &Arc<Client>,
        within: Option<&WorkspacePath>,
        query: &str,
        call: &CallContext,
    ) -> Share<Found<Symbol>> {
        let id = &client.entry().id;
        if !client.has(Capability::WorkspaceSymbols) {
            return Share::none(id);
        }
        let params = json!({ "query": query });
        let method = "workspace/symbol";
        loop {
            if !client.ready(call).await || client.await_listed(call).await.is_err() {
                return Share::missing(id, unready(client));
            }
            if let Some(why) = client.failure() {
                return Share::missing(id, GapReason::Refused(why));
            }
            let answer = match within {
                Some(path) => client.ask_in_project(call, path, method, &params).await,
                None => client.ask(call, method, &params).await,
            };
            let payload = match answer {
                Ok(payload) => payload,
                Err(error) => return Share::missing(id, gap_reason(&error)),
            };
            if !client.is_ready() {
                continue;
            }
            let found = converted(&self.0.gate, client, payload, |converter, payload| {
                converter.symbols(payload, None)
            });
            let Some(found) = found.await else {
                return Share::missing(id, GapReason::Pending);
            };
            let limit = client.entry().limits.workspace_symbols;
            let why = doubt(client, found.count, limit);
            return Share { server: id.clone(), value: Some(found), why };
        }
    }

    pub(super) async fn read_at(
        &self,
        capability: Capability,
        path: &WorkspacePath,
        position: Position,
        call: &CallContext,
    ) -> Result<LineIndex, AskError> {
        let lines = self.read_for(capability, path, call).await?;
        lines.offset(position, Encoding::Utf16)?;
        Ok(lines)
    }

    /// The text of a file that is about to be queried.
    pub(super) async fn read_for(
        &self,
        capability: Capability,
        path: &WorkspacePath,
        call: &CallContext,
    ) -> Result<LineIndex, AskError> {
        let ((), lines) = tokio::join!(self.start_early(path, capability), self.read_now(path, call));
        let lines = lines?;
        self.0.note_unsaved(path, None);
        Ok(lines)
    }

    /// The first answer at a position, or, if no server finds anything there, at the name that the position is beside.
    async fn first_at<T: Send + 'static>(
        &self,
        question: &Question<'_>,
        call: &CallContext,
        convert: impl Fn(&mut Converter<'_>, &Payload) -> T + Clone + Send + 'static,
        worth: impl Fn(&T) -> Worth + Copy,
    ) -> LspAnswer<Option<T>> {
        let answer = self.first(question, call, convert.clone(), worth).await;
        if answer.value.is_some() || !answer.is_answered() {
            return answer;
        }
        let Some((at, note)) = self.name_beside(question, call).await else {
            return answer;
        };
        let mut named = self.first(&Question { position: Some(at), ..*question }, call, convert, worth).await;
        if named.value.is_some() {
            named.notes.push(note);
        }
        named
    }

    /// The name that the position of a query is beside.
    pub(super) async fn name_beside(
        &self,
        question: &Question<'_>,
        call: &CallContext,
    ) -> Option<(Position, AnswerNote)> {
        let symbols = self.document_symbols(question.path, call).await.ok()?;
        let symbol = declared_name::beside(&symbols.value, question.lines, question.position?)?;
        let at = symbol.selection.start;
        Some((at, AnswerNote::AskedAtName { name: symbol.name.clone(), at }))
    }

    /// The first answer, in registry order, without waiting for the remaining servers; else the first fallback.
    pub(super) async fn first<T: Send + 'static>(
        &self,
        question: &Question<'_>,
        call: &CallContext,
        convert: impl Fn(&mut Converter<'_>, &Payload) -> T + Clone + Send + 'static,
        worth: impl Fn(&T) -> Worth,
    ) -> LspAnswer<Option<T>> {
        let candidates = self.candidates_for(question).await;
        let mut asked: FuturesOrdered<_> = candidates
            .iter()
            .map(|candidate| self.ask_one(candidate, question, call, convert.clone()))
            .collect();
        let mut answer = LspAnswer { value: None, servers: Vec::new(), gaps: Vec::new(), notes: Vec::new() };
        while let Some(share) = asked.next().await {
            if share.is_none() {
                continue;
            }
            answer.servers.push(share.server.clone());
            if let Some(why) = share.why {
                answer.gaps.push(Gap { server: share.server, why });
            }
            let Some(value) = share.value else {
                continue;
            };
            match worth(&value) {
                Worth::Answer => {
                    answer.value = Some(value);
                    break;
                }
                Worth::Fallback => answer.value = answer.value.or(Some(value)),
                Worth::Nothing => {}
            }
        }
        answer
    }

    /// The answers of all servers, in registry order.
    pub(super) async fn all<T: Send + 'static>(
        &self,
        question: &Question<'_>,
        call: &CallContext,
        convert: impl Fn(&mut Converter<'_>, &Payload) -> Found<T> + Clone + Send + 'static,
    ) -> LspAnswer<Vec<T>> {
        let candidates = self.candidates_for(question).await;
        let shares = join_all(candidates.iter().map(|candidate| async {
            let mut share = self.ask_one(candidate, question, call, convert.clone()).await;
            let limits = &candidate.entry.limits;
            let limit = match question.capability {
                Capability::References => limits.references,
                Capability::DocumentSymbols => limits.document_symbols,
                _ => None,
            };
            if let (Some(limit), Some(found)) = (limit, &share.value)
                && found.count >= limit
            {
                share.why = Some(GapReason::Limit);
            }
            share
        }))
        .await;
        merge(shares)
    }

    pub(super) async fn candidates_for(&self, question: &Question<'_>) -> Vec<Candidate> {
        let mut candidates = self.candidates(question.path).await;
        candidates.retain(|candidate| candidate.entry.has(question.capability));
        candidates
    }

    /// The files that a question needs open: those that may contain other places of the symbol.
    async fn needed_for(&self, candidate: &Candidate, question: &Question<'_>) -> NeededFiles {
        let position = match question.capability {
            Capability::References | Capability::Implementation | Capability::Rename => question.position,
            _ => return NeededFiles::default(),
        };
        let offset = position.and_then(|position| question.lines.offset(position, Encoding::Utf16).ok());
        let name = offset.and_then(|offset| identifiers::at(question.lines.text(), offset));
        let file = question.path.as_path().to_owned();
        self.needed_for_name(candidate, name.map(|name| AskedName { name: name.to_owned(), file })).await
    }

    pub(super) async fn ask_one<T: Send + 'static>(
        &self,
        candidate: &Candidate,
        question: &Question<'_>,
        call: &CallContext,
        convert: impl Fn(&mut Converter<'_>, &Payload) -> T + Send + 'static,
    ) -> Share<T> {
        let id = &candidate.entry.id;
        if let Some(why) = self.skip_reason(&candidate.entry, question.path, question.lines) {
            return Share::missing(id, why);
        }
        let early = async {
            match candidate.stores_index() {
                true => None,
                false => Some(self.needed_for(candidate, question).await),
            }
        };
        let (client, mut needed) = tokio::join!(self.client(candidate, call), early);
        let client = match client {
            Ok(client) => client,
            Err(why) => return Share::missing(id, why),
        };
        let params = question.params(&client);
        let method = question.method();
        let needs_project = question.needs_project(&candidate.entry);
        loop {
            if needs_project && !client.is_ready() {
                // Opening a document makes it load the project.
                if let Err(error) = client.open_to_load(call, question.path, question.lines).await {
                    return Share::missing(id, gap_reason(&error));
                }
                if !client.ready(call).await {
                    return Share::missing(id, unready(&client));
                }
            }
            if !question.is_offered(&client) {
                return Share::none(id);
            }
            if needs_project && let Some(why) = client.failure() {
                return Share::missing(id, GapReason::Refused(why));
            }
            let needed = match &mut needed {
                Some(needed) => needed,
                none => none.insert(self.needed_for(candidate, question).await),
            };
            let opened = match self.cover(&client, needed, call).await {
                Ok(opened) => opened,
                Err(error) => return Share::missing(id, gap_reason(&error)),
            };
            let rebuilt = match needs_project {
                true => client.rebuild(call, question.path, question.lines).await,
                false => Ok(()),
            };
            let answer = match rebuilt {
                Ok(()) => client.ask_about(call, question.path, question.lines, method, &params).await,
                Err(error) => Err(error),
            };
            drop(opened);
            let payload = match answer {
                Ok(payload) => payload,
                Err(error) => return Share::missing(id, gap_reason(&error)),
            };
            if needs_project && !client.is_ready() {
                continue;
            }
            let is_vouched_for = candidate.entry.early.contains(&question.capability);
            let why = if is_vouched_for { None } else { doubt(&client, 0, None) };
            let why = needed.gap.clone().or(why);
            let short = question.short(client.encoding());
            let work = converted_up_to(short, &self.0.gate, &client, payload, convert);
            return match work.await {
                Some(value) => Share { server: id.clone(), value: Some(value), why },
                None => Share::missing(id, GapReason::Pending),
            };
        }
    }
}

/// What a server's answer is worth.
#[derive(Clone, Copy)]
pub(super) enum Worth {
    Answer,
    /// Taken if no server has more.
    Fallback,
    Nothing,
}

/// Why a server did not become ready.
fn unready(client: &Client) -> GapReason {
    if client.is_alive() { GapReason::Indexing } else { GapReason::Broken }
}

/// Why an answer may be incomplete.
fn doubt(client: &Client, count: usize, limit: Option<usize>) -> Option<GapReason> {
    match limit {
        Some(limit) if count >= limit => Some(GapReason::Limit),
        _ if !client.is_proven() => Some(GapReason::Unproven(Doubt::NoProgress)),
        _ if client.lacks_library() => Some(GapReason::Unproven(Doubt::LibrarySource)),
        _ => client.misreads_headers().then_some(GapReason::Unproven(Doubt::HeaderErrors)),
    }
}

fn merge<T>(shares: Vec<Share<Found<T>>>) -> LspAnswer<Vec<T>> {
    let mut answer =
        LspAnswer { value: Vec::new(), servers: Vec::new(), gaps: Vec::new(), notes: Vec::new() };
    for share in shares.into_iter().filter(|share| !share.is_none()) {
        answer.servers.push(share.server.clone());
        if let Some(why) = share.why {
            answer.gaps.push(Gap { server: share.server, why });
        }
        if let Some(found) = share.value {
            answer.value.extend(found.items);
        }
    }
    answer
}

/// Removes duplicates from symbols that are sorted by start.
fn each_once(symbols: Vec<Symbol>) -> Vec<Symbol> {
    let facts = |one: &Symbol| (one.range, one.selection, one.kind);
    let is_same = |one: &Symbol, other: &Symbol| {
        facts(one) == facts(other) && one.name == other.name && one.container == other.container
    };
    let mut kept: Vec<Symbol> = Vec::with_capacity(symbols.len());
    for symbol in symbols {
        let mut beside = kept.iter().rev().take_while(|other| other.range.start == symbol.range.start);
        if !beside.any(|other| is_same(other, &symbol)) {
            kept.push(symbol);
        }
    }
    kept
}

pub(super) fn sorted(mut locations: Vec<Location>) -> Vec<Location> {
    locations.sort_unstable();
    locations.dedup();
    locations
}
