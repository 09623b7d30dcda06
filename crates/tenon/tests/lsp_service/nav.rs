//! The navigation tools over MCP on file descriptors 3 and 4.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::process::Command;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::host::{Host, Workspace};

/// MCP over two named pipes.
struct Nav {
    to: File,
    from: BufReader<File>,
    last_id: u64,
}

impl Nav {
    /// Starts the service with descriptor 3 for input and 4 for output.
    fn start(workspace: &Workspace, config: Value) -> (Host, Self) {
        let (to, from) = (workspace.sandbox.dir("tmp").join("to"), workspace.sandbox.dir("tmp").join("from"));
        for path in [&to, &from] {
            mkfifo(path, Mode::S_IRWXU).unwrap();
        }
        let service = workspace.command(&workspace.bootstrap(config));
        let mut shell: Command = workspace.sandbox.command("sh");
        shell.args(["-c", "exec \"$0\" lsp-service 3<\"$1\" 4>\"$2\""]);
        shell.arg(service.get_program()).arg(&to).arg(&from);
        for (name, value) in service.get_envs() {
            if let Some(value) = value {
                shell.env(name, value);
            }
        }
        let mut host = Host::start(&mut shell);
        let to = OpenOptions::new().write(true).open(to).unwrap();
        let from = BufReader::new(File::open(from).unwrap());
        assert_eq!(host.message()["method"], "lsp/ready");
        let mut nav = Self { to, from, last_id: 0 };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
        assert_eq!(nav.request("initialize", hello)["protocolVersion"], "2025-11-25");
        nav.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        (host, nav)
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.to, "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }));
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        let mut answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], self.last_id, "{answer}");
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    fn structured(&mut self, tool: &str, arguments: Value) -> Value {
        let mut result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"].take()
    }
}

fn range(line: u32) -> Value {
    json!({ "start": { "line": line, "character": 4 }, "end": { "line": line + 1, "character": 0 } })
}

fn script() -> Value {
    let here = |line: u32| json!({ "uri": "$root/sub/a.fake", "range": range(line) });
    json!({
        "capabilities": { "textDocumentSync": 2, "definitionProvider": true, "referencesProvider": true,
            "hoverProvider": true, "documentSymbolProvider": true, "workspaceSymbolProvider": true },
        "rules": [
            { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
            { "on": "textDocument/definition", "do": [{ "reply": [{ "targetUri": "$root/sub/a.fake", "targetRange": range(0), "targetSelectionRange": range(1) }] }] },
            { "on": "textDocument/references", "do": [{ "reply": [here(2), here(0), { "uri": "file:///etc/passwd", "range": range(0) }] }] },
            { "on": "textDocument/hover", "do": ["reply_word"] },
            { "on": "textDocument/documentSymbol", "do": [{ "reply": [
                { "name": "C", "kind": 5, "range": range(0), "selectionRange": range(0), "children": [
                    { "name": "m", "kind": 22, "range": range(1), "selectionRange": range(1) }] }] }] },
            { "on": "workspace/symbol", "do": [{ "reply": [{ "name": "f", "kind": 12, "location": here(1) }] }] },
        ],
    })
}

fn workspace() -> Workspace {
    Workspace::new("//- sub/a.fake\n😀 one bad\n    two\n    three\n").server("fake", script())
}

#[test]
fn six_tools_return_the_contract_shapes() {
    let workspace = workspace();
    let (mut host, mut nav) = Nav::start(&workspace, json!({}));
    let tools = nav.request("tools/list", json!({}));
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "lsp_goto_definition",
            "lsp_find_references",
            "lsp_hover",
            "lsp_document_symbols",
            "lsp_workspace_symbols",
            "lsp_diagnostics"
        ]
    );
    let position = json!({ "file": "sub/a.fake", "line": 1, "character": 4 });
    assert_eq!(
        nav.structured("lsp_goto_definition", position.clone()),
        json!({ "locations": [{ "file": "sub/a.fake", "line": 2, "character": 5 }] })
    );
    assert_eq!(
        nav.structured("lsp_find_references", position.clone()),
        json!({ "locations": [{ "file": "sub/a.fake", "line": 1, "character": 5 }, { "file": "sub/a.fake", "line": 3, "character": 5 }] })
    );
    assert_eq!(nav.structured("lsp_hover", position), json!({ "content": "one" }));
    let absolute = json!({ "file": workspace.path("sub/a.fake") });
    let first = json!({ "startLine": 1, "startChar": 5, "endLine": 2, "endChar": 1 });
    let second = json!({ "startLine": 2, "startChar": 5, "endLine": 3, "endChar": 1 });
    assert_eq!(
        nav.structured("lsp_document_symbols", absolute),
        json!({ "symbols": [{ "name": "C", "kind": "class", "range": first }, { "name": "m", "kind": "enumMember", "range": second }] })
    );
    assert_eq!(
        nav.structured("lsp_workspace_symbols", json!({ "query": "f" })),
        json!({ "symbols": [{ "name": "f", "kind": "function", "file": "sub/a.fake", "range": second }] })
    );
    assert_eq!(
        nav.structured("lsp_diagnostics", json!({})),
        json!({ "diagnostics": { "sub/a.fake": [{ "line": 1, "character": 8, "severity": "error", "message": "this is bad" }] } })
    );
    let text = nav.call("lsp_find_references", json!({ "file": "sub/a.fake", "line": 1, "character": 4 }));
    // The script's server has no readiness rule.
    let note = "(`fake` does not report indexing progress; results may be incomplete)";
    assert_eq!(text["content"][0]["text"], format!("sub/a.fake:1:5\nsub/a.fake:3:5\n{note}"));
    // Both channels share the same servers.
    assert_eq!(host.check(&workspace.path("sub/a.fake")).as_array().unwrap().len(), 1);
    assert_eq!(workspace.pids("fake").len(), 1);
}

#[test]
fn invalid_arguments_are_a_tool_error() {
    let workspace = workspace();
    std::os::unix::fs::symlink("/etc", workspace.sandbox.root().join("escape")).unwrap();
    let (_host, mut nav) = Nav::start(&workspace, json!({}));
    for (arguments, expected) in [
        (json!({ "file": "/etc/passwd", "line": 1, "character": 1 }), "outside the workspace"),
        (json!({ "file": "escape/passwd", "line": 1, "character": 1 }), "outside the workspace"),
        (json!({ "file": "../x", "line": 1, "character": 1 }), "outside the workspace"),
        (json!({ "file": "gone.fake", "line": 1, "character": 1 }), "no such file"),
        (json!({ "file": "sub", "line": 1, "character": 1 }), "not a regular file"),
        (json!({ "file": "sub/a.fake", "line": 99, "character": 1 }), "line 99 is past the last line, 4"),
        (
            json!({ "file": "sub/a.fake", "line": 2, "character": 99 }),
            "character 99 is past the end of the line, 8",
        ),
        (json!({ "file": "sub/a.fake", "line": 1, "character": 2 }), "no such position"),
        (json!({ "file": "sub/a.fake", "line": 0, "character": 1 }), "/line"),
        (json!({ "file": "sub/a.fake", "line": 1 }), "character"),
    ] {
        let result = nav.call("lsp_goto_definition", arguments.clone());
        assert_eq!(result["isError"], true, "{arguments}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(expected), "{arguments}: {text}");
    }
}

#[test]
fn no_result_is_an_empty_list_and_a_broken_server_is_an_error() {
    let empty = json!({ "capabilities": { "textDocumentSync": 2, "definitionProvider": true, "hoverProvider": true },
        "rules": [{ "on": "textDocument/definition", "do": [{ "reply": null }] }, { "on": "textDocument/hover", "do": ["die"] }] });
    let workspace = Workspace::new("//- a.fake\nx\n//- a.txt\nx\n").server("fake", empty);
    let (_host, mut nav) = Nav::start(&workspace, json!({}));
    let at = |file: &str| json!({ "file": file, "line": 1, "character": 1 });
    assert_eq!(nav.structured("lsp_goto_definition", at("a.fake")), json!({ "locations": [] }));
    assert_eq!(nav.structured("lsp_goto_definition", at("a.txt")), json!({ "locations": [] }));
    assert_eq!(nav.structured("lsp_hover", at("a.txt")), json!({ "content": null }));
    let broken = nav.call("lsp_hover", at("a.fake"));
    assert_eq!(broken["isError"], true);
    assert!(broken["content"][0]["text"].as_str().unwrap().contains("`fake` is broken"));
}

#[test]
fn long_lists_are_paged_and_exact_names_come_first() {
    let mut symbols: Vec<Value> = (0..250)
        .map(|line| {
            json!({ "name": format!("field{line}"), "kind": 12,
            "location": { "uri": "$root/a.fake", "range": range(line) } })
        })
        .collect();
    symbols.push(
        json!({ "name": "field", "kind": 5, "location": { "uri": "$root/a.fake", "range": range(240) } }),
    );
    let script = json!({ "capabilities": { "textDocumentSync": 2, "workspaceSymbolProvider": true },
        "rules": [{ "on": "workspace/symbol", "do": [{ "reply": symbols }] }] });
    let workspace = Workspace::new("//- a.fake\nx\n").server("fake", script);
    let (_host, mut nav) = Nav::start(&workspace, json!({}));
    let mut seen = Vec::new();
    for (offset, note) in [
        (0, "(1 to 100 of 251; continue with `offset` 100)"),
        (100, "(101 to 200 of 251; continue with `offset` 200)"),
        (200, "(201 to 251 of 251)"),
    ] {
        let page = nav.call("lsp_workspace_symbols", json!({ "query": "field", "offset": offset }));
        assert!(page["content"][0]["text"].as_str().unwrap().ends_with(note), "{page}");
        let list = page["structuredContent"]["symbols"].as_array().unwrap().clone();
        seen.extend(list.into_iter().map(|one| one["name"].as_str().unwrap().to_owned()));
    }
    assert_eq!(seen[0], "field");
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 251);
}

#[test]
fn text_names_the_library_of_a_definition_outside_and_the_name_beside_a_position() {
    let outside = json!([{ "uri": "file:///usr/lib/python3.11/json/__init__.py", "range": range(0) }]);
    let declared = json!([{ "name": "f", "kind": 12,
        "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 8 } },
        "selectionRange": { "start": { "line": 0, "character": 4 }, "end": { "line": 0, "character": 5 } } }]);
    let script = json!({
        "capabilities": { "textDocumentSync": 2, "definitionProvider": true, "hoverProvider": true,
            "documentSymbolProvider": true },
        "rules": [
            { "on": "textDocument/definition", "do": [{ "reply": outside }] },
            { "on": "textDocument/documentSymbol", "do": [{ "reply": declared }] },
            { "on": "textDocument/hover", "nth": 1, "do": [{ "reply": null }] },
            { "on": "textDocument/hover", "from": 2, "do": ["reply_word"] },
        ],
    });
    let workspace = Workspace::new("//- a.fake\ndef f():\n//- b.txt\nx\n").server("fake", script);
    let (_host, mut nav) = Nav::start(&workspace, json!({}));
    let at = json!({ "file": "a.fake", "line": 1, "character": 1 });
    let definition = nav.call("lsp_goto_definition", at.clone());
    let text = "defined outside the workspace: json/__init__.py in Python's standard library";
    assert_eq!(definition["content"][0]["text"], text);
    assert_eq!(definition["structuredContent"], json!({ "locations": [] }));
    let hover = nav.call("lsp_hover", at);
    assert_eq!(hover["content"][0]["text"], "f\n(the position is beside the name `f`; answered for 1:5)");
    let symbols = nav.call("lsp_document_symbols", json!({ "file": "a.fake" }));
    assert_eq!(symbols["content"][0]["text"], "function f 1:5", "the position of the name");
    let none = nav.call("lsp_hover", json!({ "file": "b.txt", "line": 1, "character": 1 }));
    assert_eq!(
        none["content"][0]["text"],
        "no hover information\n(no language server answers this for this file)"
    );
}

#[test]
fn navigation_can_be_turned_off() {
    let workspace = workspace();
    let mut host = workspace.start(json!({ "navigationTools": false }));
    assert_eq!(host.check(&workspace.path("sub/a.fake")).as_array().unwrap().len(), 1);
    host.close_stdin();
    assert_eq!(host.wait().code(), Some(0));
    assert_eq!(host.stderr(), "");
}

#[test]
fn diagnostics_text_says_how_many_files_were_checked() {
    let silent = json!({ "capabilities": { "textDocumentSync": 1 } });
    let linter = tenon_fake_lsp::scripts::linter();
    for (script, expected) in [
        (
            linter,
            "no diagnostics in the checked files\n(1 of 2 files checked, 1 unknown; `tenon check` checks all)",
        ),
        (silent, "unknown\n(0 of 2 files checked, 1 being checked, 1 unknown; `tenon check` checks all)"),
    ] {
        let workspace = Workspace::new("//- a.fake\nx\n//- b.fake\nbad\n").server("fake", script);
        let (mut host, mut nav) = Nav::start(&workspace, json!({ "firstTouchTimeout": 300 }));
        let text = |nav: &mut Nav| nav.call("lsp_diagnostics", json!({}))["content"][0]["text"].clone();
        assert_eq!(text(&mut nav), "unknown\n(0 of 2 files checked, 2 unknown; `tenon check` checks all)");
        host.check(&workspace.path("a.fake"));
        assert_eq!(text(&mut nav), expected);
    }
}
