//! Completeness with several, broken, limited, missing and unproven servers.

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;

use crate::stage::{
    DEFINITION, DOCUMENT_DIAGNOSTICS, HOVER, REFERENCES, Stage, TOOLS, WORKSPACE_DIAGNOSTICS,
    WORKSPACE_SYMBOLS, arguments, location, reply, script, symbol,
};

#[test]
fn s6_3_a_file_that_no_server_reads_has_no_provider() {
    let stage = Stage::open(Workbench::new().file("a.txt", "x").server("fake", script(&[])));
    for tool in crate::stage::ABOUT_A_FILE {
        assert_eq!(stage.refusal(tool, arguments(&stage, tool, "a.txt")).0, "PROVIDER_UNAVAILABLE", "{tool}");
    }
    // Nothing is covered, and nothing is found.
    let symbols = stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "x" }));
    assert_eq!(symbols["items"], json!([]));
    assert_eq!(stage.payload(WORKSPACE_DIAGNOSTICS, json!({}))["items"], json!([]));
}

#[test]
fn s6_3_a_server_without_the_capability_is_no_provider() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [] });
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script));
    for tool in [DEFINITION, REFERENCES, HOVER, "vscode.lsp.documentSymbols"] {
        assert_eq!(
            stage.refusal(tool, arguments(&stage, tool, "a.fake")).0,
            "PROVIDER_UNAVAILABLE",
            "{tool}"
        );
    }
}

#[test]
fn s6_3_a_broken_server_is_named() {
    let dying = json!({ "capabilities": crate::stage::capabilities(), "rules": [
        { "on": "textDocument/didOpen", "do": [{ "exit": 1 }] },
    ] });
    let fine = script(&[
        reply("textDocument/references", json!([location("$root/a.fake", [0, 0, 0, 1])])),
        reply("workspace/symbol", json!([symbol("s", 1, "$root/a.fake", [0, 0, 0, 1])])),
    ]);
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fine", fine).server("dying", dying));
    for tool in [DOCUMENT_DIAGNOSTICS, REFERENCES, WORKSPACE_SYMBOLS, WORKSPACE_DIAGNOSTICS] {
        let (code, error) = stage.refusal(tool, arguments(&stage, tool, "a.fake"));
        assert_eq!(code, "PROVIDER_UNAVAILABLE", "{tool} {error:?}");
        assert_eq!(error.data["details"]["server"], "dying", "{tool}");
    }
}

#[test]
fn s6_3_a_refusing_server_is_named_but_not_quoted() {
    let rules = [json!({ "on": "textDocument/definition", "do": [
        { "refuse": { "code": -32603, "message": "cannot read /etc/shadow: token=abc" } },
    ] })];
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&rules)));
    let (code, error) = stage.refusal(DEFINITION, stage.at("a.fake", 0, 0));
    assert_eq!(code, "PROVIDER_UNAVAILABLE");
    assert_eq!(error.data["details"], json!({ "server": "fake" }));
    assert!(!format!("{error:?}").contains("shadow"), "{error:?}");
}

#[test]
fn s4_5_an_answer_at_a_servers_limit_is_refused() {
    let found: Vec<Value> = (0..5).map(|n| location("$root/a.fake", [n, 0, n, 1])).collect();
    let symbols: Vec<Value> = (0..5).map(|n| symbol("s", 1, "$root/a.fake", [n, 0, n, 1])).collect();
    let rules = [reply("textDocument/references", json!(found)), reply("workspace/symbol", json!(symbols))];
    let builder = Workbench::new().file("a.fake", "x").server_with("fake", script(&rules), |entry| {
        entry.limits.references = Some(5);
        entry.limits.workspace_symbols = Some(5);
    });
    let stage = Stage::open(builder);
    for tool in [REFERENCES, WORKSPACE_SYMBOLS] {
        let (code, error) = stage.refusal(tool, arguments(&stage, tool, "a.fake"));
        assert_eq!(code, "CAP_EXCEEDED");
        assert_eq!(error.data["details"], json!({ "reason": "server_limit", "server": "fake" }), "{tool}");
    }
}

#[test]
fn languages_without_an_installed_server_are_named_in_the_summary() {
    let builder = Workbench::new()
        .file("a.fake", "bad")
        .file("b.zig", "")
        .server("fake", script(&[reply("workspace/symbol", json!([]))]))
        .server_with("absent", script(&[]), |entry| {
            entry.language = "Zig".to_owned();
            entry.command = "no-such-language-server".to_owned();
            entry.user_command = false;
            entry.extensions = [(".zig".to_owned(), "zig".to_owned())].into();
        });
    let stage = Stage::open(builder);
    let symbols = stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "x" }));
    assert_eq!(symbols["summary"], "Returned 0 workspace symbols. Not covered: Zig.");
    let diagnostics = stage.payload(WORKSPACE_DIAGNOSTICS, json!({}));
    assert_eq!(diagnostics["summary"], "Returned diagnostics for 1 file. Not covered: Zig.");
    let (code, error) = stage.refusal(HOVER, stage.at("b.zig", 0, 0));
    assert_eq!(code, "PROVIDER_UNAVAILABLE");
    assert_eq!(error.data["details"]["server"], "absent");
}

#[test]
fn s4_5_a_server_of_which_nobody_knows_when_it_is_done_gives_no_list_of_the_workspace() {
    let rules = [reply("textDocument/definition", json!([])), reply("textDocument/references", json!([]))];
    let builder =
        Workbench::new().file("a.fake", "x").server_with("mine", script(&rules), |entry| entry.ready = None);
    let stage = Stage::open(builder);
    let payload = stage.payload(DEFINITION, stage.at("a.fake", 0, 0));
    assert_eq!(payload["summary"], "Found 0 definitions. Perhaps incomplete: mine.");
    let (code, error) = stage.refusal(REFERENCES, stage.at("a.fake", 0, 0));
    assert_eq!(code, "PROVIDER_UNAVAILABLE");
    assert_eq!(error.data["details"]["server"], "mine");
}

#[test]
fn what_is_covered_does_not_depend_on_who_asked_before() {
    let workspace = || {
        let mut builder = Workbench::new().server(
            "fake",
            script(&[
                reply("workspace/symbol", json!([symbol("s", 1, "$root/00.fake", [0, 0, 0, 1])])),
                json!({ "on": "textDocument/hover", "do": [{ "reply_word": null }] }),
            ]),
        );
        // More files than stay open at once.
        for number in 0..80 {
            builder = builder.file(&format!("{number:02}.fake"), "so bad");
        }
        Stage::open(builder)
    };
    let shown = |stage: &Stage, payload: &Value| {
        payload.to_string().replace(&stage.bench.root().display().to_string(), "")
    };
    let fresh = workspace();
    let first = fresh.payload(WORKSPACE_DIAGNOSTICS, json!({ "pageSize": 200 }));
    assert_eq!(first["items"].as_array().unwrap().len(), 80);
    let asked = workspace();
    for number in [3, 50, 77] {
        asked.payload(HOVER, asked.at(&format!("{number:02}.fake"), 0, 0));
        asked.payload(DOCUMENT_DIAGNOSTICS, json!({ "uri": asked.uri(&format!("{number:02}.fake")) }));
    }
    let second = asked.payload(WORKSPACE_DIAGNOSTICS, json!({ "pageSize": 200 }));
    let strip_ids = |text: String| {
        let mut value: Value = serde_json::from_str(&text).unwrap();
        for file in value["items"].as_array_mut().unwrap() {
            for one in file["diagnostics"].as_array_mut().unwrap() {
                one["id"] = Value::Null;
            }
        }
        value
    };
    assert_eq!(strip_ids(shown(&fresh, &first)), strip_ids(shown(&asked, &second)));
}

#[test]
fn every_tool_answers_for_a_workspace_in_which_there_is_nothing_to_find() {
    let rules = [
        reply("textDocument/definition", json!(null)),
        reply("textDocument/references", json!(null)),
        reply("textDocument/hover", json!(null)),
        reply("textDocument/documentSymbol", json!(null)),
        reply("workspace/symbol", json!(null)),
    ];
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&rules)));
    for tool in TOOLS {
        let payload = stage.payload(tool, arguments(&stage, tool, "a.fake"));
        let lists = payload.as_object().unwrap().values().filter_map(Value::as_array);
        assert!(lists.into_iter().all(Vec::is_empty), "{tool} {payload}");
    }
}
