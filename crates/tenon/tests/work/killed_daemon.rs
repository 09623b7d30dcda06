//! A daemon killed while agents write tasks: every acknowledged note is in the store, and the store is consistent.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tenon_testkit::{Sandbox, processes};

use crate::{call, connect_by, tenon, text};

const ROUNDS: u64 = 20;
/// Notes that are queued on the bridge's input when its daemon is killed.
const QUEUED: usize = 40;

fn bridge(sandbox: &Sandbox) -> Command {
    let mut command = sandbox.tenon();
    command.args(["mcp", "--surface", "tasks"]);
    command
}

/// A request of the protocol revision without a handshake.
fn note(id: usize, text: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "killed", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let arguments = json!({ "task": "PLAN-001", "note": text });
    let params = json!({ "name": "tasks_note", "arguments": arguments, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string() + "\n"
}

#[test]
fn acknowledged_notes_survive_a_killed_daemon() {
    let sandbox = Sandbox::new();
    call(&mut connect_by(&mut bridge(&sandbox)), "tasks_create", json!({ "title": "Plan" }));
    let (mut acknowledged, mut unanswered) = (Vec::new(), 0);
    for round in 0..processes::kills(ROUNDS) {
        let text_of = |id: usize| format!("note {round}-{id}.");
        let mut child = bridge(&sandbox)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input: String = (0..QUEUED).map(|id| note(id, &text_of(id))).collect();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
        // The first answer shows that the daemon writes; each round kills it a little later.
        let first = answers.next().unwrap().unwrap();
        let is_daemon = |words: &[String]| words.get(1).is_some_and(|word| word == "daemon");
        let daemon = sandbox.processes().into_iter().find(|process| is_daemon(&process.command)).unwrap();
        processes::wait_for_exit(daemon.id, Duration::from_micros(731 * (round % 50)));
        daemon.kill();
        let answered = [first].into_iter().chain(answers.map_while(Result::ok)).filter_map(|line| {
            // The last line may be cut off.
            let answer: Value = serde_json::from_str(&line).ok()?;
            let written = answer["result"]["structuredContent"]["success"] == true;
            written.then(|| text_of(answer["id"].as_u64().unwrap() as usize))
        });
        let before = acknowledged.len();
        acknowledged.extend(answered);
        unanswered += QUEUED - (acknowledged.len() - before);
        drop(stdin);
        child.wait().unwrap();
        sandbox.assert_no_processes();
    }
    assert!(unanswered > 0, "no daemon was killed before its last answer");
    assert!(acknowledged.len() >= processes::kills(ROUNDS) as usize, "every round has acknowledged notes");
    let exported = text(&tenon(&sandbox, &["store", "export"]).stdout);
    let lost: Vec<&String> = acknowledged.iter().filter(|note| !exported.contains(note.as_str())).collect();
    assert!(lost.is_empty(), "acknowledged but lost: {lost:?}");
    let checked = tenon(&sandbox, &["store", "check"]);
    assert!(checked.status.success(), "{checked:?}");
}
