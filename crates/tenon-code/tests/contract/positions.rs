//! §3.3 and §6.3: positions, and the defaults of arguments.

use serde_json::{Value, json};
use tenon_code::CodeError;
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::{location, reply, script};
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
    let stage = stage();
    stage.payload(REFERENCES, stage.at("a.fake", 0, 0));
    let mut with = stage.at("a.fake", 0, 0);
    with["includeDeclaration"] = json!(true);
    stage.payload(REFERENCES, with);
    let asked: Vec<Value> = stage
        .bench
        .received("fake", "textDocument/references")
        .iter()
        .map(|message| message["params"]["context"]["includeDeclaration"].clone())
        .collect();
    assert_eq!(asked, [json!(false), json!(true)]);
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
