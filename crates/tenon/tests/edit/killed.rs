//! Processes that are killed while they edit: the file is the old or the new one, whole, with its mode.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tenon_testkit::processes;

use crate::stage::{Stage, edit};

const ROUNDS: u64 = 100;
/// Edits that wait in a process's input when it is killed.
const AHEAD: usize = 200;

/// A request of the revision that needs no handshake.
fn request(id: usize, old: &str, new: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "killed", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let arguments = json!({ "file": "run.sh", "old_text": old, "new_text": new });
    let params = json!({ "name": "edit_file", "arguments": arguments, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string() + "\n"
}

#[test]
fn a_killed_edit_leaves_the_old_or_the_new_file() {
    let stage = Stage::new("//- other.txt\n");
    let body = "echo line\n".repeat(2_000);
    let (old, new) = (format!("#!/bin/sh # old\n{body}# old\n"), format!("#!/bin/sh # new\n{body}# old\n"));
    let path = stage.sandbox.tree().path("run.sh");
    std::fs::write(&path, &old).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    let input: String = (0..AHEAD)
        .map(|n| match n % 2 {
            0 => request(n, "sh # old", "sh # new"),
            _ => request(n, "sh # new", "sh # old"),
        })
        .collect();
    for round in 0..ROUNDS {
        let mut command = stage.sandbox.tenon();
        command.args(["mcp", "--no-daemon", "--surface", "edit"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(input.as_bytes()).unwrap();
        // It edits from here on; each round lets it do so a little longer.
        let mut first = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
        processes::wait_for(child.id(), Duration::from_micros(137 * (round % 50)));
        child.kill().unwrap();
        child.wait().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text == old || text == new, "round {round}: {} bytes", text.len());
        let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o751, "round {round}");
    }
    // What the killed left behind goes with the next edit.
    edit(&mut stage.client(), "run.sh", "\n# old\n", "\n# end\n");
    let names = std::fs::read_dir(stage.sandbox.root()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with(".tenon-edit-")).collect();
    assert!(left.is_empty(), "{left:?}");
}
