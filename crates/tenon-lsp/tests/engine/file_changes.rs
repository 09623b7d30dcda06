//! Which changes on disk are reported to a server, and in which order.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_contract::epoch::Epoch;
use tenon_contract::position::Position;
use tenon_fake_lsp::Workbench;
use tenon_lsp::CallContext;
use tenon_lsp::model::GapReason;

/// A request of the server to watch all files, sent as `step` of a rule.
fn watch_all() -> Value {
    json!({ "request": { "method": "client/registerCapability", "params": { "registrations": [{
        "id": "w", "method": "workspace/didChangeWatchedFiles",
        "registerOptions": { "watchers": [{ "globPattern": "**/*" }] } }] } } })
}

/// All changes that the server was told, as `name kind`.
fn told(bench: &Workbench) -> Vec<String> {
    let mut told = Vec::new();
    for message in bench.received("fake", "workspace/didChangeWatchedFiles") {
        for change in message["params"]["changes"].as_array().unwrap() {
            let name = change["uri"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            told.push(format!("{name} {}", change["type"]));
        }
    }
    told
}

/// The methods of the messages about documents and files that the server received, in order.
fn order(bench: &Workbench) -> Vec<String> {
    let messages = bench.transcript("fake").into_iter().filter_map(|line| line.get("in").cloned());
    let methods = messages.filter_map(|message| message["method"].as_str().map(str::to_owned));
    let matters = ["textDocument/didOpen", "textDocument/didClose", "workspace/didChangeWatchedFiles"];
    methods.filter(|method| matters.contains(&method.as_str())).collect()
}

#[tokio::test]
async fn changes_before_a_registration_are_sent_after_it() {
    let script = json!({
        "capabilities": { "textDocumentSync": 2, "hoverProvider": true, "documentSymbolProvider": true },
        "rules": [
            { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
            { "on": "textDocument/documentSymbol", "do": [watch_all(), { "reply": [] }] },
        ],
    });
    let bench = Workbench::new().file("a.fake", "one").server("fake", script).patient().open().await;
    bench.check("a.fake").await;
    bench.write("b.txt", "new");
    bench.check("a.fake").await;
    assert_eq!(told(&bench), [""; 0]);
    bench.orchestrator.document_symbols(&bench.path("a.fake"), &Workbench::call()).await.unwrap();
    bench.orchestrator.document_symbols(&bench.path("a.fake"), &Workbench::call()).await.unwrap();
    assert_eq!(told(&bench), ["b.txt 1"]);
}

#[tokio::test]
async fn new_folder_is_reported_with_its_files() {
    let script = json!({ "capabilities": { "textDocumentSync": 2, "hoverProvider": true }, "rules": [
        { "on": "initialized", "do": [watch_all()] },
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
    ]});
    let bench = Workbench::new().file("a.fake", "one").server("fake", script).patient().open().await;
    bench.check("a.fake").await;
    bench.write("lib/deep/b.txt", "new");
    bench.check("a.fake").await;
    assert_eq!(told(&bench), ["lib 1", "deep 1", "b.txt 1"]);
    std::fs::remove_dir_all(bench.root().join("lib")).unwrap();
    std::fs::write(bench.root().join("lib"), "").unwrap();
    bench.check("a.fake").await;
    assert_eq!(told(&bench)[3..], ["lib 2", "deep 3", "b.txt 3"], "the folder is a file now");
}

#[tokio::test]
async fn document_is_closed_before_its_deletion_is_reported_and_opened_after_its_return() {
    let script = json!({ "capabilities": { "textDocumentSync": 2, "hoverProvider": true }, "rules": [
        { "on": "initialized", "do": [watch_all()] },
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
    ]});
    let files = Workbench::new().file("a.fake", "one").file("b.fake", "two");
    let bench = files.server("fake", script).patient().open().await;
    bench.check("a.fake").await;
    bench.check("b.fake").await;
    let before = order(&bench).len();
    std::fs::remove_file(bench.root().join("b.fake")).unwrap();
    bench.check("a.fake").await;
    bench.write("b.fake", "three");
    bench.check("b.fake").await;
    assert_eq!(
        order(&bench)[before..],
        [
            "textDocument/didClose",
            "workspace/didChangeWatchedFiles",
            "workspace/didChangeWatchedFiles",
            "textDocument/didOpen"
        ]
    );
}

#[tokio::test]
async fn server_that_watches_nothing_builds_a_document_again_after_a_change_on_disk() {
    // Like clangd: a header that was missing stays missing until the document is built again.
    let script = json!({ "capabilities": { "textDocumentSync": 2, "hoverProvider": true, "referencesProvider": true },
        "rules": [
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri", "diagnostics": [] } }] },
    ]});
    let files = Workbench::new().file("a.fake", "bad");
    let bench = files.server_with("fake", script, |entry| entry.rebuilds = true).patient().open().await;
    assert_eq!(bench.check("a.fake").await.value.len(), 1);
    assert_eq!(bench.check("a.fake").await.value.len(), 1);
    assert_eq!(bench.received_count("fake", "textDocument/didChange"), 0);
    bench.write("b.fake", "new");
    assert_eq!(bench.check("a.fake").await.value.len(), 0);
    let changes = bench.received("fake", "textDocument/didChange");
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0]["params"]["forceRebuild"], true);
    assert_eq!(bench.check("a.fake").await.value.len(), 0);
    assert_eq!(bench.received_count("fake", "textDocument/didChange"), 1);
}

const START: Position = Position::new(0, 0);

/// Like clangd: it knows a change only from open documents, and indexes them before it publishes.
fn indexing_script() -> Value {
    let publish = json!([{ "publish": { "uri": "$uri" } }]);
    json!({
        "capabilities": {
            "textDocumentSync": { "openClose": true, "change": 1 }, "referencesProvider": true, "definitionProvider": true,
            "documentSymbolProvider": true,
        },
        "rules": [
            { "on": "textDocument/didOpen", "file": "a.fake", "do": publish },
            { "on": "textDocument/didOpen", "file": "b.fake", "do": publish },
            { "on": "textDocument/didChange", "do": publish },
            { "on": "textDocument/documentSymbol", "do": [{ "reply": [] }] },
            { "on": "textDocument/references", "do": [{ "reply": [] }] },
            { "on": "textDocument/definition", "do": [{ "reply": [] }] },
        ],
    })
}

#[tokio::test]
async fn references_wait_until_a_changed_file_is_indexed() {
    let files = Workbench::new().file("a.fake", "one");
    let rebuilds = |entry: &mut tenon_servers::registry::ServerEntry| {
        entry.rebuilds = true;
        entry.projects = Some(tenon_servers::project_files::ProjectKind::CompileCommands);
    };
    let bench = files.server_with("fake", indexing_script(), rebuilds).patient().open().await;
    bench.check("a.fake").await;
    let references = async |call: &CallContext| {
        let answer = bench.orchestrator.references(&bench.path("a.fake"), START, true, call).await.unwrap();
        answer.gaps.into_iter().map(|gap| gap.why).collect::<Vec<_>>()
    };
    assert_eq!(references(&Workbench::call()).await, []);
    bench.write("b.fake", "new");
    assert_eq!(references(&Workbench::call()).await, []);
    // The server never publishes for this one.
    bench.write("silent.fake", "new");
    let shortly = CallContext::within(Duration::from_millis(200));
    assert_eq!(references(&shortly).await, [GapReason::Pending]);
}

#[tokio::test]
async fn definition_builds_the_document_again_after_a_change_on_disk() {
    let files = Workbench::new().file("a.fake", "one");
    let bench =
        files.server_with("fake", indexing_script(), |entry| entry.rebuilds = true).patient().open().await;
    bench.check("a.fake").await;
    bench.write("b.fake", "new");
    for _ in 0..2 {
        bench.orchestrator.definition(&bench.path("a.fake"), START, &Workbench::call()).await.unwrap();
    }
    let changes = bench.received("fake", "textDocument/didChange");
    assert_eq!(changes.len(), 1, "once for one change");
    assert_eq!(changes[0]["params"]["forceRebuild"], true);
}

#[tokio::test]
async fn deleted_file_is_emptied_before_it_is_closed() {
    let files = Workbench::new().file("a.fake", "one").file("b.fake", "two");
    let bench =
        files.server_with("fake", indexing_script(), |entry| entry.rebuilds = true).patient().open().await;
    bench.check("a.fake").await;
    bench.check("b.fake").await;
    std::fs::remove_file(bench.root().join("b.fake")).unwrap();
    bench.check("a.fake").await;
    let changes = bench.received("fake", "textDocument/didChange");
    let of_b =
        changes.iter().find(|one| one["params"]["textDocument"]["uri"].as_str().unwrap().ends_with("b.fake"));
    assert_eq!(of_b.unwrap()["params"]["contentChanges"][0]["text"], "");
    assert_eq!(bench.received_count("fake", "textDocument/didClose"), 1);
}

#[tokio::test]
async fn server_is_restarted_after_more_changes_than_are_opened() {
    let files = Workbench::new().file("a.fake", "one");
    let bench =
        files.server_with("fake", indexing_script(), |entry| entry.rebuilds = true).patient().open().await;
    bench.check("a.fake").await;
    let pids = || {
        let status = bench.orchestrator.status().into_iter();
        status.filter_map(|server| server.pid).collect::<Vec<_>>()
    };
    let before = pids();
    for number in 0..30 {
        bench.write(&format!("many/n{number}.fake"), "new");
    }
    bench.check("a.fake").await;
    assert_ne!(pids(), before);
}

#[tokio::test]
async fn server_is_replaced_with_the_root() {
    let script = json!({ "capabilities": { "textDocumentSync": 2, "hoverProvider": true }, "rules": [
        { "on": "initialized", "do": [watch_all()] },
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] },
    ]});
    let bench = Workbench::new().file("a.fake", "bad").server("fake", script).patient().open().await;
    let pids = || {
        let status = bench.orchestrator.status().into_iter();
        status.filter_map(|server| server.pid).collect::<Vec<_>>()
    };
    assert_eq!(bench.check("a.fake").await.value.len(), 1);
    let (root, old) = (bench.root(), pids());
    for round in 0..4 {
        if round % 2 == 0 {
            std::fs::remove_dir_all(&root).unwrap();
            assert!(bench.orchestrator.gate().admit_workspace().is_err());
        } else {
            let aside = root.with_extension(format!("old{round}"));
            std::fs::rename(&root, &aside).unwrap();
            std::fs::remove_dir_all(aside).unwrap();
        }
        let epoch = bench.orchestrator.epochs().get(Epoch::Text);
        bench.write("a.fake", "bad bad");
        bench.write("b.fake", "bad");
        assert_eq!(bench.check("a.fake").await.value.len(), 2);
        assert_eq!(bench.check("b.fake").await.value.len(), 1);
        assert!(bench.orchestrator.epochs().get(Epoch::Text) > epoch);
        assert_ne!(pids(), old, "{round}");
        // The new folder is watched.
        bench.write("b.fake", "good");
        assert_eq!(bench.check("b.fake").await.value.len(), 0);
    }
}
