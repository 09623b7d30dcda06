//! The pages: each loads its data and has a template, and some have actions.
//!
//! A page without its data still reads: a failed part is named in the place where it would be.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tenon_compose::{ComposedEntry, EntryFields};
use tenon_server::web::DaemonAccess;

use crate::action::ActionOutcome;
use crate::composition_host::ComposedConsole;
use crate::form::Fields;
use crate::html::visible_value;
use crate::problem_board::{ProblemBoard, ProblemView};
use crate::tool_answer;

mod activity;
mod code;
mod connect;
mod context;
mod memory;
mod memory_graph;
mod overview;
mod problems;
mod source_lines;
mod tasks;
mod workspace;

/// A built-in page.
pub(crate) struct Page {
    pub(crate) owner: &'static str,
    /// The local id of the route.
    pub(crate) id: &'static str,
    pub(crate) path: &'static str,
    pub(crate) title: &'static str,
    pub(crate) template: &'static str,
    /// The topics whose changes the page shows, separated by spaces.
    pub(crate) topics: &'static str,
    pub(crate) load: fn(PageContext) -> BoxFuture<'static, PageData>,
    pub(crate) act: Option<fn(PageContext) -> BoxFuture<'static, ActionOutcome>>,
}

/// What a page may use.
pub(crate) struct PageContext {
    pub(crate) access: DaemonAccess,
    pub(crate) problems: Arc<ProblemBoard>,
    pub(crate) composed: Arc<ComposedConsole>,
    /// The query of the page, or the fields of the form.
    pub(crate) query: Fields,
}

/// What a page shows.
pub(crate) struct PageData {
    pub(crate) props: Value,
    /// Surfaces inside the page.
    pub(crate) slots: Vec<Slot>,
    /// Instead of the title of the route.
    pub(crate) title: Option<String>,
}

/// A surface inside a page, at the mark with its number.
pub(crate) struct Slot {
    pub(crate) kind: &'static str,
    pub(crate) key: Arc<str>,
    pub(crate) props: Value,
}

impl PageData {
    pub(crate) fn new(props: Value) -> Self {
        Self { props, slots: Vec::new(), title: None }
    }
}

/// The pages, in the order of the sidebar.
pub(crate) static PAGES: &[Page] = &[
    overview::PAGE,
    problems::PAGE,
    code::PAGE,
    tasks::PAGE,
    memory::PAGE,
    context::PAGE,
    activity::PAGE,
    workspace::PAGE,
    connect::PAGE,
];

/// The props of a module's page: what docs/console.md promises, and nothing else.
pub(crate) async fn module_props(context: PageContext, route: &ComposedEntry) -> Value {
    let access = &context.access;
    let workspace = access.workspace();
    let path = match &route.fields {
        EntryFields::Route { effective_path, .. } => effective_path.to_string(),
        _ => String::new(),
    };
    let query: serde_json::Map<String, Value> =
        context.query.iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    let calls: Vec<Value> = access.activity().calls().iter().take(20).map(|call| json!(call)).collect();
    let tasks = tool_answer::read_work(access, "tasks_context", json!({"kind": "task", "limit": 50})).await;
    let mut props = json!({
        "workspace": {"root": workspace.root(), "name": workspace.root().file_name(), "trust": workspace.trust().name()},
        "route": {"key": route.key, "path": path, "title": route.title},
        "readOnly": route.read_only,
        "data": route.render_handle.as_ref().and_then(|handle| handle.data.clone()),
        "query": query,
        "servers": access.servers(),
        "problems": problem_counts(&context.problems.known()),
        "calls": calls,
        "tasks": tasks.map(|mut result| result["tasks"].take()).unwrap_or_else(|_| json!([])),
    });
    visible_value(&mut props);
    props
}

/// Counts by severity, and whether they are of the current state.
pub(crate) fn problem_counts(view: &ProblemView) -> Value {
    let snapshot = view.snapshot.as_ref();
    let [errors, warnings, others] = snapshot.map(|snapshot| snapshot.counts()).unwrap_or_default();
    json!({
        "errors": errors, "warnings": warnings, "others": others,
        "checked": snapshot.map(|snapshot| snapshot.problems.checked), "pending": view.pending,
    })
}
