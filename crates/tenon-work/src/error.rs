//! Errors of a call: code, message, recovery and proposed calls.
//!
//! An error is created next to the rule that it reports; this file renders it as `error` of the envelope.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::catalog::WorkTool;
use crate::id::IdError;
use crate::name::{WorkspaceName, quoted};
use crate::store::StoreError;

macro_rules! codes {
    ($($variant:ident $text:literal)*) => {
        /// `error.code` of the envelope.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum WorkErrorCode {
            $($variant),*
        }

        impl WorkErrorCode {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),*
                }
            }

            pub fn by_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.as_str() == name)
            }
        }
    };
}

codes! {
    NotInitialized "NOT_INITIALIZED"
    UnknownWorkspace "UNKNOWN_WORKSPACE"
    UnknownId "UNKNOWN_ID"
    UnknownTool "UNKNOWN_TOOL"
    InvalidName "INVALID_NAME"
    InvalidInput "INVALID_INPUT"
    RevisionMismatch "REVISION_MISMATCH"
    ExpectedTargetMismatch "EXPECTED_TARGET_MISMATCH"
    StrictTargeting "STRICT_TARGETING_REQUIRES_EXPECTED_TARGET_ID"
    CheckpointsNotConfirmed "CHECKPOINTS_NOT_CONFIRMED"
    Conflict "CONFLICT"
    BudgetExceeded "BUDGET_EXCEEDED"
    MergeNotSupported "MERGE_NOT_SUPPORTED"
    StoreError "STORE_ERROR"
    StoreBusy "STORE_BUSY"
}

/// How urgent a suggestion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    High,
    Medium,
    Low,
}

impl Priority {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// A call that would help. It becomes a suggestion after a successful dry run.
#[derive(Debug, Clone)]
pub(crate) struct Proposal {
    pub tool: WorkTool,
    pub params: Map<String, Value>,
    pub reason: String,
    pub priority: Priority,
}

impl Proposal {
    /// `params` must be a JSON object; the workspace is added to suggestions.
    pub(crate) fn new(tool: WorkTool, params: Value, reason: impl Into<String>, priority: Priority) -> Self {
        let Value::Object(params) = params else { unreachable!("every proposal is written as an object") };
        Self { tool, params, reason: reason.into(), priority }
    }
}

/// What went wrong, and what to do.
#[derive(Debug)]
pub struct WorkError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: WorkErrorCode,
    message: String,
    recovery: Option<String>,
    extra: Map<String, Value>,
    current: Option<Value>,
    proposals: Vec<Proposal>,
}

impl WorkError {
    pub(crate) fn new(code: WorkErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            code,
            message: message.into(),
            recovery: None,
            extra: Map::new(),
            current: None,
            proposals: Vec::new(),
        }))
    }

    /// The call timed out or was cancelled.
    pub fn unfinished(why: &str) -> Self {
        Self::new(WorkErrorCode::StoreBusy, why).recovery("try the same call again").with("retryable", true)
    }

    /// The response exceeds the size limit.
    pub fn too_large(bytes: usize, limit: usize) -> Self {
        Self::new(WorkErrorCode::BudgetExceeded, format!("response has {bytes} bytes, the limit is {limit}"))
            .recovery("give `max_chars` or a smaller `limit`")
    }

    /// The workspace belongs to another folder.
    pub fn other_folder(workspace: &WorkspaceName) -> Self {
        let message = format!("workspace `{workspace}` is not linked to this folder");
        Self::new(WorkErrorCode::UnknownWorkspace, message)
            .recovery(format!("ask the user to run `tenon tasks link {workspace}` in this folder"))
    }

    /// It is not known to which folder a workspace belongs.
    pub fn links(error: &std::io::Error) -> Self {
        Self::new(WorkErrorCode::StoreError, format!("cannot use the links to workspaces: {error}"))
            .recovery("make the state folder of Tenon writable")
            .with("retryable", true)
    }

    /// A bug; the log has the details.
    pub fn internal() -> Self {
        Self::new(WorkErrorCode::StoreError, "internal error")
            .recovery("see the log of the daemon")
            .with("retryable", false)
    }

    /// Arguments that are not what the schema of their tool says. `path` is a JSON pointer.
    pub fn arguments(tool: WorkTool, path: &str, message: &str) -> Self {
        let location = if path.is_empty() { "arguments".to_owned() } else { format!("`{path}`") };
        Self::invalid(format!("{location}: {message}"))
            .recovery(format!("follow the input schema of {}", tool.name()))
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(WorkErrorCode::InvalidInput, message)
    }

    pub(crate) fn unknown(what: &str, id: &str) -> Self {
        Self::new(WorkErrorCode::UnknownId, format!("{what} {} does not exist", quoted(id)))
    }

    /// An id that cannot be parsed.
    pub(crate) fn bad_id(what: &str, pattern: &str, text: &str, fault: IdError) -> Self {
        match fault {
            IdError::WrongKind => {
                Self::invalid(format!("{} is not a {what}", quoted(text))).recovery(format!("give {pattern}"))
            }
            IdError::Unknown => Self::unknown(what, text).recovery(format!("give an existing id: {pattern}")),
        }
    }

    #[must_use]
    pub(crate) fn recovery(mut self, text: impl Into<String>) -> Self {
        self.0.recovery = Some(text.into());
        self
    }

    /// Adds one of the documented extra fields of `error`.
    #[must_use]
    pub(crate) fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.0.extra.insert(field.to_owned(), value.into());
        self
    }

    /// One of the documented extra fields, if the error has it.
    pub(crate) fn extra(&self, field: &str) -> Option<&Value> {
        self.0.extra.get(field)
    }

    /// The current state of the entity that the call addressed.
    #[must_use]
    pub(crate) fn current(mut self, entity: impl Serialize) -> Self {
        self.0.current = Some(json!(entity));
        self
    }

    #[must_use]
    pub(crate) fn propose(mut self, proposal: Proposal) -> Self {
        self.0.proposals.push(proposal);
        self
    }

    /// The error after its batch was rolled back: without anything that referred to changes of the batch.
    #[must_use]
    pub(crate) fn rolled_back(mut self, still_applies: impl Fn(&Proposal) -> bool) -> Self {
        self.0.message = format!("after the earlier operations: {}", self.0.message);
        let recovery = self.0.recovery.take().unwrap_or_else(|| "fix the operation".into());
        self.0.recovery = Some(format!("batch rolled back; {recovery}"));
        self.0.extra.remove("actual");
        self.0.current = None;
        self.0.proposals.retain(still_applies);
        self
    }

    pub fn code(&self) -> WorkErrorCode {
        self.0.code
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub(crate) fn recovery_text(&self) -> Option<&str> {
        self.0.recovery.as_deref()
    }

    pub(crate) fn proposals(&self) -> &[Proposal] {
        &self.0.proposals
    }

    pub(crate) fn take_current(&mut self) -> Option<Value> {
        self.0.current.take()
    }

    /// `error` of the envelope.
    pub(crate) fn to_value(&self) -> Value {
        let mut error = self.0.extra.clone();
        error.insert("code".into(), json!(self.0.code.as_str()));
        error.insert("message".into(), json!(self.0.message));
        if let Some(recovery) = &self.0.recovery {
            error.insert("recovery".into(), json!(recovery));
        }
        Value::Object(error)
    }
}

impl From<StoreError> for WorkError {
    fn from(error: StoreError) -> Self {
        let code = if error.is_busy() { WorkErrorCode::StoreBusy } else { WorkErrorCode::StoreError };
        let mut message = error.to_string();
        if let Some(cause) = std::error::Error::source(&error) {
            message = format!("{message}: {cause}");
        }
        let failure = Self::new(code, message).with("retryable", error.is_retryable());
        match error.hint() {
            Some(hint) => failure.recovery(hint),
            None => failure,
        }
    }
}

impl std::fmt::Display for WorkError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.0.code.as_str(), self.0.message)
    }
}

impl std::error::Error for WorkError {}
