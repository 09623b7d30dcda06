//! Calls and answers in the documentation are recorded from the program.
//!
//! A block `json call=SURFACE` holds `{"tool": …, "arguments": …}`. The next block is its answer on a copy of
//! `examples/polyglot`: `text answer` the text, `json answer` the structured result. All calls of a page run in order in
//! one workspace. The root is shown as `/workspace`; times are shown as the first second of 2026.

use std::collections::BTreeMap;

use serde_json::Value;
use tenon_testkit::{McpClient, Sandbox, generated};

use crate::page::{Block, Page};

const FIXED_TIME: &str = "2026-01-01T00:00:00Z";
const FIXED_MILLISECONDS: u64 = 1_767_225_600_000;

#[test]
fn generated_answers_in_pages_are_those_of_the_program() {
    let mut recorded = 0;
    for page in Page::all() {
        let blocks = page.blocks();
        if !blocks.iter().any(|block| block.info.contains(" call=")) {
            continue;
        }
        let answers = answers(&page, &blocks);
        recorded += answers.len();
        generated::check(&page.path, &page.with_blocks(&answers));
    }
    assert!(recorded > 0, "no page has a recorded call");
}

fn answers<'a>(page: &Page, blocks: &'a [Block]) -> Vec<(&'a Block, String)> {
    let sandbox = Sandbox::with_example("polyglot");
    sandbox.write_user_config(&format!("[edit]\nallow = [{:?}]\nwait_ms = 30000\n", sandbox.root()));
    build_cache(&sandbox);
    let mut clients: BTreeMap<&str, McpClient> = BTreeMap::new();
    let mut answers = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let Some(surface) = block.info.strip_prefix("json call=") else { continue };
        let location = format!("{}:{}", page.path, block.lines.start);
        let root = sandbox.root().to_str().unwrap();
        let call = block.text.replace("/workspace/", &format!("{root}/"));
        let call: Value = serde_json::from_str(&call).unwrap_or_else(|error| panic!("{location}: {error}"));
        let client = clients.entry(surface).or_insert_with(|| connect(&sandbox, surface));
        let tool = call["tool"].as_str().unwrap_or_else(|| panic!("{location}: `tool` is missing"));
        let result = client.call_tool(tool, call["arguments"].clone());
        let answer = blocks.get(index + 1).unwrap_or_else(|| panic!("{location}: no answer follows"));
        let text = match (answer.info.as_str(), result) {
            ("text answer", Ok(result)) => result.text.join("\n"),
            ("json answer", Ok(result)) => format!("{:#}", fix_times(result.structured)),
            ("json answer", Err(error)) => {
                format!(
                    "{:#}",
                    serde_json::json!({"code": error.code, "message": error.message, "data": error.data})
                )
            }
            (info, result) => panic!("{location}: `{info}` does not fit {result:?}"),
        };
        let text = text.replace(root, "/workspace");
        answers.push((answer, text));
    }
    answers
}

fn connect(sandbox: &Sandbox, surface: &str) -> McpClient {
    let cache_root = sandbox.folder().join("caches");
    let mut command = sandbox.tenon();
    command
        .args(["mcp", "--surface", surface])
        .env("TENON_CONTEXT_CACHE_ROOT", cache_root)
        .env("TENON_WORKSPACE_ID", "parcel");
    McpClient::connect(&mut command)
}

/// A cache of two documents for the `context` surface.
fn build_cache(sandbox: &Sandbox) {
    let sources = sandbox.folder().join("sources");
    std::fs::create_dir(&sources).unwrap();
    std::fs::write(sources.join("returns.md"), "# Returns\n\nA returned parcel costs half the price.\n")
        .unwrap();
    std::fs::write(sources.join("zones.md"), "# Zones\n\nA zone is the first digit of the postal code.\n")
        .unwrap();
    let mut build = sandbox.tenon();
    build
        .args(["context", "build", "--sources"])
        .arg(&sources)
        .arg("--cache")
        .arg(sandbox.folder().join("caches/handbook"));
    let output = build.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Replaces the values of fields that hold a time.
fn fix_times(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(key, value)| {
                    let time =
                        key.ends_with("_at") || key.ends_with("_ms") || key == "ts" || key == "timestamp";
                    let value = match value {
                        Value::Number(_) if time => FIXED_MILLISECONDS.into(),
                        Value::String(text) if time && text.contains('T') => FIXED_TIME.into(),
                        other => fix_times(other),
                    };
                    (key, value)
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(fix_times).collect()),
        other => other,
    }
}
