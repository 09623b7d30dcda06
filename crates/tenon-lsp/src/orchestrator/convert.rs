//! From one server's view to ours: paths through the gate, columns from the server's encoding to UTF-16.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_contract::position::{Encoding, LineIndex, Range};
use tenon_contract::root::{OutputFilter, RootGate, WorkspacePath};

use super::read_text;
use crate::client::Client;
use crate::message::Payload;
use crate::model::{Diagnostic, Location, Symbol, SymbolKind};
use crate::wire;

/// Answers up to this size, some forty places, are converted where they are: to hand them to another thread and back would
/// take longer than the few questions to the file system.
const SHORT_BYTES: usize = 8 * 1024;

/// Converts one answer. Asks the file system about each file in it.
pub(super) struct Converter<'a> {
    gate: &'a RootGate,
    filter: OutputFilter<'a>,
    client: &'a Client,
    encoding: Encoding,
    texts: BTreeMap<WorkspacePath, Option<LineIndex>>,
}

impl<'a> Converter<'a> {
    pub(super) fn new(gate: &'a RootGate, client: &'a Client) -> Self {
        Self {
            gate,
            filter: gate.output_filter(),
            encoding: client.encoding(),
            client,
            texts: BTreeMap::new(),
        }
    }

    pub(super) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// A range in a file. Of a file that cannot be read any more, the range is dropped with it.
    fn range(&mut self, path: &WorkspacePath, range: Range) -> Option<Range> {
        if self.encoding == Encoding::Utf16 {
            return Some(range);
        }
        let (gate, client) = (self.gate, self.client);
        let lines = self
            .texts
            .entry(path.clone())
            .or_insert_with(|| client.open_text(path.as_str()).or_else(|| read_text(gate, path, None).ok()));
        let lines = lines.as_ref()?;
        Some(lines.convert_range_clamped(range, self.encoding, Encoding::Utf16))
    }

    pub(super) fn locations(&mut self, payload: &Payload) -> Found<Location> {
        let raw = wire::locations(payload);
        let count = raw.len();
        let items = raw
            .into_iter()
            .filter_map(|one| {
                let path = self.filter.admit(&one.uri)?;
                let range = self.range(&path, one.range)?;
                Some(Location { path, range })
            })
            .collect();
        Found { items, count }
    }

    /// Symbols; those without a file of their own are in `document`.
    pub(super) fn symbols(&mut self, payload: &Payload, document: Option<&WorkspacePath>) -> Found<Symbol> {
        let raw = wire::symbols(payload);
        let count = raw.len();
        let items = raw
            .into_iter()
            .filter_map(|one| {
                let path = match (&one.uri, document) {
                    (_, Some(document)) => document.clone(),
                    (Some(uri), None) => self.filter.admit(uri)?,
                    (None, None) => return None,
                };
                let range = self.range(&path, one.range)?;
                let selection = self.range(&path, one.selection)?;
                Some(Symbol {
                    path,
                    name: one.name,
                    kind: SymbolKind(one.kind),
                    range,
                    selection,
                    container: one.container,
                    depth: one.depth,
                })
            })
            .collect();
        Found { items, count }
    }

    /// What the server holds, by file.
    fn held_diagnostics(&mut self) -> Vec<(WorkspacePath, Vec<Diagnostic>)> {
        self.client
            .held_diagnostics()
            .into_iter()
            .filter_map(|(key, items)| {
                let path = self.gate.admit_path(&key).ok()?;
                let items = items
                    .into_iter()
                    .filter_map(|mut one| {
                        one.range = self.range(&path, one.range)?;
                        Some(one)
                    })
                    .collect();
                Some((path, items))
            })
            .collect()
    }
}

/// A converted list, and how long it was before anything was dropped.
pub(super) struct Found<T> {
    pub(super) items: Vec<T>,
    pub(super) count: usize,
}

/// Diagnostics of one text, as its server sent them.
pub(super) fn diagnostics_of(
    lines: &LineIndex,
    encoding: Encoding,
    items: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    if encoding == Encoding::Utf16 {
        return items;
    }
    items
        .into_iter()
        .map(|mut one| {
            one.range = lines.convert_range_clamped(one.range, encoding, Encoding::Utf16);
            one
        })
        .collect()
}

/// Converts an answer: a short one right here, a long one on a thread that may block. `None` only when the runtime is going
/// down.
pub(super) async fn converted<T: Send + 'static>(
    gate: &RootGate,
    client: &Arc<Client>,
    payload: Payload,
    work: impl FnOnce(&mut Converter<'_>, &Payload) -> T + Send + 'static,
) -> Option<T> {
    if payload.as_bytes().len() <= SHORT_BYTES {
        return Some(work(&mut Converter::new(gate, client), &payload));
    }
    let (gate, client) = (gate.clone(), Arc::clone(client));
    tokio::task::spawn_blocking(move || work(&mut Converter::new(&gate, &client), &payload)).await.ok()
}

/// What a server holds, by file.
pub(super) async fn held_diagnostics(
    gate: RootGate,
    client: Arc<Client>,
) -> Vec<(WorkspacePath, Vec<Diagnostic>)> {
    let held = tokio::task::spawn_blocking(move || Converter::new(&gate, &client).held_diagnostics());
    held.await.unwrap_or_default()
}
