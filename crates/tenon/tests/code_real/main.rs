//! The `code` surface of the `tenon` program with real language servers: complete answers, always the same bytes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod blocking_files;
mod truth;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tenon_testkit::{McpClient, PATIENCE, Sandbox};

/// A named tool call.
struct Question {
    name: String,
    tool: &'static str,
    arguments: Value,
}

/// The position of `word` in the first line of a file that contains `line`.
fn position(sandbox: &Sandbox, file: &str, line: &str, word: &str) -> Value {
    let text = sandbox.tree().read(file);
    let (number, found) = text
        .lines()
        .enumerate()
        .find(|(_, text)| text.contains(line))
        .unwrap_or_else(|| panic!("{file}: no `{line}`"));
    // All of these lines are ASCII.
    json!({ "line": number, "character": found.find(word).unwrap() })
}

/// All tools for pyright, TypeScript 7 and clangd.
fn questions(sandbox: &Sandbox) -> Vec<Question> {
    let uri = |file: &str| format!("file://{}/{file}", sandbox.root().canonicalize().unwrap().display());
    let places = [
        ("python", "python/parcel/quote.py", "cents = price(", "price", "python/parcel/returns.py"),
        ("typescript", "web/src/label.ts", "heading: `", "price(", "web/src/returns.ts"),
        ("cpp", "engine/src/main.cpp", "price(", "price(", "engine/src/returns.cpp"),
    ];
    let mut all = Vec::new();
    for (language, file, line, word, broken) in places {
        let at = json!({ "uri": uri(file), "position": position(sandbox, file, line, word) });
        let mut paged = at.clone();
        paged["pageSize"] = json!(2);
        let mut ask = |name: &str, tool: &'static str, arguments: Value| {
            all.push(Question { name: format!("{language} {name}"), tool, arguments });
        };
        ask("definition", "vscode.lsp.definition", at.clone());
        ask("references", "vscode.lsp.references", at.clone());
        ask("first page of references", "vscode.lsp.references", paged);
        ask("hover", "vscode.lsp.hover", at);
        ask("symbols", "vscode.lsp.documentSymbols", json!({ "uri": uri(file) }));
        ask("diagnostics", "vscode.lsp.diagnostics.document", json!({ "uri": uri(broken) }));
    }
    all.push(Question {
        name: "workspace symbols".to_owned(),
        tool: "vscode.lsp.workspaceSymbols",
        arguments: json!({ "query": "price" }),
    });
    all.push(Question {
        name: "workspace diagnostics".to_owned(),
        tool: "vscode.lsp.diagnostics.workspace",
        arguments: json!({}),
    });
    all
}

/// The example with a compilation database, which tells clangd its files.
fn workspace() -> Sandbox {
    let sandbox = Sandbox::with_example("polyglot");
    let folder = sandbox.root().canonicalize().unwrap().join("engine");
    let entry = |file: &str| {
        let arguments = ["c++", "-std=c++17", "-Iinclude", "-c", file];
        json!({ "directory": folder, "file": file, "arguments": arguments })
    };
    let files = ["src/main.cpp", "src/returns.cpp", "src/sorter.cpp", "src/tariff.cpp"];
    let commands: Vec<Value> = files.iter().map(|file| entry(file)).collect();
    sandbox.tree().write("engine/compile_commands.json", &json!(commands).to_string());
    std::fs::remove_file(sandbox.tree().path("engine/compile_flags.txt")).unwrap();
    sandbox
}

/// A separate process without a daemon.
fn session(sandbox: &Sandbox) -> McpClient {
    connected(sandbox, &["--no-daemon"])
}

/// The workspace's daemon, started if it is not running.
fn daemon(sandbox: &Sandbox) -> McpClient {
    connected(sandbox, &[])
}

fn connected(sandbox: &Sandbox, how: &[&str]) -> McpClient {
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_tenon"));
    command.arg("mcp").args(how).args(["--surface", "code", "--root"]).arg(sandbox.root());
    McpClient::connect(&mut command)
}

/// Repeats a call until it succeeds. Until then, only `indexing` and `timeout` errors are allowed.
fn ask(client: &mut McpClient, question: &Question) -> Value {
    let deadline = Instant::now() + 3 * PATIENCE;
    loop {
        match client.call_tool(question.tool, question.arguments.clone()) {
            Ok(result) => return without_state(result.structured),
            Err(error) => {
                let reason = error.data["details"]["reason"].as_str().unwrap_or_default();
                let is_late = ["indexing", "timeout"].contains(&reason);
                assert!(is_late && Instant::now() < deadline, "{}: {error:?}", question.name);
            }
        }
    }
}

fn ask_all(client: &mut McpClient, questions: &[Question]) -> BTreeMap<String, Value> {
    questions.iter().map(|question| (question.name.clone(), ask(client, question))).collect()
}

/// A payload whose cursor has no `s`, which differs between daemons.
fn without_state(mut payload: Value) -> Value {
    if let Some(cursor) = payload["nextCursor"].as_str() {
        let mut fields: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(cursor).unwrap()).unwrap();
        fields["s"] = Value::Null;
        payload["nextCursor"] = fields;
    }
    payload
}

/// A payload without paths and hashes that depend on the location of the workspace.
fn relocatable(sandbox: &Sandbox, value: &Value) -> Value {
    let root = format!("file://{}", sandbox.root().canonicalize().unwrap().display());
    let mut value: Value = serde_json::from_str(&value.to_string().replace(&root, "$root")).unwrap();
    remove_hashes(&mut value);
    value
}

fn remove_hashes(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("id");
            if fields.contains_key("k") {
                fields.remove("k");
            }
            fields.values_mut().for_each(remove_hashes);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_hashes),
        _ => {}
    }
}

#[test]
fn s1_3_golden_matrix_is_the_same_in_every_run_order_process_daemon_and_under_load() {
    let sandbox = workspace();
    let questions = questions(&sandbox);
    let golden = {
        let mut client = session(&sandbox);
        let golden = ask_all(&mut client, &questions);
        for _ in 1..10 {
            assert_eq!(ask_all(&mut client, &questions), golden);
        }
        golden
    };
    let shown: BTreeMap<&str, Value> =
        golden.iter().map(|(name, value)| (name.as_str(), relocatable(&sandbox, value))).collect();
    insta::assert_json_snapshot!("golden_matrix", shown);

    // A daemon, the questions in reverse order, and another core busy.
    let reversed: Vec<Question> = self::questions(&sandbox).into_iter().rev().collect();
    let busy = AtomicBool::new(true);
    let again = std::thread::scope(|scope| {
        scope.spawn(|| {
            while busy.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            ask_all(&mut daemon(&sandbox), &reversed)
        }));
        busy.store(false, Ordering::Relaxed);
        again.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    assert_eq!(again, golden);
    stop(&sandbox);

    // Another daemon, and a process without a daemon at the same time.
    let mut second = daemon(&sandbox);
    let mut beside = session(&sandbox);
    assert_eq!(ask_all(&mut beside, &reversed), golden);
    assert_eq!(ask_all(&mut second, &questions), golden);
    beside.close();
    second.close();
    stop(&sandbox);
}

/// A project that keeps an older TypeScript has this server.
#[test]
fn typescript_language_server_gives_the_same_answers_twice() {
    let sandbox = workspace();
    sandbox.write_user_config("[servers.typescript-language-server]\nenabled = true\n");
    let mut questions = questions(&sandbox);
    questions.retain(|question| question.name.starts_with("typescript"));
    let mut client = session(&sandbox);
    let golden = ask_all(&mut client, &questions);
    assert_eq!(ask_all(&mut client, &questions), golden);
    let shown: BTreeMap<&str, Value> =
        golden.iter().map(|(name, value)| (name.as_str(), relocatable(&sandbox, value))).collect();
    insta::assert_json_snapshot!("golden_typescript_language_server", shown);
}

/// Stops the daemon and checks that no process is left.
fn stop(sandbox: &Sandbox) {
    let stopped = sandbox.command(env!("CARGO_BIN_EXE_tenon")).arg("stop").output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
    sandbox.assert_no_processes();
}
