//! Navigation requests: which servers are asked, how answers merge, and how gaps are reported.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;
use tenon_lsp::CallContext;
use tenon_lsp::model::{Doubt, Gap, GapReason, Location, Markup};
use tenon_lsp::orchestrator::AskError;
use tenon_servers::registry::{Capability, ReadinessRule, ServerId};

fn range(line: u32) -> Value {
    json!({ "start": { "line": line, "character": 0 }, "end": { "line": line, "character": 3 } })
}

fn location(file: &str, line: u32) -> Value {
    json!({ "uri": format!("$root/{file}"), "range": range(line) })
}

fn answering(method: &str, capability: &str, reply: Value) -> Value {
    let mut script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [{ "on": method, "do": [{ "reply": reply }] }] });
    script["capabilities"][capability] = json!(true);
    script
}

fn shown(bench: &Workbench, locations: &[Location]) -> Vec<String> {
    locations
        .iter()
        .map(|one| format!("{}:{}", bench.orchestrator.gate().display(&one.path), one.range.start.line))
        .collect()
}

fn gap(server: &str, why: GapReason) -> Gap {
    Gap { server: ServerId::new(server).unwrap(), why }
}

#[tokio::test]
async fn first_nonempty_definition_in_registry_order_wins() {
    let bench = Workbench::new()
        .file("a.fake", "abc\nabc\nabc")
        .server("cannot", json!({ "capabilities": { "textDocumentSync": 2 } }))
        .server("knows-nothing", answering("textDocument/definition", "definitionProvider", json!([])))
        .server(
            "knows",
            answering("textDocument/definition", "definitionProvider", json!([location("a.fake", 2)])),
        )
        .server(
            "too-late",
            answering("textDocument/definition", "definitionProvider", json!([location("a.fake", 1)])),
        )
        .open()
        .await;
    let path = bench.path("a.fake");
    let answer = bench.orchestrator.definition(&path, Workbench::at(0, 1), &Workbench::call()).await.unwrap();
    assert_eq!(shown(&bench, &answer.value), ["a.fake:2"]);
    assert!(answer.is_complete(), "{answer:?}");
}

#[tokio::test]
async fn references_of_all_servers_are_merged_sorted_and_deduplicated() {
    let reply = |lines: [u32; 3]| json!(lines.map(|line| location("a.fake", line)));
    let bench = Workbench::new()
        .file("a.fake", "abc\nabc\nabc\nabc\n")
        .server("one", answering("textDocument/references", "referencesProvider", reply([3, 1, 1])))
        .server("two", answering("textDocument/references", "referencesProvider", reply([0, 3, 2])))
        .open()
        .await;
    let path = bench.path("a.fake");
    let answer =
        bench.orchestrator.references(&path, Workbench::at(0, 1), true, &Workbench::call()).await.unwrap();
    assert_eq!(shown(&bench, &answer.value), ["a.fake:0", "a.fake:1", "a.fake:2", "a.fake:3"]);
    let asked = &bench.received("one", "textDocument/references")[0]["params"];
    assert_eq!(asked["context"]["includeDeclaration"], true);
}

#[tokio::test]
async fn location_links_resolve_to_the_target_selection() {
    let link =
        json!([{ "targetUri": "$root/a.fake", "targetRange": range(0), "targetSelectionRange": range(2) }]);
    let bench = Workbench::new()
        .file("a.fake", "abc\nabc\nabc")
        .server("fake", answering("textDocument/definition", "definitionProvider", link))
        .open()
        .await;
    let path = bench.path("a.fake");
    let answer = bench.orchestrator.definition(&path, Workbench::at(0, 0), &Workbench::call()).await.unwrap();
    assert_eq!(shown(&bench, &answer.value), ["a.fake:2"]);
}

#[tokio::test]
async fn locations_outside_the_root_are_dropped_even_behind_a_symlink() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.fake"), "abc").unwrap();
    let elsewhere = format!("file://{}/secret.fake", outside.path().display());
    let reply = json!([
        { "uri": elsewhere, "range": range(0) }, location("escape/secret.fake", 0), location("gone.fake", 0),
        { "uri": "untitled:1", "range": range(0) }, location("a.fake", 1),
    ]);
    let bench = Workbench::new()
        .file("a.fake", "abc\nabc")
        .server("fake", answering("textDocument/references", "referencesProvider", reply))
        .open()
        .await;
    std::os::unix::fs::symlink(outside.path(), bench.root().join("escape")).unwrap();
    let path = bench.path("a.fake");
    let answer =
        bench.orchestrator.references(&path, Workbench::at(0, 0), false, &Workbench::call()).await.unwrap();
    assert_eq!(shown(&bench, &answer.value), ["a.fake:1"]);
    assert!(bench.orchestrator.gate().admit_path("escape/secret.fake").is_err());
}

#[tokio::test]
async fn workspace_symbols_start_and_merge_all_servers() {
    let symbol =
        |name: &str, line: u32| json!({ "name": name, "kind": 12, "location": location("a.fake", line) });
    let nowhere = json!({ "name": "nowhere", "kind": 12, "location": { "uri": "$root/a.fake" } });
    let bench = Workbench::new()
        .file("a.fake", "abc\nabc\nabc\nabc\n")
        .server(
            "one",
            answering(
                "workspace/symbol",
                "workspaceSymbolProvider",
                json!([symbol("b", 2), symbol("a", 1), nowhere]),
            ),
        )
        .server(
            "two",
            answering("workspace/symbol", "workspaceSymbolProvider", json!([symbol("c", 0), symbol("a", 1)])),
        )
        .open()
        .await;
    let answer = bench.orchestrator.workspace_symbols("x", &Workbench::call()).await;
    let names: Vec<_> = answer.value.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["c", "a", "b"]);
    assert!(answer.is_complete());
    assert_eq!(bench.received("one", "workspace/symbol")[0]["params"]["query"], "x");
}

#[tokio::test]
async fn document_is_opened_and_updated_before_each_request() {
    let script = json!({ "capabilities": { "textDocumentSync": 2, "hoverProvider": true },
        "rules": [{ "on": "textDocument/hover", "do": ["reply_word"] }] });
    let bench = Workbench::new().file("a.fake", "one two").server("fake", script).open().await;
    let path = bench.path("a.fake");
    let hover = async || {
        let answer = bench.orchestrator.hover(&path, Workbench::at(0, 5), &Workbench::call()).await.unwrap();
        let part = answer.value.unwrap().parts.remove(0);
        assert_eq!(part.markup, Markup::Plaintext);
        part.value
    };
    assert_eq!(hover().await, "two");
    bench.write("a.fake", "one TWO!");
    assert_eq!(hover().await, "TWO", "the text on disk is current");
}

#[tokio::test]
async fn request_waits_until_the_server_has_loaded_its_project() {
    let progress = |kind: &str| json!({ "progress": { "token": "load", "kind": kind } });
    let script = json!({ "capabilities": { "textDocumentSync": 2, "referencesProvider": true }, "rules": [
        { "on": "textDocument/didOpen", "do": [{ "wait_ms": 60 }, progress("begin"), { "wait_ms": 300 }, progress("end")] },
        { "on": "textDocument/references", "nth": 1, "do": [progress("begin"), { "reply": [] }, { "wait_ms": 200 }, progress("end")] },
        { "on": "textDocument/references", "from": 2, "do": [{ "reply": [location("a.fake", 1)] }] },
    ]});
    let bench = Workbench::new()
        .file("a.fake", "abc\nabc")
        .server_with("fake", script, |entry| entry.ready = Some(ReadinessRule::Progress { grace_ms: 5000 }))
        .open()
        .await;
    let path = bench.path("a.fake");
    let answer =
        bench.orchestrator.references(&path, Workbench::at(0, 0), false, &Workbench::call()).await.unwrap();
    assert!(answer.is_complete());
    assert_eq!(shown(&bench, &answer.value), ["a.fake:1"], "the answer given while it reloaded is discarded");
}

#[tokio::test]
async fn early_capability_is_answered_while_the_server_loads() {
    let begin = json!({ "progress": { "token": "load", "kind": "begin" } });
    let script = json!({
        "capabilities": { "textDocumentSync": 2, "definitionProvider": true, "referencesProvider": true },
        "rules": [
            { "on": "textDocument/didOpen", "do": [begin] },
            { "on": "textDocument/definition", "do": [{ "reply": location("a.fake", 1) }] },
            { "on": "textDocument/references", "do": [{ "reply": [] }] },
        ],
    });
    let bench = Workbench::new()
        .file("a.fake", "abc\nabc")
        .server_with("fake", script, |entry| {
            entry.ready = Some(ReadinessRule::Progress { grace_ms: 600_000 });
            entry.early = vec![Capability::Definition];
        })
        .open()
        .await;
    let (path, at) = (bench.path("a.fake"), Workbench::at(0, 0));
    let answer = bench.orchestrator.definition(&path, at, &Workbench::call()).await.unwrap();
    assert_eq!(shown(&bench, &answer.value), ["a.fake:1"]);
    assert!(answer.is_complete(), "{answer:?}");

    let short = CallContext::within(Duration::from_millis(100));
    let answer = bench.orchestrator.references(&path, at, true, &short).await.unwrap();
    assert_eq!(answer.gaps, [gap("fake", GapReason::Indexing)]);
    assert_eq!(bench.received_count("fake", "textDocument/references"), 0, "references wait for the project");
}

#[tokio::test]
async fn incomplete_answer_lists_the_reason_for_each_server() {
    let many = json!([location("a.fake", 0), location("a.fake", 1)]);
    let script = || answering("textDocument/references", "referencesProvider", many.clone());
    let refusing = json!({ "capabilities": { "textDocumentSync": 2, "referencesProvider": true }, "rules": [
        { "on": "textDocument/references", "do": [{ "refuse": { "code": -32603, "message": "no idea" } }] },
    ]});
    let bench = Workbench::new()
        .file("a.fake", "abc\nabc")
        .server("complete", script())
        .server_with("unproven", script(), |entry| entry.ready = None)
        .server_with("at-its-limit", script(), |entry| entry.limits.references = Some(2))
        .server("refusing", refusing)
        .server_with("missing", script(), |entry| entry.command = "no-such-program".to_owned())
        .open()
        .await;
    let path = bench.path("a.fake");
    let answer =
        bench.orchestrator.references(&path, Workbench::at(0, 0), false, &Workbench::call()).await.unwrap();
    assert_eq!(
        answer.gaps,
        [
            gap("unproven", GapReason::Unproven(Doubt::NoProgress)),
            gap("at-its-limit", GapReason::Limit),
            gap("refusing", GapReason::Refused("no idea".to_owned())),
            gap("missing", GapReason::Unavailable("not found".to_owned())),
        ]
    );
    assert!(!answer.is_complete());
    assert_eq!(answer.value.len(), 2);
}

#[tokio::test]
async fn answer_of_a_server_without_progress_is_marked_unproven() {
    let script = answering("textDocument/references", "referencesProvider", json!([location("a.fake", 0)]));
    let bench = Workbench::new()
        .file("a.fake", "abc")
        .server_with("fake", script, |entry| entry.ready = Some(ReadinessRule::Progress { grace_ms: 50 }))
        .open()
        .await;
    let path = bench.path("a.fake");
    let answer =
        bench.orchestrator.references(&path, Workbench::at(0, 0), false, &Workbench::call()).await.unwrap();
    assert_eq!(answer.value.len(), 1);
    assert_eq!(answer.gaps, [gap("fake", GapReason::Unproven(Doubt::NoProgress))]);
}

#[tokio::test]
async fn unanswered_request_is_cancelled_and_other_answers_are_kept() {
    let never = json!({ "capabilities": { "textDocumentSync": 2, "referencesProvider": true },
        "rules": [{ "on": "textDocument/references", "do": [] }] });
    let bench = Workbench::new()
        .file("a.fake", "abc\nabc")
        .server("never", never)
        .server(
            "fine",
            answering("textDocument/references", "referencesProvider", json!([location("a.fake", 1)])),
        )
        .open()
        .await;
    let path = bench.path("a.fake");
    // Both servers run before the deadline starts.
    bench.orchestrator.document_symbols(&path, &Workbench::call()).await.unwrap();
    let call = CallContext::within(Duration::from_millis(400));
    let answer = bench.orchestrator.references(&path, Workbench::at(0, 0), false, &call).await.unwrap();
    assert_eq!(shown(&bench, &answer.value), ["a.fake:1"]);
    assert_eq!(answer.gaps, [gap("never", GapReason::Pending)]);
    let asked = bench.received("never", "textDocument/references")[0]["id"].clone();
    while bench.received("never", "$/cancelRequest").is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.received("never", "$/cancelRequest")[0]["params"]["id"], asked);
}

#[tokio::test]
async fn request_that_a_server_cannot_cancel_is_left_running() {
    let script = json!({ "capabilities": { "textDocumentSync": 2, "referencesProvider": true, "hoverProvider": true },
        "rules": [
            { "on": "textDocument/references", "do": [] },
            { "on": "textDocument/hover", "do": ["reply_word"] },
        ] });
    let keeps = vec!["textDocument/references".to_owned()];
    let builder = Workbench::new().file("a.fake", "abc");
    let bench = builder.server_with("fake", script, |entry| entry.keeps = keeps).open().await;
    let (path, place) = (bench.path("a.fake"), Workbench::at(0, 0));
    bench.orchestrator.hover(&path, place, &Workbench::call()).await.unwrap();
    let call = CallContext::within(Duration::from_millis(50));
    let answer = bench.orchestrator.references(&path, place, false, &call).await.unwrap();
    assert_eq!(answer.gaps, [gap("fake", GapReason::Pending)]);
    // Messages arrive in order: a cancellation would have arrived before this hover.
    bench.orchestrator.hover(&path, place, &Workbench::call()).await.unwrap();
    assert_eq!(bench.received_count("fake", "textDocument/references"), 1);
    assert_eq!(bench.received_count("fake", "$/cancelRequest"), 0);
}

#[tokio::test]
async fn twenty_thousand_references_arrive_complete() {
    let script = json!({ "capabilities": { "textDocumentSync": 2, "referencesProvider": true }, "rules": [
        { "on": "textDocument/references", "do": [{ "reply_locations": { "uri": "$uri", "count": 20_000 } }] },
    ]});
    let bench = Workbench::new().file("a.fake", &"x\n".repeat(20_000)).server("fake", script).open().await;
    let path = bench.path("a.fake");
    let answer =
        bench.orchestrator.references(&path, Workbench::at(0, 0), false, &Workbench::call()).await.unwrap();
    assert_eq!(answer.value.len(), 20_000);
    assert!(answer.is_complete());
}

#[tokio::test]
async fn position_outside_the_text_is_a_typed_error() {
    let bench = Workbench::new().file("a.fake", "😀\n").server("fake", json!({})).open().await;
    let path = bench.path("a.fake");
    for (line, character) in [(0, 1), (0, 3), (7, 0)] {
        let answer =
            bench.orchestrator.definition(&path, Workbench::at(line, character), &Workbench::call()).await;
        assert!(matches!(answer, Err(AskError::Position(_))), "{line}:{character}");
    }
}

#[tokio::test]
async fn unreadable_files_are_typed_errors() {
    let bench = Workbench::new().file("a.fake", "").server("fake", json!({})).open().await;
    std::fs::write(bench.root().join("binary.fake"), [0xff, 0xfe, 0x00]).unwrap();
    std::fs::File::create(bench.root().join("big.fake")).unwrap().set_len(50 * 1024 * 1024).unwrap();
    for name in ["binary.fake", "big.fake"] {
        let path = bench.path(name);
        assert!(bench.orchestrator.document_symbols(&path, &Workbench::call()).await.is_err(), "{name}");
        assert!(bench.orchestrator.check(&path, None, &Workbench::call()).await.is_err(), "{name}");
    }
    let path = bench.path("a.fake");
    std::fs::remove_file(bench.root().join("a.fake")).unwrap();
    assert!(bench.orchestrator.check(&path, None, &Workbench::call()).await.is_err());
}

#[tokio::test]
async fn file_without_a_server_has_an_empty_answer() {
    let bench = Workbench::new().file("a.txt", "abc").server("fake", json!({})).open().await;
    let path = bench.path("a.txt");
    let answer = bench.orchestrator.definition(&path, Workbench::at(0, 0), &Workbench::call()).await.unwrap();
    assert!(answer.value.is_empty() && answer.servers.is_empty());
    assert!(bench.check("a.txt").await.value.is_empty());
}
