//! Every failure of the `edit` surface: its code, its words, and the way on.
//!
//! A failure travels as a tool error with one JSON text, `{"error": {"code", "message", "hint"?, …}}`, so that the model
//! which asked for the edit reads it.

use serde_json::{Map, Value, json};
use tenon_code::edit::EditError;

use crate::surface::{CallFailure, ToolAnswer};

/// Why there is no change.
pub(super) enum Failure {
    Edit(EditError),
    Call(CallFailure),
    /// The arguments satisfy the schema, but not their types.
    Arguments(String),
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        Self::Edit(error)
    }
}

/// The tool error that a client gets.
pub(super) fn classify(failure: &Failure) -> ToolAnswer {
    match failure {
        Failure::Edit(error) => of_edit(error),
        Failure::Call(failure) => of_call(failure),
        Failure::Arguments(message) => failed("INVALID_INPUT", message, None, Map::new()),
    }
}

fn of_edit(error: &EditError) -> ToolAnswer {
    let message = error.to_string();
    let (code, hint) = match error {
        EditError::Path(_) => ("INVALID_PATH", "name the file relative to the workspace root"),
        EditError::Outside => ("OUTSIDE", "only files inside the workspace root can be changed"),
        EditError::Protected(_) => ("PROTECTED", "ask the user to change this file"),
        EditError::NotFound => ("NOT_FOUND", "check the path, or make the file with `write_file`"),
        EditError::NotAFile => ("NOT_A_FILE", "name a regular file"),
        EditError::EmptyOldText => {
            ("OLD_TEXT_EMPTY", "name the text to replace, or overwrite the file with `write_file`")
        }
        EditError::OldTextAbsent => ("OLD_TEXT_ABSENT", "read the file again and quote it exactly"),
        EditError::OldTextAmbiguous { .. } => {
            ("OLD_TEXT_AMBIGUOUS", "quote more of what is around the place")
        }
        EditError::HashMismatch { actual: Some(_) } => {
            ("HASH_MISMATCH", "read the file again: it is not what it was")
        }
        EditError::HashMismatch { actual: None } => {
            ("HASH_MISMATCH", "the file is not there; leave `expected_sha256` out to make it")
        }
        EditError::HashRequired { .. } => {
            ("HASH_REQUIRED", "read the file, then say which text is to be overwritten")
        }
        EditError::Changing => ("CHANGED_MEANWHILE", "another program writes this file; ask again later"),
        EditError::ReadOnly => ("READ_ONLY", "ask the user to make the file and its folder writable"),
        EditError::NotText => ("NOT_TEXT", "only UTF-8 text can be changed"),
        EditError::TooLarge { .. } => ("TOO_LARGE", "files of this size are not changed here"),
        EditError::DiskFull => ("DISK_FULL", "ask the user to make room"),
        EditError::Io(_) => ("IO", "the system refused; its words are in the message"),
    };
    let mut details = Map::new();
    match error {
        EditError::OldTextAmbiguous { count, lines } => {
            details.insert("count".to_owned(), json!(count));
            details.insert("lines".to_owned(), json!(lines));
        }
        EditError::HashMismatch { actual: Some(actual) } | EditError::HashRequired { actual } => {
            details.insert("actual_sha256".to_owned(), json!(actual));
        }
        EditError::HashMismatch { actual: None } => {
            details.insert("actual_sha256".to_owned(), Value::Null);
        }
        _ => {}
    }
    failed(code, &message, Some(hint), details)
}

fn of_call(failure: &CallFailure) -> ToolAnswer {
    let (code, message) = match failure {
        CallFailure::InvalidArguments(fault) => {
            ("INVALID_INPUT", format!("{}: {}", fault.location(), fault.message))
        }
        CallFailure::Timeout(limit) => {
            ("TIMEOUT", format!("no answer within {} ms; the file may have been changed", limit.as_millis()))
        }
        CallFailure::Cancelled => {
            ("CANCELLED", "the call was cancelled; the file may have been changed".to_owned())
        }
        CallFailure::ResponseTooLarge { bytes, limit } => (
            "RESPONSE_TOO_LARGE",
            format!("the file was changed, but the answer has {bytes} bytes and {limit} are allowed"),
        ),
        CallFailure::Internal => ("INTERNAL", "the tool failed; see the daemon's log".to_owned()),
    };
    failed(code, &message, None, Map::new())
}

fn failed(code: &str, message: &str, hint: Option<&str>, details: Map<String, Value>) -> ToolAnswer {
    let mut error = Map::new();
    error.insert("code".to_owned(), json!(code));
    error.insert("message".to_owned(), json!(message));
    if let Some(hint) = hint {
        error.insert("hint".to_owned(), json!(hint));
    }
    error.extend(details);
    ToolAnswer::text(json!({ "error": error }).to_string()).failed()
}
