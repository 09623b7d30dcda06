//! Converts a server's results: paths through the gate, columns from the server's encoding to UTF-16.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_contract::position::{Encoding, LineIndex, Range};
use tenon_contract::root::{OutputFilter, RootGate, WorkspacePath};

use super::{MAX_TEXT_BYTES, declared_name, read_text, text_of};
use crate::client::Client;
use crate::from_protocol;
use crate::message::Payload;
use crate::model::{Diagnostic, Location, Symbol, SymbolKind};
use crate::outside::OutsidePlace;

/// Answers up to this size, about forty locations, are converted in place: moving the work to another thread would take longer
/// than reading the few files.
pub(super) const SHORT_BYTES: usize = 8 * 1024;

/// The same for answers about one file, and for places whose columns need no conversion, so that no file is read.
pub(super) const SHORT_ALONE_BYTES: usize = 256 * 1024;

/// How to convert the columns of a text.
enum Columns {
    /// Columns are the same in all encodings.
    Ascii,
    Mixed(LineIndex),
    /// The file is missing or not text.
    Unknown,
}

impl Columns {
    fn of(gate: &RootGate, client: &Client, path: &WorkspacePath) -> Self {
        if let Some(lines) = client.open_text(path.as_str()) {
            return Self::Mixed(lines);
        }
        match gate.read(path, MAX_TEXT_BYTES) {
            Ok(bytes) if bytes.is_ascii() => Self::Ascii,
            Ok(bytes) => text_of(&bytes).map_or(Self::Unknown, |text| Self::Mixed(LineIndex::new(text))),
            Err(_) => Self::Unknown,
        }
    }
}

/// Converts one answer. May read each file in it.
pub(super) struct Converter<'a> {
    gate: &'a RootGate,
    filter: OutputFilter<'a>,
    client: &'a Client,
    encoding: Encoding,
    columns: BTreeMap<WorkspacePath, Columns>,
    /// Texts in which names were looked for.
    texts: BTreeMap<WorkspacePath, Option<LineIndex>>,
}

impl<'a> Converter<'a> {
    pub(super) fn new(gate: &'a RootGate, client: &'a Client) -> Self {
        Self {
            gate,
            filter: gate.output_filter(),
            encoding: client.encoding(),
            client,
            columns: BTreeMap::new(),
            texts: BTreeMap::new(),
        }
    }

    pub(super) fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub(super) fn gate(&self) -> &'a RootGate {
        self.gate
    }

    pub(super) fn client(&self) -> &'a Client {
        self.client
    }

    /// The file of a URI, if it is inside the roots.
    pub(super) fn admit(&mut self, uri: &str) -> Option<WorkspacePath> {
        self.filter.admit(uri)
    }

    /// The text of a file on disk.
    pub(super) fn text_on_disk(&self, path: &WorkspacePath) -> Option<LineIndex> {
        read_text(self.gate, path, self.client.open_text(path.as_str())).ok()
    }

    /// A URI for a message: relative to the root, if it is inside.
    pub(super) fn named(&self, uri: &str) -> String {
        let path = from_protocol::file_key(uri);
        let below = self.gate.primary().and_then(|root| camino::Utf8Path::new(&path).strip_prefix(root).ok());
        below.map_or(path.clone(), |below| below.as_str().to_owned())
    }

    /// A range in a file; `None` if the file can no longer be read.
    fn range(&mut self, path: &WorkspacePath, range: Range) -> Option<Range> {
        if self.encoding == Encoding::Utf16 {
            return Some(range);
        }
        let (gate, client) = (self.gate, self.client);
        let columns = self.columns.entry(path.clone()).or_insert_with(|| Columns::of(gate, client, path));
        match columns {
            Columns::Ascii => Some(range),
            Columns::Mixed(lines) => Some(lines.convert_range_clamped(range, self.encoding, Encoding::Utf16)),
            Columns::Unknown => None,
        }
    }

    pub(super) fn locations(&mut self, payload: &Payload) -> Found<Location> {
        let raw = from_protocol::locations(payload);
        let count = raw.len();
        let mut outside = Vec::new();
        let items = raw
            .into_iter()
            .filter_map(|one| {
                let Some(path) = self.filter.admit(&one.uri) else {
                    outside.extend(self.is_outside(&one.uri).then(|| OutsidePlace::of_uri(&one.uri)));
                    return None;
                };
                let range = self.range(&path, one.range)?;
                Some(Location { path, range })
            })
            .collect();
        Found { items, count, outside }
    }

    /// Whether a URI that was not admitted is outside the roots, and not just a file that is gone.
    pub(super) fn is_outside(&self, uri: &str) -> bool {
        let path = from_protocol::file_key(uri);
        !self.gate.roots().iter().any(|root| camino::Utf8Path::new(&path).starts_with(root))
    }

    /// The range of a symbol's name, for a server that gives only the range of the declaration.
    fn name_range(&mut self, path: &WorkspacePath, declaration: Range, name: &str) -> Option<Range> {
        if declared_name::is_range_of(declaration, name) {
            return None;
        }
        let (gate, client) = (self.gate, self.client);
        let text = self
            .texts
            .entry(path.clone())
            .or_insert_with(|| client.open_text(path.as_str()).or_else(|| read_text(gate, path, None).ok()));
        declared_name::in_text(text.as_ref()?, declaration, name)
    }

    /// Symbols; those without a file belong to `document`.
    pub(super) fn symbols(&mut self, payload: &Payload, document: Option<&WorkspacePath>) -> Found<Symbol> {
        let raw = from_protocol::symbols(payload);
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
                let selection = match one.selection {
                    Some(selection) if selection != one.range => self.range(&path, selection)?,
                    _ => self.name_range(&path, range, &one.name).unwrap_or(range),
                };
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
        Found { items, count, outside: Vec::new() }
    }

    /// Diagnostics of the server, by file.
    fn diagnostics(&mut self, held: Vec<(String, Vec<Diagnostic>)>) -> Vec<(WorkspacePath, Vec<Diagnostic>)> {
        held.into_iter()
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

/// A converted list, and its length before items were dropped.
pub(super) struct Found<T> {
    pub(super) items: Vec<T>,
    pub(super) count: usize,
    /// Where the items outside the roots are.
    pub(super) outside: Vec<OutsidePlace>,
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

/// Converts an answer: a short one in place, a long one on a blocking thread. `None` only during shutdown of the runtime.
pub(super) async fn converted<T: Send + 'static>(
    gate: &RootGate,
    client: &Arc<Client>,
    payload: Payload,
    work: impl FnOnce(&mut Converter<'_>, &Payload) -> T + Send + 'static,
) -> Option<T> {
    converted_up_to(SHORT_BYTES, gate, client, payload, work).await
}

/// The same with a given limit for short answers.
pub(super) async fn converted_up_to<T: Send + 'static>(
    short: usize,
    gate: &RootGate,
    client: &Arc<Client>,
    payload: Payload,
    work: impl FnOnce(&mut Converter<'_>, &Payload) -> T + Send + 'static,
) -> Option<T> {
    if payload.as_bytes().len() <= short {
        return Some(work(&mut Converter::new(gate, client), &payload));
    }
    let (gate, client) = (gate.clone(), Arc::clone(client));
    tokio::task::spawn_blocking(move || work(&mut Converter::new(&gate, &client), &payload)).await.ok()
}

/// Converts a server's diagnostics by file.
pub(super) async fn converted_diagnostics(
    gate: RootGate,
    client: Arc<Client>,
    held: Vec<(String, Vec<Diagnostic>)>,
) -> Vec<(WorkspacePath, Vec<Diagnostic>)> {
    if held.is_empty() {
        return Vec::new();
    }
    let work = tokio::task::spawn_blocking(move || Converter::new(&gate, &client).diagnostics(held));
    work.await.unwrap_or_default()
}
