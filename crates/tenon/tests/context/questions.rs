//! `tenon ask`, `tenon pack` and the tools `context.find` and `context.pack` in a workspace.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};
use tenon_testkit::{McpClient, Sandbox};

use crate::error_code;

const WORKSPACE: &str = "
    //- docs/guide.md
    # Guide

    ## Undoing a migration

    Run `reverse_migration` with its number.

    ## Caching

    Answers are kept for an hour.
    //- docs/ref.rst
    Settings
    ========

    How long answers are kept.
    //- src/migrate.py
    def reverse_migration(number):
        \"\"\"Undoes one migration.\"\"\"
        return number


    def run():
        return reverse_migration(1)
    //- ignored/secret.md
    # Undoing a migration in an ignored folder
    //- .gitignore
    ignored/
";

fn tenon(sandbox: &Sandbox, args: &[&str]) -> Output {
    sandbox.tenon().args(args).output().expect("the program starts")
}

fn printed(sandbox: &Sandbox, args: &[&str]) -> String {
    let output = tenon(sandbox, args);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn ask_shows_the_right_passage_and_sees_edits() {
    let sandbox = Sandbox::with_tree(WORKSPACE);
    let text = printed(&sandbox, &["ask", "how", "do I undo a migration?"]);
    assert!(text.starts_with("docs/guide.md:3-5 Guide > Undoing a migration ["), "{text}");
    assert!(text.contains("src/migrate.py:1-3 function reverse_migration ["), "{text}");
    assert!(!text.contains("ignored"), "{text}");
    let code = printed(&sandbox, &["ask", "--kind", "code", "--json", "which function undoes a migration"]);
    let code: Value = serde_json::from_str(&code).unwrap();
    assert_eq!(code["passages"][0]["place"], "function reverse_migration");

    sandbox
        .tree()
        .write("docs/guide.md", "# Guide\n\nBe careful.\n\n## Undoing a migration\n\nNow with `undo`.\n");
    let text = printed(&sandbox, &["ask", "undo migration", "--path", "docs"]);
    assert!(text.starts_with("docs/guide.md:5-7 ") && text.contains("Now with `undo`."), "{text}");
    let rejected = tenon(&sandbox, &["ask", "x", "--budget", "0"]);
    assert_eq!(rejected.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&rejected.stderr), "budget must be from 1 to 200000 tokens\n");
    let unknown = tenon(&sandbox, &["ask", "x", "--tokenizer", "words"]);
    assert!(!unknown.status.success() && unknown.stdout.is_empty());
}

#[test]
fn pack_has_symbols_passages_and_reasons_within_its_budget() {
    let sandbox = Sandbox::with_tree(WORKSPACE);
    let parts = ["--include", "symbols", "--include", "passages"];
    let question = ["pack", "why does `reverse_migration` fail"];
    let text = printed(&sandbox, &[&question[..], &parts].concat());
    assert!(
        text.starts_with("# Context\n\n## symbols: reverse_migration\n\n`reverse_migration` is named"),
        "{text}"
    );
    assert!(text.contains("## passages: docs/guide.md:3-5 Guide > Undoing a migration"), "{text}");
    assert_eq!(text, printed(&sandbox, &[&question[..], &parts].concat()));
    let small = printed(
        &sandbox,
        &[&question[..], &parts, &["--budget", "60", "--tokenizer", "o200k_base"]].concat(),
    );
    assert!(small.len() < text.len() && !small.is_empty(), "{small}");
    let json = printed(&sandbox, &[&question[..], &parts, &["--format", "json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["items"][0]["part"], "symbols");
    let xml = printed(&sandbox, &[&question[..], &parts, &["--format", "xml"]].concat());
    assert!(xml.starts_with("<context>\n<item part=\"symbols\"") && xml.ends_with("</context>\n"), "{xml}");
    let nothing = tenon(&sandbox, &["pack"]);
    assert_eq!(nothing.status.code(), Some(1), "{nothing:?}");
    assert_eq!(String::from_utf8_lossy(&nothing.stderr), "no task is focused; give `task` or `query`\n");
}

#[test]
fn pack_begins_with_the_focused_task_and_its_notes() {
    let sandbox = Sandbox::with_tree(WORKSPACE);
    let mut client = McpClient::connect(sandbox.tenon().args(["mcp", "--surface", "context,tasks,memory"]));
    let mut call = |tool: &str, arguments: Value| {
        let result = client.call_tool(tool, arguments).unwrap();
        assert!(!result.is_error, "{tool}: {result:?}");
        result
    };
    call("tasks_create", json!({ "kind": "plan", "title": "Release" }));
    let task = json!({ "kind": "task", "parent": "PLAN-001", "title": "Make reverse_migration fail loudly" });
    call("tasks_create", task);
    call("tasks_focus_set", json!({ "task": "TASK-001" }));
    call("tasks_note", json!({ "task": "TASK-001", "note": "Number 0 is the marzipan case." }));
    let pack =
        call("context.pack", json!({ "budget": 3000, "include": ["task", "notes", "symbols", "passages"] }));
    let text = &pack.text[0];
    assert!(
        text.starts_with(
            "# Context\n\n## task: TASK-001 Make reverse_migration fail loudly\n\nthe focused task"
        ),
        "{text}"
    );
    assert!(text.contains("marzipan") && text.contains("## symbols: reverse_migration"), "{text}");
    let found = call("context.find", json!({ "query": "marzipan" }));
    assert!(found.text[0].contains("marzipan"), "{}", found.text[0]);
}

#[test]
fn surface_has_the_new_tools_and_the_error_object() {
    let sandbox = Sandbox::with_tree(WORKSPACE);
    let mut client = McpClient::connect(sandbox.tenon().args(["mcp", "--surface", "context"]));
    let tools = client.list_tools();
    assert_eq!(tools.len(), 5, "{tools:?}");
    for (tool, arguments, code) in [
        ("context.find", json!({}), "invalid_query"),
        ("context.find", json!({ "query": 7 }), "invalid_query"),
        ("context.find", json!({ "query": "x", "budget": 0 }), "invalid_budget"),
        ("context.find", json!({ "query": "x", "budget": 1_000_000 }), "invalid_budget"),
        ("context.find", json!({ "query": "x", "kinds": ["films"] }), "invalid_query"),
        ("context.find", json!({ "query": "x", "path": "../up" }), "invalid_query"),
        ("context.find", json!({ "query": "x", "more": 1 }), "invalid_query"),
        ("context.pack", json!({ "query": "x" }), "invalid_budget"),
        ("context.pack", json!({ "budget": 100 }), "invalid_query"),
        ("context.pack", json!({ "budget": 100, "task": "TASK-999" }), "invalid_query"),
    ] {
        assert_eq!(error_code(&mut client, tool, arguments.clone()), code, "{tool} {arguments}");
    }
}

#[test]
fn build_takes_other_documents_and_says_why_it_is_empty() {
    let sandbox = Sandbox::with_tree(WORKSPACE);
    fs::remove_file(sandbox.tree().path("docs/guide.md")).unwrap();
    let empty = tenon(&sandbox, &["context", "build", "--sources", "docs", "--cache", "caches/v0"]);
    let stderr = String::from_utf8_lossy(&empty.stderr).into_owned();
    assert!(empty.status.success() && stderr.contains("no documents in `docs`; it has 1 `.rst`"), "{stderr}");
    let args = [
        "context",
        "build",
        "--sources",
        ".",
        "--cache",
        "caches/all",
        "--extension",
        "md",
        "--extension",
        "rst",
    ];
    let built = tenon(&sandbox, &args);
    assert!(built.stderr.starts_with(b"built: 1 documents, sha256:"), "{built:?}");
    assert!(tenon(&sandbox, &["context", "verify", "--cache", "caches/all"]).status.success());
}
