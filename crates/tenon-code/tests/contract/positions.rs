//! §3.3 and §6.3: positions, and the defaults of arguments.

use serde_json::{Value, json};
use tenon_code::CodeError;
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::{location, range, reply, script};
use tenon_testkit::code_tools::{DEFINITION, HOVER, REFERENCES};

use crate::stage::Stage;

fn stage() -> Stage {
    let rules = [
        json!({ "on": "textDocument/references", "do": [{ "reply_here": null }] }),
        json!({ "on": "textDocument/hover", "do": [{ "reply_word": null }] }),
        reply("textDocument/definition", json!([])),
    ];
    Stage::open(Workbench::new().file("a.fake", "a 😀 é\r\nzweite\n").server("fake", script(&rules)))
}

#[test]
fn s7_2_include_declaration_defaults_to_false() {
    let at = |line| location("$root/a.fake", [line, 0, line, 1]);
    let rules = [
        reply("textDocument/references", json!([at(0), at(1), at(2)])),
        reply("textDocument/definition", json!([at(1)])),
        reply("textDocument/documentSymbol", json!([])),
    ];
    let stage = Stage::open(Workbench::new().file("a.fake", "a\na\na\n").server("fake", script(&rules)));
    let lines = |arguments: Value| -> Vec<u64> {
        let payload = stage.payload(REFERENCES, arguments);
        let items = payload["items"].as_array().unwrap();
        items.iter().map(|item| item["range"]["start"]["line"].as_u64().unwrap()).collect()
    };
    // Asked from a use and from the declaration.
    for line in [0, 1] {
        let mut arguments = stage.at("a.fake", line, 0);
        assert_eq!(lines(arguments.clone()), [0, 2]);
        arguments["includeDeclaration"] = json!(false);
        assert_eq!(lines(arguments.clone()), [0, 2]);
        arguments["includeDeclaration"] = json!(true);
        assert_eq!(lines(arguments), [0, 1, 2]);
    }
}

#[test]
fn position_beside_a_declarations_name_means_the_name() {
    let declared = json!([{ "name": "f", "kind": 12, "range": range([0, 0, 0, 8]), "selectionRange": range([0, 4, 0, 5]) }]);
    let here = location("$root/a.fake", [0, 4, 0, 5]);
    let rules = [
        reply("textDocument/documentSymbol", declared),
        json!({ "on": "textDocument/definition", "nth": 1, "do": [{ "reply": null }] }),
        json!({ "on": "textDocument/definition", "from": 2, "do": [{ "reply": [here] }] }),
    ];
    let stage = Stage::open(Workbench::new().file("a.fake", "def f():\n").server("fake", script(&rules)));
    let payload = stage.payload(DEFINITION, stage.at("a.fake", 0, 0));
    assert_eq!(payload["locations"], json!([location(&stage.uri("a.fake"), [0, 4, 0, 5])]));
    assert_eq!(payload["summary"], "Found 1 definition. Answered for the name beside the position.");
    let asked: Vec<Value> = stage
        .bench
        .received("fake", "textDocument/definition")
        .iter()
        .map(|message| message["params"]["position"]["character"].clone())
        .collect();
    assert_eq!(asked, [json!(0), json!(4)]);
}

#[test]
fn definition_outside_the_roots_is_named_without_a_path() {
    let outside = location("file:///usr/lib/python3.11/json/__init__.py", [9, 4, 9, 9]);
    let rules = [reply("textDocument/definition", json!([outside]))];
    let stage = Stage::open(Workbench::new().file("a.fake", "dumps\n").server("fake", script(&rules)));
    let payload = stage.payload(DEFINITION, stage.at("a.fake", 0, 0));
    let summary = "Found 0 definitions. Defined outside the workspace: json in Python's standard library.";
    assert_eq!(payload, json!({ "locations": [], "summary": summary }));
}

#[test]
fn s6_3_positions_outside_the_document_are_rejected() {
    let stage = stage();
    // Line 0 is `a 😀 é`: 6 UTF-16 units; line 1 `zweite`; line 2 is empty.
    for (line, character) in [(3, 0), (2, 1), (1, 7), (0, 7), (0, 3), (2_000_000_000, 0)] {
        for tool in [DEFINITION, REFERENCES, HOVER] {
            let error = stage.error(tool, stage.at("a.fake", line, character));
            assert!(matches!(error, CodeError::Position(_)), "{tool} {line}:{character}: {error:?}");
        }
    }
    for (line, character) in [(0, 6), (1, 6), (2, 0), (0, 2), (0, 4)] {
        stage.payload(HOVER, stage.at("a.fake", line, character));
    }
}

#[test]
fn s3_3_characters_count_utf_16_units_for_servers_that_count_bytes() {
    let mut script = script(&[
        json!({ "on": "textDocument/references", "do": [{ "reply_here": null }] }),
        json!({ "on": "textDocument/hover", "do": [{ "reply_word": null }] }),
    ]);
    script["capabilities"]["positionEncoding"] = json!("utf-8");
    let stage = Stage::open(Workbench::new().file("a.fake", "😀 wort\n").server("fake", script));
    let hover = stage.payload(HOVER, stage.at("a.fake", 0, 3));
    assert_eq!(hover["contents"][0]["value"], "wort");
    let references = stage.payload(REFERENCES, stage.at("a.fake", 0, 3));
    let expected = location(&stage.uri("a.fake"), [0, 3, 0, 3]);
    assert_eq!(references["items"], json!([expected]));
    let asked = &stage.bench.received("fake", "textDocument/references")[0]["params"]["position"];
    assert_eq!(*asked, json!({ "line": 0, "character": 5 }));
}
