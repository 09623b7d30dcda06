//! The fake server itself: it follows its script, records what it receives, and rejects a script it cannot read.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::process::{Command, Output};

use bytes::BytesMut;
use serde_json::{Value, json};
use tempfile::TempDir;
use tenon_fake_lsp::{Script, serve};
use tenon_lsp::codec::FrameDecoder;
use tenon_lsp::message::{self, RequestId};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_util::codec::Decoder;

const PIPE_BYTES: usize = 64 * 1024;

async fn read(pipe: &mut DuplexStream, buffer: &mut BytesMut) -> Value {
    let mut decoder = FrameDecoder::default();
    loop {
        if let Some(frame) = decoder.decode(buffer).unwrap() {
            return serde_json::from_slice(&frame).unwrap();
        }
        assert_ne!(pipe.read_buf(buffer).await.unwrap(), 0, "the server closed its output");
    }
}

#[tokio::test]
async fn rules_answer_requests_and_the_transcript_keeps_what_was_received() {
    let folder = TempDir::new().unwrap();
    let transcript = folder.path().join("transcript.jsonl");
    let script: Script = serde_json::from_value(json!({
        "capabilities": { "hoverProvider": true },
        "rules": [{ "on": "textDocument/hover", "do": [{ "reply": "hello" }] }],
    }))
    .unwrap();
    let (mut input, server_input) = duplex(PIPE_BYTES);
    let (server_output, mut output) = duplex(PIPE_BYTES);
    let server = tokio::spawn(serve(script, server_input, server_output, Some(transcript.clone())));

    let mut buffer = BytesMut::new();
    let methods = ["initialize", "textDocument/hover", "no/such/method"];
    let mut answers = Vec::new();
    for (id, method) in (1..).zip(methods) {
        let request = message::request(&RequestId::Number(id), method, &json!({})).unwrap();
        input.write_all(&request).await.unwrap();
        answers.push(read(&mut output, &mut buffer).await);
    }
    input.write_all(&message::notification("exit", &Value::Null).unwrap()).await.unwrap();
    assert_eq!(server.await.unwrap(), 0);

    assert_eq!(answers[0]["result"]["capabilities"], json!({ "hoverProvider": true }));
    assert_eq!(answers[1]["result"], "hello");
    assert_eq!(answers[2]["error"]["code"], -32601);
    let lines = std::fs::read_to_string(transcript).unwrap();
    let received: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["in"]["method"].take())
        .filter(Value::is_string)
        .collect();
    assert_eq!(received, ["initialize", "textDocument/hover", "no/such/method", "exit"]);
}

fn run(script: &str) -> Output {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("script.json");
    std::fs::write(&path, script).unwrap();
    Command::new(env!("CARGO_BIN_EXE_tenon-fake-lsp")).arg("--script").arg(path).output().unwrap()
}

#[test]
fn script_with_an_unknown_field_is_rejected_by_name() {
    let output = run(r#"{ "capabilites": {} }"#);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("script.json") && message.contains("capabilites"), "{message}");
}

#[test]
fn program_ends_when_its_input_ends() {
    assert!(run("{}").status.success());
}
