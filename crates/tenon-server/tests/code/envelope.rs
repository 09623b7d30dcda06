//! §3.0 and §3.1: the result around a payload.

use serde_json::{Value, json};
use tenon_fake_lsp::scripts::{location, range, reply, script, symbol};
use tenon_fake_lsp::{Builder, Workbench};
use tenon_server::surface::ContentMode;
use tenon_testkit::Revision;
use tenon_testkit::code_tools::{
    DEFINITION, DOCUMENT_DIAGNOSTICS, DOCUMENT_SYMBOLS, HOVER, REFERENCES, TOOLS, WORKSPACE_DIAGNOSTICS,
    WORKSPACE_SYMBOLS,
};

use crate::stage::Stage;

/// A server that finds something for every tool.
fn answering() -> Value {
    let here = |line: u32| location("$root/src/a.fake", [line, 0, line, 3]);
    script(&[
        reply("textDocument/definition", json!([here(1)])),
        reply("textDocument/references", json!([here(0), here(1), here(2)])),
        reply("textDocument/hover", json!({ "contents": { "kind": "markdown", "value": "**one**" } })),
        reply(
            "textDocument/documentSymbol",
            json!([{ "name": "one", "kind": 12, "range": range([0, 0, 2, 3]), "selectionRange": range([1, 0, 1, 3]) }]),
        ),
        reply("workspace/symbol", json!([symbol("one", 12, "$root/src/a.fake", [1, 0, 1, 3])])),
    ])
}

fn workspace() -> Builder {
    Workbench::new().file("src/a.fake", "one bad\none\none\n").server("fake", answering())
}

#[test]
fn s3_0_result_holds_the_payload_and_no_text() {
    let stage = Stage::open(workspace());
    for tool in TOOLS {
        let payload = stage.payload(tool, stage.arguments(tool, "src/a.fake"));
        let params = json!({ "name": tool, "arguments": stage.arguments(tool, "src/a.fake") });
        let result = stage.client().request("tools/call", params).unwrap();
        assert_eq!(result["isError"], false, "{result}");
        assert_eq!(result["content"], json!([]), "{result}");
        assert_eq!(result["structuredContent"], payload, "{tool}");
    }
}

#[test]
fn s3_0_failures_are_json_rpc_errors() {
    let stage = Stage::open(workspace());
    let params = json!({ "name": HOVER, "arguments": stage.at("src/a.fake", 9, 9) });
    let error = stage.client().request("tools/call", params).unwrap_err();
    assert_eq!(error.data["code"], "MCP_LSP_GATEWAY/NOT_FOUND");
}

#[test]
fn s3_1_every_payload_has_a_short_summary_without_a_path() {
    let stage = Stage::open(workspace());
    for (tool, expected) in [
        (DEFINITION, "Found 1 definition."),
        (REFERENCES, "Returned 2 references."),
        (HOVER, "Hover available."),
        (DOCUMENT_SYMBOLS, "Returned 1 document symbol."),
        (WORKSPACE_SYMBOLS, "Returned 1 workspace symbol."),
        (DOCUMENT_DIAGNOSTICS, "Returned 1 diagnostic."),
        (WORKSPACE_DIAGNOSTICS, "Returned diagnostics for 1 file."),
    ] {
        let payload = stage.payload(tool, stage.arguments(tool, "src/a.fake"));
        assert_eq!(payload["summary"], expected);
    }
}

#[test]
fn s3_0_text_content_is_a_listing_without_the_payload() {
    let stage = Stage::with(workspace(), |settings| settings.content = ContentMode::Text);
    let listing = |tool: &str| {
        stage.payload(tool, stage.arguments(tool, "src/a.fake"));
        let result = stage.client().call_tool(tool, stage.arguments(tool, "src/a.fake")).unwrap();
        assert_eq!(result.text.len(), 1);
        let text = result.text.into_iter().next().unwrap();
        assert!(!text.contains("file://") && !text.contains("{\""), "{text}");
        text
    };
    assert_eq!(listing(DEFINITION), "Found 1 definition.\nsrc/a.fake:2:1");
    assert_eq!(listing(REFERENCES), "Returned 2 references.\nsrc/a.fake:1:1\nsrc/a.fake:3:1");
    assert_eq!(listing(HOVER), "Hover available.\n**one**");
    assert_eq!(listing(DOCUMENT_SYMBOLS), "Returned 1 document symbol.\nsrc/a.fake:2:1 function one");
    assert_eq!(listing(WORKSPACE_SYMBOLS), "Returned 1 workspace symbol.\nsrc/a.fake:2:1 function one");
    assert_eq!(listing(DOCUMENT_DIAGNOSTICS), "Returned 1 diagnostic.\nsrc/a.fake:1:5 error: this is bad");
    assert_eq!(
        listing(WORKSPACE_DIAGNOSTICS),
        "Returned diagnostics for 1 file.\nsrc/a.fake:1:5 error: this is bad"
    );
    let mut arguments = stage.arguments(REFERENCES, "src/a.fake");
    arguments["pageSize"] = json!(1);
    let result = stage.client().call_tool(REFERENCES, arguments).unwrap();
    let cursor = result.structured["nextCursor"].as_str().unwrap();
    assert!(result.text[0].ends_with(&format!("\nnext cursor: {cursor}")), "{}", result.text[0]);
}

#[test]
fn s3_0_clients_that_show_only_text_get_it() {
    let stage = Stage::open(workspace());
    stage.payload(DEFINITION, stage.arguments(DEFINITION, "src/a.fake"));
    for (name, has_text) in [
        ("Cline", true),
        ("gemini-cli-mcp-client", true),
        ("windsurf-client", true),
        ("Zed", true),
        ("claude-code", false),
        ("codex-mcp-client", false),
        ("cursor-vscode", false),
        ("opencode", false),
        ("Visual Studio Code", false),
        ("another client", false),
    ] {
        for revision in [Revision::Sessions, Revision::Stateless] {
            let mut client = stage.connect(revision).named(name);
            if revision == Revision::Sessions {
                client.initialize();
            }
            let result = client.call_tool(DEFINITION, stage.arguments(DEFINITION, "src/a.fake")).unwrap();
            assert_eq!(result.structured["summary"], "Found 1 definition.");
            let expected: &[&str] = if has_text { &["Found 1 definition.\nsrc/a.fake:2:1"] } else { &[] };
            assert_eq!(result.text, expected, "{name} {revision:?}");
        }
    }
}

#[test]
fn s1_1_no_tool_changes_a_file() {
    let stage = Stage::open(workspace());
    let files = || -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![stage.bench.root()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.push((path.display().to_string(), std::fs::read(&path).unwrap()));
                }
            }
        }
        found.sort();
        found
    };
    let before = files();
    for tool in TOOLS {
        stage.payload(tool, stage.arguments(tool, "src/a.fake"));
    }
    assert_eq!(files(), before);
}

#[test]
fn s1_3_repeated_calls_have_the_same_bytes() {
    let stage = Stage::open(workspace().file("b.fake", "bad"));
    let raw = |tool: &str| {
        stage.payload(tool, stage.arguments(tool, "src/a.fake"));
        let params = json!({ "name": tool, "arguments": stage.arguments(tool, "src/a.fake") });
        stage.client().request("tools/call", params).unwrap().to_string()
    };
    let first: Vec<String> = TOOLS.iter().map(|tool| raw(tool)).collect();
    for tool in TOOLS {
        stage.payload(tool, stage.arguments(tool, "b.fake"));
    }
    for _ in 0..3 {
        let again: Vec<String> = TOOLS.iter().rev().map(|tool| raw(tool)).collect();
        assert!(again.iter().rev().eq(&first));
    }
}
