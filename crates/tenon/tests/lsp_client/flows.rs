//! The contract's four flows end to end: agent, client, service, orchestrator, language server, and back.

use serde_json::{Value, json};
use tenon_fake_lsp::scripts::linter;

use crate::agent::{Agent, Lsp, nowhere};

fn on() -> Lsp {
    Lsp::On(json!({}))
}

#[tokio::test]
async fn edit_returns_diagnostics() {
    let agent = Agent::new("//- src/a.fake\ngood\n").server("fake", linter()).start(on()).await;
    insta::assert_snapshot!(agent.edit("src/a.fake", "good", "bad & bad").await, @r#"
    Edited src/a.fake.

    LSP errors detected in this file, please fix:
    <diagnostics file="src/a.fake">
    ERROR [1:1] this is bad
    ERROR [1:7] this is bad
    </diagnostics>
    "#);
    assert_eq!(agent.edit("src/a.fake", "bad & bad", "good again").await, "Edited src/a.fake.");
    agent.client.shutdown().await;
    agent.sandbox.assert_no_processes();
}

#[tokio::test]
async fn diagnostics_of_two_servers_are_merged() {
    let other = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [{ "on": "textDocument/didOpen", "do": [
        { "publish": { "uri": "$uri", "diagnostics": [
            { "line": 1, "message": "not\nso <good>", "code": 7 },
            { "line": 0, "message": "only a warning", "severity": 2 },
        ]}},
    ]}]});
    let agent = Agent::new("//- a.fake\ngood\nline\n")
        .server("fake", linter())
        .server("other", other)
        .start(on())
        .await;
    insta::assert_snapshot!(agent.edit("a.fake", "good", "bad").await, @r#"
    Edited a.fake.

    LSP errors detected in this file, please fix:
    <diagnostics file="a.fake">
    ERROR [1:1] this is bad
    ERROR [2:1] not so &lt;good&gt; (7)
    </diagnostics>
    "#);
}

/// Publishes errors in many files whenever one is written.
fn breaks_others() -> Value {
    let errors = |count: u32, severity: u32| -> Vec<Value> {
        let line = |line| json!({ "line": line, "message": format!("wrong {line}"), "severity": severity });
        (0..count).map(line).collect()
    };
    let mut publishes = vec![json!({ "publish": { "uri": "$uri", "diagnostics": errors(22, 1) } })];
    // In reverse order, so that the client must sort.
    for (file, count, severity) in [
        ("h.fake", 1, 1),
        ("g.fake", 1, 1),
        ("f.fake", 3, 1),
        ("e.fake", 4, 1),
        ("d.fake", 5, 1),
        ("c.fake", 6, 2),
        ("b.fake", 25, 1),
    ] {
        publishes.push(
            json!({ "publish": { "uri": file, "version": "none", "diagnostics": errors(count, severity) } }),
        );
    }
    json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "textDocument/didOpen", "file": "m.fake", "do": publishes },
        { "on": "textDocument/didChange", "file": "m.fake", "do": publishes },
    ]})
}

#[tokio::test]
async fn write_returns_other_files_sorted_and_limited() {
    let files: String =
        ["b", "c", "d", "e", "f", "g", "h", "m"].map(|name| format!("//- {name}.fake\nx\n")).concat();
    let agent = Agent::new(&files).server("fake", breaks_others()).start(on()).await;
    let text = agent.write("m.fake", "new\n").await;
    assert!(text.starts_with("Wrote m.fake.\n\nLSP errors detected in this file, please fix:\n"), "{text}");
    let shown: Vec<&str> = text.lines().filter(|line| !line.starts_with("ERROR ")).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    Wrote m.fake.

    LSP errors detected in this file, please fix:
    <diagnostics file="m.fake">
    ... and 2 more
    </diagnostics>
    LSP errors detected in other files:
    <diagnostics file="b.fake">
    ... and 5 more
    </diagnostics>
    <diagnostics file="d.fake">
    </diagnostics>
    <diagnostics file="e.fake">
    </diagnostics>
    <diagnostics file="f.fake">
    ... and 2 more
    </diagnostics>
    "#);
    assert_eq!(text.lines().filter(|line| line.starts_with("ERROR ")).count(), 50);
    // Each check advances the service's epoch.
    let before = agent.client.get_diagnostic_epoch().await;
    agent.write("m.fake", "newer\n").await;
    assert!(agent.client.get_diagnostic_epoch().await > before);
    assert_eq!(
        agent.client.get_all_diagnostics().await.keys().map(String::as_str).collect::<Vec<_>>(),
        ["b.fake", "d.fake", "e.fake", "f.fake", "g.fake", "h.fake", "m.fake"]
    );
}

#[tokio::test]
async fn edit_without_language_servers_succeeds() {
    let agent = Agent::new("//- a.fake\ngood\n").server("fake", linter()).start(Lsp::Off).await;
    assert_eq!(agent.edit("a.fake", "good", "bad").await, "Edited a.fake.");
    assert_eq!(agent.write("a.fake", "bad bad").await, "Wrote a.fake.");
    assert_eq!(agent.file("a.fake"), "bad bad");
    assert_eq!(agent.client.get_unavailable_reason().unwrap(), "language servers are disabled");
    agent.sandbox.assert_no_processes();
}

#[tokio::test]
async fn edit_without_the_service_succeeds() {
    let agent = Agent::new("//- a.fake\ngood\n").server("fake", linter());
    let missing = agent.sandbox.command(nowhere());
    let agent = agent.start_with(missing, on()).await;
    assert_eq!(agent.edit("a.fake", "good", "bad").await, "Edited a.fake.");
    assert_eq!(agent.write("a.fake", "bad bad").await, "Wrote a.fake.");
    assert_eq!(agent.file("a.fake"), "bad bad");
    assert!(agent.client.get_unavailable_reason().unwrap().contains("cannot start the service"));
}

#[tokio::test]
async fn invalid_configuration_is_the_unavailable_reason_and_edits_succeed() {
    let agent = Agent::new("//- a.fake\ngood\n").start(Lsp::On(json!({ "navigationTools": 1 }))).await;
    assert_eq!(agent.edit("a.fake", "good", "bad").await, "Edited a.fake.");
    let reason = agent.client.get_unavailable_reason().unwrap();
    assert!(reason.contains("config.navigationTools"), "{reason}");
}

#[tokio::test]
async fn crashed_server_affects_only_its_own_diagnostics() {
    let crashing = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "textDocument/didOpen", "do": [{ "exit": 3 }] },
    ]});
    let agent = Agent::new("//- a.fake\ngood\n").server("crashing", crashing.clone()).start(on()).await;
    assert_eq!(agent.edit("a.fake", "good", "bad").await, "Edited a.fake.");
    assert_eq!(agent.edit("a.fake", "bad", "bad again").await, "Edited a.fake.");
    assert_eq!(agent.states().await, [("crashing".to_owned(), "broken".to_owned())]);
    assert!(agent.client.is_alive(), "the service exited");

    let agent = Agent::new("//- a.fake\ngood\n")
        .server("crashing", crashing)
        .server("fake", linter())
        .start(on())
        .await;
    for (old, new) in [("good", "bad"), ("bad", "still bad")] {
        let text = agent.edit("a.fake", old, new).await;
        assert!(text.contains("this is bad"), "{text}");
    }
    let states =
        [("crashing", "broken"), ("fake", "active")].map(|(id, state)| (id.to_owned(), state.to_owned()));
    assert_eq!(agent.states().await, states);
}
