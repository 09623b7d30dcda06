//! Asks a question over MCP and compares the answer with the truth.

use std::collections::BTreeSet;
use std::fmt::Debug;

use serde_json::{Value, json};
use tenon_testkit::direct_server::uri;
use tenon_testkit::file_changes::FileQuestion;
use tenon_testkit::mcp_client::ToolResult;
use tenon_testkit::{McpClient, Sandbox, code_tools};

use crate::error::BenchError;

/// How often a pending answer is asked for again.
const RETRIES: usize = 40;

/// The surface that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    Code,
    /// `code`, with the diagnostics of the whole workspace instead of one document's.
    CodeWorkspace,
    Nav,
}

/// What an answer was worth.
pub(crate) enum Outcome {
    Right {
        /// The first answer said that it was not ready.
        pending: bool,
    },
    /// Not the truth, but marked as possibly incomplete.
    Marked(String),
    Wrong(String),
}

/// One answer.
enum Answer {
    /// The values, and whether it is marked as possibly incomplete.
    Found(Value, bool),
    Pending,
    Failed(String),
}

/// Asks until the answer is not pending, and judges it.
pub(crate) fn ask(
    client: &mut McpClient,
    sandbox: &Sandbox,
    surface: Surface,
    question: &FileQuestion,
) -> Result<Outcome, BenchError> {
    let (tool, arguments) = request(sandbox, surface, question);
    let mut pending = false;
    for _ in 0..RETRIES {
        let (found, marked) = match answer(client, tool, &arguments) {
            Answer::Pending => {
                pending = true;
                continue;
            }
            Answer::Failed(why) => return Ok(Outcome::Wrong(why)),
            Answer::Found(found, marked) => (found, marked),
        };
        return Ok(match difference(sandbox, question, &found) {
            None => Outcome::Right { pending },
            // A mark is about what is missing, not about an error that is listed and not there.
            Some(found)
                if marked && !matches!(question, FileQuestion::Diagnostics { is_broken: false, .. }) =>
            {
                Outcome::Marked(found)
            }
            Some(found) => Outcome::Wrong(found),
        });
    }
    Ok(Outcome::Wrong("pending for good".to_owned()))
}

fn request(sandbox: &Sandbox, surface: Surface, question: &FileQuestion) -> (&'static str, Value) {
    let place = |file: &str, line: u32, character: u32| match surface {
        Surface::Nav => json!({ "file": file, "line": line + 1, "character": character + 1 }),
        _ => code_tools::at(&uri(sandbox, file), line, character),
    };
    let document = |file: &str| match surface {
        Surface::Nav => json!({ "file": file }),
        _ => json!({ "uri": uri(sandbox, file) }),
    };
    let is_code = surface != Surface::Nav;
    let tool = |code: &'static str, nav: &'static str| if is_code { code } else { nav };
    match question {
        FileQuestion::DocumentSymbols { file, .. } => {
            (tool(code_tools::DOCUMENT_SYMBOLS, "lsp_document_symbols"), document(file))
        }
        FileQuestion::WorkspaceSymbols { name, .. } => {
            (tool(code_tools::WORKSPACE_SYMBOLS, "lsp_workspace_symbols"), json!({ "query": name }))
        }
        FileQuestion::References { file, line, character, .. } => {
            let mut arguments = place(file, *line, *character);
            if is_code {
                arguments["includeDeclaration"] = json!(true);
            }
            (tool(code_tools::REFERENCES, "lsp_find_references"), arguments)
        }
        FileQuestion::Definition { file, line, character, .. } => {
            (tool(code_tools::DEFINITION, "lsp_goto_definition"), place(file, *line, *character))
        }
        FileQuestion::Diagnostics { file, .. } => match surface {
            Surface::Code => (code_tools::DOCUMENT_DIAGNOSTICS, document(file)),
            Surface::CodeWorkspace => (code_tools::WORKSPACE_DIAGNOSTICS, json!({})),
            Surface::Nav => ("lsp_diagnostics", json!({})),
        },
    }
}

fn answer(client: &mut McpClient, tool: &str, arguments: &Value) -> Answer {
    let mut arguments = arguments.clone();
    let (mut items, mut marked) = (Vec::new(), false);
    loop {
        let page = match client.call_tool(tool, arguments.clone()) {
            Ok(page) => page,
            Err(error) if !error.data["details"]["retryAfterMs"].is_null() => return Answer::Pending,
            Err(error) => return Answer::Failed(format!("{}: {}", error.data["code"], error.message)),
        };
        if page.text.iter().any(|text| text.contains("ask again")) {
            return Answer::Pending;
        }
        if page.is_error {
            return Answer::Failed(page.text.join(" "));
        }
        marked |= is_marked(&page);
        let lists = ["items", "locations", "symbols", "diagnostics"].into_iter();
        let list = lists.filter_map(|key| page.structured[key].as_array()).next();
        items.extend(list.into_iter().flatten().cloned());
        let files = page.structured["diagnostics"].as_object().into_iter().flatten();
        items.extend(files.map(|(file, list)| json!({ "file": file, "diagnostics": list })));
        match page.structured["nextCursor"].as_str() {
            Some(cursor) => arguments["cursor"] = json!(cursor),
            None => return Answer::Found(Value::Array(items), marked),
        }
    }
}

/// Whether an answer says that it may be incomplete.
pub(crate) fn is_marked(page: &ToolResult) -> bool {
    const MARKS: [&str; 6] = [
        "Not proven complete",
        "Not checked",
        "Not covered",
        "may be incomplete",
        " being checked",
        " unknown",
    ];
    let summary = page.structured["summary"].as_str().unwrap_or_default();
    let texts = page.text.iter().map(String::as_str).chain([summary]);
    texts.into_iter().any(|text| MARKS.iter().any(|mark| text.contains(mark)))
}

/// How an answer differs from the truth.
fn difference(sandbox: &Sandbox, question: &FileQuestion, found: &Value) -> Option<String> {
    let items = || found.as_array().into_iter().flatten();
    let root = format!("file://{}/", sandbox.root().display());
    let file = |item: &Value| -> String {
        let uri = item["uri"].as_str().or_else(|| item["location"]["uri"].as_str());
        uri.or_else(|| item["file"].as_str()).unwrap_or_default().trim_start_matches(&root).to_owned()
    };
    let files = |items: Vec<&Value>| -> BTreeSet<String> { items.into_iter().map(file).collect() };
    let named = |name: &str| items().filter(|item| item["name"] == *name).collect::<Vec<_>>();
    match question {
        FileQuestion::DocumentSymbols { name, .. } => unequal(&!named(name).is_empty(), &true),
        FileQuestion::WorkspaceSymbols { name, files: expected } => unequal(&files(named(name)), expected),
        FileQuestion::References { files: expected, .. } => unequal(&files(items().collect()), expected),
        FileQuestion::Definition { target, .. } => {
            unequal(&files(items().collect()), &target.iter().cloned().collect())
        }
        FileQuestion::Diagnostics { file: wanted, is_broken } => {
            // The workspace's list has one item per file.
            let of_file = items().filter(|item| item.get("diagnostics").is_none() || file(item) == *wanted);
            let lists =
                of_file.map(|item| item["diagnostics"].as_array().cloned().unwrap_or(vec![item.clone()]));
            let has_error = lists.flatten().any(|one| one["severity"] == 1 || one["severity"] == "error");
            unequal(&has_error, is_broken)
        }
    }
}

fn unequal<T: Debug + PartialEq>(found: &T, expected: &T) -> Option<String> {
    (found != expected).then(|| format!("found {found:?}"))
}
