//! What must be true when all agents are quiet: files, plans, diagnostics and references.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tenon_testkit::direct_server::uri;
use tenon_testkit::program::tool;
use tenon_testkit::{McpClient, Sandbox, code_tools};

use super::agent::Agent;
use crate::changes::question::is_marked;
use crate::error::BenchError;
use crate::oracle::checker::Checker;
use crate::oracle::finding::{Counts, Finding};

/// How often a pending answer is asked for again.
const RETRIES: usize = 60;

/// An answer of the `code` surface.
enum CodeAnswer {
    Found(Value),
    /// The answer says that it may be incomplete, or stays pending.
    Open,
    Failed(String),
}

fn ask(client: &mut McpClient, tool: &str, arguments: &Value) -> CodeAnswer {
    for _ in 0..RETRIES {
        match client.call_tool(tool, arguments.clone()) {
            Ok(answer) if is_marked(&answer) => return CodeAnswer::Open,
            Ok(answer) => return CodeAnswer::Found(answer.structured),
            Err(error) if !error.data["details"]["retryAfterMs"].is_null() => {}
            Err(error) => return CodeAnswer::Failed(format!("{} {}", error.message, error.data)),
        }
    }
    CodeAnswer::Open
}

/// The result of a check: what is wrong, and how many answers decided nothing.
#[derive(Default)]
pub(super) struct Verdict {
    pub(super) compared: usize,
    pub(super) open: usize,
    pub(super) violations: Vec<String>,
}

impl Verdict {
    fn expect(&mut self, what: &str, is_true: bool, why: impl FnOnce() -> String) {
        self.compared += 1;
        if !is_true {
            self.violations.push(format!("{what}: {}", why()));
        }
    }
}

/// Every file that an agent edited has a text that its answers allow.
pub(super) fn files(sandbox: &Sandbox, agents: &mut [Agent], verdict: &mut Verdict) {
    for agent in agents {
        for (file, edited) in &mut agent.edited {
            let text = sandbox.tree().read(file);
            verdict.expect(file, edited.texts.contains(&text), || {
                "the text on disk was never written".to_owned()
            });
            edited.texts = vec![text];
        }
    }
}

/// Every acknowledged task and note is in the store.
pub(super) fn plans(client: &mut McpClient, agents: &[Agent], verdict: &mut Verdict) {
    for (tool, titles) in [
        ("tasks_context", agents.iter().flat_map(|agent| &agent.tasks).collect::<Vec<_>>()),
        ("memory_show", agents.iter().flat_map(|agent| &agent.notes).collect()),
    ] {
        let mut pages = String::new();
        let mut cursor = None;
        loop {
            let arguments = match &cursor {
                None if tool == "memory_show" => json!({ "doc": "notes", "limit": 50 }),
                None => json!({ "limit": 50 }),
                Some(cursor) if tool == "memory_show" => {
                    json!({ "doc": "notes", "limit": 50, "cursor": cursor })
                }
                Some(cursor) => json!({ "limit": 50, "cursor": cursor }),
            };
            let page = match client.call_tool(tool, arguments) {
                Ok(page) => page.structured,
                Err(error) => {
                    verdict.violations.push(format!("{tool}: {error:?}"));
                    return;
                }
            };
            if page["success"] != true && titles.is_empty() {
                break;
            }
            pages.push_str(&page["result"].to_string());
            cursor = page["result"]["pagination"]["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        for title in titles {
            verdict.expect(tool, pages.contains(&format!("\"{title}\"")), || {
                format!("`{title}` was acknowledged and is gone")
            });
        }
    }
}

/// The errors of files are those of a command-line checker.
pub(super) fn diagnostics(
    client: &mut McpClient,
    sandbox: &Sandbox,
    checked: &Counts,
    files: &BTreeSet<String>,
    verdict: &mut Verdict,
) {
    for file in files {
        let answer = ask(client, code_tools::DOCUMENT_DIAGNOSTICS, &json!({ "uri": uri(sandbox, file) }));
        let found = match answer {
            CodeAnswer::Found(found) => found,
            CodeAnswer::Open => {
                verdict.open += 1;
                continue;
            }
            CodeAnswer::Failed(why) => {
                verdict.violations.push(format!("diagnostics of {file}: {why}"));
                continue;
            }
        };
        let errors = found["diagnostics"].as_array().into_iter().flatten().filter(|one| one["severity"] == 1);
        let finding = |one: &Value| {
            let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
            Finding::new(sandbox.root(), file, &text("code"), &text("message"))
        };
        let shown = errors.map(finding).collect::<Counts>().map(Finding::without_suggestion);
        let expected = checked.only(|finding| finding.file == *file).map(Finding::without_suggestion);
        let (missing, wrong) = (expected.minus(&shown), shown.minus(&expected));
        verdict.expect(&format!("diagnostics of {file}"), missing.is_empty() && wrong.is_empty(), || {
            let list =
                |counts: &Counts| -> Vec<String> { counts.iter().map(|(one, _)| one.to_string()).collect() };
            format!("missing {:?}, wrong {:?}", list(&missing), list(&wrong))
        });
    }
}

/// The errors that pyright finds in a folder from the command line.
pub(super) fn pyright(sandbox: &Sandbox, folder: &str) -> Result<Counts, BenchError> {
    let output = sandbox.command(tool("pyright")).args(["--outputjson", folder]).output()?;
    let report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| BenchError::new(format!("pyright printed no report: {error}")))?;
    let root = format!("{}/", sandbox.root().display());
    let all = report["generalDiagnostics"].as_array().into_iter().flatten();
    let errors = all.filter(|one| one["severity"] == "error");
    Ok(errors
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap_or_default();
            let file = text("file").trim_start_matches(&root).to_owned();
            Finding::new(sandbox.root(), &file, text("rule"), text("message"))
        })
        .collect())
}

/// The errors that TypeScript finds in the whole project.
pub(super) fn typescript(checker: &mut Checker, sandbox: &Sandbox) -> Result<Counts, BenchError> {
    Ok(checker.findings(sandbox, None)?.findings)
}

/// The references of a name that only one thing has are where a word search finds it, so no answer shows old text.
pub(super) fn references(
    client: &mut McpClient,
    sandbox: &Sandbox,
    (file, line, character): (&str, u32, u32),
    name: &str,
    users: &[String],
    verdict: &mut Verdict,
) {
    let mut expected = BTreeSet::new();
    for user in users {
        for (number, text) in sandbox.tree().read(user).lines().enumerate() {
            expected.extend(words(text, name).map(|column| (user.clone(), number, column)));
        }
    }
    let mut arguments = code_tools::at(&uri(sandbox, file), line, character);
    arguments["includeDeclaration"] = json!(true);
    let mut found = BTreeSet::new();
    loop {
        let page = match ask(client, code_tools::REFERENCES, &arguments) {
            CodeAnswer::Found(page) => page,
            CodeAnswer::Open => {
                verdict.open += 1;
                return;
            }
            CodeAnswer::Failed(why) => {
                verdict.violations.push(format!("references of {name} in {file}: {why}"));
                return;
            }
        };
        let root = format!("file://{}/", sandbox.root().display());
        let number = |value: &Value| {
            value.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default()
        };
        found.extend(page["items"].as_array().into_iter().flatten().map(|item| {
            let start = &item["range"]["start"];
            let file = item["uri"].as_str().unwrap_or_default().trim_start_matches(&root).to_owned();
            (file, number(&start["line"]), number(&start["character"]))
        }));
        match page["nextCursor"].as_str() {
            Some(cursor) => arguments["cursor"] = json!(cursor),
            None => break,
        }
    }
    verdict.expect(&format!("references of {name} in {file}"), found == expected, || {
        let missing: Vec<_> = expected.difference(&found).collect();
        let wrong: Vec<_> = found.difference(&expected).collect();
        format!("missing {missing:?}, wrong {wrong:?}")
    });
}

/// Where a word starts in a line, except in a path or the name of a module.
fn words<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |one: char| one.is_alphanumeric() || one == '_';
    let is_before = move |one: char| is_part(one) || ['.', '/', '"'].contains(&one);
    line.match_indices(word).map(|(start, _)| start).filter(move |start| {
        !line[..*start].ends_with(is_before) && !line[start + word.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_without_parts_of_longer_ones() {
        assert_eq!(words("hub hubs my_hub(hub)", "hub").collect::<Vec<_>>(), [0, 16]);
        assert_eq!(words("import { hub } from './hub';", "hub").collect::<Vec<_>>(), [9]);
    }
}
