//! A process killed during an edit leaves the complete old or new file, with its mode.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tenon_testkit::{processes, program};

use crate::workspace::{Workspace, edit};

const ROUNDS: u64 = 100;
/// Edits that are queued on a process's stdin when it is killed.
const QUEUED: usize = 200;

fn request(id: usize, old: &str, new: &str) -> String {
    tool_call(id, "edit_file", &json!({ "file": "run.sh", "old_text": old, "new_text": new }))
}

/// A request of the protocol revision without a handshake.
pub fn tool_call(id: usize, tool: &str, arguments: &Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "killed", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string() + "\n"
}

/// A workspace with a large executable file, and its texts before and after an edit.
struct Fixture {
    workspace: Workspace,
    path: PathBuf,
    old: String,
    new: String,
}

impl Fixture {
    fn new() -> Self {
        let workspace = Workspace::new("//- other.txt\n");
        let body = "echo line\n".repeat(2_000);
        let text = |word: &str| format!("#!/bin/sh # {word}\n{body}# old\n");
        let path = workspace.sandbox.tree().path("run.sh");
        std::fs::write(&path, text("old")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
        Self { workspace, path, old: text("old"), new: text("new") }
    }

    fn mode(&self) -> u32 {
        self.path.metadata().unwrap().permissions().mode() & 0o7777
    }

    /// The temporary files of unfinished edits.
    fn unfinished(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.workspace.sandbox.root()).unwrap();
        let is_unfinished = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".tenon-edit-"))
        };
        entries.map(|entry| entry.unwrap().path()).filter(is_unfinished).collect()
    }
}

#[test]
fn edit_killed_between_write_and_rename_leaves_the_old_file() {
    let fixture = Fixture::new();
    for round in 0..ROUNDS {
        // `strace` kills it at the rename call.
        let mut command = fixture.workspace.sandbox.command("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat,renameat2"]);
        command.args(["-e", "inject=renameat,renameat2:signal=SIGKILL"]).arg(program::tenon());
        command.args(["mcp", "--no-daemon", "--surface", "edit"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn();
        let mut child =
            child.expect("strace is missing: run `cargo xtask setup`, or `apt-get install strace`");
        child.stdin.as_mut().unwrap().write_all(request(1, "sh # old", "sh # new").as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stdout, b"", "a killed edit was answered");
        assert_eq!(std::fs::read_to_string(&fixture.path).unwrap(), fixture.old, "round {round}");
        assert_eq!(fixture.mode(), 0o751, "round {round}");
        // Only this round's temporary file is left.
        let unfinished = fixture.unfinished();
        assert_eq!(unfinished.len(), 1, "round {round}: {unfinished:?}");
        assert_eq!(
            std::fs::read_to_string(&unfinished[0]).unwrap(),
            fixture.new,
            "the temporary file is incomplete"
        );
    }
}

#[test]
fn edit_killed_at_any_time_leaves_the_old_or_the_new_file() {
    let fixture = Fixture::new();
    let Fixture { workspace, path, old, new } = &fixture;
    let input: String = (0..QUEUED)
        .map(|n| match n % 2 {
            0 => request(n, "sh # old", "sh # new"),
            _ => request(n, "sh # new", "sh # old"),
        })
        .collect();
    for round in 0..processes::kills(ROUNDS) {
        let mut command = workspace.sandbox.tenon();
        command.args(["mcp", "--no-daemon", "--surface", "edit"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(input.as_bytes()).unwrap();
        // The first response shows that it is editing; each round kills it a little later.
        let mut first = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
        processes::wait_for_exit(child.id(), Duration::from_micros(137 * (round % 50)));
        child.kill().unwrap();
        child.wait().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text == *old || text == *new, "round {round}: {} bytes", text.len());
        assert_eq!(fixture.mode(), 0o751, "round {round}");
    }
    // The next edit removes the temporary files.
    edit(&mut workspace.client(), "run.sh", "\n# old\n", "\n# end\n");
    assert_eq!(fixture.unfinished(), [] as [PathBuf; 0]);
}
