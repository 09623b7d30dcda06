//! §1.3 and §4: the same question about the same state has the same answer.

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::{location, range, reply, script, symbol};
use tenon_testkit::code_tools::TOOLS;

use crate::stage::Stage;

/// A server whose lists are in an order that depends on the seed, each with a duplicate.
fn shuffled(seed: usize) -> Value {
    let shuffle = |mut list: Vec<Value>| {
        let by = seed % list.len();
        list.rotate_left(by);
        if seed % 2 == 1 {
            list.reverse();
        }
        list.push(list[0].clone());
        json!(list)
    };
    let locations: Vec<Value> = (0..7).map(|n| location("$root/a.fake", [n % 3, n, n % 3, n + 1])).collect();
    let symbols: Vec<Value> =
        (0..7).map(|n| symbol(&format!("s{}", n % 2), n, "$root/a.fake", [n % 3, 0, 9, 9])).collect();
    let nested: Vec<Value> = (0..5)
        .map(|n| json!({ "name": "n", "kind": n, "range": range([0, 0, n, 9]), "selectionRange": range([0, n, 0, n]) }))
        .collect();
    let diagnostics: Vec<Value> = (0..6)
        .map(|n| json!({ "range": range([n % 2, 0, n % 2, n]), "message": format!("m{}", n % 3) }))
        .collect();
    let params = json!({ "uri": "$uri", "version": 1, "diagnostics": shuffle(diagnostics) });
    let hover: Vec<Value> = (0..4).map(|n| json!(format!("part {n}"))).collect();
    script(&[
        reply("textDocument/definition", shuffle(locations.clone())),
        reply("textDocument/references", shuffle(locations)),
        reply("textDocument/hover", json!({ "contents": shuffle(hover) })),
        reply("textDocument/documentSymbol", shuffle(nested)),
        reply("workspace/symbol", shuffle(symbols)),
        json!({ "on": "textDocument/didOpen", "do": [
            { "notify": { "method": "textDocument/publishDiagnostics", "params": params } },
        ] }),
    ])
}

#[test]
fn s1_3_bytes_do_not_depend_on_the_order_of_a_servers_answers() {
    let bytes = |seed: usize| -> Vec<String> {
        let stage = Stage::open(Workbench::new().file("a.fake", "x\nx\nx\n").server("fake", shuffled(seed)));
        let root = format!("file://{}", stage.bench.root().display());
        let text = |tool: &str| {
            let mut payload = stage.payload(tool, stage.arguments(tool, "a.fake"));
            remove_ids(&mut payload);
            payload.to_string().replace(&root, "")
        };
        TOOLS.iter().map(|tool| text(tool)).collect()
    };
    let first = bytes(0);
    for seed in 1..6 {
        assert_eq!(bytes(seed), first, "order {seed}");
    }
}

/// Removes ids: they are hashes that include the path of the workspace.
fn remove_ids(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("id");
            fields.values_mut().for_each(remove_ids);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_ids),
        _ => {}
    }
}

#[test]
fn s1_3_answers_do_not_depend_on_earlier_requests() {
    let stage = Stage::open(
        Workbench::new().file("a.fake", "x bad\nx\nx\n").file("b.fake", "bad").server("fake", shuffled(3)),
    );
    let ask = |tool: &str, file: &str| stage.payload(tool, stage.arguments(tool, file)).to_string();
    let first: Vec<String> = TOOLS.iter().map(|tool| ask(tool, "a.fake")).collect();
    for tool in TOOLS {
        ask(tool, "b.fake");
    }
    for _ in 0..3 {
        let again: Vec<String> = TOOLS.iter().rev().map(|tool| ask(tool, "a.fake")).collect();
        assert!(again.iter().rev().eq(&first));
    }
}
