//! The MCP client against shell scripts with canned responses.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use serde_json::json;
use tenon_testkit::{McpClient, Revision};

/// A server that answers each line with the next of `answers`.
fn server(answers: &[&str]) -> Command {
    let mut script = String::new();
    for answer in answers {
        script.push_str(&format!("read -r line; printf '%s\\n' '{answer}';"));
    }
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{script} cat >/dev/null")]);
    command
}

fn client(answers: &[&str]) -> McpClient {
    McpClient::over_pipes(&mut server(answers), Revision::Sessions)
}

const ECHO_TOOL: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"},
    "outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}]}}"#;

#[test]
fn request_returns_the_result_and_the_server_exits() {
    let mut client = client(&[r#"{"jsonrpc":"2.0","id":1,"result":{"ok":true}}"#]);
    assert_eq!(client.request("ping", json!({})), Ok(json!({ "ok": true })));
    assert!(client.close().unwrap().success());
}

#[test]
fn error_response_is_returned_as_an_error() {
    let mut client =
        client(&[r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":{"a":1}}}"#]);
    let error = client.request("x", json!({})).unwrap_err();
    assert_eq!((error.code, error.message.as_str(), error.data), (-32601, "no", json!({ "a": 1 })));
}

#[test]
fn untaken_message_fails_the_test() {
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
fn tool_result_that_violates_its_schema_fails_the_test() {
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
    assert!(broken.downcast_ref::<String>().unwrap().contains("violates its output schema"));
}

#[test]
fn closed_server_is_reported_as_the_cause() {
    let mut client = McpClient::over_pipes(&mut Command::new("true"), Revision::Sessions);
    let broken = catch_unwind(AssertUnwindSafe(|| client.message())).unwrap_err();
    assert!(broken.downcast_ref::<String>().unwrap().contains("the server closed"));
}
