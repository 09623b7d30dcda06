//! Every failure of the `nav` surface as a tool error: one text for the model to read.

use tenon_contract::root::GateError;
use tenon_lsp::model::{Gap, GapReason};
use tenon_lsp::orchestrator::AskError;

use crate::surface::{CallFailure, ToolAnswer};

/// Why there is no result.
pub(super) enum Failure {
    /// The configured language servers cannot be used.
    Servers,
    Gate(GateError),
    Ask(AskError),
    /// The result is empty and these servers did not answer.
    Incomplete(Vec<String>),
    Call(CallFailure),
}

impl From<GateError> for Failure {
    fn from(error: GateError) -> Self {
        Self::Gate(error)
    }
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        Self::Ask(error)
    }
}

/// The tool error that a client gets.
pub(super) fn classify(failure: &Failure) -> ToolAnswer {
    let message = match failure {
        Failure::Servers => "the configured language servers cannot be used; see the log".to_owned(),
        // Reveals nothing about files outside the root.
        Failure::Gate(GateError::Denied) => "the file is outside the workspace".to_owned(),
        Failure::Gate(error) => format!("cannot read file: {error}"),
        Failure::Ask(AskError::Unreadable(error)) => format!("cannot read file: {error}"),
        Failure::Ask(AskError::Position(error)) => format!("no such position in the file: {error}"),
        Failure::Incomplete(notes) => notes.join("; "),
        Failure::Call(failure) => of_call(failure),
    };
    ToolAnswer::text(message).failed()
}

fn of_call(failure: &CallFailure) -> String {
    match failure {
        CallFailure::InvalidArguments(fault) => format!("{}: {}", fault.location(), fault.message),
        CallFailure::Timeout(limit) => format!("no answer within {} ms; ask again", limit.as_millis()),
        CallFailure::Cancelled => "the call was cancelled".to_owned(),
        CallFailure::ResponseTooLarge { bytes, limit } => {
            format!("the answer has {bytes} bytes, {limit} are allowed; narrow the request")
        }
        CallFailure::Internal => "the tool failed; see the log".to_owned(),
    }
}

/// The note for a server that did not contribute to a result.
pub(super) fn gap_note(gap: &Gap) -> Option<String> {
    let server = &gap.server;
    match &gap.why {
        GapReason::Indexing => Some(format!("`{server}` is still loading the project; ask again")),
        GapReason::Pending => Some(format!("`{server}` did not answer in time; ask again")),
        GapReason::Broken => {
            Some(format!("`{server}` is broken; restart it with `tenon servers restart {server}`"))
        }
        GapReason::Refused(message) => Some(format!("`{server}` refused: {message}")),
        GapReason::Limit => Some(format!("`{server}` does not list more than this")),
        GapReason::Unavailable(reason) => Some(format!("`{server}` is not available: {reason}")),
        GapReason::Unproven => None,
    }
}
