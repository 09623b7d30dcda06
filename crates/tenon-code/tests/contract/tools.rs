//! §4.2, §4.3 and §7: the payload of each tool from unsorted server answers with duplicates.

use serde_json::{Value, json};
use tenon_contract::id::sha256_hex;
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::{location, range, reply, script};
use tenon_testkit::code_tools::{DEFINITION, DOCUMENT_DIAGNOSTICS, HOVER, REFERENCES, WORKSPACE_DIAGNOSTICS};

use crate::stage::Stage;

fn id(text: &str) -> String {
    format!("sha256:{}", sha256_hex(text))
}

#[test]
fn s7_1_definitions_are_sorted_and_without_duplicates() {
    let rules = [reply(
        "textDocument/definition",
        json!([
            location("$root/b.fake", [0, 0, 0, 1]),
            { "targetUri": "$root/a.fake", "targetRange": range([1, 0, 9, 9]), "targetSelectionRange": range([2, 1, 2, 3]) },
            location("$root/a.fake", [2, 0, 2, 9]),
            location("$root/a.fake", [2, 1, 2, 3]),
            location("$root/a.fake", [2, 0, 2, 3]),
            location("$root/b.fake", [0, 0, 0, 1]),
        ]),
    )];
    let stage = Stage::open(
        Workbench::new()
            .file("a.fake", "x\n".repeat(12).as_str())
            .file("b.fake", "x")
            .server("fake", script(&rules)),
    );
    let payload = stage.payload(DEFINITION, stage.at("a.fake", 0, 0));
    let (a, b) = (stage.uri("a.fake"), stage.uri("b.fake"));
    let expected = json!({
        "locations": [
            location(&a, [2, 0, 2, 3]),
            location(&a, [2, 0, 2, 9]),
            location(&a, [2, 1, 2, 3]),
            location(&b, [0, 0, 0, 1]),
        ],
        "summary": "Found 4 definitions.",
    });
    assert_eq!(payload, expected);
}

#[test]
fn s7_1_single_location_becomes_a_list_of_one() {
    let rules = [reply("textDocument/definition", location("$root/a.fake", [0, 0, 0, 1]))];
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&rules)));
    let payload = stage.payload(DEFINITION, stage.at("a.fake", 0, 0));
    assert_eq!(payload["locations"], json!([location(&stage.uri("a.fake"), [0, 0, 0, 1])]));
    assert_eq!(payload["summary"], "Found 1 definition.");
}

#[test]
fn s7_2_references_of_several_servers_are_merged_sorted_and_without_duplicates() {
    let one = script(&[reply(
        "textDocument/references",
        json!([location("$root/b.fake", [3, 0, 3, 1]), location("$root/a.fake", [1, 0, 1, 1]),]),
    )]);
    let two = script(&[reply(
        "textDocument/references",
        json!([location("$root/a.fake", [1, 0, 1, 1]), location("$root/a.fake", [0, 5, 0, 6]),]),
    )]);
    let stage = Stage::open(
        Workbench::new().file("a.fake", "x").file("b.fake", "x").server("one", one).server("two", two),
    );
    let payload = stage.payload(REFERENCES, stage.at("a.fake", 0, 0));
    let (a, b) = (stage.uri("a.fake"), stage.uri("b.fake"));
    let expected = json!({
        "items": [location(&a, [0, 5, 0, 6]), location(&a, [1, 0, 1, 1]), location(&b, [3, 0, 3, 1])],
        "nextCursor": null,
        "summary": "Returned 3 references.",
    });
    assert_eq!(payload, expected);
}

#[test]
fn s7_3_every_hover_format_becomes_kind_and_value() {
    let rules = [reply(
        "textDocument/hover",
        json!({
            "contents": ["plain *markdown*", { "language": "rust", "value": "fn f()" }, "plain *markdown*"],
            "range": range([0, 0, 0, 1]),
        }),
    )];
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&rules)));
    let payload = stage.payload(HOVER, stage.at("a.fake", 0, 0));
    let expected = json!({
        "contents": [
            { "kind": "markdown", "value": "```rust\nfn f()\n```" },
            { "kind": "markdown", "value": "plain *markdown*" },
        ],
        "range": range([0, 0, 0, 1]),
        "summary": "Hover available.",
    });
    assert_eq!(payload, expected);
}

#[test]
fn s7_3_markup_keeps_its_kind() {
    for kind in ["plaintext", "markdown"] {
        let rules = [reply("textDocument/hover", json!({ "contents": { "kind": kind, "value": "a < b" } }))];
        let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&rules)));
        let payload = stage.payload(HOVER, stage.at("a.fake", 0, 0));
        assert_eq!(payload["contents"], json!([{ "kind": kind, "value": "a < b" }]));
        assert_eq!(payload.get("range"), None);
    }
}

/// A diagnostic as a server sends it.
fn diagnostic(numbers: [u32; 4], fields: &Value) -> Value {
    let mut value = json!({ "range": range(numbers), "message": "m" });
    for (key, field) in fields.as_object().unwrap() {
        value[key] = field.clone();
    }
    value
}

fn publishing(list: &[Value]) -> Value {
    let params = json!({ "uri": "$uri", "version": 1, "diagnostics": list });
    let notify = json!({ "method": "textDocument/publishDiagnostics", "params": params });
    let rules = json!([{ "on": "textDocument/didOpen", "do": [{ "notify": notify }] }]);
    json!({ "capabilities": { "textDocumentSync": 1 }, "rules": rules })
}

#[test]
fn s7_6_diagnostics_are_normalised_sorted_and_without_exact_duplicates() {
    let list = [
        diagnostic([1, 0, 1, 1], &json!({ "severity": 2, "code": "B", "source": "s" })),
        diagnostic([1, 0, 1, 1], &json!({ "severity": 1, "code": 7, "source": "s" })),
        diagnostic(
            [1, 0, 1, 1],
            &json!({ "severity": 1, "code": { "value": "A", "target": "file:///etc" } }),
        ),
        diagnostic([1, 0, 1, 1], &json!({ "severity": 1, "code": null })),
        diagnostic([1, 0, 1, 1], &json!({})),
        diagnostic([0, 4, 9, 9], &json!({ "severity": 4, "source": "z" })),
        diagnostic([1, 0, 1, 1], &json!({ "severity": 2, "code": "B", "source": "s" })),
        diagnostic([1, 0, 1, 1], &json!({ "severity": 1, "code": 1.5 })),
    ];
    let stage = Stage::open(Workbench::new().file("a.fake", "x\ny\n").server("fake", publishing(&list)));
    let payload = stage.payload(DOCUMENT_DIAGNOSTICS, json!({ "uri": stage.uri("a.fake") }));
    let uri = stage.uri("a.fake");
    let expected = |numbers: [u32; 4], severity: &str, code: &str, source: &str| {
        let [l, c, el, ec] = numbers;
        let text = format!("{uri}|{l}:{c}|{el}:{ec}|{severity}|{code}|{source}|m");
        let mut value = json!({ "id": id(&text), "range": range(numbers), "message": "m" });
        if let Ok(severity) = severity.parse::<u32>() {
            value["severity"] = json!(severity);
        }
        if !code.is_empty() {
            value["code"] = json!(code);
        }
        if !source.is_empty() {
            value["source"] = json!(source);
        }
        value
    };
    let sorted = json!([
        expected([0, 4, 9, 9], "4", "", "z"),
        expected([1, 0, 1, 1], "1", "1.5", ""),
        expected([1, 0, 1, 1], "1", "7", "s"),
        expected([1, 0, 1, 1], "1", "A", ""),
        expected([1, 0, 1, 1], "1", "", ""),
        expected([1, 0, 1, 1], "2", "B", "s"),
        expected([1, 0, 1, 1], "", "", ""),
    ]);
    assert_eq!(payload["diagnostics"], sorted);
    assert_eq!(payload["uri"], uri);
    let workspace = stage.payload(WORKSPACE_DIAGNOSTICS, json!({}));
    assert_eq!(workspace["items"], json!([{ "uri": uri, "diagnostics": sorted }]));
}

#[test]
fn s7_6_only_the_diagnostic_with_an_invalid_range_is_dropped() {
    let mut broken = diagnostic([0, 0, 0, 1], &json!({}));
    broken["range"]["start"]["line"] = json!(-1);
    let list = [broken, diagnostic([0, 0, 0, 1], &json!({ "severity": 1 }))];
    let stage = Stage::open(Workbench::new().file("a.fake", "x\n").server("fake", publishing(&list)));
    let payload = stage.payload(DOCUMENT_DIAGNOSTICS, json!({ "uri": stage.uri("a.fake") }));
    assert_eq!(payload["diagnostics"].as_array().unwrap().len(), 1);
}
