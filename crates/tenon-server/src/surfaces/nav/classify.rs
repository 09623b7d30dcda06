//! Every failure of the `nav` surface as a tool error: one text for the model to read.

use tenon_contract::position::PositionError;
use tenon_contract::root::GateError;
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
        Failure::Ask(AskError::Position(error)) => {
            format!("no such position in the file: {}", one_based(*error))
        }
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

/// The error with lines and characters from 1, as the arguments count them.
fn one_based(error: PositionError) -> String {
    match error {
        PositionError::PastLastLine { line, last } => {
            let (line, last) = (u64::from(line) + 1, u64::from(last) + 1);
            format!("line {line} is past the last line, {last}")
        }
        PositionError::PastLineEnd { character, length } => {
            let (character, end) = (u64::from(character) + 1, u64::from(length) + 1);
            format!("character {character} is past the end of the line, {end}")
        }
        error => error.to_string(),
    }
}
