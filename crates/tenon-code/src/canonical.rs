//! What the tools return, in canonical form: one shape, one order and one identity per kind of thing.
//!
//! Order (contract §4.2) never depends on the order in which a server answered: remaining ties are broken by
//! canonical JSON, and exact duplicates (§4.3), which are equal there, are dropped.

use std::cmp::Ordering;

use serde::{Serialize, Serializer};
use tenon_contract::id::StableId;
use tenon_contract::json::canonical;
use tenon_contract::position::{Position, Range};
use tenon_contract::root::WorkspacePath;
use tenon_lsp::model;

/// A range in a file (§3.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Location {
    #[serde(rename = "uri", serialize_with = "as_uri")]
    pub(crate) path: WorkspacePath,
    pub(crate) range: Range,
}

impl From<model::Location> for Location {
    fn from(location: model::Location) -> Self {
        Self { path: location.path, range: location.range }
    }
}

/// A symbol of one document (§7.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DocumentSymbol {
    pub(crate) id: StableId,
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) range: Range,
    pub(crate) selection_range: Range,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) container_name: Option<String>,
}

impl From<model::Symbol> for DocumentSymbol {
    fn from(symbol: model::Symbol) -> Self {
        Self {
            id: document_symbol_id(symbol.path.uri().as_str(), &symbol),
            name: symbol.name,
            kind: symbol.kind.0,
            range: symbol.range,
            selection_range: symbol.selection,
            container_name: symbol.container,
        }
    }
}

fn document_symbol_id(uri: &str, symbol: &model::Symbol) -> StableId {
    StableId::of(&[
        &uri,
        &symbol.name,
        &symbol.kind.0,
        &symbol.range.start,
        &symbol.range.end,
        &symbol.selection.start,
        &symbol.selection.end,
        &symbol.container.as_deref().unwrap_or_default(),
    ])
}

/// A symbol of the workspace (§7.5).
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkspaceSymbol {
    pub(crate) id: StableId,
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) location: Location,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) container_name: Option<String>,
    /// The start of the name, for listings.
    #[serde(skip)]
    pub(crate) name_at: Position,
}

/// By what clients see: two servers may disagree where the name of one symbol starts.
impl PartialEq for WorkspaceSymbol {
    fn eq(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.id.clone(), one.container_name.clone());
        key(self) == key(other)
    }
}

impl Eq for WorkspaceSymbol {}

impl From<model::Symbol> for WorkspaceSymbol {
    fn from(symbol: model::Symbol) -> Self {
        Self {
            id: workspace_symbol_id(symbol.path.uri().as_str(), &symbol),
            name: symbol.name,
            kind: symbol.kind.0,
            location: Location { path: symbol.path, range: symbol.range },
            container_name: symbol.container,
            name_at: symbol.selection.start,
        }
    }
}

fn workspace_symbol_id(uri: &str, symbol: &model::Symbol) -> StableId {
    StableId::of(&[
        &uri,
        &symbol.name,
        &symbol.kind.0,
        &symbol.range.start,
        &symbol.range.end,
        &symbol.container.as_deref().unwrap_or_default(),
    ])
}

/// A diagnostic (§7.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Diagnostic {
    pub(crate) id: StableId,
    pub(crate) range: Range,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) severity: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    pub(crate) message: String,
}

impl Diagnostic {
    pub(crate) fn new(path: &WorkspacePath, diagnostic: model::Diagnostic) -> Self {
        let id = diagnostic_id(path.uri().as_str(), &diagnostic);
        let model::Diagnostic { range, severity, code, source, message, fix_data: _ } = diagnostic;
        Self { id, range, severity, code, source, message }
    }
}

fn diagnostic_id(uri: &str, diagnostic: &model::Diagnostic) -> StableId {
    StableId::of(&[
        &uri,
        &diagnostic.range.start,
        &diagnostic.range.end,
        &diagnostic.severity.map(|severity| severity.to_string()).unwrap_or_default(),
        &diagnostic.code.as_deref().unwrap_or_default(),
        &diagnostic.source.as_deref().unwrap_or_default(),
        &diagnostic.message,
    ])
}

/// The diagnostics of one file (§7.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FileDiagnostics {
    #[serde(rename = "uri", serialize_with = "as_uri")]
    pub(crate) path: WorkspacePath,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

pub(crate) fn as_uri<S: Serializer>(path: &WorkspacePath, serializer: S) -> Result<S::Ok, S::Error> {
    path.uri().serialize(serializer)
}

/// A result with a sort order in the contract.
pub(crate) trait Canonical: Serialize + PartialEq {
    /// Compares the documented keys; canonical JSON breaks ties.
    fn compare(&self, other: &Self) -> Ordering;
}

impl Canonical for Location {
    fn compare(&self, other: &Self) -> Ordering {
        // By URI, which differs from path order because some characters are escaped.
        self.path.uri().cmp(other.path.uri()).then_with(|| self.range.cmp(&other.range))
    }
}

impl Canonical for DocumentSymbol {
    fn compare(&self, other: &Self) -> Ordering {
        self.range
            .cmp(&other.range)
            .then_with(|| self.name.cmp(&other.name))
            .then_with(|| self.kind.cmp(&other.kind))
            .then_with(|| missing_last(&self.container_name, &other.container_name))
    }
}

impl Canonical for WorkspaceSymbol {
    fn compare(&self, other: &Self) -> Ordering {
        self.location
            .compare(&other.location)
            .then_with(|| self.name.cmp(&other.name))
            .then_with(|| self.kind.cmp(&other.kind))
            .then_with(|| missing_last(&self.container_name, &other.container_name))
            .then_with(|| self.name_at.cmp(&other.name_at))
    }
}

impl Canonical for Diagnostic {
    fn compare(&self, other: &Self) -> Ordering {
        self.range
            .start
            .cmp(&other.range.start)
            .then_with(|| missing_last(&self.severity, &other.severity))
            .then_with(|| missing_last(&self.code, &other.code))
            .then_with(|| missing_last(&self.source, &other.source))
            .then_with(|| self.message.cmp(&other.message))
    }
}

impl Canonical for FileDiagnostics {
    fn compare(&self, other: &Self) -> Ordering {
        self.path.uri().cmp(other.path.uri())
    }
}

fn missing_last<T: Ord>(left: &Option<T>, right: &Option<T>) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => left.cmp(right),
        (left, right) => right.is_some().cmp(&left.is_some()),
    }
}

/// Sorts and drops exact duplicates.
pub(crate) fn canonicalise<T: Canonical>(mut items: Vec<T>) -> Vec<T> {
    let json = |item: &T| canonical(item).expect("plain data serialises");
    items.sort_by(|left, right| {
        left.compare(right)
            .then_with(|| if left == right { Ordering::Equal } else { json(left).cmp(&json(right)) })
    });
    // What is not serialised, such as the place of a name, does not tell items apart.
    items.dedup_by(|right, left| {
        left == right || (left.compare(right) == Ordering::Equal && json(left) == json(right))
    });
    items
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;
    use tenon_contract::root::RootGate;
    use tenon_lsp::model::SymbolKind;

    use super::*;

    /// Paths come from a gate, so the test needs a folder with files.
    fn folder() -> (tempfile::TempDir, Vec<WorkspacePath>) {
        let folder = tempfile::tempdir().unwrap();
        let gate = RootGate::new([folder.path()]).unwrap();
        let admit = |name: &str| {
            std::fs::write(folder.path().join(name), "").unwrap();
            gate.admit_path(name).unwrap()
        };
        let paths = ["a b.ts", "a!b.ts", "a-b.ts", "é.ts"].map(admit);
        (folder, paths.into())
    }

    fn range(numbers: [u32; 4]) -> Range {
        Range::new(Position::new(numbers[0], numbers[1]), Position::new(numbers[2], numbers[3]))
    }

    fn ranges() -> impl Strategy<Value = Range> {
        prop::array::uniform4(0..3u32).prop_map(range)
    }

    fn words() -> impl Strategy<Value = String> {
        prop::sample::select(vec!["", "a", "b", "B", "é", "😀", "\u{ffff}", "a|b"]).prop_map(str::to_owned)
    }

    fn diagnostics() -> impl Strategy<Value = model::Diagnostic> {
        let optional = || prop::option::of(words());
        let fields = (ranges(), prop::option::of(1..5u32), optional(), optional(), words());
        fields.prop_map(|(range, severity, code, source, message)| model::Diagnostic {
            range,
            severity,
            code,
            source,
            message,
            fix_data: model::FixData::default(),
        })
    }

    /// The result is sorted and without duplicates, whatever the input order.
    fn is_canonical<T: Canonical + Clone + std::fmt::Debug>(items: &[T], order: &[prop::sample::Index]) {
        let expected = canonicalise(items.to_vec());
        let mut shuffled = items.to_vec();
        for (at, index) in order.iter().enumerate().take(items.len()) {
            shuffled.swap(at, index.index(items.len()));
        }
        shuffled.extend_from_slice(items);
        let given = canonicalise(shuffled);
        assert_eq!(given, expected);
        let texts: Vec<String> = given.iter().map(|item| canonical(item).unwrap()).collect();
        let distinct: std::collections::BTreeSet<&String> = texts.iter().collect();
        assert_eq!(distinct.len(), texts.len(), "duplicates by canonical JSON: {texts:?}");
        for pair in given.windows(2) {
            let order = pair[0].compare(&pair[1]);
            assert_ne!(order, Ordering::Greater);
            assert_eq!(order, pair[1].compare(&pair[0]).reverse());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn s4_2_s4_3_the_order_of_a_server_never_shows(
            sketches in prop::collection::vec(
                (0..4usize, words(), 1..4u32, ranges(), ranges(), prop::option::of("[a-c]")),
                0..40,
            ),
            diagnosed in prop::collection::vec(diagnostics(), 0..40),
            order in prop::collection::vec(any::<prop::sample::Index>(), 40),
        ) {
            let (_folder, paths) = folder();
            let symbols: Vec<model::Symbol> = sketches
                .into_iter()
                .map(|(path, name, kind, range, selection, container)| model::Symbol {
                    path: paths[path].clone(),
                    name,
                    kind: SymbolKind(kind),
                    range,
                    selection,
                    container,
                    depth: 0,
                })
                .collect();
            let workspace: Vec<_> = symbols.iter().cloned().map(WorkspaceSymbol::from).collect();
            let locations: Vec<_> = workspace.iter().map(|symbol| symbol.location.clone()).collect();
            is_canonical(&locations, &order);
            is_canonical(&workspace, &order);
            is_canonical(&symbols.into_iter().map(DocumentSymbol::from).collect::<Vec<_>>(), &order);
            let diagnosed: Vec<_> = diagnosed.into_iter().map(|one| Diagnostic::new(&paths[0], one)).collect();
            is_canonical(&diagnosed, &order);
        }
    }

    #[test]
    fn s4_2_locations_sort_by_uri_then_by_range() {
        let (_folder, paths) = folder();
        let at = |path: usize, numbers| Location { path: paths[path].clone(), range: range(numbers) };
        // In URIs `%20` comes before `%21`, `%C3` and `-`; in paths `-` comes before `é`.
        let sorted = [
            at(0, [0, 9, 9, 9]),
            at(0, [1, 0, 1, 0]),
            at(0, [1, 0, 1, 1]),
            at(1, [0, 0, 0, 0]),
            at(3, [0, 0, 0, 0]),
            at(2, [0, 0, 0, 0]),
        ];
        let names = |list: &[Location]| -> Vec<String> {
            list.iter().map(|one| format!("{}{:?}", one.path.uri(), one.range)).collect()
        };
        let mut turned = sorted.to_vec();
        turned.reverse();
        let mut expected = sorted.to_vec();
        expected.sort_by_key(|one| (one.path.uri().clone(), one.range));
        assert_eq!(names(&canonicalise(turned)), names(&expected));
    }

    #[test]
    fn s4_2_what_is_missing_comes_last() {
        let (_folder, paths) = folder();
        let of = |severity, code: Option<&str>, source: Option<&str>, message: &str| {
            let diagnostic = model::Diagnostic {
                range: range([0; 4]),
                severity,
                code: code.map(str::to_owned),
                source: source.map(str::to_owned),
                ..plain(message)
            };
            Diagnostic::new(&paths[0], diagnostic)
        };
        let sorted = vec![
            of(Some(1), Some("10"), Some("ts"), "z"),
            of(Some(1), Some("9"), Some("a"), "b"),
            of(Some(1), Some("9"), Some("a"), "c"),
            of(Some(1), Some("9"), None, "a"),
            of(Some(1), None, Some("a"), "a"),
            of(Some(2), None, None, "a"),
            of(None, Some("1"), Some("a"), "a"),
        ];
        let mut turned = sorted.clone();
        turned.reverse();
        assert_eq!(canonicalise(turned), sorted);
    }

    #[test]
    fn s4_2_ties_are_broken_by_canonical_json() {
        let (_folder, paths) = folder();
        let of = |end: u32| {
            let diagnostic = model::Diagnostic { range: range([0, 0, 0, end]), ..plain("m") };
            Diagnostic::new(&paths[0], diagnostic)
        };
        let sorted = canonicalise(vec![of(9), of(10), of(9)]);
        let texts: Vec<String> = sorted.iter().map(|one| canonical(one).unwrap()).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts.is_sorted(), "{texts:?}");
    }

    #[test]
    fn s3_7_ids_are_those_of_the_worked_examples() {
        let (_folder, paths) = folder();
        let uri = "file:///abs/path/to/file.ts";
        let symbol = model::Symbol {
            path: paths[0].clone(),
            name: "MyFunction".to_owned(),
            kind: SymbolKind(12),
            range: range([1, 0, 20, 0]),
            selection: range([2, 9, 2, 19]),
            container: Some("MyClass".to_owned()),
            depth: 1,
        };
        assert_eq!(
            document_symbol_id(uri, &symbol).as_str(),
            "sha256:9b39d58e25c1e19a294912d8c3ea9e5122a2a2e159a09f47e9e8b92b312af109"
        );
        let bare = model::Symbol {
            name: "naïve|x".to_owned(),
            kind: SymbolKind(5),
            range: range([0, 0, 0, 1]),
            selection: range([0, 0, 0, 1]),
            container: None,
            ..symbol.clone()
        };
        assert_eq!(
            document_symbol_id(uri, &bare).as_str(),
            "sha256:9b1abb40fa6a2bffa9a3fe83d3e83c218ed6f7a32377ca6dcb140be7f64feda3"
        );
        let symbol = model::Symbol { range: range([1, 0, 1, 10]), ..symbol };
        assert_eq!(
            workspace_symbol_id(uri, &symbol).as_str(),
            "sha256:0bd4d9d2e9cc6c02a450a5464e4e031bb1a9defed0cba1b4891751bd956b909d"
        );
        let warning = model::Diagnostic {
            range: range([5, 2, 5, 10]),
            severity: Some(2),
            code: Some("TS1234".to_owned()),
            source: Some("ts".to_owned()),
            ..plain("msg")
        };
        assert_eq!(
            diagnostic_id(uri, &warning).as_str(),
            "sha256:2e19f7746f6cd82a85e8d77758b346a4ee240dd39b9af909c5f8eaf08f8f47cb"
        );
        let numeric = model::Diagnostic {
            range: range([5, 2, 5, 10]),
            severity: Some(1),
            code: Some("2345".to_owned()),
            ..plain("numeric code")
        };
        assert_eq!(
            diagnostic_id(uri, &numeric).as_str(),
            "sha256:85712c55382b1e5f71c21cecc9dae8f86d36cddbc5dbbc4810c7877975fee728"
        );
    }

    #[test]
    fn s4_3_optional_fields_that_are_missing_are_omitted() {
        let (_folder, paths) = folder();
        let json = serde_json::to_value(Diagnostic::new(&paths[0], plain("m"))).unwrap();
        let Value::Object(json) = json else { panic!("{json}") };
        assert_eq!(json.keys().map(String::as_str).collect::<Vec<_>>(), ["id", "message", "range"]);
    }

    fn plain(message: &str) -> model::Diagnostic {
        model::Diagnostic {
            range: range([0; 4]),
            severity: None,
            code: None,
            source: None,
            message: message.to_owned(),
            fix_data: model::FixData::default(),
        }
    }
}
