//! Parses what servers send, skipping single invalid items.
//!
//! Lists are parsed at once; if that fails, item by item, so that a float or a negative line costs one item and not the
//! list. URIs are compared decoded, since servers encode them differently.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tenon_contract::position::{Position, Range};

use crate::message::Payload;
use crate::model::{Diagnostic, FixData, HoverInfo, HoverPart, Markup};

/// The decoded path of a URI: one key for all encodings. Not checked against any root.
pub(crate) fn file_key(uri: &str) -> String {
    let path = uri.strip_prefix("file://").unwrap_or(uri);
    if !path.contains('%') {
        return path.to_owned();
    }
    let bytes = path.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = (bytes[at] == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escape {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[derive(Deserialize, Clone, Copy)]
struct WirePosition {
    line: u32,
    character: u32,
}

#[derive(Deserialize, Clone, Copy)]
pub(crate) struct WireRange {
    start: WirePosition,
    end: WirePosition,
}

impl From<WireRange> for Range {
    fn from(range: WireRange) -> Self {
        Self::new(
            Position::new(range.start.line, range.start.character),
            Position::new(range.end.line, range.end.character),
        )
    }
}

/// A location or a link, not yet admitted by the gate, in the server's encoding.
pub(crate) struct RawLocation<'a> {
    pub(crate) uri: Cow<'a, str>,
    pub(crate) range: Range,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireLocation<'a> {
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
    #[serde(default)]
    range: Option<WireRange>,
    #[serde(borrow, default)]
    target_uri: Option<Cow<'a, str>>,
    #[serde(default)]
    target_range: Option<WireRange>,
    #[serde(default)]
    target_selection_range: Option<WireRange>,
}

impl<'a> WireLocation<'a> {
    fn into_raw(self) -> Option<RawLocation<'a>> {
        let uri = self.target_uri.or(self.uri)?;
        let range = self.target_selection_range.or(self.target_range).or(self.range)?;
        Some(RawLocation { uri, range: range.into() })
    }
}

/// Reads an array, one object or null as a list, without invalid items.
fn list<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> Vec<T> {
    match payload.trim_ascii_start().first() {
        Some(b'[') => serde_json::from_slice(payload).unwrap_or_else(|_| {
            serde_json::from_slice::<Vec<&RawValue>>(payload)
                .unwrap_or_default()
                .into_iter()
                .filter_map(|raw| serde_json::from_str(raw.get()).ok())
                .collect()
        }),
        Some(b'{') => serde_json::from_slice(payload).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Locations and links; of a link, the range of the target's name.
pub(crate) fn locations(payload: &Payload) -> Vec<RawLocation<'_>> {
    list::<WireLocation<'_>>(payload.as_bytes()).into_iter().filter_map(WireLocation::into_raw).collect()
}

/// A symbol in either form of the protocol, with its children.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "Child: Deserialize<'de>"))]
struct WireSymbol<Child> {
    name: String,
    kind: u32,
    #[serde(default)]
    range: Option<WireRange>,
    #[serde(default)]
    selection_range: Option<WireRange>,
    #[serde(default)]
    container_name: Option<String>,
    #[serde(default)]
    location: Option<WireSymbolLocation>,
    #[serde(default)]
    children: Option<Vec<Child>>,
}

/// How the children of a symbol are read.
trait Child: Sized {
    fn read(self) -> Option<WireSymbol<Self>>;
}

/// All at once, which is fast; one invalid child fails all.
#[derive(Deserialize)]
struct Sound(WireSymbol<Sound>);

impl Child for Sound {
    fn read(self) -> Option<WireSymbol<Self>> {
        Some(self.0)
    }
}

/// One by one, without invalid ones.
impl Child for Value {
    fn read(self) -> Option<WireSymbol<Self>> {
        serde_json::from_value(self).ok()
    }
}

#[derive(Deserialize)]
struct WireSymbolLocation {
    uri: String,
    #[serde(default)]
    range: Option<WireRange>,
}

/// One symbol of a flattened list, in the server's encoding.
pub(crate) struct RawSymbol {
    /// `None` for a symbol of the requested document.
    pub(crate) uri: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) range: Range,
    /// `None` in flat lists.
    pub(crate) selection: Option<Range>,
    pub(crate) container: Option<String>,
    pub(crate) depth: u32,
}

/// How deep symbols may nest, to avoid a stack overflow. Real code stays far below.
const MAX_DEPTH: u32 = 64;

/// Symbols of a document or the workspace, flattened, parents before their children. A symbol without a range is dropped,
/// its children stay.
pub(crate) fn symbols(payload: &Payload) -> Vec<RawSymbol> {
    match serde_json::from_slice::<Option<Vec<Sound>>>(payload.as_bytes()) {
        Ok(sound) => flattened(sound.unwrap_or_default()),
        Err(_) => lenient_symbols(payload),
    }
}

/// The same, without invalid symbols.
pub(crate) fn lenient_symbols(payload: &Payload) -> Vec<RawSymbol> {
    flattened(list::<Value>(payload.as_bytes()))
}

fn flattened<C: Child>(symbols: Vec<C>) -> Vec<RawSymbol> {
    let mut flat = Vec::new();
    for symbol in symbols.into_iter().filter_map(C::read) {
        flatten(symbol, None, 0, &mut flat);
    }
    flat
}

fn flatten<C: Child>(symbol: WireSymbol<C>, parent: Option<&str>, depth: u32, flat: &mut Vec<RawSymbol>) {
    let (uri, located) = match symbol.location {
        Some(location) => (Some(location.uri), location.range),
        None => (None, None),
    };
    if let Some(range) = symbol.range.or(located) {
        flat.push(RawSymbol {
            uri,
            name: symbol.name.clone(),
            kind: symbol.kind,
            range: range.into(),
            selection: symbol.selection_range.map(Into::into),
            container: parent.map(str::to_owned).or(symbol.container_name.filter(|name| !name.is_empty())),
            depth,
        });
    }
    if depth == MAX_DEPTH {
        return;
    }
    for child in symbol.children.unwrap_or_default() {
        if let Some(child) = child.read() {
            flatten(child, Some(&symbol.name), depth + 1, flat);
        }
    }
}

#[derive(Deserialize)]
struct WireHover {
    contents: Value,
    #[serde(default)]
    range: Option<WireRange>,
}

/// A hover, if it is not empty. The range is in the server's encoding.
pub(crate) fn hover(payload: &Payload) -> Option<HoverInfo> {
    let hover: WireHover = payload.parse().ok()?;
    let mut parts = Vec::new();
    match &hover.contents {
        Value::Array(items) => parts.extend(items.iter().filter_map(hover_part)),
        one => parts.extend(hover_part(one)),
    }
    (!parts.is_empty()).then(|| HoverInfo { parts, range: hover.range.map(Into::into) })
}

fn hover_part(content: &Value) -> Option<HoverPart> {
    let text = |key: &str| content.get(key).and_then(Value::as_str);
    let (markup, value) = match content {
        Value::String(markdown) => (Markup::Markdown, markdown.clone()),
        _ => match (text("kind"), text("language"), text("value")?) {
            (Some("plaintext"), _, value) => (Markup::Plaintext, value.to_owned()),
            (Some(_), _, value) => (Markup::Markdown, value.to_owned()),
            (None, Some(language), value) => {
                (Markup::Markdown, format!("```{language}\n{}\n```", value.trim_end_matches('\n')))
            }
            (None, None, value) => (Markup::Markdown, value.to_owned()),
        },
    };
    (!value.trim().is_empty()).then_some(HoverPart { markup, value })
}

#[derive(Deserialize)]
struct WireDiagnostic {
    range: WireRange,
    #[serde(default)]
    severity: Option<u32>,
    #[serde(default)]
    code: Option<Value>,
    #[serde(default)]
    source: Option<String>,
    message: Value,
    #[serde(default)]
    data: Option<Value>,
}

/// The most bytes that are kept of what a server wants back with a request for fixes.
const MAX_FIX_DATA: usize = 64 * 1024;

/// A code that is not text, and the server's own data.
fn fix_data(code: Option<&Value>, data: Option<Value>) -> FixData {
    let mut kept = serde_json::Map::new();
    if let Some(code) = code.filter(|code| !code.is_string()) {
        kept.insert("code".to_owned(), code.clone());
    }
    kept.extend(data.filter(|data| !data.is_null()).map(|data| ("data".to_owned(), data)));
    let json = (!kept.is_empty()).then(|| Value::Object(kept).to_string());
    FixData(json.filter(|json| json.len() <= MAX_FIX_DATA).map(Into::into))
}

impl From<WireDiagnostic> for Diagnostic {
    fn from(wire: WireDiagnostic) -> Self {
        Self {
            fix_data: fix_data(wire.code.as_ref(), wire.data),
            range: wire.range.into(),
            severity: wire.severity,
            code: wire.code.as_ref().and_then(code_text),
            source: wire.source,
            message: match wire.message {
                Value::String(text) => text,
                markup => markup.get("value").and_then(Value::as_str).unwrap_or_default().to_owned(),
            },
        }
    }
}

/// A diagnostic as its server sent it, to ask for its fixes.
pub(crate) fn to_wire(found: &Diagnostic) -> Value {
    let mut wire = json!({ "range": found.range, "message": found.message });
    let optional = [
        ("severity", found.severity.map(Value::from)),
        ("code", found.code.clone().map(Value::from)),
        ("source", found.source.clone().map(Value::from)),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            wire[key] = value;
        }
    }
    if let Some(kept) = &found.fix_data.0
        && let Ok(Value::Object(kept)) = serde_json::from_str(kept)
    {
        kept.into_iter().for_each(|(key, value)| wire[key] = value);
    }
    wire
}

/// Codes are strings, numbers, or objects with a `value`.
fn code_text(code: &Value) -> Option<String> {
    match code {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(object) => match object.get("value") {
            Some(value) if !value.is_object() => code_text(value),
            _ => Some(code.to_string()),
        },
        other => Some(other.to_string()),
    }
}

/// A list of diagnostics in the server's encoding.
fn diagnostics(raw: Option<&RawValue>) -> Vec<Diagnostic> {
    raw.map(|raw| list::<WireDiagnostic>(raw.get().as_bytes()))
        .unwrap_or_default()
        .into_iter()
        .map(Into::into)
        .collect()
}

/// A `publishDiagnostics` notification.
pub(crate) struct Published {
    pub(crate) key: String,
    pub(crate) version: Option<i32>,
    pub(crate) items: Vec<Diagnostic>,
}

#[derive(Deserialize)]
struct WirePublish<'a> {
    uri: String,
    #[serde(default)]
    version: Option<i32>,
    #[serde(borrow, default)]
    diagnostics: Option<&'a RawValue>,
}

pub(crate) fn published(params: &Payload) -> Option<Published> {
    let wire: WirePublish<'_> = params.parse().ok()?;
    Some(Published { key: file_key(&wire.uri), version: wire.version, items: diagnostics(wire.diagnostics) })
}

/// The answer to `textDocument/diagnostic`.
pub(crate) struct Pulled {
    pub(crate) items: Vec<Diagnostic>,
    /// Other files that the answer also covers.
    pub(crate) related: Vec<(String, Vec<Diagnostic>)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireReport<'a> {
    #[serde(borrow, default)]
    items: Option<&'a RawValue>,
    #[serde(borrow, default)]
    related_documents: Option<std::collections::BTreeMap<String, &'a RawValue>>,
}

pub(crate) fn pulled(payload: &Payload) -> Pulled {
    let Ok(report) = payload.parse::<WireReport<'_>>() else {
        return Pulled { items: Vec::new(), related: Vec::new() };
    };
    let related = report
        .related_documents
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(uri, raw)| {
            let report: WireReport<'_> = serde_json::from_str(raw.get()).ok()?;
            // `unchanged` has no items.
            Some((file_key(&uri), diagnostics(Some(report.items?))))
        })
        .collect();
    Pulled { items: diagnostics(report.items), related }
}

/// A response of tsserver.
#[derive(Deserialize)]
struct TsserverResponse {
    #[serde(default)]
    success: bool,
    #[serde(default)]
    body: Option<Vec<TsserverDiagnostic>>,
}

#[derive(Deserialize)]
struct TsserverDiagnostic {
    start: TsserverLocation,
    end: TsserverLocation,
    text: String,
    category: String,
    #[serde(default)]
    code: Option<Value>,
    #[serde(default)]
    source: Option<String>,
}

/// Both numbers count from 1.
#[derive(Deserialize)]
struct TsserverLocation {
    line: u32,
    offset: u32,
}

impl From<TsserverLocation> for Position {
    fn from(location: TsserverLocation) -> Self {
        Self::new(location.line.saturating_sub(1), location.offset.saturating_sub(1))
    }
}

impl From<TsserverDiagnostic> for Diagnostic {
    fn from(wire: TsserverDiagnostic) -> Self {
        let severity = match wire.category.as_str() {
            "warning" => 2,
            "suggestion" => 4,
            _ => 1,
        };
        Self {
            range: Range::new(wire.start.into(), wire.end.into()),
            severity: Some(severity),
            code: wire.code.as_ref().and_then(code_text),
            source: wire.source.or_else(|| Some("typescript".to_owned())),
            message: wire.text,
            fix_data: fix_data(wire.code.as_ref(), None),
        }
    }
}

/// The diagnostics in a response of tsserver; `None` if it is not one.
pub(crate) fn tsserver_diagnostics(payload: &Payload) -> Option<Vec<Diagnostic>> {
    let response: TsserverResponse = payload.parse().ok()?;
    let items = response.body.filter(|_| response.success)?;
    Some(items.into_iter().map(Into::into).collect())
}

/// Params of a known type; `None` if the server sends something else.
pub(crate) fn params<T: DeserializeOwned>(payload: &Payload) -> Option<T> {
    payload.parse().ok()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::message::Message;

    fn payload(json: &str) -> Payload {
        let frame = Bytes::from(format!(r#"{{"id":1,"result":{json}}}"#));
        match Message::parse(&frame) {
            Ok(Message::Response { outcome: Ok(payload), .. }) => payload,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_encodings_of_a_uri_have_one_key() {
        for uri in ["file:///a%20b/%C3%A9%23.py", "file:///a b/é%23.py", "file:///a%20b/%c3%a9%23.py"] {
            assert_eq!(file_key(uri), "/a b/é#.py");
        }
        assert_eq!(file_key("untitled:x%"), "untitled:x%");
        assert_eq!(file_key("file:///%zz%"), "/%zz%");
    }

    #[test]
    fn responses_of_tsserver_are_diagnostics_or_nothing() {
        let one = r#"{"start":{"line":3,"offset":5},"end":{"line":3,"offset":9},"text":"unused","code":6133,"category":"suggestion"}"#;
        let found = tsserver_diagnostics(&payload(&format!(r#"{{"success":true,"body":[{one}]}}"#))).unwrap();
        assert_eq!(found[0].range, Range::new(Position::new(2, 4), Position::new(2, 8)));
        assert_eq!((found[0].severity, found[0].code.as_deref()), (Some(4), Some("6133")));
        assert_eq!(found[0].source.as_deref(), Some("typescript"));
        for json in
            ["null", r#"{"type":"cancelled"}"#, r#"{"success":false,"body":[]}"#, r#"{"success":true}"#]
        {
            assert_eq!(tsserver_diagnostics(&payload(json)), None, "{json}");
        }
    }

    #[test]
    fn locations_are_single_lists_or_links() {
        let range = r#"{"start":{"line":1,"character":2},"end":{"line":1,"character":5}}"#;
        let one = format!(r#"{{"uri":"file:///a","range":{range}}}"#);
        let link = format!(
            r#"[{{"targetUri":"file:///b","targetRange":{{"start":{{"line":0,"character":0}},"end":{{"line":9,"character":0}}}},"targetSelectionRange":{range}}}]"#
        );
        for json in [one.clone(), format!("[{one}]"), link] {
            let payload = payload(&json);
            let found = locations(&payload);
            assert_eq!(found.len(), 1, "{json}");
            assert_eq!(found[0].range.start, Position::new(1, 2));
        }
        assert!(locations(&payload("null")).is_empty());
        assert!(locations(&payload("7")).is_empty());
    }

    #[test]
    fn negative_line_drops_one_location() {
        let good = r#"{"uri":"file:///a","range":{"start":{"line":1,"character":2},"end":{"line":1,"character":5}}}"#;
        let bad = good.replace("\"line\":1", "\"line\":-1");
        let float = good.replace("\"character\":2", "\"character\":2.5");
        let payload = payload(&format!("[{good},{bad},{float},null,{good}]"));
        assert_eq!(locations(&payload).len(), 2);
    }

    #[test]
    fn symbols_are_flattened_parents_first() {
        let range = r#"{"start":{"line":1,"character":0},"end":{"line":2,"character":0}}"#;
        let json = format!(
            r#"[{{"name":"C","kind":5,"range":{range},"selectionRange":{range},"children":[
                {{"name":"m","kind":6,"range":{range},"selectionRange":{range}}}, {{"name":"broken"}}]}},
                {{"name":"flat","kind":12,"containerName":"","location":{{"uri":"file:///a","range":{range}}}}},
                {{"name":"nowhere","kind":12,"location":{{"uri":"file:///a"}}}}]"#
        );
        let flat: Vec<_> = symbols(&payload(&json))
            .into_iter()
            .map(|symbol| (symbol.name, symbol.container, symbol.depth))
            .collect();
        assert_eq!(
            flat,
            [
                ("C".to_owned(), None, 0),
                ("m".to_owned(), Some("C".to_owned()), 1),
                ("flat".to_owned(), None, 0)
            ]
        );
    }

    #[test]
    fn all_hover_formats_become_parts() {
        let parts = |json: &str| {
            hover(&payload(&format!(r#"{{"contents":{json}}}"#))).map(|hover| {
                hover.parts.into_iter().map(|part| (part.markup, part.value)).collect::<Vec<_>>()
            })
        };
        assert_eq!(
            parts(r#"[{"language":"ts","value":"let x\n"},"doc"]"#).unwrap(),
            [(Markup::Markdown, "```ts\nlet x\n```".to_owned()), (Markup::Markdown, "doc".to_owned())]
        );
        assert_eq!(
            parts(r#"{"kind":"plaintext","value":"x"}"#).unwrap(),
            [(Markup::Plaintext, "x".to_owned())]
        );
        assert_eq!(parts(r#""""#), None);
        assert_eq!(parts("[]"), None);
        assert!(hover(&payload("null")).is_none());
    }

    #[test]
    fn codes_of_any_type_become_text() {
        let of = |code: &str| {
            let json = format!(
                r#"{{"items":[{{"range":{{"start":{{"line":0,"character":0}},"end":{{"line":0,"character":0}}}},"message":"m","code":{code}}}]}}"#
            );
            pulled(&payload(&json)).items.remove(0).code
        };
        assert_eq!(of("2322").as_deref(), Some("2322"));
        assert_eq!(of("\"E501\"").as_deref(), Some("E501"));
        assert_eq!(of(r#"{"value":"no-undef","target":"https://x"}"#).as_deref(), Some("no-undef"));
        assert_eq!(of(r#"{"value":7}"#).as_deref(), Some("7"));
        assert_eq!(of("null"), None);
    }
}
