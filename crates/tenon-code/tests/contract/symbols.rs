//! §7.4 and §7.5: symbols, flattened, sorted and with ids.

use serde_json::{Value, json};
use tenon_contract::id::sha256_hex;
use tenon_contract::json::canonical_value;
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::{location, range, reply, script, symbol};
use tenon_testkit::code_tools::{DOCUMENT_SYMBOLS, WORKSPACE_SYMBOLS};

use crate::stage::Stage;

fn nested(name: &str, kind: u32, numbers: [u32; 4], selection: [u32; 4], children: Value) -> Value {
    json!({
        "name": name, "kind": kind, "range": range(numbers), "selectionRange": range(selection), "children": children,
    })
}

fn stage(symbols: Value) -> Stage {
    let rules = [reply("textDocument/documentSymbol", symbols)];
    Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&rules)))
}

fn symbols(stage: &Stage) -> Vec<Value> {
    let payload = stage.payload(DOCUMENT_SYMBOLS, json!({ "uri": stage.uri("a.fake") }));
    payload["symbols"].as_array().unwrap().clone()
}

fn shown(symbols: &[Value]) -> Vec<String> {
    let text = |symbol: &Value| {
        let container = symbol["containerName"].as_str().unwrap_or("-");
        let start = &symbol["range"]["start"];
        format!("{}:{} {} {} {container}", start["line"], start["character"], symbol["kind"], symbol["name"])
    };
    symbols.iter().map(text).collect()
}

#[test]
fn s7_4_hierarchies_are_flattened_with_the_parents_name() {
    let method = nested(
        "m",
        6,
        [2, 0, 3, 0],
        [2, 4, 2, 5],
        json!([nested("local", 13, [2, 6, 2, 9], [2, 6, 2, 9], json!([])),]),
    );
    let stage = stage(json!([
        nested("after", 12, [9, 0, 9, 9], [9, 0, 9, 5], Value::Null),
        nested(
            "Class",
            5,
            [1, 0, 8, 0],
            [1, 6, 1, 11],
            json!([nested("z", 8, [4, 0, 4, 1], [4, 0, 4, 1], json!([])), method])
        ),
    ]));
    let symbols = symbols(&stage);
    assert_eq!(
        shown(&symbols),
        [
            "1:0 5 \"Class\" -",
            "2:0 6 \"m\" Class",
            "2:6 13 \"local\" m",
            "4:0 8 \"z\" Class",
            "9:0 12 \"after\" -"
        ]
    );
    let text = format!("{}|m|6|2:0|3:0|2:4|2:5|Class", stage.uri("a.fake"));
    assert_eq!(symbols[1]["id"], format!("sha256:{}", sha256_hex(text)));
    assert_eq!(symbols[1]["selectionRange"], range([2, 4, 2, 5]));
    assert!(symbols.iter().all(|symbol| symbol.get("children").is_none()));
    assert_eq!(symbols[0].get("containerName"), None);
}

#[test]
fn s7_4_flat_symbols_use_their_range_as_selection_and_are_dropped_without_one() {
    let mut inside = symbol("b", 13, "$root/a.fake", [0, 0, 0, 1]);
    inside["containerName"] = json!("outer");
    let stage = stage(json!([
        inside,
        { "name": "no range", "kind": 1, "location": { "uri": "$root/a.fake" } },
        symbol("a", 13, "$root/a.fake", [0, 0, 0, 1]),
    ]));
    let symbols = symbols(&stage);
    assert_eq!(shown(&symbols), ["0:0 13 \"a\" -", "0:0 13 \"b\" outer"]);
    assert!(symbols.iter().all(|symbol| symbol["selectionRange"] == symbol["range"]));
}

#[test]
fn s4_2_document_symbols_sort_by_range_name_kind_and_container() {
    let at = |name: &str, kind: u32, container: Option<&str>| {
        let mut one = symbol(name, kind, "$root/a.fake", [0, 0, 0, 9]);
        if let Some(container) = container {
            one["containerName"] = json!(container);
        }
        one
    };
    let stage = stage(json!([
        at("b", 1, None),
        at("a", 2, None),
        at("a", 1, None),
        at("a", 1, Some("z")),
        at("a", 1, Some("y")),
        at("a", 1, None),
        symbol("a", 1, "$root/a.fake", [0, 0, 0, 8]),
    ]));
    let order: Vec<String> = symbols(&stage)
        .iter()
        .map(|one| format!("{}{} {}", one["name"], one["kind"], one["containerName"].as_str().unwrap_or("-")))
        .collect();
    assert_eq!(order, ["\"a\"1 -", "\"a\"1 y", "\"a\"1 z", "\"a\"1 -", "\"a\"2 -", "\"b\"1 -"]);
}

#[test]
fn s4_2_symbols_that_differ_only_in_their_selection_are_both_kept() {
    let one = nested("a", 1, [0, 0, 0, 9], [0, 1, 0, 2], json!([]));
    let two = nested("a", 1, [0, 0, 0, 9], [0, 0, 0, 1], json!([]));
    // The symbols decide which comes first, not the server. Their ids include the root, so either order is possible.
    for order in [json!([one.clone(), two.clone()]), json!([two, one])] {
        let listed = symbols(&stage(order));
        assert_eq!(listed.len(), 2);
        assert!(canonical_value(&listed[0]) < canonical_value(&listed[1]));
    }
}

#[test]
fn s7_5_workspace_symbols_have_ids_and_sort_by_location_name_kind_and_container() {
    let with = |mut one: Value, container: &str| {
        one["containerName"] = json!(container);
        one
    };
    let rules = [reply(
        "workspace/symbol",
        json!([
            symbol("b", 1, "$root/b.fake", [0, 0, 0, 1]),
            symbol("b", 1, "$root/a.fake", [1, 0, 1, 1]),
            symbol("a", 2, "$root/a.fake", [1, 0, 1, 1]),
            with(symbol("a", 1, "$root/a.fake", [1, 0, 1, 1]), "c"),
            symbol("a", 1, "$root/a.fake", [1, 0, 1, 1]),
            with(symbol("a", 1, "$root/a.fake", [1, 0, 1, 1]), ""),
            symbol("z", 1, "$root/a.fake", [0, 0, 0, 1]),
            { "name": "no range", "kind": 1, "location": { "uri": "$root/a.fake" } },
        ]),
    )];
    let stage = Stage::open(
        Workbench::new().file("a.fake", "x\nx").file("b.fake", "x").server("fake", script(&rules)),
    );
    let payload = stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "q" }));
    let (a, b) = (stage.uri("a.fake"), stage.uri("b.fake"));
    let expected = |name: &str, kind: u32, uri: &str, line: u32, container: Option<&str>| {
        let text = format!("{uri}|{name}|{kind}|{line}:0|{line}:1|{}", container.unwrap_or(""));
        let mut one = json!({
            "id": format!("sha256:{}", sha256_hex(text)), "name": name, "kind": kind,
            "location": location(uri, [line, 0, line, 1]),
        });
        if let Some(container) = container {
            one["containerName"] = json!(container);
        }
        one
    };
    let items = json!([
        expected("z", 1, &a, 0, None),
        expected("a", 1, &a, 1, Some("c")),
        expected("a", 1, &a, 1, None),
        expected("a", 2, &a, 1, None),
        expected("b", 1, &a, 1, None),
        expected("b", 1, &b, 0, None),
    ]);
    assert_eq!(
        payload,
        json!({ "items": items, "nextCursor": null, "summary": "Returned 6 workspace symbols." })
    );
}
