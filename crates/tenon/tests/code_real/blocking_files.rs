//! One file that a server cannot handle does not block the others: it is given up and named.

use std::time::Instant;

use serde_json::{Value, json};
use tenon_testkit::mcp_client::McpError;
use tenon_testkit::{McpClient, PATIENCE, Sandbox};

use crate::{Question, ask, session};

const WORKSPACE_DIAGNOSTICS: &str = "vscode.lsp.diagnostics.workspace";
const DOCUMENT_SYMBOLS: &str = "vscode.lsp.documentSymbols";

fn question(tool: &'static str, arguments: Value) -> Question {
    Question { name: tool.to_owned(), tool, arguments }
}

fn uri(sandbox: &Sandbox, file: &str) -> String {
    format!("file://{}/{file}", sandbox.root().canonicalize().unwrap().display())
}

/// The error of a call that fails for another reason than time.
fn failure(client: &mut McpClient, question: &Question) -> McpError {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let error = client.call_tool(question.tool, question.arguments.clone()).unwrap_err();
        let reason = error.data["details"]["reason"].as_str().unwrap_or_default();
        if !["indexing", "timeout"].contains(&reason) {
            return error;
        }
        assert!(Instant::now() < deadline, "{}: {error:?}", question.name);
    }
}

/// The files with diagnostics, by name.
fn files(payload: &Value) -> Vec<&str> {
    let items = payload["items"].as_array().unwrap().iter();
    items.map(|item| item["uri"].as_str().unwrap().rsplit_once('/').unwrap().1).collect()
}

#[test]
fn typescript_file_that_overflows_the_stack_is_named_and_other_languages_are_checked() {
    let sandbox = Sandbox::with_tree(
        "
        //- tsconfig.json
        { \"compilerOptions\": { \"strict\": true, \"noEmit\": true } }
        //- a.ts
        export const a: number = \"a\";
        //- b.py
        b: int = \"b\"
        ",
    );
    sandbox.write_user_config("[servers.typescript-language-server]\nenabled = true\n");
    let nested = format!("export const deep = {}1{};\n", "(".repeat(5000), ")".repeat(5000));
    sandbox.tree().write("deep.ts", &nested);
    let mut client = session(&sandbox);
    let payload = ask(&mut client, &question(WORKSPACE_DIAGNOSTICS, json!({})));
    assert_eq!(files(&payload), ["b.py"]);
    let expected = "Returned diagnostics for 1 file. Not checked: deep.ts (typescript-language-server cannot read it), \
                    a.ts (typescript-language-server failed).";
    assert_eq!(payload["summary"], expected);
    // The server is not loading: it rejects the project.
    let error = failure(&mut client, &question("vscode.lsp.workspaceSymbols", json!({ "query": "a" })));
    assert_eq!(error.data["details"]["server"], "typescript-language-server");
    sandbox.tree().write("deep.ts", "export const deep = 1;\n");
    let payload = ask(&mut client, &question(WORKSPACE_DIAGNOSTICS, json!({})));
    assert_eq!(files(&payload), ["a.ts", "b.py"]);
    assert_eq!(payload["summary"], "Returned diagnostics for 2 files.");
}

#[test]
fn typescript_7_checks_a_deeply_nested_file() {
    let sandbox = Sandbox::with_tree(
        "
        //- tsconfig.json
        { \"compilerOptions\": { \"strict\": true, \"noEmit\": true } }
        //- a.ts
        export const a: number = \"a\";
        ",
    );
    let nested = format!("export const deep: string = {}1{};\n", "(".repeat(5000), ")".repeat(5000));
    sandbox.tree().write("deep.ts", &nested);
    let payload = ask(&mut session(&sandbox), &question(WORKSPACE_DIAGNOSTICS, json!({})));
    assert_eq!(files(&payload), ["a.ts", "deep.ts"]);
    assert_eq!(payload["summary"], "Returned diagnostics for 2 files.");
}

#[test]
fn json_file_with_too_many_symbols_leaves_the_server_running() {
    let sandbox = Sandbox::with_tree(
        "
        //- small.json
        { \"a\": 1 }
        ",
    );
    sandbox.tree().write("large.json", &format!("[{}{{}}]", "{},".repeat(450_000)));
    let mut client = session(&sandbox);
    let symbols = |file: &str| question(DOCUMENT_SYMBOLS, json!({ "uri": uri(&sandbox, file) }));
    let error = failure(&mut client, &symbols("large.json"));
    assert_eq!(error.data["code"], "MCP_LSP_GATEWAY/CAP_EXCEEDED");
    let details = json!({ "reason": "server_limit", "server": "json", "limit": 64 << 20 });
    assert_eq!(error.data["details"], details);
    assert_eq!(ask(&mut client, &symbols("small.json"))["symbols"][0]["name"], "a");
}

#[test]
fn cpp_file_with_a_backslash_in_its_name_is_named_and_the_others_are_checked() {
    let sandbox = Sandbox::with_tree(
        "
        //- compile_flags.txt
        -std=c++17
        //- a.cpp
        int a() { return b; }
        ",
    );
    sandbox.tree().write("c\\d.cpp", "int c() { return d; }\n");
    let mut client = session(&sandbox);
    let payload = ask(&mut client, &question(WORKSPACE_DIAGNOSTICS, json!({})));
    assert_eq!(files(&payload), ["a.cpp"]);
    let summary = payload["summary"].as_str().unwrap();
    assert!(summary.ends_with("Not checked: c\\d.cpp (clangd does not support its name)."), "{summary}");
}
