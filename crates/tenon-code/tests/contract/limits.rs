//! §5: caps that no argument and no setting raises.

use serde_json::{Value, json};
use tenon_code::{CodeError, CodeLimits};
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::{location, reply, script, symbol};
use tenon_testkit::code_tools::{
    DEFINITION, DOCUMENT_DIAGNOSTICS, DOCUMENT_SYMBOLS, HOVER, REFERENCES, WORKSPACE_DIAGNOSTICS,
    WORKSPACE_SYMBOLS,
};

use crate::stage::{Settings, Stage};

fn many(count: u32) -> Vec<Value> {
    (0..count).rev().map(|n| location("$root/a.fake", [n, 0, n, 1])).collect()
}

fn flat_symbols(count: u32) -> Vec<Value> {
    (0..count)
        .rev()
        .map(|n| json!({ "name": format!("s{n:05}"), "kind": 13, "location": location("$root/a.fake", [n, 0, n, 1]) }))
        .collect()
}

fn stage(rules: &[Value], change: impl FnOnce(&mut Settings)) -> Stage {
    Stage::with(Workbench::new().file("a.fake", "bad\n").server("fake", script(rules)), change)
}

/// The first line of each item.
fn lines(items: &Value) -> Vec<u64> {
    let of = |item: &Value| item["range"]["start"]["line"].as_u64().unwrap();
    items.as_array().unwrap().iter().map(of).collect()
}

#[test]
fn s5_2_unpaged_lists_keep_the_first_200_and_the_summary_says_so() {
    let bad: Vec<Value> = (0..201).rev().map(|n| json!({ "line": n, "message": "m" })).collect();
    let rules = [
        reply("textDocument/definition", json!(many(201))),
        reply("textDocument/documentSymbol", json!(flat_symbols(201))),
        json!({ "on": "textDocument/didOpen", "file": "a.fake", "do": [
            { "publish": { "uri": "$uri", "diagnostics": bad } },
        ] }),
    ];
    let stage = stage(&rules, |_| {});
    let first: Vec<u64> = (0..200).collect();
    for (tool, field, arguments) in [
        (DEFINITION, "locations", stage.at("a.fake", 0, 0)),
        (DOCUMENT_SYMBOLS, "symbols", json!({ "uri": stage.uri("a.fake") })),
        (DOCUMENT_DIAGNOSTICS, "diagnostics", json!({ "uri": stage.uri("a.fake") })),
    ] {
        let payload = stage.payload(tool, arguments);
        assert_eq!(lines(&payload[field]), first, "{tool}");
        let summary = payload["summary"].as_str().unwrap();
        assert!(summary.contains("200") && summary.ends_with(" (Capped.)"), "{summary}");
    }
    let workspace = stage.payload(WORKSPACE_DIAGNOSTICS, json!({}));
    assert_eq!(lines(&workspace["items"][0]["diagnostics"]), first);
    assert_eq!(workspace["summary"], "Returned diagnostics for 1 file. (Capped.)");
}

#[test]
fn s5_2_exactly_200_items_are_not_capped() {
    let rules = [reply("textDocument/definition", json!(many(200)))];
    let payload = {
        let stage = stage(&rules, |_| {});
        stage.payload(DEFINITION, stage.at("a.fake", 0, 0))
    };
    assert_eq!(payload["summary"], "Found 200 definitions.");
}

#[test]
fn s5_1_lists_over_their_cap_are_rejected_not_truncated() {
    let rules = [
        json!({ "on": "textDocument/references", "do": [{ "reply_locations": { "uri": "$uri", "count": 20_001 } }] }),
        reply(
            "workspace/symbol",
            json!(
                (0..20_001)
                    .map(|n| symbol(&format!("s{n}"), 12, "$root/a.fake", [n, 0, n, 1]))
                    .collect::<Vec<_>>()
            ),
        ),
        reply("textDocument/documentSymbol", json!(flat_symbols(20_001))),
    ];
    let stage = stage(&rules, |_| {});
    for (tool, arguments) in [
        (REFERENCES, stage.at("a.fake", 0, 0)),
        (WORKSPACE_SYMBOLS, json!({ "query": "s" })),
        (DOCUMENT_SYMBOLS, json!({ "uri": stage.uri("a.fake") })),
    ] {
        let error = stage.error(tool, arguments);
        assert!(matches!(error, CodeError::TooMany { limit: 20_000, .. }), "{tool}: {error:?}");
    }
}

#[test]
fn s4_4_duplicates_do_not_count_towards_the_cap() {
    let mut twice = many(3);
    twice.extend(many(3));
    let rules = [reply("textDocument/references", json!(twice))];
    let stage = stage(&rules, |settings| settings.limits.references = 3);
    let payload = stage.payload(REFERENCES, stage.at("a.fake", 0, 0));
    assert_eq!(lines(&payload["items"]), [0, 1, 2]);
}

#[test]
fn s7_7_more_files_with_diagnostics_than_the_cap_are_rejected() {
    let mut builder = Workbench::new().server("fake", script(&[]));
    for number in 0..4 {
        builder = builder.file(&format!("{number}.fake"), "bad");
    }
    let stage = Stage::with(builder, |settings| settings.limits.workspace_diagnostics = 3);
    let error = stage.error(WORKSPACE_DIAGNOSTICS, json!({}));
    assert!(matches!(error, CodeError::TooMany { limit: 3, .. }), "{error:?}");
}

#[test]
fn s7_3_hover_is_cut_to_the_response_cap() {
    let contents: Vec<Value> = (0..10)
        .map(|n| json!({ "language": "rust", "value": format!("{n}{}", "é".repeat(9_000)) }))
        .collect();
    let rules = [reply("textDocument/hover", json!({ "contents": contents }))];
    let stage = stage(&rules, |settings| settings.limits.response_bytes = 40_000);
    let payload = stage.payload(HOVER, stage.at("a.fake", 0, 0));
    let parts = payload["contents"].as_array().unwrap();
    assert_eq!(parts.len(), 3, "two full fragments of 8,192 code points and part of a third");
    assert_eq!(parts[0]["value"].as_str().unwrap().chars().count(), 8_192);
    assert!(parts[0]["value"].as_str().unwrap().starts_with("```rust\n0é"));
    assert_eq!(payload["summary"], "Hover available (truncated).");
    let bytes = payload.to_string().len();
    assert!((39_000..=40_000).contains(&bytes), "{bytes}");
}

#[test]
fn s5_1_settings_above_the_contracts_limits_are_clamped() {
    let rules = [json!({ "on": "textDocument/references", "do": [
        { "reply_locations": { "uri": "$uri", "count": 300 } },
    ] })];
    let builder = Workbench::new().file("a.fake", &"x\n".repeat(300)).server("fake", script(&rules));
    let stage = Stage::with(builder, |settings| settings.limits.page_size = 1_000);
    let mut arguments = stage.at("a.fake", 0, 0);
    arguments["pageSize"] = json!(1_000);
    assert_eq!(stage.payload(REFERENCES, arguments)["items"].as_array().unwrap().len(), 200);
    assert_eq!(stage.code.limits(), CodeLimits::MAXIMA);
}

#[test]
fn s5_1_locations_outside_the_roots_do_not_count_towards_the_cap() {
    let mut locations: Vec<Value> =
        (0..50).map(|line| location("file:///etc/passwd", [line, 0, line, 1])).collect();
    locations.extend((0..3).map(|line| location("$root/a.fake", [line, 0, line, 1])));
    let rules = [reply("textDocument/references", json!(locations))];
    let builder = Workbench::new().file("a.fake", "a\nb\nc\n").server("fake", script(&rules));
    let stage = Stage::with(builder, |settings| settings.limits.references = 3);
    let payload = stage.payload(REFERENCES, stage.at("a.fake", 0, 0));
    assert_eq!(payload["items"].as_array().unwrap().len(), 3);
}
