//! One everyday task: the calls for each product, and what tells a right answer from a wrong one.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_testkit::Sandbox;

use super::oracle::Sources;
use crate::error::BenchError;
use crate::mcp_session::McpSession;
use crate::output::log;

pub(super) struct Call {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
}

pub(super) fn call(tool: &'static str, arguments: Value) -> Call {
    Call { tool, arguments }
}

/// What the files must be afterwards.
type Check = Box<dyn Fn(&Sandbox) -> Result<(), String>>;

pub(super) struct Task {
    pub(super) name: &'static str,
    pub(super) tenon: Vec<Call>,
    pub(super) serena: Vec<Call>,
    /// The answers together contain all of these and none of those.
    pub(super) must: Vec<String>,
    pub(super) must_not: Vec<String>,
    pub(super) check: Option<Check>,
}

impl Task {
    pub(super) fn new(name: &'static str, tenon: Vec<Call>, serena: Vec<Call>) -> Self {
        Self { name, tenon, serena, must: Vec::new(), must_not: Vec::new(), check: None }
    }

    /// An edit, and what it breaks in the edited file.
    pub(super) fn errors_after_edit(name: &'static str, file: &str, old: &str, new: &str) -> Self {
        let replaced = json!({ "relative_path": file, "needle": old, "repl": new, "mode": "literal" });
        let diagnostics = json!({ "relative_path": file, "min_severity": 1 });
        Self::new(
            name,
            vec![call("edit_file", json!({ "file": file, "old_text": old, "new_text": new }))],
            vec![call("replace_content", replaced), call("get_diagnostics_for_file", diagnostics)],
        )
    }

    pub(super) fn must<S: Into<String>>(mut self, parts: impl IntoIterator<Item = S>) -> Self {
        self.must.extend(parts.into_iter().map(Into::into));
        self
    }

    pub(super) fn must_not<S: Into<String>>(mut self, parts: impl IntoIterator<Item = S>) -> Self {
        self.must_not.extend(parts.into_iter().map(Into::into));
        self
    }

    pub(super) fn check(mut self, check: impl Fn(&Sandbox) -> Result<(), String> + 'static) -> Self {
        self.check = Some(Box::new(check));
        self
    }
}

/// What one product needed.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) calls: usize,
    pub(super) bytes: usize,
    pub(super) time: Duration,
    /// Why the answer is wrong.
    pub(super) fault: Option<String>,
}

/// Performs one task, judges it and restores the files.
pub(super) fn perform(
    task: &Task,
    calls: &[Call],
    session: &mut McpSession,
    sandbox: &Sandbox,
    sources: &Sources,
) -> Result<Outcome, BenchError> {
    let start = Instant::now();
    let mut text = String::new();
    for call in calls {
        let answer = session.call(call.tool, &call.arguments)?;
        text.push_str(&answer.text);
    }
    let time = start.elapsed();
    let missing: Vec<&String> = task.must.iter().filter(|part| !text.contains(*part)).collect();
    let fault = match (missing.first(), task.must_not.iter().find(|part| text.contains(*part))) {
        (Some(first), _) => Some(format!("{} of {} missing, `{first}`", missing.len(), task.must.len())),
        (None, Some(part)) => Some(format!("contains `{part}`")),
        (None, None) => task.check.as_ref().and_then(|check| check(sandbox).err()),
    };
    if let Some(fault) = &fault {
        let shown: String = text.chars().take(600).collect();
        log(&format!("{}: {fault}\n{shown}", task.name));
    }
    sources.restore(sandbox);
    Ok(Outcome { calls: calls.len(), bytes: text.len(), time, fault })
}
