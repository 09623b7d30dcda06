//! Gathers what belongs into a pack: the task with its notes, the symbols it names and who uses them, passages, problems.

use std::sync::Arc;

use serde_json::{Value, json};
use tenon_code::explore::{Body, ExploreRequest, Explorer, Find, Problems, References};
use tenon_context::{FindError, FindRequest, PackItem, PackPart, PackRequest, pack};
use tenon_lsp::CallContext;
use tenon_work::WorkTool;

use super::Engine;
use super::passages::{PassageError, call_store};

/// The most symbols that a text may name.
const MAX_SYMBOLS: usize = 8;

/// Bytes of the source of a symbol, and of the list of places that use it.
const SYMBOL_BYTES: usize = 8000;
const USER_BYTES: usize = 2500;
const PROBLEM_BYTES: usize = 4000;

/// Characters that are read of a task.
const TASK_CHARS: usize = 20_000;

impl Engine {
    /// One bounded bundle for an agent.
    pub(crate) async fn context_pack(
        self: &Arc<Self>,
        request: PackRequest,
        call: &CallContext,
    ) -> Result<String, PassageError> {
        if request.budget == 0 || request.budget > FindRequest::MAX_BUDGET {
            return Err(FindError::Budget { limit: FindRequest::MAX_BUDGET }.into());
        }
        let query = request.query.clone().unwrap_or_default();
        let mut items = Vec::new();
        let mut notes = Vec::new();
        let mut about = query.clone();
        if let Some(task) = self.task_items(&request, &mut items, &mut notes).await? {
            about.push('\n');
            about.push_str(&task);
        } else if query.trim().is_empty() {
            return Err(PassageError::Task("no task is focused; give `task` or `query`".to_owned()));
        }
        items.retain(|item| request.includes(item.part));
        let explorer = self.explorer().await?;
        let names = named_symbols(explorer, &about, call).await;
        for name in &names {
            self.symbol_items(explorer, name, &request, call, &mut items).await;
        }
        if request.includes(PackPart::Passages) {
            // Words of the task that are asked in a query count once.
            let query = if query.trim().is_empty() { about.clone() } else { query };
            let query = query[..query.floor_char_boundary(FindRequest::MAX_QUERY_BYTES)].to_owned();
            let find = FindRequest { query, budget: Some(request.budget), ..FindRequest::default() };
            let found = self.find_passages(find, call).await?;
            let passages = found.passages.iter().map(|passage| PackItem {
                part: PackPart::Passages,
                title: format!("{} {}", passage.address(), passage.place).trim_end().to_owned(),
                reason: format!("matches the question ({:.1}: {})", passage.score, passage.reason),
                text: passage.text.clone(),
                short: None,
            });
            items.extend(passages);
            notes.extend(found.notes);
        }
        if request.includes(PackPart::Problems) {
            let problems = Problems {
                scope: None,
                since: None,
                fixes: false,
                cursor: None,
                max_bytes: Some(PROBLEM_BYTES),
            };
            let text = match explorer.answer(ExploreRequest::Problems(problems), call).await {
                Ok(text) => text,
                Err(error) => format!("not checked: {error}"),
            };
            let short = text.lines().next().map(str::to_owned);
            items.push(PackItem {
                part: PackPart::Problems,
                title: "current problems".to_owned(),
                reason: "errors and warnings in changed files".to_owned(),
                text,
                short,
            });
        }
        let packed = tokio::task::spawn_blocking(move || pack(&items, &notes, &request));
        packed.await.map_err(|_| PassageError::Internal)
    }

    /// The named or focused task with its notes. Returns what it is about, `None` if there is none.
    async fn task_items(
        &self,
        request: &PackRequest,
        items: &mut Vec<PackItem>,
        notes: &mut Vec<String>,
    ) -> Result<Option<String>, PassageError> {
        let Some(store) = self.store.get().filter(|store| request.task.is_some() || store.exists()) else {
            return Ok(None);
        };
        let mut arguments = json!({ "max_chars": TASK_CHARS });
        if let Some(task) = &request.task {
            arguments["task"] = json!(task);
        }
        let resumed = match call_store(store, WorkTool::TasksResume, arguments).await {
            Ok(resumed) => resumed,
            Err(message) if request.task.is_some() => return Err(PassageError::Task(message)),
            Err(message) => {
                notes.push(format!("no task: {message}"));
                return Ok(None);
            }
        };
        let target = &resumed["target"];
        let Some(id) = target["id"].as_str() else { return Ok(None) };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let title = text(&target["title"]);
        let arguments = json!({ "ids": [id], "max_chars": TASK_CHARS });
        let listed = call_store(store, WorkTool::TasksContext, arguments).await.unwrap_or_default();
        let is_plan = id.starts_with("PLAN");
        let full = &listed[if is_plan { "plans" } else { "tasks" }][0];
        let mut body = String::new();
        for field in ["description", "contract"] {
            if let Some(text) = full[field].as_str().filter(|text| !text.trim().is_empty()) {
                body.push_str(text.trim());
                body.push('\n');
            }
        }
        for step in resumed["steps"].as_array().into_iter().flatten() {
            let done = if step["completed"].as_bool() == Some(true) { "done" } else { "open" };
            body.push_str(&format!("{done} {} {}\n", text(&step["path"]), text(&step["title"])));
            for criterion in step["success_criteria"].as_array().into_iter().flatten() {
                body.push_str(&format!("  - {}\n", text(criterion)));
            }
        }
        let reason = if request.task.is_some() { "the named task" } else { "the focused task" };
        let mut about = format!("{title}\n{body}");
        items.push(PackItem {
            part: PackPart::Task,
            title: format!("{id} {title}"),
            reason: reason.to_owned(),
            short: Some(title),
            text: body,
        });
        for entry in resumed["notes"].as_array().into_iter().flatten() {
            let content = text(&entry["content"]);
            about.push_str(&content);
            items.push(PackItem {
                part: PackPart::Notes,
                title: entry["title"]
                    .as_str()
                    .map_or_else(|| format!("note {}", entry["seq"]), str::to_owned),
                reason: format!("note of {id}"),
                short: None,
                text: content,
            });
        }
        for card in resumed["cards"].as_array().into_iter().flatten() {
            let title = card["title"].as_str().or(card["id"].as_str()).unwrap_or("card").to_owned();
            items.push(PackItem {
                part: PackPart::Notes,
                title,
                reason: format!("card of {id}"),
                short: None,
                text: text(&card["text"]),
            });
        }
        Ok(Some(about))
    }

    async fn symbol_items(
        &self,
        explorer: &Arc<Explorer>,
        name: &str,
        request: &PackRequest,
        call: &CallContext,
        items: &mut Vec<PackItem>,
    ) {
        let find = |body: Body| Find {
            name: name.to_owned(),
            kind: None,
            path: None,
            body,
            max_bytes: Some(SYMBOL_BYTES),
        };
        if request.includes(PackPart::Symbols)
            && let Ok(text) = explorer.answer(ExploreRequest::Find(find(Body::Auto)), call).await
        {
            let short = explorer.answer(ExploreRequest::Find(find(Body::No)), call).await.ok();
            let reason = format!("`{name}` is named in the task or question");
            items.push(PackItem { part: PackPart::Symbols, title: name.to_owned(), reason, text, short });
        }
        if request.includes(PackPart::Users) {
            let symbol = name.to_owned();
            let references =
                References { symbol, only: None, path: None, cursor: None, max_bytes: Some(USER_BYTES) };
            if let Ok(text) = explorer.answer(ExploreRequest::References(references), call).await {
                let short = text.lines().next().map(str::to_owned);
                let reason = format!("where `{name}` is used");
                items.push(PackItem { part: PackPart::Users, title: name.to_owned(), reason, text, short });
            }
        }
    }
}

/// Identifiers in a text that name few declarations, in the order of the text.
async fn named_symbols(explorer: &Arc<Explorer>, text: &str, call: &CallContext) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '#' | '/');
    let mut names: Vec<&str> = Vec::new();
    for word in text.split(|c: char| !is_part(c)) {
        let word = word.trim_matches(['.', ':', '#', '/', '_']);
        let is_long = word.len() > 2 && word.len() < 200;
        if is_long && !names.contains(&word) {
            names.push(word);
        }
    }
    let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    let looks_like_code = |name: &&str| {
        let inner = &name[name.chars().next().map_or(0, char::len_utf8)..];
        quoted.contains(name)
            || name.contains(['_', '#'])
            || name.contains("::")
            || inner.contains(char::is_uppercase)
            || name.contains('.')
    };
    let names: Vec<String> = names.into_iter().filter(looks_like_code).map(str::to_owned).collect();
    let mut known = explorer.declared_names(names, call).await;
    known.truncate(MAX_SYMBOLS);
    known
}
