//! §5.3: responses over the byte cap.

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::{range, reply, script, symbol};
use tenon_testkit::code_tools::{DOCUMENT_SYMBOLS, WORKSPACE_SYMBOLS};

use crate::stage::Stage;

fn stage(rule: Value) -> Stage {
    Stage::open(Workbench::new().file("a.fake", "bad\n").server("fake", script(&[rule])))
}

#[test]
fn s5_3_response_over_the_cap_is_rejected_with_a_page_size_that_fits() {
    let symbols: Vec<Value> = (0..200)
        .map(|n| symbol(&format!("{n:03}{}", "x".repeat(4_000)), 12, "$root/a.fake", [n, 0, n, 1]))
        .collect();
    let stage = stage(reply("workspace/symbol", json!(symbols)));
    let page = |size: u64| json!({ "query": "x", "pageSize": size });
    let (code, error) = stage.failure(WORKSPACE_SYMBOLS, page(200));
    assert_eq!(code, "CAP_EXCEEDED");
    assert_eq!(error.data["details"]["reason"], "response_bytes");
    let fits = error.data["details"]["pageSize"].as_u64().unwrap();
    assert!((100..130).contains(&fits), "{fits}");
    let mut client = stage.client();
    let params = json!({ "name": WORKSPACE_SYMBOLS, "arguments": page(fits) });
    let result = client.request("tools/call", params).unwrap();
    assert_eq!(result["structuredContent"]["items"].as_array().unwrap().len() as u64, fits);
    assert!(result.to_string().len() <= 524_288);
    assert_eq!(stage.failure(WORKSPACE_SYMBOLS, page(fits + 1)).0, "CAP_EXCEEDED");
}

#[test]
fn s5_3_unpaged_response_over_the_cap_is_rejected() {
    let symbols: Vec<Value> = (0..200)
        .map(|n| {
            json!({
                "name": format!("{n}{}", "x".repeat(4_000)), "kind": 12,
                "range": range([n, 0, n, 1]), "selectionRange": range([n, 0, n, 1]),
            })
        })
        .collect();
    let stage = stage(reply("textDocument/documentSymbol", json!(symbols)));
    let (code, error) = stage.failure(DOCUMENT_SYMBOLS, json!({ "uri": stage.uri("a.fake") }));
    assert_eq!(code, "CAP_EXCEEDED");
    assert_eq!(error.data["details"]["reason"], "response_bytes");
    assert_eq!(error.data["details"]["pageSize"], Value::Null);
}
