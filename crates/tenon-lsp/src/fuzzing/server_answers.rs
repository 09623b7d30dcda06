//! Answers of language servers: one invalid item costs no other, and what is returned is inside the root and the text.

use std::collections::BTreeMap;
use std::fs;

use bytes::Bytes;
use serde_json::value::RawValue;
use tenon_contract::position::{Encoding, LineIndex, Range};
use tenon_contract::root::RootGate;

use crate::from_protocol::{self, RawSymbol};
use crate::message::{Message, Payload};
use crate::model::Diagnostic;

const ENCODINGS: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];
const TEXT: &str = "plain\n\u{e9}t\u{e9} \u{1f600} x\r\n\n\tend \u{65e5}";

/// A root with one file, and one beside it.
struct Tree {
    root: String,
    gate: RootGate,
    lines: LineIndex,
    _folder: tempfile::TempDir,
}

thread_local! {
    static TREE: Tree = Tree::new();
}

impl Tree {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let base = fs::canonicalize(folder.path()).expect("the folder was just made");
        fs::create_dir(base.join("root")).expect("a folder");
        fs::write(base.join("root/a b.py"), TEXT).expect("a file");
        fs::write(base.join("beside.py"), TEXT).expect("a file");
        let gate = RootGate::new([base.join("root")]).expect("the root exists");
        let root = gate.roots()[0].as_str().to_owned();
        Self { root, gate, lines: LineIndex::new(TEXT), _folder: folder }
    }

    fn check_range(&self, range: Range) {
        for from in ENCODINGS {
            let range = self.lines.convert_range_clamped(range, from, Encoding::Utf16);
            for position in [range.start, range.end] {
                assert!(self.lines.offset(position, Encoding::Utf16).is_ok(), "{position:?}");
            }
        }
    }

    fn check_uri(&self, uri: &str) {
        if let Some(path) = self.gate.output_filter().admit(uri) {
            assert!(path.as_str().starts_with(&self.root), "{path:?}");
            assert_eq!(from_protocol::file_key(path.uri().as_str()), path.as_str());
        }
    }

    fn check_diagnostics(&self, items: &[Diagnostic]) {
        items.iter().for_each(|item| self.check_range(item.range));
    }
}

/// `data` is a result or parameters in JSON. `<root>` is replaced by the root.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    TREE.with(|tree| {
        if let Some(payload) = payload(&text.replace("<root>", &tree.root)) {
            check_lists(tree, &payload);
            check_diagnostics(tree, &payload);
        }
    });
}

fn payload(json: &str) -> Option<Payload> {
    let frame = Bytes::from(format!("{{\"id\":1,\"result\":{json}}}"));
    match Message::parse(&frame) {
        Ok(Message::Response { outcome: Ok(payload), .. }) => Some(payload),
        _ => None,
    }
}

/// Each item of a list, as a list by itself.
fn single_items(payload: &Payload) -> Option<Vec<Payload>> {
    let items: Vec<&RawValue> = payload.parse().ok()?;
    items.into_iter().map(|item| self::payload(&format!("[{}]", item.get()))).collect()
}

fn check_lists(tree: &Tree, payload: &Payload) {
    let locations = from_protocol::locations(payload);
    for location in &locations {
        tree.check_range(location.range);
        tree.check_uri(&location.uri);
    }
    let symbols = from_protocol::symbols(payload);
    for symbol in &symbols {
        tree.check_range(symbol.range);
        symbol.uri.iter().for_each(|uri| tree.check_uri(uri));
    }
    if let Some(items) = single_items(payload) {
        let alone: usize = items.iter().map(|item| from_protocol::locations(item).len()).sum();
        assert_eq!(alone, locations.len());
        let alone: Vec<String> =
            items.iter().flat_map(from_protocol::symbols).map(|one| shown(&one)).collect();
        assert_eq!(alone, symbols.iter().map(shown).collect::<Vec<_>>());
        let lenient = from_protocol::lenient_symbols(payload);
        assert_eq!(lenient.iter().map(shown).collect::<Vec<_>>(), alone);
    }
    if let Some(hover) = from_protocol::hover(payload) {
        assert!(hover.parts.iter().all(|part| !part.value.trim().is_empty()));
        hover.range.into_iter().for_each(|range| tree.check_range(range));
    }
}

fn shown(symbol: &RawSymbol) -> String {
    let RawSymbol { uri, name, kind, range, selection, container, depth } = symbol;
    format!("{uri:?} {name:?} {kind} {range:?} {selection:?} {container:?} {depth}")
}

fn check_diagnostics(tree: &Tree, payload: &Payload) {
    if let Some(published) = from_protocol::published(payload) {
        tree.check_diagnostics(&published.items);
        assert_eq!(published.items.len(), items_alone(payload, "diagnostics"));
    }
    let pulled = from_protocol::pulled(payload);
    tree.check_diagnostics(&pulled.items);
    assert!(pulled.items.len() <= items_alone(payload, "items"));
    pulled.related.iter().for_each(|(_, items)| tree.check_diagnostics(items));
    from_protocol::tsserver_diagnostics(payload).iter().for_each(|items| tree.check_diagnostics(items));
}

/// How many diagnostics of a list can be read when each is sent by itself.
fn items_alone(payload: &Payload, field: &str) -> usize {
    let fields: BTreeMap<String, &RawValue> = payload.parse().unwrap_or_default();
    let Some(list) = fields.get(field) else { return 0 };
    let alone = |item: &RawValue| {
        let report = self::payload(&format!("{{\"items\":[{}]}}", item.get()));
        report.map_or(0, |report| from_protocol::pulled(&report).items.len())
    };
    match serde_json::from_str::<Vec<&RawValue>>(list.get()) {
        Ok(items) => items.into_iter().map(alone).sum(),
        Err(_) if list.get().starts_with('{') => alone(list),
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_passes() {
        tenon_testkit::corpus::for_each("server_answers", super::check);
    }
}
