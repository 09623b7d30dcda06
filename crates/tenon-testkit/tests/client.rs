//! The client against servers small enough to see through: shell scripts that answer by heart.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use serde_json::json;
use tenon_testkit::{Client, Revision};

/// A server that answers each line it reads with the next of `answers`.
fn server(answers: &[&str]) -> Command {
    let mut script = String::new();
    for answer in answers {
        script.push_str(&format!("read -r line; printf '%s\\n' '{answer}';"));
    }
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{script} cat >/dev/null")]);
    command
}

fn client(answers: &[&str]) -> Client {
    Client::over_pipes(&mut server(answers), Revision::Sessions)
}

const ECHO_TOOL: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"},
    "outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}]}}"#;

#[test]
fn requests_are_answered_and_the_server_ends_well() {
    let mut client = client(&[r#"{"jsonrpc":"2.0","id":1,"result":{"ok":true}}"#]);
    assert_eq!(client.request("ping", json!({})), Ok(json!({ "ok": true })));
    assert!(client.close().unwrap().success());
}

#[test]
fn errors_are_told_apart_from_results() {
    let mut client =
        client(&[r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":{"a":1}}}"#]);
    let error = client.request("x", json!({})).unwrap_err();
    assert_eq!((error.code, error.message.as_str(), error.data), (-32601, "no", json!({ "a": 1 })));
}

#[test]
fn a_message_that_nobody_took_fails_the_test() {
    let answers = "{\"jsonrpc\":\"2.0\",\"method\":\"stray\"}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
    let mut client = client(&[answers]);
    assert_eq!(client.request("ping", json!({})), Ok(json!({})));
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(client))).unwrap_err();
    assert!(dropped.downcast_ref::<String>().unwrap().contains("stray"));
}

#[test]
fn notifications_wait_until_they_are_taken() {
    let answers = "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"a\":1}}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
    let mut client = client(&[answers]);
    client.request("ping", json!({})).unwrap();
    assert_eq!(client.notification("n"), json!({ "a": 1 }));
}

#[test]
fn tool_results_are_held_to_their_schema() {
    let list = ECHO_TOOL.replace('\n', "");
    let call = |content: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":2,"result":{{"content":[],"structuredContent":{content},"isError":false}}}}"#
        )
    };
    let mut good = client(&[&list, &call(r#"{"n":1}"#)]);
    assert_eq!(good.call_tool("echo", json!({})).unwrap().structured, json!({ "n": 1 }));

    let mut bad = client(&[&list, &call(r#"{"n":"one"}"#)]);
    let broken = catch_unwind(AssertUnwindSafe(|| bad.call_tool("echo", json!({})))).unwrap_err();
    assert!(broken.downcast_ref::<String>().unwrap().contains("broke its own output schema"));
}

#[test]
fn a_server_that_dies_is_named_as_the_cause() {
    let mut client = Client::over_pipes(&mut Command::new("true"), Revision::Sessions);
    let broken = catch_unwind(AssertUnwindSafe(|| client.message())).unwrap_err();
    assert!(broken.downcast_ref::<String>().unwrap().contains("the server closed"));
}
