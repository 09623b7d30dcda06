//! §6.3: what errors never carry, and the contract page's own promises.

use serde_json::json;
use tenon_fake_lsp::Workbench;

use crate::stage::{HOVER, Stage, WORKSPACE_DIAGNOSTICS, code, script};

#[test]
fn s6_3_errors_repeat_nothing_that_a_client_sent() {
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&[])));
    let secret = "hunter2-".repeat(200);
    let mut client = stage.client();
    for arguments in [
        json!({ "uri": format!("file:///{secret}"), "position": { "line": 0, "character": 0 } }),
        json!({ "uri": format!("{secret}:///x"), "position": { "line": 0, "character": 0 } }),
        json!({ "uri": stage.uri("a.fake"), "position": { "line": secret, "character": 0 } }),
        json!({ "uri": [secret], "position": { "line": 0, "character": 0 } }),
        json!({ "uri": stage.uri("a.fake"), "position": secret }),
    ] {
        let error = client.call_tool(HOVER, arguments).unwrap_err();
        code(&error);
        assert!(!format!("{error:?}").contains("hunter2-hunter2"), "{error:?}");
    }
    // The name of an unknown field is shown, so that it can be found; however long it is, the answer stays short.
    let mut long = stage.at("a.fake", 0, 0);
    long[&secret] = json!(1);
    let error = client.call_tool(HOVER, long).unwrap_err();
    assert_eq!(code(&error), "INVALID_PARAMS");
    assert!(format!("{error:?}").len() < 1_000, "{error:?}");
}

#[test]
fn s6_3_work_that_is_cut_off_inside_is_internal_and_says_no_more() {
    let stage = Stage::open(Workbench::new().file("a.fake", "bad").server("fake", script(&[])));
    let mut client = stage.client();
    stage.block_on(stage.code.close());
    let error = client.call_tool(WORKSPACE_DIAGNOSTICS, json!({})).unwrap_err();
    assert_eq!(code(&error), "INTERNAL", "{error:?}");
    assert!(error.data.get("details").is_none(), "{error:?}");
}
