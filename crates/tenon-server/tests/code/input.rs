//! §3.6, §4.1 and §8: which arguments are accepted.

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::{reply, script, symbol};
use tenon_testkit::code_tools::{
    DEFINITION, DOCUMENT_SYMBOLS, HOVER, REFERENCES, TOOLS, WORKSPACE_DIAGNOSTICS, WORKSPACE_SYMBOLS,
};

use crate::stage::{Stage, code};

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

/// Panics unless the schema rejects the arguments.
fn assert_invalid(stage: &Stage, tool: &str, arguments: Value) {
    let error = stage.client().call_tool(tool, arguments.clone()).unwrap_err();
    assert_eq!(code(&error), "INVALID_PARAMS", "{tool} {arguments}");
    assert!(error.data["details"]["at"].is_string(), "{error:?}");
}

#[test]
fn s8_unknown_missing_and_mistyped_fields_are_invalid_params() {
    let stage = stage();
    for tool in TOOLS {
        let mut unknown = stage.arguments(tool, "a.fake");
        unknown["verbose"] = json!(true);
        assert_invalid(&stage, tool, unknown);
        if tool != WORKSPACE_DIAGNOSTICS {
            assert_invalid(&stage, tool, json!({}));
        }
    }
    for tool in [DEFINITION, REFERENCES, HOVER, DOCUMENT_SYMBOLS] {
        let mut mistyped = stage.arguments(tool, "a.fake");
        mistyped["uri"] = json!(["file:///a"]);
        assert_invalid(&stage, tool, mistyped);
    }
    let mut nested = stage.at("a.fake", 0, 0);
    nested["position"]["column"] = json!(1);
    assert_invalid(&stage, DEFINITION, nested);
    assert_invalid(&stage, REFERENCES, {
        let mut wrong = stage.at("a.fake", 0, 0);
        wrong["includeDeclaration"] = json!("yes");
        wrong
    });
    assert_invalid(&stage, WORKSPACE_SYMBOLS, json!({ "query": "a", "cursor": 5 }));
}

#[test]
fn s4_1_positions_must_be_whole_and_not_negative() {
    let stage = stage();
    for wrong in [json!(-1), json!(0.5), json!("0"), json!(null), json!(1e300), json!(4294967296_u64)] {
        for field in ["line", "character"] {
            let mut at = stage.at("a.fake", 0, 0);
            at["position"][field] = wrong.clone();
            assert_invalid(&stage, HOVER, at);
        }
    }
    let mut written_as_float = stage.at("a.fake", 0, 0);
    written_as_float["position"]["line"] = json!(0.0);
    stage.payload(HOVER, written_as_float);
}

#[test]
fn invalid_page_sizes_are_rejected_and_large_ones_clamped() {
    let stage = stage();
    for wrong in [json!(0), json!(-1), json!(1.5), json!("50"), json!(null), json!([])] {
        for tool in [REFERENCES, WORKSPACE_SYMBOLS, WORKSPACE_DIAGNOSTICS] {
            let mut paged = stage.arguments(tool, "a.fake");
            paged["pageSize"] = wrong.clone();
            assert_invalid(&stage, tool, paged);
        }
    }
    for large in [json!(1_000_000_000), json!(1e30), json!(u64::MAX)] {
        let payload = stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "a", "pageSize": large }));
        assert_eq!(payload["items"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn s7_5_queries_are_trimmed_and_blank_ones_rejected() {
    let stage = stage();
    for blank in [" ", "\t\n ", "\u{a0}\u{2003}"] {
        let error = stage.client().call_tool(WORKSPACE_SYMBOLS, json!({ "query": blank })).unwrap_err();
        assert_eq!(code(&error), "INVALID_PARAMS", "{blank:?}");
    }
    assert_invalid(&stage, WORKSPACE_SYMBOLS, json!({ "query": "" }));
    assert_invalid(&stage, WORKSPACE_SYMBOLS, json!({ "query": "x".repeat(513) }));
    // Both spellings are one request, so the cursor of one is valid for the other.
    let first = stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "MyFunc", "pageSize": 1 }));
    let cursor = &first["nextCursor"];
    let second =
        stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "  MyFunc \n", "pageSize": 1, "cursor": cursor }));
    assert_eq!(second["items"][0]["name"], "b");
    assert_eq!(stage.bench.received("fake", "workspace/symbol").len(), 1);
    assert_eq!(stage.bench.received("fake", "workspace/symbol")[0]["params"]["query"], "MyFunc");
}

#[test]
fn s3_6_checks_run_in_the_order_schema_gate_cursor_position() {
    let stage = stage();
    let wrong_everywhere =
        json!({ "uri": "file:///etc/passwd", "position": { "line": 99, "character": 0 }, "cursor": "" });
    let mut with_unknown = wrong_everywhere.clone();
    with_unknown["x"] = json!(1);
    assert_eq!(stage.failure(REFERENCES, with_unknown).0, "INVALID_PARAMS");
    assert_eq!(stage.failure(REFERENCES, wrong_everywhere.clone()).0, "WORKSPACE_DENIED");
    let mut inside = wrong_everywhere;
    inside["uri"] = json!(stage.uri("a.fake"));
    assert_eq!(stage.failure(REFERENCES, inside.clone()).0, "CURSOR_INVALID");
    inside["cursor"] = Value::Null;
    assert_eq!(stage.failure(REFERENCES, inside).0, "NOT_FOUND");
    let started = stage.bench.received("fake", "initialize");
    assert!(started.is_empty(), "no server is started: {started:?}");
}
