//! §4.1 and §8: what arguments must be, and what is made of them.

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;

use crate::stage::{
    DEFINITION, DOCUMENT_SYMBOLS, HOVER, REFERENCES, Stage, TOOLS, WORKSPACE_DIAGNOSTICS, WORKSPACE_SYMBOLS,
    arguments, code, location, reply, script, symbol,
};

fn stage() -> Stage {
    let rules = [
        json!({ "on": "textDocument/references", "do": [{ "reply_here": null }] }),
        json!({ "on": "textDocument/hover", "do": [{ "reply_word": null }] }),
        reply("textDocument/definition", json!([])),
        reply("textDocument/documentSymbol", json!([])),
        reply(
            "workspace/symbol",
            json!([
                symbol("a", 12, "$root/a.fake", [0, 0, 0, 1]),
                symbol("b", 12, "$root/a.fake", [0, 0, 0, 1]),
            ]),
        ),
    ];
    Stage::open(Workbench::new().file("a.fake", "a 😀 é\r\nzweite\n").server("fake", script(&rules)))
}

fn invalid(stage: &Stage, tool: &str, arguments: Value) {
    let error = stage.client().call_tool(tool, arguments.clone()).unwrap_err();
    assert_eq!(code(&error), "INVALID_PARAMS", "{tool} {arguments}");
    assert!(error.data["details"]["at"].is_string(), "{error:?}");
}

#[test]
fn s8_unknown_missing_and_mistyped_fields_are_invalid_params() {
    let stage = stage();
    for tool in TOOLS {
        let mut unknown = arguments(&stage, tool, "a.fake");
        unknown["verbose"] = json!(true);
        invalid(&stage, tool, unknown);
        if tool != WORKSPACE_DIAGNOSTICS {
            invalid(&stage, tool, json!({}));
        }
    }
    for tool in [DEFINITION, REFERENCES, HOVER, DOCUMENT_SYMBOLS] {
        let mut mistyped = arguments(&stage, tool, "a.fake");
        mistyped["uri"] = json!(["file:///a"]);
        invalid(&stage, tool, mistyped);
    }
    let mut nested = stage.at("a.fake", 0, 0);
    nested["position"]["column"] = json!(1);
    invalid(&stage, DEFINITION, nested);
    invalid(&stage, REFERENCES, {
        let mut wrong = stage.at("a.fake", 0, 0);
        wrong["includeDeclaration"] = json!("yes");
        wrong
    });
    invalid(&stage, WORKSPACE_SYMBOLS, json!({ "query": "a", "cursor": 5 }));
}

#[test]
fn s4_1_numbers_must_be_whole_and_not_negative() {
    let stage = stage();
    for wrong in [json!(-1), json!(0.5), json!("0"), json!(null), json!(1e300), json!(4294967296_u64)] {
        for field in ["line", "character"] {
            let mut at = stage.at("a.fake", 0, 0);
            at["position"][field] = wrong.clone();
            invalid(&stage, HOVER, at);
        }
    }
    let mut written_as_float = stage.at("a.fake", 0, 0);
    written_as_float["position"]["line"] = json!(0.0);
    stage.payload(HOVER, written_as_float);
}

#[test]
fn page_sizes_that_are_none_are_invalid_and_large_ones_clamped() {
    let stage = stage();
    for wrong in [json!(0), json!(-1), json!(1.5), json!("50"), json!(null), json!([])] {
        for tool in [REFERENCES, WORKSPACE_SYMBOLS, WORKSPACE_DIAGNOSTICS] {
            let mut paged = arguments(&stage, tool, "a.fake");
            paged["pageSize"] = wrong.clone();
            invalid(&stage, tool, paged);
        }
    }
    for large in [json!(1_000_000_000), json!(1e30), json!(u64::MAX)] {
        let payload = stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "a", "pageSize": large }));
        assert_eq!(payload["items"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn s7_5_queries_are_trimmed_and_must_not_be_blank() {
    let stage = stage();
    for blank in [" ", "\t\n ", "\u{a0}\u{2003}"] {
        let error = stage.client().call_tool(WORKSPACE_SYMBOLS, json!({ "query": blank })).unwrap_err();
        assert_eq!(code(&error), "INVALID_PARAMS", "{blank:?}");
    }
    invalid(&stage, WORKSPACE_SYMBOLS, json!({ "query": "" }));
    invalid(&stage, WORKSPACE_SYMBOLS, json!({ "query": "x".repeat(513) }));
    // The cursor of one spelling serves the other: they are one request.
    let first = stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "MyFunc", "pageSize": 1 }));
    let cursor = &first["nextCursor"];
    let second =
        stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "  MyFunc \n", "pageSize": 1, "cursor": cursor }));
    assert_eq!(second["items"][0]["name"], "b");
    assert_eq!(stage.bench.received("fake", "workspace/symbol").len(), 1);
    assert_eq!(stage.bench.received("fake", "workspace/symbol")[0]["params"]["query"], "MyFunc");
}

#[test]
fn s7_2_include_declaration_is_false_unless_said_otherwise() {
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
fn s6_3_positions_that_are_not_in_the_document_are_not_found() {
    let stage = stage();
    // Line 0 is `a 😀 é`: 6 UTF-16 units; line 1 `zweite`; line 2 is empty.
    for (line, character) in [(3, 0), (2, 1), (1, 7), (0, 7), (0, 3), (2_000_000_000, 0)] {
        for tool in [DEFINITION, REFERENCES, HOVER] {
            let (code, _) = stage.refusal(tool, stage.at("a.fake", line, character));
            assert_eq!(code, "NOT_FOUND", "{tool} {line}:{character}");
        }
    }
    for (line, character) in [(0, 6), (1, 6), (2, 0), (0, 2), (0, 4)] {
        stage.payload(HOVER, stage.at("a.fake", line, character));
    }
}

#[test]
fn s3_3_characters_count_utf_16_units_whatever_the_server_counts() {
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
