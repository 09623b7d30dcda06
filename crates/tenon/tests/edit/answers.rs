//! What a change is answered with, over scripted language servers.

use serde_json::{Value, json};
use tenon_testkit::client::ToolResult;

use crate::stage::{Stage, begin, block, edit, finish, text, write};

fn lint(on: &str) -> Value {
    json!({ "on": on, "do": [{ "publish": { "uri": "$uri" } }] })
}

fn elsewhere(file: &str, messages: &[&str]) -> Value {
    let list: Vec<Value> =
        messages.iter().map(|message| json!({ "line": 1, "message": message, "code": 7 })).collect();
    json!({ "publish": { "uri": file, "version": "none", "diagnostics": list } })
}

fn pending(result: &ToolResult) -> (&Value, &Value) {
    (&result.structured["complete"], &result.structured["pending"])
}

#[test]
fn an_edit_is_answered_with_what_it_broke_here_and_elsewhere() {
    let stage = Stage::new("//- a.fake\nalpha\n//- b.fake\nbeta\n//- c.fake\ngamma\n").server(
        "fake",
        json!([
            lint("textDocument/didOpen"),
            { "on": "textDocument/didChange", "text": "first", "do": [{ "publish": { "uri": "$uri" } }] },
            { "on": "textDocument/didChange", "text": "bad", "do": [
                { "publish": { "uri": "$uri" } },
                elsewhere("c.fake", &["argument <missing>\nin call"]), elsewhere("b.fake", &["no & such \"name\""]),
            ]},
            { "on": "textDocument/didChange", "text": "good", "do": [
                { "publish": { "uri": "$uri" } }, elsewhere("c.fake", &[]), elsewhere("b.fake", &[]),
            ]},
        ]),
    );
    let mut client = stage.client();
    let opened = edit(&mut client, "a.fake", "alpha", "first");
    assert_eq!((block(&opened), pending(&opened)), ("", (&json!(true), &json!([]))));
    let broken = edit(&mut client, "a.fake", "first", "this is bad");
    insta::assert_snapshot!(block(&broken), @r#"
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
    let mended = edit(&mut client, "a.fake", "this is bad", "good");
    assert_eq!((block(&mended), pending(&mended)), ("", (&json!(true), &json!([]))));
}

#[test]
fn a_written_file_shows_other_files_in_order_and_within_the_limits() {
    let messages = |count: usize| (0..count).map(|n| format!("message {n:02}")).collect::<Vec<_>>();
    let others = ["z", "g", "f", "e", "d", "c", "b"].map(|name| {
        let messages = messages(if name == "c" { 25 } else { 6 });
        elsewhere(&format!("{name}.fake"), &messages.iter().map(String::as_str).collect::<Vec<_>>())
    });
    let mut actions = vec![json!({ "publish": { "uri": "$uri" } })];
    actions.extend(others);
    let mut tree = String::new();
    for name in ["b", "c", "d", "e", "f", "g", "z"] {
        tree.push_str(&format!("//- {name}.fake\n{name}\n"));
    }
    let stage = Stage::new(&tree)
        .server("fake", json!([{ "on": "textDocument/didOpen", "file": "new.fake", "do": actions }]));
    let result = write(&mut stage.client(), "new.fake", &"bad\n".repeat(21), None);
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
    assert!(block(&result).contains("... and 5 more\n</diagnostics>\n<diagnostics file=\"d.fake\">"));
}

#[test]
fn without_language_servers_a_change_is_just_made() {
    let off = Stage::new("//- a.fake\none\n");
    let missing = Stage::new("//- a.fake\none\n")
        .entry("fake", json!({ "command": "/nowhere/at/all", "extensions": [".fake"] }));
    for stage in [off, missing] {
        let result = edit(&mut stage.client(), "a.fake", "one", "bad");
        assert_eq!((block(&result), pending(&result)), ("", (&json!(true), &json!([]))));
        assert_eq!(stage.bytes("a.fake"), b"bad\n");
    }
}

#[test]
fn a_server_that_crashes_leaves_no_trace_but_that_the_answer_is_not_complete() {
    let stage = Stage::new("//- a.fake\none\n").server(
        "fake",
        json!([{ "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }, "die"] }]),
    );
    let mut client = stage.client();
    for (old, new) in [("one", "bad"), ("bad", "worse bad")] {
        let result = edit(&mut client, "a.fake", old, new);
        assert_eq!((block(&result), pending(&result)), ("", (&json!(false), &json!([]))), "{new}");
    }
    assert_eq!(stage.bytes("a.fake"), b"worse bad\n");
}

#[test]
fn a_server_that_is_not_done_in_time_is_named() {
    let stage = Stage::new("//- a.fake\none\n").server(
        "slow",
        json!([{ "on": "textDocument/didOpen", "do": [
            { "publish": { "uri": "$uri" } }, { "progress": { "token": "t", "kind": "begin" } },
        ]}]),
    );
    let result = edit(&mut stage.client(), "a.fake", "one", "fine");
    assert_eq!(block(&result), "(diagnostics pending: slow)");
    assert_eq!(pending(&result), (&json!(false), &json!(["slow"])));
}

/// A server that takes its time, and complains about each `bad`.
fn unhurried() -> Value {
    let slowly = json!([{ "wait_ms": 60 }, { "publish": { "uri": "$uri" } }]);
    json!([{ "on": "textDocument/didOpen", "do": slowly }, { "on": "textDocument/didChange", "do": slowly }])
}

/// The columns of what is wrong in the touched file.
fn columns(result: &ToolResult) -> Vec<u64> {
    let files = result.structured["in_this_file"].as_array().unwrap().iter();
    files
        .flat_map(|file| file["diagnostics"].as_array().unwrap())
        .map(|one| one["character"].as_u64().unwrap())
        .collect()
}

#[test]
fn ten_edits_in_a_second_are_each_answered_for_their_own_text_or_not_at_all() {
    let stage = Stage::new("//- a.fake\nfirst\n").server("fake", unhurried());
    let mut clients: Vec<_> = (0..10).map(|_| stage.bridged()).collect();
    let first = edit(&mut clients[0], "a.fake", "first", "bad");
    assert_eq!(columns(&first), [1]);
    // Ten agents, each of which adds something to the line that all of them see.
    let asked: Vec<u64> = clients
        .iter_mut()
        .enumerate()
        .map(|(n, client)| begin(client, "a.fake", "\n", &format!(" {n}bad\n")))
        .collect();
    let answers: Vec<ToolResult> =
        clients.iter_mut().zip(asked).map(|(client, id)| finish(client, id)).collect();
    let text = stage.sandbox.tree().read("a.fake");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words.len(), 11, "{text}");
    let mut overtaken = 0;
    for (n, answer) in answers.iter().enumerate() {
        let rank = words.iter().position(|word| *word == format!("{n}bad")).unwrap();
        let (found, complete) = (columns(answer), answer.structured["complete"] == true);
        let is_last = rank == 10;
        assert!(found.len() == rank + 1 || (found.is_empty() && !complete), "{rank}: {answer:?}");
        assert!(complete || !is_last, "{answer:?}");
        overtaken += usize::from(!complete);
    }
    assert!(overtaken > 0, "nobody waits for a text that is gone");
}

#[test]
fn two_sessions_with_two_files_get_their_own_answers() {
    let stage = Stage::new("//- a.fake\nalpha\n//- b.fake\nbeta\n").server("fake", unhurried());
    let (mut one, mut two) = (stage.bridged(), stage.bridged());
    let a = begin(&mut one, "a.fake", "alpha", "a bad");
    let b = begin(&mut two, "b.fake", "beta", "beta is bad");
    for (result, file, column) in [(finish(&mut one, a), "a.fake", 3), (finish(&mut two, b), "b.fake", 9)] {
        assert_eq!(result.structured["file"], file, "{result:?}");
        assert_eq!(result.structured["in_this_file"][0]["file"], file, "{result:?}");
        assert_eq!(columns(&result), [column]);
    }
}
