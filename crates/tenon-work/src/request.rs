//! From raw arguments to a request: schema, secrets, and what all tools share.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::catalog::{Access, WorkTool};
use crate::error::WorkError;
use crate::limits;
use crate::name::WorkspaceName;
use crate::page::{MAX_CHARS, object};
use crate::secrets;

/// Delivered when a read does not say how much it can take.
const DEFAULT_CHARS: i64 = 20_000;
const DEFAULT_LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 200;
const MAX_WAIT_MS: i64 = 25_000;

/// What a write expects to find.
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

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub tool: WorkTool,
    pub workspace: WorkspaceName,
    pub guard: Guard,
    pub paging: Paging,
    /// How long to wait for news; not at all for most tools.
    pub wait: Duration,
    /// All arguments, for proposing the same call with a difference.
    pub all: Map<String, Value>,
    /// The arguments that belong to this tool alone.
    args: Map<String, Value>,
    /// What the client should know about how its arguments were read.
    pub warnings: Vec<String>,
}

impl Request {
    /// Reads raw arguments. `default` is the workspace of the daemon.
    pub(crate) fn parse(
        tool: WorkTool,
        raw: Map<String, Value>,
        default: Option<&WorkspaceName>,
    ) -> Result<Self, WorkError> {
        // Before anything walks through it at leisure.
        raw.iter().try_for_each(|(name, value)| limits::argument(name, value))?;
        let mut all = tool.check(raw)?;
        if all.values().any(holds_nul) {
            return Err(WorkError::invalid("texts must not hold the NUL character").recovery("remove it"));
        }
        let mut warnings = Vec::new();
        if tool.access() == Access::Write {
            let hidden: usize = all.iter_mut().map(|(name, value)| secrets::redact(Some(name), value)).sum();
            if hidden > 0 {
                warnings
                    .push(format!("{hidden} value(s) that look like secrets were redacted before storing"));
            }
        }
        let mut args = all.clone();
        let workspace = match take_text(&mut args, "workspace") {
            Some(name) => WorkspaceName::parse(&name)?,
            None => default.cloned().ok_or_else(|| {
                WorkError::invalid("no workspace given, and there is none to take by default")
                    .recovery("give `workspace`")
            })?,
        };
        let guard = guard(&mut args)?;
        let mut number = |name: &str, default: i64, range: RangeInclusive<i64>| {
            let asked = take_int(&mut args, name).unwrap_or(default);
            clamped(name, asked, range, &mut warnings).unsigned_abs()
        };
        let limit = number("limit", DEFAULT_LIMIT, 1..=MAX_LIMIT) as usize;
        let max_chars = number("max_chars", DEFAULT_CHARS, 0..=MAX_CHARS as i64) as usize;
        let wait = Duration::from_millis(number("wait_ms", 0, 0..=MAX_WAIT_MS));
        let paging = Paging { limit, cursor: take_text(&mut args, "cursor"), max_chars };
        Ok(Self { tool, workspace, guard, paging, wait, all, args, warnings })
    }

    /// The arguments of this tool as the type it reads them into.
    pub(crate) fn args<T: DeserializeOwned>(&self) -> Result<T, WorkError> {
        serde_json::from_value(Value::Object(self.args.clone())).map_err(|fault| {
            WorkError::invalid(fault.to_string())
                .recovery(format!("follow the input schema of {}", self.tool.name()))
        })
    }

    /// What a cursor is bound to: the arguments that decide what a list holds.
    pub(crate) fn listed(&self) -> Value {
        Value::Object(self.args.clone())
    }

    /// The same call with some arguments replaced, and with the one spelling of `expected_revision`.
    pub(crate) fn repeated_with(&self, changes: Value) -> Value {
        let mut args = self.all.clone();
        args.remove("expected_version");
        args.extend(object(changes));
        Value::Object(args)
    }
}

fn guard(args: &mut Map<String, Value>) -> Result<Guard, WorkError> {
    let revision = take_revision(args, "expected_revision")?;
    let version = take_revision(args, "expected_version")?;
    if let (Some(revision), Some(version)) = (revision, version)
        && revision != version
    {
        return Err(WorkError::invalid("expected_revision and expected_version are one thing and differ")
            .recovery("give expected_revision alone"));
    }
    Ok(Guard {
        revision: revision.or(version),
        strict: args.remove("strict_targeting").is_some_and(|flag| flag == Value::Bool(true)),
        target: take_text(args, "expected_target_id"),
    })
}

/// A number brought into its range, and a warning if it was not in it.
pub(crate) fn clamped(name: &str, asked: i64, range: RangeInclusive<i64>, warnings: &mut Vec<String>) -> i64 {
    let number = asked.clamp(*range.start(), *range.end());
    if number != asked {
        warnings.push(format!("{name} was clamped to {number}"));
    }
    number
}

fn take_text(args: &mut Map<String, Value>, name: &str) -> Option<String> {
    args.remove(name).and_then(|value| value.as_str().map(str::to_owned))
}

/// A revision is compared, so unlike a limit it must be what was sent.
fn take_revision(args: &mut Map<String, Value>, name: &str) -> Result<Option<i64>, WorkError> {
    let Some(value) = args.remove(name) else { return Ok(None) };
    let revision = value.as_i64().ok_or_else(|| {
        WorkError::invalid(format!("{name} is beyond every revision"))
            .recovery("give the revision you have read")
    })?;
    Ok(Some(revision))
}

/// Integers beyond 64 bits are as good as the largest one: whatever they limit ends earlier.
fn take_int(args: &mut Map<String, Value>, name: &str) -> Option<i64> {
    let value = args.remove(name)?;
    value.as_i64().or_else(|| value.as_f64().map(|float| float as i64))
}

/// PostgreSQL cannot keep it, so no store does.
pub(crate) fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(map) => map.iter().any(|(name, value)| name.contains('\0') || holds_nul(value)),
        _ => false,
    }
}
