//! The diagnostics that an edit returns, with scripted language servers.

use serde_json::{Value, json};
use tenon_testkit::mcp_client::ToolResult;

use crate::workspace::{Workspace, diagnostics_text, edit, finish_edit, start_edit, text, write};

fn lint(on: &str) -> Value {
    json!({ "on": on, "do": [{ "publish": { "uri": "$uri" } }] })
}

fn publish_for(file: &str, messages: &[&str]) -> Value {
    let list: Vec<Value> =
        messages.iter().map(|message| json!({ "line": 1, "message": message, "code": 7 })).collect();
    json!({ "publish": { "uri": file, "version": "none", "diagnostics": list } })
}

fn pending(result: &ToolResult) -> (&Value, &Value) {
    (&result.structured["complete"], &result.structured["pending"])
}

#[test]
fn edit_returns_diagnostics_of_the_file_and_of_others() {
    let workspace = Workspace::new("//- a.fake\nalpha\n//- b.fake\nbeta\n//- c.fake\ngamma\n").server(
        "fake",
        json!([
            lint("textDocument/didOpen"),
            { "on": "textDocument/didChange", "text": "first", "do": [{ "publish": { "uri": "$uri" } }] },
            { "on": "textDocument/didChange", "text": "bad", "do": [
                { "publish": { "uri": "$uri" } },
                publish_for("c.fake", &["argument <missing>\nin call"]), publish_for("b.fake", &["no & such \"name\""]),
            ]},
            { "on": "textDocument/didChange", "text": "good", "do": [
                { "publish": { "uri": "$uri" } }, publish_for("c.fake", &[]), publish_for("b.fake", &[]),
            ]},
        ]),
    );
    let mut client = workspace.client();
    let opened = edit(&mut client, "a.fake", "alpha", "first");
    assert_eq!((diagnostics_text(&opened), pending(&opened)), ("", (&json!(true), &json!([]))));
    let broken = edit(&mut client, "a.fake", "first", "this is bad");
    insta::assert_snapshot!(diagnostics_text(&broken), @r#"
    LSP errors detected in this file, please fix:
    <diagnostics file="a.fake">
    ERROR [1:9] this is bad
    </diagnostics>
    LSP errors detected in other files:
    <diagnostics file="b.fake">
    ERROR [2:1] no &amp; such "name" (7)
    </diagnostics>
    <diagnostics file="c.fake">
    ERROR [2:1] argument &lt;missing&gt; in call (7)
    </diagnostics>
    "#);
    assert!(text(&broken).starts_with("Changed `a.fake`, line 1. SHA-256 "), "{}", text(&broken));
    assert_eq!(pending(&broken), (&json!(true), &json!([])));
    let here = &broken.structured["in_this_file"][0];
    assert_eq!((&here["file"], &here["diagnostics"][0]["character"]), (&json!("a.fake"), &json!(9)));
    let others = broken.structured["in_other_files"].as_array().unwrap();
    assert_eq!(others[1]["diagnostics"][0]["message"], "argument <missing>\nin call");
    let fixed = edit(&mut client, "a.fake", "this is bad", "good");
    assert_eq!((diagnostics_text(&fixed), pending(&fixed)), ("", (&json!(true), &json!([]))));
}

#[test]
fn other_files_are_sorted_and_limited() {
    let messages = |count: usize| (0..count).map(|n| format!("message {n:02}")).collect::<Vec<_>>();
    let others = ["z", "g", "f", "e", "d", "c", "b"].map(|name| {
        let messages = messages(if name == "c" { 25 } else { 6 });
        publish_for(&format!("{name}.fake"), &messages.iter().map(String::as_str).collect::<Vec<_>>())
    });
    let mut actions = vec![json!({ "publish": { "uri": "$uri" } })];
    actions.extend(others);
    let mut tree = String::new();
    for name in ["b", "c", "d", "e", "f", "g", "z"] {
        tree.push_str(&format!("//- {name}.fake\n{name}\n"));
    }
    let workspace = Workspace::new(&tree)
        .server("fake", json!([{ "on": "textDocument/didOpen", "file": "new.fake", "do": actions }]));
    let result = write(&mut workspace.client(), "new.fake", &"bad\n".repeat(21), None);
    let shown: Vec<(String, usize, u64)> = ["in_this_file", "in_other_files"]
        .iter()
        .flat_map(|key| result.structured[*key].as_array().unwrap())
        .map(|file| {
            let diagnostics = file["diagnostics"].as_array().unwrap().len();
            (file["file"].as_str().unwrap().to_owned(), diagnostics, file["more"].as_u64().unwrap())
        })
        .collect();
    let expected = [("new.fake", 20, 1), ("b.fake", 6, 0), ("c.fake", 20, 5), ("d.fake", 4, 2)];
    assert_eq!(shown, expected.map(|(file, shown, more)| (file.to_owned(), shown, more)));
    assert!(
        diagnostics_text(&result).contains("... and 5 more\n</diagnostics>\n<diagnostics file=\"d.fake\">")
    );
}

#[test]
fn edit_without_language_servers_is_complete_and_without_diagnostics() {
    let off = Workspace::new("//- a.fake\none\n");
    let missing = Workspace::new("//- a.fake\none\n")
        .entry("fake", json!({ "command": "/nowhere/at/all", "extensions": [".fake"] }));
    for workspace in [off, missing] {
        let result = edit(&mut workspace.client(), "a.fake", "one", "bad");
        assert_eq!((diagnostics_text(&result), pending(&result)), ("", (&json!(true), &json!([]))));
        assert_eq!(workspace.bytes("a.fake"), b"bad\n");
    }
}

#[test]
fn crashed_server_makes_the_result_incomplete() {
    let workspace = Workspace::new("//- a.fake\none\n").server(
        "fake",
        json!([{ "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }, "die"] }]),
    );
    let mut client = workspace.client();
    for (old, new) in [("one", "bad"), ("bad", "worse bad")] {
        let result = edit(&mut client, "a.fake", old, new);
        assert_eq!((diagnostics_text(&result), pending(&result)), ("", (&json!(false), &json!([]))), "{new}");
    }
    assert_eq!(workspace.bytes("a.fake"), b"worse bad\n");
}

#[test]
fn server_that_exceeds_the_time_limit_is_pending() {
    let workspace = Workspace::new("//- a.fake\none\n").server(
        "slow",
        json!([{ "on": "textDocument/didOpen", "do": [
            { "publish": { "uri": "$uri" } }, { "progress": { "token": "t", "kind": "begin" } },
        ]}]),
    );
    let result = edit(&mut workspace.client(), "a.fake", "one", "fine");
    assert_eq!(diagnostics_text(&result), "(diagnostics pending: slow)");
    assert_eq!(pending(&result), (&json!(false), &json!(["slow"])));
}

/// A server that waits before it publishes a diagnostic for each `bad`.
fn slow_linter() -> Value {
    let actions = json!([{ "wait_ms": 60 }, { "publish": { "uri": "$uri" } }]);
    json!([{ "on": "textDocument/didOpen", "do": actions }, { "on": "textDocument/didChange", "do": actions }])
}

/// The columns of the diagnostics in the edited file.
fn columns(result: &ToolResult) -> Vec<u64> {
    let files = result.structured["in_this_file"].as_array().unwrap().iter();
    files
        .flat_map(|file| file["diagnostics"].as_array().unwrap())
        .map(|one| one["character"].as_u64().unwrap())
        .collect()
}

#[test]
fn concurrent_edits_get_diagnostics_of_their_own_text_or_none() {
    let workspace = Workspace::new("//- a.fake\nfirst\n").server("fake", slow_linter());
    let mut clients: Vec<_> = (0..10).map(|_| workspace.daemon_client()).collect();
    let first = edit(&mut clients[0], "a.fake", "first", "bad");
    assert_eq!(columns(&first), [1]);
    // Ten clients, each of which appends a word to the same line.
    let requests: Vec<u64> = clients
        .iter_mut()
        .enumerate()
        .map(|(n, client)| start_edit(client, "a.fake", "\n", &format!(" {n}bad\n")))
        .collect();
    let answers: Vec<ToolResult> =
        clients.iter_mut().zip(requests).map(|(client, id)| finish_edit(client, id)).collect();
    let text = workspace.sandbox.tree().read("a.fake");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words.len(), 11, "{text}");
    let mut superseded = 0;
    for (n, answer) in answers.iter().enumerate() {
        let rank = words.iter().position(|word| *word == format!("{n}bad")).unwrap();
        let (found, complete) = (columns(answer), answer.structured["complete"] == true);
        let is_last = rank == 10;
        assert!(found.len() == rank + 1 || (found.is_empty() && !complete), "{rank}: {answer:?}");
        assert!(complete || !is_last, "{answer:?}");
        superseded += usize::from(!complete);
    }
    assert!(superseded > 0, "an edit waited for diagnostics of a superseded text");
}

#[test]
fn concurrent_sessions_get_diagnostics_of_their_own_file() {
    let workspace = Workspace::new("//- a.fake\nalpha\n//- b.fake\nbeta\n").server("fake", slow_linter());
    let (mut one, mut two) = (workspace.daemon_client(), workspace.daemon_client());
    let a = start_edit(&mut one, "a.fake", "alpha", "a bad");
    let b = start_edit(&mut two, "b.fake", "beta", "beta is bad");
    for (result, file, column) in
        [(finish_edit(&mut one, a), "a.fake", 3), (finish_edit(&mut two, b), "b.fake", 9)]
    {
        assert_eq!(result.structured["file"], file, "{result:?}");
        assert_eq!(result.structured["in_this_file"][0]["file"], file, "{result:?}");
        assert_eq!(columns(&result), [column]);
    }
}
