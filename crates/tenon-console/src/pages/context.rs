//! Context: document caches, and what a query would take from one within its budget.

use futures::FutureExt;
use serde_json::{Value, json};
use tenon_server::web::DaemonAccess;

use super::{Page, PageContext, PageData};
use crate::action::ActionOutcome;
use crate::form::encoded;
use crate::own_command;
use crate::svg::BudgetBar;
use crate::tool_answer;

pub(super) const PAGE: Page = Page {
    owner: "builtin-tenon-context",
    id: "context",
    path: "/context",
    title: "Context",
    template: "context.html",
    topics: "",
    load: |context| load(context).boxed(),
    act: Some(|context| act(context).boxed()),
};

/// Caches that are listed.
const MAX_CACHES: usize = 20;

/// Documents that are listed.
const MAX_DOCUMENTS: usize = 50;

/// The part of a document that is shown, in characters.
const MAX_EXCERPT: usize = 400;

/// The budget of a query that does not name one.
const BUDGET: u64 = 2_000;

async fn load(context: PageContext) -> PageData {
    let access = &context.access;
    let query = &context.query;
    let root = access.workspace().config().context.cache_root.clone();
    let listed = tool_answer::context(access, "context.list_caches", json!({})).await;
    let (caches, failure) = match listed {
        Ok(value) => (inspected(access, &value["caches"]).await, None),
        Err(failure) => (json!([]), Some(failure.message)),
    };
    let budget = query.number::<u64>("budget").unwrap_or(BUDGET);
    let cache =
        query.text("cache").map(str::to_owned).or_else(|| Some(caches.get(0)?["name"].as_str()?.to_owned()));
    let mut answer = Value::Null;
    if let (Some(cache), Some(words)) = (&cache, query.text("q")) {
        let arguments = json!({"cache": cache, "query": words, "budget": budget});
        answer = match tool_answer::context(access, "context.resolve", arguments).await {
            Ok(resolved) => shown(resolved, budget),
            Err(failure) => json!({"failure": failure.message}),
        };
    }
    let props = json!({
        "configured": root.is_some(), "cache_root": root, "caches": caches, "failure": failure, "cache": cache,
        "q": query.text("q"), "budget": budget, "answer": answer,
    });
    PageData::new(props)
}

/// The listed caches with their state.
async fn inspected(access: &DaemonAccess, listed: &Value) -> Value {
    let mut caches = Vec::new();
    for cache in listed.as_array().into_iter().flatten().take(MAX_CACHES) {
        let path = cache["path"].as_str().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        let state = tool_answer::context(access, "context.inspect_cache", json!({"cache": name})).await;
        caches.push(match state {
            Ok(state) => json!({"name": name, "state": state}),
            Err(failure) => json!({"name": name, "failure": failure.message}),
        });
    }
    json!(caches)
}

fn shown(resolved: Value, budget: u64) -> Value {
    let documents = resolved["documents"].as_array().cloned().unwrap_or_default();
    let parts: Vec<u64> = documents.iter().filter_map(|document| document["tokens"].as_u64()).collect();
    let listed: Vec<Value> = documents
        .iter()
        .take(MAX_DOCUMENTS)
        .map(|document| {
            let content: String = document["content"].as_str().unwrap_or_default().chars().take(MAX_EXCERPT).collect();
            json!({
                "id": document["id"], "tokens": document["tokens"], "score": document["score"], "why": document["why"],
                "content": content,
            })
        })
        .collect();
    json!({
        "documents": listed, "selection": resolved["selection"], "bar": BudgetBar { budget, parts },
        "more": documents.len().saturating_sub(MAX_DOCUMENTS),
    })
}

async fn act(context: PageContext) -> ActionOutcome {
    let form = &context.query;
    let workspace = context.access.workspace();
    let Some(caches) = &workspace.config().context.cache_root else {
        let text = "No folder for caches is configured: set `context.cache_root`.";
        return ActionOutcome::failed(text, "/context");
    };
    let name = form.text("cache").unwrap_or_default();
    if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
        return ActionOutcome::failed("A cache needs a plain name.", "/context");
    }
    let cache = caches.join(name);
    let page = format!("/context?cache={}", encoded(name));
    let folder = form.text("sources").unwrap_or_default();
    let sources = workspace.gate().admit_folder(workspace.root().join(folder));
    let arguments: Vec<String> = match (form.text("action"), sources) {
        (Some("verify"), _) => vec!["verify".to_owned(), "--cache".to_owned(), cache.to_string()],
        (Some("build"), Ok(sources)) => vec![
            "build".to_owned(),
            "--sources".to_owned(),
            sources.as_str().to_owned(),
            "--cache".to_owned(),
            cache.to_string(),
            "--force".to_owned(),
        ],
        (Some("build"), Err(error)) => return ActionOutcome::failed(error.to_string(), &page),
        _ => return ActionOutcome::failed("There is no such action.", &page),
    };
    let words: Vec<&str> = std::iter::once("context").chain(arguments.iter().map(String::as_str)).collect();
    match own_command::run(workspace.root(), &words).await {
        Ok(output) if output.succeeded => ActionOutcome::done(output.summary().to_owned(), &page),
        Ok(output) => ActionOutcome::failed(output.summary().to_owned(), &page).with_detail(output.stderr),
        Err(why) => ActionOutcome::failed(why, &page),
    }
}
