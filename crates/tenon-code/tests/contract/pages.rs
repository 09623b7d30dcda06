//! §3.5 and §3.6: pages of large results, complete and in order.

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::{reply, script, symbol};
use tenon_lsp::CallContext;
use tenon_testkit::PATIENCE;
use tenon_testkit::code_tools::{REFERENCES, WORKSPACE_DIAGNOSTICS, WORKSPACE_SYMBOLS};

use crate::stage::{Stage, call_tool};

/// All items of a paged tool, page by page, and the number of pages.
fn collect(stage: &Stage, tool: &str, arguments: &Value, size: usize) -> (Vec<Value>, usize) {
    let mut arguments = arguments.clone();
    arguments["pageSize"] = json!(size);
    let (mut all, mut pages) = (Vec::new(), 0);
    loop {
        let payload = stage.payload(tool, arguments.clone());
        pages += 1;
        let items = payload["items"].as_array().unwrap();
        assert!(items.len() <= size);
        all.extend(items.iter().cloned());
        let last = payload["nextCursor"].is_null();
        let summary = payload["summary"].as_str().unwrap();
        assert_eq!(summary.contains("(next page available)"), !last, "{summary}");
        if last {
            return (all, pages);
        }
        assert_eq!(items.len(), size, "only the last page may be short");
        arguments["cursor"] = payload["nextCursor"].clone();
    }
}

fn locations_in_order(items: &[Value]) -> bool {
    let line = |item: &Value| item["range"]["start"]["line"].as_u64().unwrap();
    items.windows(2).all(|pair| line(&pair[0]) < line(&pair[1]))
}

/// The same with one item a page. These are 20,000 calls, so their payloads are not checked against the schema.
fn collect_singly(stage: &Stage, tool: &str, arguments: &Value) -> Vec<Value> {
    let mut arguments = arguments.clone();
    arguments["pageSize"] = json!(1);
    stage.block_on(async {
        let mut all = Vec::new();
        loop {
            let call = CallContext::within(PATIENCE);
            let mut payload = call_tool(&stage.code, tool, arguments.clone(), &call).await.unwrap().payload;
            let items = payload["items"].as_array_mut().unwrap();
            assert_eq!(items.len(), 1);
            all.append(items);
            arguments["cursor"] = payload["nextCursor"].take();
            if arguments["cursor"].is_null() {
                return all;
            }
        }
    })
}

#[test]
fn s3_6_all_20_000_references_are_reached_page_by_page() {
    let rules = [json!({ "on": "textDocument/references", "do": [
        { "reply_locations": { "uri": "$uri", "count": 20_000 } },
    ] })];
    let text = "x\n".repeat(20_000);
    let stage = Stage::open(Workbench::new().file("a.fake", &text).server("fake", script(&rules)));
    let arguments = stage.at("a.fake", 0, 0);
    let (whole, pages) = collect(&stage, REFERENCES, &arguments, 200);
    assert_eq!((whole.len(), pages), (20_000, 100));
    assert!(locations_in_order(&whole));
    let (items, pages) = collect(&stage, REFERENCES, &arguments, 7);
    assert_eq!(pages, 2858);
    assert!(items == whole);
    assert!(collect_singly(&stage, REFERENCES, &arguments) == whole);
    let requests = stage.bench.received("fake", "textDocument/references").len();
    assert_eq!(requests, 1, "one request serves all pages");
}

#[test]
fn s3_6_all_20_000_symbols_are_reached_page_by_page() {
    let symbols: Vec<Value> =
        (0..20_000).rev().map(|n| symbol(&format!("s{n:05}"), 12, "$root/a.fake", [n, 0, n, 1])).collect();
    let rules = [reply("workspace/symbol", json!(symbols))];
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&rules)));
    let mut whole = Vec::new();
    for (size, pages) in [(200, 100), (7, 2858)] {
        let (items, counted) = collect(&stage, WORKSPACE_SYMBOLS, &json!({ "query": "s" }), size);
        assert_eq!(counted, pages);
        let names: Vec<&str> = items.iter().map(|item| item["name"].as_str().unwrap()).collect();
        let expected: Vec<String> = (0..20_000).map(|n| format!("s{n:05}")).collect();
        assert_eq!(names, expected);
        whole = items;
    }
    assert!(collect_singly(&stage, WORKSPACE_SYMBOLS, &json!({ "query": "s" })) == whole);
}

#[test]
fn s7_7_workspace_diagnostics_are_paged_by_file() {
    let mut builder = Workbench::new().server("fake", script(&[]));
    for number in 0..25 {
        let text = if number % 5 == 4 { "fine" } else { "bad and bad\nand bad" };
        builder = builder.file(&format!("f{number:02}.fake"), text);
    }
    let stage = Stage::open(builder);
    for (size, pages) in [(1, 20), (7, 3), (200, 1)] {
        let (items, counted) = collect(&stage, WORKSPACE_DIAGNOSTICS, &json!({}), size);
        assert_eq!((items.len(), counted), (20, pages), "files without diagnostics are omitted");
        let uris: Vec<&str> = items.iter().map(|item| item["uri"].as_str().unwrap()).collect();
        assert!(uris.is_sorted() && uris.iter().all(|uri| uri.ends_with(".fake")));
        assert!(items.iter().all(|item| item["diagnostics"].as_array().unwrap().len() == 3));
    }
}

#[test]
fn s3_5_default_page_has_100_items_and_the_largest_200() {
    let rules = [json!({ "on": "textDocument/references", "do": [
        { "reply_locations": { "uri": "$uri", "count": 450 } },
    ] })];
    let stage =
        Stage::open(Workbench::new().file("a.fake", &"x\n".repeat(450)).server("fake", script(&rules)));
    let count = |size: Option<u64>| {
        let mut arguments = stage.at("a.fake", 0, 0);
        if let Some(size) = size {
            arguments["pageSize"] = json!(size);
        }
        stage.payload(REFERENCES, arguments)["items"].as_array().unwrap().len()
    };
    assert_eq!([count(None), count(Some(1)), count(Some(200)), count(Some(201))], [100, 1, 200, 200]);
    let (items, pages) = collect(&stage, REFERENCES, &stage.at("a.fake", 0, 0), 150);
    assert_eq!((items.len(), pages), (450, 3), "a full last page has no cursor");
}
