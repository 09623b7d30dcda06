//! Code queries, sent to every capable server and merged.
//!
//! Definition, hover, implementation: the first non-empty answer in registry order. References and symbols: all answers,
//! sorted, without duplicates. A query waits until the server is ready, unless the server answers it completely before that;
//! if the server stops being ready while it answers, the query is repeated.

use std::sync::Arc;

use futures::future::join_all;
use futures::stream::{FuturesOrdered, StreamExt};
use serde_json::{Value, json};
use tenon_contract::position::{Encoding, LineIndex, Position};
use tenon_contract::root::WorkspacePath;

use super::convert::{Converter, Found, SHORT_ALONE_BYTES, SHORT_BYTES, converted, converted_up_to};
use super::{AskError, Candidate, Orchestrator};
use crate::call_context::CallContext;
use crate::client::{Client, gap_reason};
use crate::from_protocol;
use crate::message::Payload;
use crate::model::{Gap, GapReason, HoverInfo, Location, LspAnswer, Symbol};
use tenon_servers::registry::{Capability, ServerEntry, ServerId};

/// What one server contributed.
struct Share<T> {
    server: ServerId,
    value: Option<T>,
    why: Option<GapReason>,
}

impl<T> Share<T> {
    fn missing(server: &ServerId, why: GapReason) -> Self {
        Self { server: server.clone(), value: None, why: Some(why) }
    }

    /// The server does not support such queries.
    fn none(server: &ServerId) -> Self {
        Self { server: server.clone(), value: None, why: None }
    }

    fn is_none(&self) -> bool {
        self.value.is_none() && self.why.is_none()
    }
}

/// A query about a position or a document.
struct Question<'a> {
    capability: Capability,
    path: &'a WorkspacePath,
    lines: &'a LineIndex,
    /// UTF-16; `None` asks about the document.
    position: Option<Position>,
    extra: Option<(&'static str, Value)>,
}

impl Question<'_> {
    fn params(&self, encoding: Encoding) -> Value {
        let mut params = json!({ "textDocument": { "uri": self.path.uri().as_str() } });
        if let Some(position) = self.position {
            params["position"] = json!(self.lines.convert_clamped(position, Encoding::Utf16, encoding));
        }
        if let Some((key, value)) = &self.extra {
            params[key] = value.clone();
        }
        params
    }

    /// The size up to which an answer is short.
    fn short(&self) -> usize {
        match self.capability {
            Capability::DocumentSymbols | Capability::Hover => SHORT_ALONE_BYTES,
            _ => SHORT_BYTES,
        }
    }

    /// Whether a server must have loaded its project to answer. The symbols of a document depend on its text alone.
    fn needs_project(&self, entry: &ServerEntry) -> bool {
        self.capability != Capability::DocumentSymbols && !entry.early.contains(&self.capability)
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
        let question = Question { capability, path, lines: &lines, position: Some(position), extra: None };
        let convert = |converter: &mut Converter<'_>, payload: &Payload| converter.locations(payload);
        let is_some = |found: &Found<Location>| !found.items.is_empty();
        let answer = self.first(&question, call, convert, is_some).await;
        Ok(answer.map(|found| sorted(found.map(|found| found.items).unwrap_or_default())))
    }

    /// The references to the symbol at a position.
    pub async fn references(
        &self,
        path: &WorkspacePath,
        position: Position,
        include_declaration: bool,
        call: &CallContext,
    ) -> Result<LspAnswer<Vec<Location>>, AskError> {
        let lines = self.read_at(Capability::References, path, position, call).await?;
        let question = Question {
            capability: Capability::References,
            path,
            lines: &lines,
            position: Some(position),
            extra: Some(("context", json!({ "includeDeclaration": include_declaration }))),
        };
        let convert = |converter: &mut Converter<'_>, payload: &Payload| converter.locations(payload);
        Ok(self.all(&question, call, convert).await.map(sorted))
    }

    /// The hover at a position.
    pub async fn hover(
        &self,
        path: &WorkspacePath,
        position: Position,
        call: &CallContext,
    ) -> Result<LspAnswer<Option<HoverInfo>>, AskError> {
        let lines = self.read_at(Capability::Hover, path, position, call).await?;
        let question = Question {
            capability: Capability::Hover,
            path,
            lines: &lines,
            position: Some(position),
            extra: None,
        };
        let convert = |converter: &mut Converter<'_>, payload: &Payload| {
            from_protocol::hover(payload).map(|hover| (hover, converter.encoding()))
        };
        let answer = self.first(&question, call, convert, Option::is_some).await;
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
        let question = Question {
            capability: Capability::DocumentSymbols,
            path,
            lines: &lines,
            position: None,
            extra: None,
        };
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
        let (projects, more) = self.projects(call).await;
        let asked = projects.iter().filter(|one| one.candidate.entry.has(Capability::WorkspaceSymbols));
        let shares = join_all(asked.map(|project| async {
            let id = &project.candidate.entry.id;
            let client = match self.client(&project.candidate, call).await {
                Ok(client) => client,
                Err(why) => return Share::missing(id, why),
            };
            match self.settle(&client, &project.sample, call).await {
                Ok(()) => self.ask_workspace(&client, query, call).await,
                Err(why) => Share::missing(id, why),
            }
        }))
        .await;
        let mut answer = merge(shares);
        answer.gaps.extend(more.into_iter().map(|server| Gap { server, why: GapReason::Limit }));
        answer.value.sort_by(Symbol::compare);
        answer.value.dedup();
        answer
    }

    async fn ask_workspace(
        &self,
        client: &Arc<Client>,
        query: &str,
        call: &CallContext,
    ) -> Share<Found<Symbol>> {
        let id = &client.entry().id;
        if !client.has(Capability::WorkspaceSymbols) {
            return Share::none(id);
        }
        let params = json!({ "query": query });
        loop {
            if !client.ready(call).await {
                return Share::missing(id, unready(client));
            }
            let payload = match client.ask(call, "workspace/symbol", &params).await {
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

    async fn read_at(
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
    async fn read_for(
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

    /// The first non-empty answer, in registry order, without waiting for the remaining servers.
    async fn first<T: Send + 'static>(
        &self,
        question: &Question<'_>,
        call: &CallContext,
        convert: impl Fn(&mut Converter<'_>, &Payload) -> T + Clone + Send + 'static,
        is_some: impl Fn(&T) -> bool,
    ) -> LspAnswer<Option<T>> {
        let candidates = self.candidates_for(question).await;
        let mut asked: FuturesOrdered<_> = candidates
            .iter()
            .map(|candidate| self.ask_one(candidate, question, call, convert.clone()))
            .collect();
        let mut answer = LspAnswer { value: None, servers: Vec::new(), gaps: Vec::new() };
        while let Some(share) = asked.next().await {
            if share.is_none() {
                continue;
            }
            answer.servers.push(share.server.clone());
            if let Some(why) = share.why {
                answer.gaps.push(Gap { server: share.server, why });
            }
            if let Some(value) = share.value.filter(&is_some) {
                answer.value = Some(value);
                break;
            }
        }
        answer
    }

    /// The answers of all servers, in registry order.
    async fn all<T: Send + 'static>(
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

    async fn candidates_for(&self, question: &Question<'_>) -> Vec<Candidate> {
        let mut candidates = self.candidates(question.path).await;
        candidates.retain(|candidate| candidate.entry.has(question.capability));
        candidates
    }

    async fn ask_one<T: Send + 'static>(
        &self,
        candidate: &Candidate,
        question: &Question<'_>,
        call: &CallContext,
        convert: impl Fn(&mut Converter<'_>, &Payload) -> T + Send + 'static,
    ) -> Share<T> {
        let id = &candidate.entry.id;
        let client = match self.client(candidate, call).await {
            Ok(client) => client,
            Err(why) => return Share::missing(id, why),
        };
        let params = question.params(client.encoding());
        let method = crate::client::method(question.capability);
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
            if !client.has(question.capability) {
                return Share::none(id);
            }
            let payload = match client.ask_about(call, question.path, question.lines, method, &params).await {
                Ok(payload) => payload,
                Err(error) => return Share::missing(id, gap_reason(&error)),
            };
            if needs_project && !client.is_ready() {
                continue;
            }
            let is_vouched_for = candidate.entry.early.contains(&question.capability);
            let why = if is_vouched_for { None } else { doubt(&client, 0, None) };
            let work = converted_up_to(question.short(), &self.0.gate, &client, payload, convert);
            return match work.await {
                Some(value) => Share { server: id.clone(), value: Some(value), why },
                None => Share::missing(id, GapReason::Pending),
            };
        }
    }
}

/// Why a server did not become ready.
fn unready(client: &Client) -> GapReason {
    if client.is_alive() { GapReason::Indexing } else { GapReason::Broken }
}

/// Why an answer may be incomplete.
fn doubt(client: &Client, count: usize, limit: Option<usize>) -> Option<GapReason> {
    match limit {
        Some(limit) if count >= limit => Some(GapReason::Limit),
        _ => (!client.is_proven()).then_some(GapReason::Unproven),
    }
}

fn merge<T>(shares: Vec<Share<Found<T>>>) -> LspAnswer<Vec<T>> {
    let mut answer = LspAnswer { value: Vec::new(), servers: Vec::new(), gaps: Vec::new() };
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

fn sorted(mut locations: Vec<Location>) -> Vec<Location> {
    locations.sort_unstable();
    locations.dedup();
    locations
}
