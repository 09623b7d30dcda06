//! The diagnostics that an edit returns, with scripted language servers.

use serde_json::{Value, json};
use tenon_testkit::mcp_client::ToolResult;

use crate::workspace::{Workspace, delta, edit, finish_edit, new_places, start_edit, text};

fn pending(result: &ToolResult) -> (&Value, &Value) {
    (&result.structured["complete"], &result.structured["pending"])
}

/// A server that publishes a diagnostic for each `bad`.
fn linter() -> Value {
    let actions = json!([{ "publish": { "uri": "$uri" } }]);
    json!([{ "on": "textDocument/didOpen", "do": actions }, { "on": "textDocument/didChange", "do": actions }])
}

#[test]
fn edit_returns_the_difference_that_it_makes() {
    let tree = "//- a.fake\nold bad\nalpha\n//- b.fake\nbad\n";
    let workspace = Workspace::new(tree).server("fake", linter());
    let mut client = workspace.client();
    let broken = edit(&mut client, "a.fake", "alpha", "this is bad\nalpha");
    insta::assert_snapshot!(text(&broken), @"
    edited a.fake:2-3
    1 new, 0 gone, 1 unchanged
    NEW error a.fake:2:9: this is bad
    ");
    assert_eq!(pending(&broken), (&json!(true), &json!([])));
    let expected = json!([{ "file": "a.fake", "line": 2, "character": 9, "severity": "error", "message": "this is bad", "source": "fake" }]);
    assert_eq!(broken.structured["new"], expected);
    let counts = |result: &ToolResult| {
        ["new_count", "gone_count", "unchanged_count"].map(|key| result.structured[key].as_u64().unwrap())
    };
    assert_eq!(counts(&broken), [1, 0, 1]);
    let fixed = edit(&mut client, "a.fake", "old bad\nthis is bad", "good");
    assert_eq!(text(&fixed), "edited a.fake:1\n0 new, 2 gone, 0 unchanged");
    assert_eq!((counts(&fixed), &fixed.structured["gone"][1]["line"]), ([0, 2, 0], &json!(2)));
}

#[test]
fn new_diagnostics_are_listed_up_to_the_size_limit() {
    // The check of 20,000 diagnostics may take seconds.
    let workspace = Workspace::new("//- a.fake\nalpha\n").server("fake", linter()).with_real_servers();
    let mut client = workspace.client();
    let many = edit(&mut client, "a.fake", "alpha", &"bad\n".repeat(500));
    let text = delta(&many).lines().skip(2).collect::<Vec<_>>();
    assert_eq!((new_places(&many).len(), text[1]), (500, "NEW 498 more like this in a.fake:3-500"));
    let more = edit(&mut client, "a.fake", "bad\n\n", &"bad\n".repeat(20_000));
    let listed = new_places(&more).len();
    assert_eq!(more.structured["new_count"], 19_999);
    assert!((1000..19_999).contains(&listed), "{listed}");
    assert!(delta(&more).ends_with(&format!("\nand {} more new", 19_999 - listed)));
}

#[test]
fn edit_without_language_servers_is_not_called_clean() {
    let off = Workspace::new("//- a.fake\none\n");
    let missing = Workspace::new("//- a.fake\none\n")
        .entry("fake", json!({ "command": "/nowhere/at/all", "extensions": [".fake"] }));
    let expected = [
        "not checked: no language server for a.fake",
        "not checked: no language server is available for a.fake",
    ];
    for (workspace, expected) in [off, missing].iter().zip(expected) {
        let result = edit(&mut workspace.client(), "a.fake", "one", "bad");
        assert_eq!((delta(&result), pending(&result)), (expected, (&json!(false), &json!([]))));
        assert_eq!(result.structured["new_count"], Value::Null);
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
        assert_eq!(
            (delta(&result), pending(&result)),
            ("not checked by: fake", (&json!(false), &json!([]))),
            "{new}"
        );
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
    assert_eq!(delta(&result), "pending: slow");
    assert_eq!(pending(&result), (&json!(false), &json!(["slow"])));
}

/// A server that waits before it publishes a diagnostic for each `bad`.
fn slow_linter() -> Value {
    let actions = json!([{ "wait_ms": 60 }, { "publish": { "uri": "$uri" } }]);
    json!([{ "on": "textDocument/didOpen", "do": actions }, { "on": "textDocument/didChange", "do": actions }])
}

#[test]
fn concurrent_edits_report_each_error_once() {
    let workspace = Workspace::new("//- a.fake\nfirst\n").server("fake", slow_linter());
    let mut clients: Vec<_> = (0..10).map(|_| workspace.daemon_client()).collect();
    let first = edit(&mut clients[0], "a.fake", "first", "bad");
    assert_eq!(new_places(&first), ["a.fake:1:1"]);
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
    // Each word is reported once: by its own edit, or by the next one that was not superseded.
    let (mut reported, mut superseded) = (Vec::new(), 0);
    for (n, answer) in answers.iter().enumerate() {
        let rank = words.iter().position(|word| *word == format!("{n}bad")).unwrap();
        let complete = answer.structured["complete"] == true;
        assert!(complete || rank < 10, "{answer:?}");
        assert!(complete || new_places(answer).is_empty(), "{answer:?}");
        reported.extend(new_places(answer));
        superseded += usize::from(!complete);
    }
    let column = |rank: usize| words[..rank].iter().map(|word| word.len() + 1).sum::<usize>() + 2;
    let mut expected: Vec<String> = (1..=10).map(|rank| format!("a.fake:1:{}", column(rank))).collect();
    expected.sort();
    reported.sort();
    assert_eq!(reported, expected, "{answers:?}");
    assert!(superseded > 0, "an edit waited for diagnostics of a superseded text");
}

#[test]
fn concurrent_sessions_report_their_own_file() {
    let workspace = Workspace::new("//- a.fake\nalpha\n//- b.fake\nbeta\n").server("fake", slow_linter());
    let (mut one, mut two) = (workspace.daemon_client(), workspace.daemon_client());
    let a = start_edit(&mut one, "a.fake", "alpha", "a bad");
    let b = start_edit(&mut two, "b.fake", "beta", "beta is bad");
    for (result, file, column) in
        [(finish_edit(&mut one, a), "a.fake", 3), (finish_edit(&mut two, b), "b.fake", 9)]
    {
        assert_eq!(result.structured["file"], file, "{result:?}");
        assert_eq!(new_places(&result), [format!("{file}:1:{column}")]);
    }
}
