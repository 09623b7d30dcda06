//! A process killed while it changes several files: after the next start, all files have their old or all have their new text.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tenon_testkit::{processes, program};

use crate::by_name::renamer;
use crate::killed::tool_call;
use crate::workspace::Workspace;

const FILES: usize = 6;
const ROUNDS: u64 = 100;

/// A workspace whose files share a name.
struct Fixture {
    workspace: Workspace,
}

impl Fixture {
    fn new() -> Self {
        let names: Vec<String> = (0..FILES).map(|number| format!("pkg{number}/f{number}.py")).collect();
        let workspace = Workspace::new("").python_server("fake", &renamer(&names, &[]));
        for (number, name) in names.iter().enumerate() {
            workspace.sandbox.tree().write(name, &Self::text(number, "old_name"));
        }
        Self { workspace }
    }

    fn text(number: usize, name: &str) -> String {
        match number {
            0 => format!("\u{feff}def {name}():\r\n    pass\r\n"),
            _ => format!("from f0 import {name}\n{name}()\n{}", "# more\n".repeat(1000)),
        }
    }

    fn path(&self, number: usize) -> PathBuf {
        self.workspace.sandbox.tree().path(format!("pkg{number}/f{number}.py"))
    }

    /// The common name in all files.
    fn name(&self) -> &'static str {
        let has = |name: &str| {
            let same = (0..FILES).map(|number| {
                std::fs::read_to_string(self.path(number)).unwrap() == Self::text(number, name)
            });
            same.collect::<Vec<bool>>()
        };
        let (old, new) = (has("old_name"), has("new_name"));
        match (old.iter().all(|same| *same), new.iter().all(|same| *same)) {
            (true, false) => "old_name",
            (false, true) => "new_name",
            _ => panic!("files differ: old {old:?}, new {new:?}"),
        }
    }

    fn rename(id: usize, name: &str) -> String {
        let to = if name == "old_name" { "new_name" } else { "old_name" };
        tool_call(id, "rename", &json!({ "symbol": format!("f0.py#{name}"), "to": to, "apply": true }))
    }

    fn start(mut command: Command) -> Child {
        command.args(["mcp", "--no-daemon", "--surface", "edit"]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        child.expect("strace is missing: run `cargo xtask setup`, or `apt-get install strace`")
    }

    /// Starts a process that answers one request; its start undoes or finishes what another one left.
    fn restart(&self) {
        let mut child = Self::start(self.workspace.sandbox.tenon());
        let request = tool_call(1, "rename", &json!({ "symbol": "", "to": "x" }));
        child.stdin.as_mut().unwrap().write_all(request.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(!output.stdout.is_empty());
        let records = files_below(&self.workspace.sandbox.dir("state").join("tenon/edits"));
        assert_eq!(records, [] as [PathBuf; 0]);
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn rename_killed_at_any_step_changes_all_files_or_none_after_the_next_start() {
    let fixture = Fixture::new();
    let steps =
        [("fsync", FILES as u32 + 8), ("renameat,renameat2", FILES as u32 + 1), ("rename", 2), ("unlink", 2)];
    let (mut killed, mut changed) = (0, 0);
    for (calls, count) in steps {
        for number in 1..=count {
            let name = fixture.name();
            let mut command = fixture.workspace.sandbox.command("strace");
            command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
            command
                .args(["-e", &format!("inject={calls}:signal=SIGKILL:when={number}")])
                .arg(program::tenon());
            let mut child = Fixture::start(command);
            child.stdin.as_mut().unwrap().write_all(Fixture::rename(1, name).as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            fixture.restart();
            let now = fixture.name();
            killed += usize::from(output.stdout.is_empty());
            changed += usize::from(now != name);
            if !output.stdout.is_empty() {
                assert_ne!(now, name, "the change was reported: {}", String::from_utf8_lossy(&output.stdout));
            }
        }
    }
    // A finished rename removes the temporary files of those that were killed.
    let is_left = |path: &PathBuf| path.to_string_lossy().contains(".tenon-edit-");
    assert!(!files_below(fixture.workspace.sandbox.root()).iter().any(is_left));
    // Some steps are after the last rename, and some do not occur.
    assert!(killed > FILES * 2 && changed > 0, "{killed} killed, {changed} changed");
}

#[test]
fn rename_killed_at_any_time_changes_all_files_or_none_after_the_next_start() {
    let fixture = Fixture::new();
    let (mut answered, rounds) = (0, processes::kills(ROUNDS));
    for round in 0..rounds {
        let name = fixture.name();
        let mut child = Fixture::start(fixture.workspace.sandbox.tenon());
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        // The first rename shows that the server runs; the second one is killed a little later in each round.
        input.write_all(Fixture::rename(1, name).as_bytes()).unwrap();
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        let first: Value = serde_json::from_str(&first).unwrap();
        assert_eq!(first["result"]["isError"], false, "{first}");
        let name = fixture.name();
        input.write_all(Fixture::rename(2, name).as_bytes()).unwrap();
        processes::wait_for_exit(child.id(), Duration::from_micros(1_900 * (round % 50)));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut second = String::new();
        answered += usize::from(output.read_line(&mut second).unwrap() > 0);
        fixture.restart();
        fixture.name();
    }
    assert!(answered < rounds as usize, "no process was killed before its answer");
}
