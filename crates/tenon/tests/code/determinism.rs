//! §1.3 and §4: the same state and the same question, the same bytes.

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;

use crate::stage::{Stage, TOOLS, arguments, location, range, reply, script, symbol};

/// A server that answers in another order each time it is made.
fn shuffled(seed: usize) -> Value {
    let turn = |mut list: Vec<Value>| {
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
    let params = json!({ "uri": "$uri", "version": 1, "diagnostics": turn(diagnostics) });
    let hover: Vec<Value> = (0..4).map(|n| json!(format!("part {n}"))).collect();
    script(&[
        reply("textDocument/definition", turn(locations.clone())),
        reply("textDocument/references", turn(locations)),
        reply("textDocument/hover", json!({ "contents": turn(hover) })),
        reply("textDocument/documentSymbol", turn(nested)),
        reply("workspace/symbol", turn(symbols)),
        json!({ "on": "textDocument/didOpen", "do": [
            { "notify": { "method": "textDocument/publishDiagnostics", "params": params } },
        ] }),
    ])
}

#[test]
fn s1_3_whatever_order_a_server_answers_in_the_bytes_are_the_same() {
    let bytes = |seed: usize| -> Vec<String> {
        let stage = Stage::open(Workbench::new().file("a.fake", "x\nx\nx\n").server("fake", shuffled(seed)));
        let root = format!("file://{}", stage.bench.root().display());
        let text = |tool: &str| {
            let mut payload = stage.payload(tool, arguments(&stage, tool, "a.fake"));
            forget_ids(&mut payload);
            payload.to_string().replace(&root, "")
        };
        TOOLS.iter().map(|tool| text(tool)).collect()
    };
    let first = bytes(0);
    for seed in 1..6 {
        assert_eq!(bytes(seed), first, "order {seed}");
    }
}

/// Ids hold the path of the workspace, which differs here.
fn forget_ids(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("id");
            fields.values_mut().for_each(forget_ids);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_ids),
        _ => {}
    }
}

#[test]
fn s1_3_asked_again_after_other_questions_the_bytes_are_the_same() {
    let stage = Stage::open(
        Workbench::new().file("a.fake", "x bad\nx\nx\n").file("b.fake", "bad").server("fake", shuffled(3)),
    );
    let raw = |tool: &str| {
        stage.payload(tool, arguments(&stage, tool, "a.fake"));
        let params = json!({ "name": tool, "arguments": arguments(&stage, tool, "a.fake") });
        stage.client().request("tools/call", params).unwrap().to_string()
    };
    let first: Vec<String> = TOOLS.iter().map(|tool| raw(tool)).collect();
    for tool in TOOLS {
        stage.payload(tool, arguments(&stage, tool, "b.fake"));
    }
    for _ in 0..3 {
        let again: Vec<String> = TOOLS.iter().rev().map(|tool| raw(tool)).collect();
        assert!(again.iter().rev().eq(&first));
    }
}
