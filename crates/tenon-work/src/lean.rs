//! The eight tools of the surface `work`: tasks and memory with natural input and short texts as answers.
//!
//! They run the rules of the `tasks` and `memory` tools on the same store, each call in one transaction. Input is never
//! rejected for its form ([`natural`]); an error is one line and ends with a call that works, where there is one.

mod check;
mod closing;
mod forget;
pub(crate) mod markdown_list;
mod natural;
mod recall;
mod reference;
mod remember;
mod resume;
mod step_search;
mod task_add;
mod task_claim;
mod task_list;
mod task_show;
mod task_text;
mod task_update;
mod transfer;

use std::fmt;

use serde_json::{Map, Value, json};
use tenon_contract::json::canonical_value;

pub use check::{Check, CheckOutcome, CheckResult};
pub(crate) use resume::run as resume_text;
pub use transfer::ImportedTasks;
pub(crate) use transfer::{export as export_tasks, import as import_tasks};

use crate::catalog::{WorkTool, tool_catalog};
use crate::error::{WorkError, WorkErrorCode};
use crate::name::WorkspaceName;
use crate::store::StoreError;
use crate::vcs_head::VcsHead;
use crate::work_call::{WorkCall, WorkReply};
use natural::Fields;

/// Texts of reads have at most this many bytes, unless the call says otherwise.
const DEFAULT_BYTES: usize = 4000;
const BYTES: std::ops::RangeInclusive<usize> = 300..=64_000;

tool_catalog! {
    /// The tools of the surface `work`. Their schemas list what a model should send, not all that is accepted.
    LeanTool
    TaskAdd "task_add" Write "Add a task. A title is enough."
    TaskList "task_list" Read "List tasks; open ones by default."
    TaskShow "task_show" Read "Show a task: steps, notes, decisions, next action. Without id: the current one."
    TaskUpdate "task_update" Write "Update a task: close a step, add a note, set a status, or several at once."
    TaskClaim "task_claim" Write "Claim a task, so that no other agent takes it. Without id: the next ready one."
    Remember "remember" Write "Remember a fact or a decision for later sessions."
    Recall "recall" Read "Find what was remembered, and tasks, by any of the words; best first."
    Forget "forget" Write "Forget a note that is wrong or outdated."
}

/// A call with its arguments in their one form.
#[derive(Debug, Clone)]
pub struct LeanRequest {
    tool: LeanTool,
    args: LeanArgs,
    /// Names of arguments that nothing reads.
    ignored: Vec<String>,
    caller: LeanCaller,
}

#[derive(Debug, Clone)]
enum LeanArgs {
    TaskAdd(task_add::Args),
    TaskList(task_list::Args),
    TaskShow(task_show::Args),
    TaskUpdate(task_update::Args),
    TaskClaim(task_claim::Args),
    Remember(remember::Args),
    Recall(recall::Args),
    Forget(forget::Args),
}

/// Who calls, and what the caller knows about the workspace.
#[derive(Debug, Clone, Default)]
pub struct LeanCaller {
    /// The name that claims carry.
    pub agent: String,
    /// The checked-out commit, which a closed task records.
    pub head: Option<VcsHead>,
    /// The results of the checks that [`crate::Work::lean_checks`] named.
    pub checks: Vec<CheckResult>,
}

impl LeanRequest {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// When they do not say what to do.
    pub fn read(
        tool: LeanTool,
        arguments: Map<String, Value>,
        caller: LeanCaller,
    ) -> Result<Self, LeanError> {
        let mut fields = Fields::new(arguments);
        let given = &mut fields;
        let args = match tool {
            LeanTool::TaskAdd => LeanArgs::TaskAdd(task_add::Args::read(given)?),
            LeanTool::TaskList => LeanArgs::TaskList(task_list::Args::read(given)?),
            LeanTool::TaskShow => LeanArgs::TaskShow(task_show::Args::read(given)),
            LeanTool::TaskUpdate => LeanArgs::TaskUpdate(task_update::Args::read(given)?),
            LeanTool::TaskClaim => LeanArgs::TaskClaim(task_claim::Args::read(given)),
            LeanTool::Remember => LeanArgs::Remember(remember::Args::read(given)?),
            LeanTool::Recall => LeanArgs::Recall(recall::Args::read(given)?),
            LeanTool::Forget => LeanArgs::Forget(forget::Args::read(given)?),
        };
        Ok(Self { tool, args, ignored: fields.unread(), caller })
    }

    pub fn tool(&self) -> LeanTool {
        self.tool
    }

    /// The same call with the results of checks.
    #[must_use]
    pub fn with_checks(mut self, checks: Vec<CheckResult>) -> Self {
        self.caller.checks = checks;
        self
    }

    /// The checks that the call needs before it can run.
    pub(crate) async fn checks(&self, call: &mut WorkCall<'_>) -> Result<Vec<Check>, LeanError> {
        match &self.args {
            LeanArgs::TaskUpdate(args) => Box::pin(task_update::checks(call, args, &self.caller)).await,
            _ => Ok(Vec::new()),
        }
    }

    pub(crate) async fn run(&self, call: &mut WorkCall<'_>) -> Result<LeanAnswer, LeanError> {
        let caller = &self.caller;
        // Boxed, so that a call takes the stack of one tool only.
        let mut answer = match &self.args {
            LeanArgs::TaskAdd(args) => Box::pin(task_add::run(call, args)).await?,
            LeanArgs::TaskList(args) => Box::pin(task_list::run(call, args, caller)).await?,
            LeanArgs::TaskShow(args) => Box::pin(task_show::run(call, args, caller)).await?,
            LeanArgs::TaskUpdate(args) => Box::pin(task_update::run(call, args, caller)).await?,
            LeanArgs::TaskClaim(args) => Box::pin(task_claim::run(call, args, caller)).await?,
            LeanArgs::Remember(args) => Box::pin(remember::run(call, args, caller)).await?,
            LeanArgs::Recall(args) => Box::pin(recall::run(call, args)).await?,
            LeanArgs::Forget(args) => Box::pin(forget::run(call, args)).await?,
        };
        if call.warnings.iter().any(|warning| warning.contains("look like secrets")) {
            answer.text.push_str("\nvalues that look like secrets were redacted");
        }
        if !self.ignored.is_empty() {
            answer.text.push_str(&format!("\nignored: {}", self.ignored.join(", ")));
        }
        Ok(answer)
    }
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct LeanAnswer {
    /// For models and people.
    pub text: String,
    /// For programs: the ids that the text names.
    pub data: Value,
}

impl LeanAnswer {
    fn new(text: impl Into<String>, data: Value) -> Self {
        Self { text: text.into(), data }
    }
}

/// Why a call failed: one line, and a call that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeanError {
    message: String,
    /// Leads from the message to the call: `to add it`.
    lead: Option<&'static str>,
    call: Option<String>,
    code: WorkErrorCode,
}

impl LeanError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), lead: None, call: None, code: WorkErrorCode::InvalidInput }
    }

    fn call(mut self, tool: LeanTool, arguments: Value) -> Self {
        self.call = Some(format!("{} {}", tool.name(), canonical_value(&arguments)));
        self
    }

    fn lead(mut self, lead: &'static str) -> Self {
        self.lead = Some(lead);
        self
    }

    fn code_of(mut self, code: WorkErrorCode) -> Self {
        self.code = code;
        self
    }

    /// The kind of failure, as the `tasks` tools would report it.
    pub fn code(&self) -> WorkErrorCode {
        self.code
    }

    /// What went wrong, without the call.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for LeanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message.replace(['\n', '\r'], " ");
        match (&self.call, self.lead) {
            (Some(call), Some(lead)) => write!(formatter, "{message}; {lead}: {call}"),
            (Some(call), None) => write!(formatter, "{message}: {call}"),
            (None, _) => formatter.write_str(&message),
        }
    }
}

impl std::error::Error for LeanError {}

impl From<WorkError> for LeanError {
    fn from(error: WorkError) -> Self {
        let code = error.code();
        let recovery =
            error.recovery_text().filter(|text| !text.contains("tasks_") && !text.contains("memory_"));
        let message = match recovery {
            Some(recovery) => format!("{}; {recovery}", error.message()),
            None => error.message().to_owned(),
        };
        let failure = Self::new(message).code_of(code);
        match code {
            WorkErrorCode::UnknownId => failure.call(LeanTool::TaskList, json!({})),
            _ => failure,
        }
    }
}

impl From<StoreError> for LeanError {
    fn from(error: StoreError) -> Self {
        WorkError::from(error).into()
    }
}

impl WorkCall<'_> {
    /// Runs a tool of the surfaces `tasks` and `memory` inside this call, with all its rules.
    async fn tool(&mut self, tool: WorkTool, arguments: Value) -> Result<Map<String, Value>, WorkError> {
        let Value::Object(arguments) = arguments else { unreachable!("arguments are written as an object") };
        let mut request = crate::request::WorkRequest::from_json(tool, arguments, Some(&self.ws.name))?;
        self.warnings.append(&mut request.warnings);
        let args = request.args.clone();
        let outer = std::mem::replace(&mut self.request, request);
        let reply = crate::tools::run(self, args).await;
        self.request = outer;
        Ok(match reply? {
            WorkReply::Done(result) => result,
            WorkReply::Page(page) => page.0.head,
        })
    }
}

/// The request that a [`WorkCall`] carries until a tool runs inside it.
pub(crate) fn outer_request(workspace: &WorkspaceName) -> crate::request::WorkRequest {
    crate::request::WorkRequest::from_json(WorkTool::TasksFocusGet, Map::new(), Some(workspace))
        .expect("the tool has no required arguments")
}

/// A text within a number of bytes, marked if it was cut.
fn within(text: String, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text;
    }
    let note = format!("\n… cut at {max_bytes} bytes; a larger max_bytes shows more");
    let kept = tenon_contract::budget::cut_bytes(&text, max_bytes.saturating_sub(note.len()));
    let whole_lines = kept.rfind('\n').map_or(kept, |end| &kept[..end]);
    format!("{whole_lines}{note}")
}

fn max_bytes(fields: &mut Fields) -> usize {
    let given = fields.number(&["maxbytes", "maxchars", "limitbytes"]);
    given.map_or(DEFAULT_BYTES, |bytes| bytes.clamp(*BYTES.start(), *BYTES.end()))
}
