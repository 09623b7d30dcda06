//! The `context` surface over stdio and in the daemon.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};
use tenon_testkit::{McpClient, PATIENCE, Revision, Sandbox};

use crate::{answer, built, error_code, serve, serve_by};

fn resolve(client: &mut McpClient, query: &str, budget: u64) -> (String, Value) {
    let arguments = json!({"cache": "docs", "query": query, "budget": budget});
    let mut result = client.call_tool("context.resolve", arguments).unwrap();
    assert!(!result.is_error, "{result:?}");
    assert_eq!(result.text.len(), 1);
    (result.text.remove(0), result.structured)
}

/// The same cache, query and budget give the same bytes over MCP and on the command line.
fn check_resolves(sandbox: &Sandbox, client: &mut McpClient) {
    for (query, budget) in [
        ("release", 4000),
        ("the", 4),
        ("", 100),
        ("x \"quoted\" \\ \u{1}", 9),
        ("release", 0),
        ("THE the", u64::MAX),
    ] {
        let budget_text = budget.to_string();
        let printed = answer(
            sandbox,
            &["resolve", "--cache", "caches/docs", "--query", query, "--budget", &budget_text],
        );
        let (text, structured) = resolve(client, query, budget);
        assert_eq!(text, printed);
        assert_eq!(structured, serde_json::from_str::<Value>(&printed).unwrap());
    }
}

#[test]
fn context_server_answers_like_the_command_line() {
    let sandbox = built();
    for revision in [Revision::Sessions, Revision::Stateless] {
        let mut client = serve(&sandbox, revision);
        check_resolves(&sandbox, &mut client);
        let listed = client.call_tool("context.list_caches", json!({})).unwrap();
        assert_eq!(listed.text, [r#"{"caches":[{"path":"docs","has_manifest":true}]}"#]);
        let inspected = client.call_tool("context.inspect_cache", json!({"cache": "docs"})).unwrap();
        let printed: Value =
            serde_json::from_str(&answer(&sandbox, &["inspect", "--cache", "caches/docs"])).unwrap();
        assert_eq!(inspected.structured, printed);
        assert!(
            inspected.text[0].starts_with("{\"cache_version\":\"sha256:") && inspected.text[0].ends_with('}')
        );
        assert!(client.close().unwrap().success());
    }
}

#[test]
fn daemon_answers_like_the_command_line() {
    let sandbox = built();
    let mut client =
        serve_by(sandbox.tenon().args(["mcp", "--surface", "context"]), &sandbox, Revision::Sessions);
    let of_caches = ["context.resolve", "context.list_caches", "context.inspect_cache"];
    let of_workspace = ["context.find", "context.pack"];
    assert_eq!(client.list_tools(), [&of_caches[..], &of_workspace[..]].concat());
    check_resolves(&sandbox, &mut client);

    sandbox.tree().write("docs/more.md", "release release\n");
    answer(&sandbox, &["build", "--force", "--sources", "docs", "--cache", "caches/docs"]);
    assert!(resolve(&mut client, "release", 4).0.contains("\"id\":\"more.md\""));
    check_resolves(&sandbox, &mut client);

    let arguments = json!({"cache": "docs", "query": "", "budget": -1});
    assert_eq!(error_code(&mut client, "context.resolve", arguments), "invalid_budget");
    drop(client);
    assert!(sandbox.tenon().arg("stop").output().unwrap().status.success());
    sandbox.assert_no_processes();
}

/// Only the short document fits the budget, so the edit of the other one must be detected by the sweep.
#[test]
fn edit_of_an_undelivered_document_is_detected() {
    let sandbox = built();
    let mut client = serve(&sandbox, Revision::Sessions);
    let before = resolve(&mut client, "release", 4).0;
    assert!(before.contains("\"documents_selected\":1"), "{before}");
    let documents = fs::read_dir(sandbox.tree().path("caches/docs/documents")).unwrap();
    let path = documents
        .map(|entry| entry.unwrap().path())
        .find(|path| fs::read_to_string(path).unwrap().contains("staging"))
        .unwrap();
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("staging", "STAGING")).unwrap();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let arguments = json!({"cache": "docs", "query": "release", "budget": 4});
        let result = client.call_tool("context.resolve", arguments).unwrap();
        if result.is_error {
            assert_eq!(result.structured["error"]["code"], "cache_invalid");
            return;
        }
        assert_eq!(result.text[0], before);
        assert!(Instant::now() < deadline, "edit was not detected");
    }
}

#[test]
fn without_a_root_every_cache_is_missing() {
    let sandbox = built();
    let mut client = McpClient::connect(sandbox.tenon().arg("context-server"));
    for (tool, arguments) in [
        ("context.resolve", json!({"cache": "docs", "query": "", "budget": 1})),
        ("context.inspect_cache", json!({"cache": "docs"})),
        ("context.list_caches", json!({})),
    ] {
        assert_eq!(error_code(&mut client, tool, arguments), "cache_missing");
    }
    // An unknown tool is a protocol error.
    assert_eq!(client.call_tool("context.nope", json!({})).unwrap_err().code, -32602);
}
