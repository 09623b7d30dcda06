//! A request: one call of one tool, parsed from JSON. This is the only place where arguments are JSON.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::arguments::{self, Bound};
use crate::catalog::{Access, WorkTool};
use crate::error::WorkError;
use crate::limits;
use crate::name::WorkspaceName;
use crate::page::{MAX_CHARS, object};
use crate::read_ahead::{Named, NamedStep};
use crate::secrets;
use crate::tools::ToolArgs;

/// Budget of a read without `max_chars`.
const DEFAULT_CHARS: i64 = 20_000;
const DEFAULT_LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 200;
const MAX_WAIT_MS: i64 = 25_000;

/// What a write expects of the target.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guard {
    pub revision: Option<i64>,
    pub strict: bool,
    pub target: Option<String>,
}

/// How much a read wants, and from where.
#[derive(Debug, Clone)]
pub(crate) struct Paging {
    pub limit: usize,
    pub cursor: Option<String>,
    pub max_chars: usize,
}

/// The arguments that tools share. Which of them a tool takes: [`common_names`].
#[derive(Deserialize)]
struct CommonArgs {
    workspace: Option<String>,
    expected_revision: Option<i64>,
    /// An older name of `expected_revision`.
    expected_version: Option<i64>,
    strict_targeting: Option<bool>,
    expected_target_id: Option<String>,
    limit: Option<Bound>,
    cursor: Option<String>,
    max_chars: Option<Bound>,
    wait_ms: Option<Bound>,
}

const GUARD_NAMES: &[&str] =
    &["expected_revision", "expected_version", "strict_targeting", "expected_target_id"];
const PAGE_NAMES: &[&str] = &["limit", "cursor"];
const BUDGET_NAME: &str = "max_chars";
const WAIT_NAME: &str = "wait_ms";

/// The shared arguments that a tool takes.
fn common_names(tool: WorkTool) -> Vec<&'static str> {
    let writes = tool.access() == Access::Write;
    let mut names = vec!["workspace"];
    if writes {
        names.extend(GUARD_NAMES);
    }
    if tool.is_paged() {
        names.extend(PAGE_NAMES);
    }
    if tool.is_paged() || !writes {
        names.push(BUDGET_NAME);
    }
    if tool == WorkTool::TasksDelta {
        names.push(WAIT_NAME);
    }
    names
}

/// A call that can be run.
#[derive(Debug, Clone)]
pub struct WorkRequest {
    pub(crate) tool: WorkTool,
    pub(crate) workspace: WorkspaceName,
    pub(crate) guard: Guard,
    pub(crate) paging: Paging,
    /// How long to wait for events; zero for most tools.
    wait: Duration,
    pub(crate) args: ToolArgs,
    /// All arguments as JSON in their one form: cursors are bound to them, and suggestions repeat them.
    json: Map<String, Value>,
    /// What the client should know about how its arguments were read.
    pub(crate) warnings: Vec<String>,
}

impl WorkRequest {
    /// Parses the arguments of a call. `default` is the workspace of calls that do not name one.
    ///
    /// # Errors
    /// When the arguments do not have the types that the schema of the tool gives them, or exceed a limit.
    pub fn from_json(
        tool: WorkTool,
        mut arguments: Map<String, Value>,
        default: Option<&WorkspaceName>,
    ) -> Result<Self, WorkError> {
        // First, so that nothing below works on input without bounds.
        arguments.iter().try_for_each(|(name, value)| limits::argument(name, value))?;
        if arguments.values().any(holds_nul) {
            return Err(WorkError::invalid("text contains the NUL character").recovery("remove it"));
        }
        let mut warnings = Vec::new();
        if tool.access() == Access::Write {
            let redacted: usize =
                arguments.iter_mut().map(|(name, value)| secrets::redact(Some(name), value)).sum();
            if redacted > 0 {
                warnings
                    .push(format!("{redacted} value(s) that look like secrets were redacted before storing"));
            }
        }
        let names = common_names(tool);
        let (common, own): (Map<String, Value>, Map<String, Value>) =
            arguments.into_iter().partition(|(name, _)| names.contains(&name.as_str()));
        let (mut common, mut own) = (Value::Object(common), Value::Object(own));
        let args = ToolArgs::read(tool, &mut own);
        let args = args.map_err(|error| WorkError::arguments(tool, &error.path, &error.message))?;
        let shared: CommonArgs = arguments::read(&mut common)
            .map_err(|error| WorkError::arguments(tool, &error.path, &error.message))?;

        let mut json = object(own);
        json.extend(object(common));
        let workspace = match shared.workspace {
            Some(name) => WorkspaceName::parse(&name)?,
            None => default.cloned().ok_or_else(|| {
                WorkError::invalid("no workspace given, and there is no default").recovery("give `workspace`")
            })?,
        };
        let mut bounded = |name: &str, given: Option<Bound>, default: i64, range: RangeInclusive<i64>| {
            clamped(name, given.map_or(default, |bound| bound.0), range, &mut warnings).unsigned_abs()
        };
        let limit = bounded("limit", shared.limit, DEFAULT_LIMIT, 1..=MAX_LIMIT) as usize;
        let max_chars = bounded(BUDGET_NAME, shared.max_chars, DEFAULT_CHARS, 0..=MAX_CHARS as i64) as usize;
        let wait = Duration::from_millis(bounded(WAIT_NAME, shared.wait_ms, 0, 0..=MAX_WAIT_MS));
        let guard = Guard {
            revision: revision(shared.expected_revision, shared.expected_version)?,
            strict: shared.strict_targeting.unwrap_or(false),
            target: shared.expected_target_id,
        };
        let paging = Paging { limit, cursor: shared.cursor, max_chars };
        Ok(Self { tool, workspace, guard, paging, wait, args, json, warnings })
    }

    /// The tool that is called.
    pub fn workspace(&self) -> &WorkspaceName {
        &self.workspace
    }

    pub fn tool(&self) -> WorkTool {
        self.tool
    }

    /// How long the call waits for events when there are none yet.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// The same request, answered at once.
    #[must_use]
    pub fn without_wait(mut self) -> Self {
        self.wait = Duration::ZERO;
        self
    }

    /// The plan or task and the step that the arguments name, as far as they parse.
    pub(crate) fn named(&self) -> Option<Named> {
        let text = |name: &str| self.json.get(name).and_then(Value::as_str);
        let target = ["task", "target", "parent"].into_iter().find_map(text)?.parse().ok()?;
        let by_id = || Some(NamedStep::Id(text("step_id")?.parse().ok()?));
        let by_path = || Some(NamedStep::Path(text("path")?.parse().ok()?));
        Some(Named { target, step: by_id().or_else(by_path) })
    }

    /// What a cursor is bound to: the arguments that decide what a list holds.
    pub(crate) fn own_json(&self) -> Value {
        let names = common_names(self.tool);
        let own = self.json.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        Value::Object(own.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// The arguments of the same call with some of them replaced. `expected_version` becomes `expected_revision`.
    pub(crate) fn repeated_with(&self, changes: Value) -> Value {
        let mut arguments = self.json.clone();
        arguments.remove("expected_version");
        arguments.extend(object(changes));
        Value::Object(arguments)
    }
}

/// The revision that a write expects, under either name.
fn revision(revision: Option<i64>, version: Option<i64>) -> Result<Option<i64>, WorkError> {
    if let (Some(revision), Some(version)) = (revision, version)
        && revision != version
    {
        return Err(WorkError::invalid("expected_revision and expected_version differ")
            .recovery("give expected_revision alone"));
    }
    Ok(revision.or(version))
}

/// A number brought into its range, with a warning if it was outside.
pub(crate) fn clamped(name: &str, asked: i64, range: RangeInclusive<i64>, warnings: &mut Vec<String>) -> i64 {
    let number = asked.clamp(*range.start(), *range.end());
    if number != asked {
        warnings.push(format!("{name} was clamped to {number}"));
    }
    number
}

/// PostgreSQL cannot store NUL, so no store does.
pub(crate) fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(map) => map.iter().any(|(name, value)| name.contains('\0') || holds_nul(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(tool: WorkTool, arguments: Value) -> Result<Value, String> {
        let workspace = WorkspaceName::parse("w").unwrap();
        let request = WorkRequest::from_json(tool, object(arguments), Some(&workspace));
        request.map(|request| Value::Object(request.json)).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn null_is_absent_except_in_free_form_values() {
        let args = json!({"title": "x", "parent": null, "contract_data": {"kept": null},
            "steps": [{"title": "s", "success_criteria": ["c"], "tests": null, "steps": [
                {"title": "s", "success_criteria": ["c"], "blockers": null, "steps": [
                    {"title": "s", "success_criteria": ["c"], "steps": null}]}]}]});
        let expected = json!({"title": "x", "contract_data": {"kept": null},
            "steps": [{"title": "s", "success_criteria": ["c"], "steps": [
                {"title": "s", "success_criteria": ["c"], "steps": [
                    {"title": "s", "success_criteria": ["c"]}]}]}]});
        assert_eq!(parsed(WorkTool::TasksCreate, args).unwrap(), expected);
        let verified = json!({"checkpoints": {"criteria": {"confirmed": true}, "tests": null}});
        let expected = json!({"checkpoints": {"criteria": {"confirmed": true}}});
        assert_eq!(parsed(WorkTool::TasksVerify, verified).unwrap(), expected);
        assert!(parsed(WorkTool::TasksVerify, json!({"checkpoints": {"speed": null}})).is_err());
    }

    #[test]
    fn whole_float_is_an_integer() {
        let args = json!({"claim": true, "agent": "a", "ttl_s": 5.0});
        let expected = json!({"claim": true, "agent": "a", "ttl_s": 5});
        assert_eq!(parsed(WorkTool::TasksNext, args).unwrap().to_string(), expected.to_string());
        assert!(parsed(WorkTool::TasksContext, json!({"limit": 5.0, "max_chars": 1e3})).is_ok());
        assert!(parsed(WorkTool::TasksContext, json!({"limit": 5.5})).is_err());
        assert!(parsed(WorkTool::TasksContext, json!({"limit": "5"})).is_err());
    }

    #[test]
    fn cursor_is_bound_to_the_tools_own_arguments() {
        let workspace = WorkspaceName::parse("w").unwrap();
        let arguments = json!({"task": "TASK-001", "since": null, "limit": 5, "workspace": "w"});
        let request =
            WorkRequest::from_json(WorkTool::TasksDelta, object(arguments), Some(&workspace)).unwrap();
        assert_eq!(request.own_json(), json!({"task": "TASK-001"}));
    }
}
