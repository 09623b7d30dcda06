//! Configuration files in `cases`: connected without changing any other byte, or clearly refused, and restored by `--undo`.
//!
//! The checks do not use the parser of the program: lines are compared as text, and values are read with `serde_json` after
//! comments are cut out by a few lines below.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenon_testkit::{Sandbox, repository_root};

use crate::{connect, entry_file, run, sandbox};

fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = repository_root().join("crates/tenon/tests/connect/cases").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// A workspace with the case as the agent's file.
fn with_case(case: &Path, agent: &str) -> (Sandbox, PathBuf) {
    let sandbox = sandbox("");
    let mut file = entry_file(&sandbox, agent);
    if case.extension().is_some_and(|extension| extension == "jsonc") {
        file.set_extension("jsonc");
    }
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::copy(case, &file).unwrap();
    (sandbox, file)
}

/// The entry of `tenon` in a file.
fn entry(file: &Path, agent: &str) -> Option<Value> {
    let text = fs::read_to_string(file).unwrap();
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let (table, value) = match agent {
        "codex" => ("mcp_servers", toml::from_str(text).unwrap()),
        "opencode" => ("mcp", plain_json(text)),
        "vscode" => ("servers", plain_json(text)),
        "zed" => ("context_servers", plain_json(text)),
        _ => ("mcpServers", plain_json(text)),
    };
    value.get(table)?.get("tenon").cloned()
}

/// The value of a text with comments and trailing commas.
fn plain_json(text: &str) -> Value {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(one) = rest.chars().next() {
        let length = match one {
            '"' => {
                let mut escaped = false;
                let end = rest[1..].find(|one| match (escaped, one) {
                    (false, '"') => true,
                    (false, '\\') => {
                        escaped = true;
                        false
                    }
                    _ => {
                        escaped = false;
                        false
                    }
                });
                let end = end.unwrap() + 2;
                kept.push_str(&rest[..end]);
                end
            }
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' => rest.find("*/").unwrap() + 2,
            '}' | ']' => {
                let open = kept.trim_end().strip_suffix(',').map(str::len);
                kept.truncate(open.unwrap_or(kept.len()));
                kept.push(one);
                1
            }
            _ => {
                kept.push(one);
                one.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    match kept.trim() {
        "" => json!({}),
        kept => serde_json::from_str(kept).unwrap_or_else(|error| panic!("{error}: {kept}")),
    }
}

/// Whether all characters of `before` are in `after`, in order: text was added and nothing was removed.
fn keeps_text(before: &str, after: &str) -> bool {
    let mut rest = after.chars();
    before.trim_end().chars().all(|one| rest.any(|other| other == one))
}

#[test]
fn other_bytes_stay_and_undo_restores_the_file() {
    let mut count = 0;
    for agent in crate::AGENTS {
        for case in cases(agent) {
            let name = format!("{agent}/{}", case.file_name().unwrap().to_str().unwrap());
            let (sandbox, file) = with_case(&case, agent);
            let before = fs::read(&case).unwrap();
            let said = run(&sandbox, &[agent]);
            assert!(said.contains("backup: ") && said.contains("connected: "), "{name}: {said}");
            let after = fs::read_to_string(&file).unwrap();
            let entry = entry(&file, agent).unwrap_or_else(|| panic!("{name}: {after}"));
            let words: Vec<&Value> = [&entry["command"], &entry["args"]]
                .into_iter()
                .flat_map(|part| match part {
                    Value::Array(words) => words.iter().collect(),
                    one => vec![one],
                })
                .filter(|word| !word.is_null())
                .collect();
            let root = sandbox.root().to_str().unwrap();
            assert_eq!(words, ["tenon", "mcp", "--root", root], "{name}: {after}");
            let text = String::from_utf8(before.clone()).unwrap();
            let is_stale = ["stale", "http"].iter().any(|kind| name.contains(kind));
            assert!(is_stale || keeps_text(&text, &after), "{name}:\n{text}\n{after}");
            for mark in ["\r\n", "\u{feff}", "\t"] {
                assert_eq!(text.contains(mark), after.contains(mark), "{name}: {after:?}");
            }
            if text.contains("\r\n") {
                assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{name}: {after:?}");
            }
            assert!(run(&sandbox, &[agent]).contains("already connected"), "{name}");
            // As a stale entry was the user's own, it stays without the exact undo.
            run(&sandbox, &[agent, "--undo"]);
            if !is_stale {
                assert_eq!(fs::read(&file).unwrap(), before, "{name}");
            }
            assert!(run(&sandbox, &[agent, "--undo"]).contains("not connected"), "{name}");
            let left: Vec<_> = fs::read_dir(sandbox.dir("state").join("tenon/connect")).unwrap().collect();
            assert!(is_stale || left.is_empty(), "{name}: {left:?}");
            count += 1;
        }
    }
    assert!(count >= 40, "{count} cases");
}

#[test]
fn undo_after_a_later_change_removes_only_our_part() {
    for agent in crate::AGENTS {
        for case in cases(agent) {
            let name = case.display();
            let (sandbox, file) = with_case(&case, agent);
            run(&sandbox, &[agent]);
            let mut changed = fs::read_to_string(&file).unwrap();
            changed.push_str(if agent == "codex" { "\n# later\n" } else { "\n// later\n" });
            fs::write(&file, &changed).unwrap();
            run(&sandbox, &[agent, "--undo"]);
            let left = fs::read_to_string(&file).unwrap();
            assert!(left.ends_with("later\n"), "{name}: {left}");
            assert_eq!(entry(&file, agent), None, "{name}: {left}");
            assert!(!left.contains("tenon hook"), "{name}: {left}");
            let original = fs::read_to_string(&case).unwrap();
            let is_stale =
                original.contains("tenon\"") || original.contains("[mcp_servers.tenon]\ncommand = \"/");
            assert!(is_stale || keeps_comments(&original, &left), "{name}:\n{original}\n{left}");
        }
    }
}

/// Whether all comments of `before` are still there.
fn keeps_comments(before: &str, after: &str) -> bool {
    let comments = before.lines().filter(|line| line.trim_start().starts_with(['/', '#']));
    comments.into_iter().all(|line| after.contains(line.trim()))
}

#[test]
fn unsupported_files_are_refused_and_stay_as_they_are() {
    for case in cases("refused") {
        let name = case.file_name().unwrap().to_str().unwrap();
        let (agent, kind) = name.split_once('-').unwrap();
        let reason = match kind.split('.').next().unwrap() {
            "broken" | "merge-conflict" | "single-quotes" | "unquoted-key" | "yaml" | "two-values"
            | "missing-comma" => ": not valid ",
            "array" => ": the file is not an object",
            "servers-array" => ": `mcpServers` is not an object",
            "duplicate-key" => ": `mcpServers` appears twice",
            "not-utf8" | "utf16" => " is not UTF-8 text",
            "inline-table" => ": `mcp_servers` is not written as a table with a header",
            "dotted-keys" => ": `mcp_servers.tenon` is not written as a table with a header",
            "hooks-array" => ": `hooks` is not an object",
            "event-object" => ": `AfterTool` is not an array",
            other => panic!("no expectation for {other}"),
        };
        for more in [&[][..], &["--dry-run"], &["--undo"]] {
            let (sandbox, file) = with_case(&case, agent);
            let output = connect(&sandbox, &[&[agent], more].concat()).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            // An undo of a file without Tenon's parts may find nothing to do.
            if more != ["--undo"] || !output.status.success() {
                assert_eq!(output.status.code(), Some(3), "{name}: {said}");
                assert!(said.starts_with("error: ") && said.contains(reason), "{name}: {said}");
            }
            assert_eq!(fs::read(&file).unwrap(), fs::read(&case).unwrap(), "{name}");
            assert!(!sandbox.dir("state").join("tenon/connect").exists(), "{name}");
            assert!(!sandbox.root().join(".claude").exists(), "{name}: a part was written");
        }
    }
}

#[test]
fn link_stays_a_link_and_its_target_is_changed() {
    for agent in crate::AGENTS.into_iter().filter(|agent| *agent != "codex") {
        let sandbox = sandbox("//- dotfiles/config.json\n{\n  // mine\n}\n");
        let file = entry_file(&sandbox, agent);
        let target = sandbox.root().join("dotfiles/config.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&target, &file).unwrap();
        run(&sandbox, &[agent]);
        assert!(file.is_symlink(), "{agent}");
        assert!(fs::read_to_string(&target).unwrap().contains("\"tenon\""), "{agent}");
        run(&sandbox, &[agent, "--undo"]);
        assert!(file.is_symlink(), "{agent}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "{\n  // mine\n}\n", "{agent}");
    }
}
