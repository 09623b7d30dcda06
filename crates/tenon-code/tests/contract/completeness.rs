//! Completeness with several, broken, limited and missing servers, and servers that do not report indexing progress.

use serde_json::{Value, json};
use tenon_code::{CodeError, ProviderFailure};
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::{capabilities, location, reply, script, symbol};
use tenon_testkit::code_tools::{
    DEFINITION, DOCUMENT_DIAGNOSTICS, DOCUMENT_SYMBOLS, FILE_TOOLS, HOVER, REFERENCES, TOOLS,
    WORKSPACE_DIAGNOSTICS, WORKSPACE_SYMBOLS,
};

use crate::stage::{Stage, server_id};

/// Panics unless a call fails because of this server; why it does.
fn provider_failure(stage: &Stage, tool: &str, arguments: Value, expected: &str) -> ProviderFailure {
    match stage.error(tool, arguments) {
        CodeError::Provider { server, failure } if server == server_id(expected) => failure,
        other => panic!("{tool}: {other:?}"),
    }
}

#[test]
fn s6_3_file_that_no_server_reads_has_no_provider() {
    let stage = Stage::open(Workbench::new().file("a.txt", "x").server("fake", script(&[])));
    for tool in FILE_TOOLS {
        assert_eq!(stage.error(tool, stage.arguments(tool, "a.txt")), CodeError::NoProvider, "{tool}");
    }
    // The workspace has no covered files, so its lists are empty.
    let symbols = stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "x" }));
    assert_eq!(symbols["items"], json!([]));
    assert_eq!(stage.payload(WORKSPACE_DIAGNOSTICS, json!({}))["items"], json!([]));
}

#[test]
fn s6_3_server_without_the_capability_does_not_count_as_provider() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [] });
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script));
    for tool in [DEFINITION, REFERENCES, HOVER, DOCUMENT_SYMBOLS] {
        assert_eq!(stage.error(tool, stage.arguments(tool, "a.fake")), CodeError::NoProvider, "{tool}");
    }
}

#[test]
fn s6_3_error_names_the_broken_server() {
    let dying = json!({ "capabilities": capabilities(), "rules": [
        { "on": "textDocument/didOpen", "do": [{ "exit": 1 }] },
    ] });
    let fine = script(&[
        reply("textDocument/references", json!([location("$root/a.fake", [0, 0, 0, 1])])),
        reply("workspace/symbol", json!([symbol("s", 1, "$root/a.fake", [0, 0, 0, 1])])),
    ]);
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fine", fine).server("dying", dying));
    for tool in [DOCUMENT_DIAGNOSTICS, REFERENCES, WORKSPACE_SYMBOLS, WORKSPACE_DIAGNOSTICS] {
        let failure = provider_failure(&stage, tool, stage.arguments(tool, "a.fake"), "dying");
        assert_eq!(failure, ProviderFailure::Broken(server_id("dying")), "{tool}");
    }
}

#[test]
fn s6_3_error_names_the_rejecting_server_without_its_message() {
    let rules = [json!({ "on": "textDocument/definition", "do": [
        { "refuse": { "code": -32603, "message": "cannot read /etc/shadow: token=abc" } },
    ] })];
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&rules)));
    let error = stage.error(DEFINITION, stage.at("a.fake", 0, 0));
    let expected = CodeError::Provider { server: server_id("fake"), failure: ProviderFailure::Refused };
    assert_eq!(error, expected);
    assert!(!format!("{error:?} {error}").contains("shadow"), "{error:?}");
}

#[test]
fn s4_5_answer_at_a_servers_own_limit_is_rejected() {
    let found: Vec<Value> = (0..5).map(|n| location("$root/a.fake", [n, 0, n, 1])).collect();
    let symbols: Vec<Value> = (0..5).map(|n| symbol("s", 1, "$root/a.fake", [n, 0, n, 1])).collect();
    let rules = [reply("textDocument/references", json!(found)), reply("workspace/symbol", json!(symbols))];
    let builder = Workbench::new().file("a.fake", "x").server_with("fake", script(&rules), |entry| {
        entry.limits.references = Some(5);
        entry.limits.workspace_symbols = Some(5);
    });
    let stage = Stage::open(builder);
    for tool in [REFERENCES, WORKSPACE_SYMBOLS] {
        let error = stage.error(tool, stage.arguments(tool, "a.fake"));
        assert_eq!(error, CodeError::ServerLimit { server: server_id("fake") }, "{tool}");
    }
}

#[test]
fn summary_names_languages_without_an_installed_server() {
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
    let failure = provider_failure(&stage, HOVER, stage.at("b.zig", 0, 0), "absent");
    assert!(matches!(failure, ProviderFailure::Unavailable(_)), "{failure:?}");
}

#[test]
fn s4_5_answers_of_a_server_without_indexing_progress_are_marked() {
    let rules = [
        reply("textDocument/definition", json!([])),
        reply("textDocument/references", json!([location("$root/a.fake", [0, 0, 0, 1])])),
    ];
    let builder =
        Workbench::new().file("a.fake", "x").server_with("mine", script(&rules), |entry| entry.ready = None);
    let stage = Stage::open(builder);
    let payload = stage.payload(DEFINITION, stage.at("a.fake", 0, 0));
    assert_eq!(payload["summary"], "Found 0 definitions. Not proven complete: mine.");
    let payload = stage.payload(REFERENCES, stage.at("a.fake", 0, 0));
    assert_eq!(payload["summary"], "Returned 1 reference. Not proven complete: mine.");
}

#[test]
fn coverage_does_not_depend_on_earlier_requests() {
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
fn every_tool_answers_with_empty_lists_when_servers_find_nothing() {
    let rules = [
        reply("textDocument/definition", json!(null)),
        reply("textDocument/references", json!(null)),
        reply("textDocument/hover", json!(null)),
        reply("textDocument/documentSymbol", json!(null)),
        reply("workspace/symbol", json!(null)),
    ];
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&rules)));
    for tool in TOOLS {
        let payload = stage.payload(tool, stage.arguments(tool, "a.fake"));
        let lists = payload.as_object().unwrap().values().filter_map(Value::as_array);
        assert!(lists.into_iter().all(Vec::is_empty), "{tool} {payload}");
    }
}
