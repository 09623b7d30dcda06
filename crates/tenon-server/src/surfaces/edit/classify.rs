//! Every failure of the `edit` surface as a tool error: code, message and hint.
//!
//! The error of a tool that edits by text is one JSON text, `{"error": {"code", "message", "hint"?, …}}`, so that the model sees
//! it. That of a tool that edits by name is one line of text with a next step.

use serde_json::{Map, Value, json};
use tenon_code::edit::EditError;
use tenon_code::symbol_edit::SymbolEditError;

use crate::surface::{CallFailure, ToolAnswer};

/// Why there is no change.
pub(super) enum Failure {
    Edit(EditError),
    ByName(SymbolEditError),
    /// The configuration of language servers is invalid.
    Servers,
    Call(CallFailure),
    /// The arguments satisfy the schema, but not their types.
    Arguments(String),
}

impl From<SymbolEditError> for Failure {
    fn from(error: SymbolEditError) -> Self {
        Self::ByName(error)
    }
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
        Failure::ByName(_) | Failure::Servers => classify_as_text(failure),
        Failure::Call(failure) => of_call(failure),
        Failure::Arguments(message) => failed("INVALID_INPUT", message, None, Map::new()),
    }
}

/// The same as text.
pub(super) fn classify_as_text(failure: &Failure) -> ToolAnswer {
    let message = match failure {
        Failure::Edit(error) => error.to_string(),
        Failure::ByName(error) => error.to_string(),
        Failure::Servers => "the configured language servers cannot be used; run `tenon doctor`".to_owned(),
        Failure::Call(failure) => call_message(failure).1,
        Failure::Arguments(message) => message.clone(),
    };
    ToolAnswer::text(message).failed()
}

fn of_edit(error: &EditError) -> ToolAnswer {
    let message = error.to_string();
    let (code, hint) = match error {
        EditError::Path(_) => ("INVALID_PATH", "name the file relative to the workspace root"),
        EditError::Outside => ("OUTSIDE", "only files inside the workspace root can be changed"),
        EditError::Protected(_) => ("PROTECTED", "ask the user to change this file"),
        EditError::NotFound => ("NOT_FOUND", "check the path, or create the file with `write_file`"),
        EditError::NotAFile => ("NOT_A_FILE", "name a regular file"),
        EditError::EmptyOldText => {
            ("OLD_TEXT_EMPTY", "give the text to replace, or overwrite the file with `write_file`")
        }
        EditError::OldTextAbsent => ("OLD_TEXT_ABSENT", "read the file again and quote it exactly"),
        EditError::OldTextAmbiguous { .. } => ("OLD_TEXT_AMBIGUOUS", "include more of the surrounding lines"),
        EditError::HashMismatch { actual: Some(_) } => {
            ("HASH_MISMATCH", "the file has changed: read it again")
        }
        EditError::HashMismatch { actual: None } => {
            ("HASH_MISMATCH", "the file does not exist; omit `expected_sha256` to create it")
        }
        EditError::HashRequired { .. } => {
            ("HASH_REQUIRED", "read the file, then give its hash in `expected_sha256`")
        }
        EditError::Changing => ("CHANGED_MEANWHILE", "another program is writing this file; try again later"),
        EditError::ReadOnly => ("READ_ONLY", "ask the user to make the file and its folder writable"),
        EditError::NotText => ("NOT_TEXT", "only UTF-8 text can be changed"),
        EditError::TooLarge { .. } => ("TOO_LARGE", "the `edit` surface does not change files of this size"),
        EditError::DiskFull => ("DISK_FULL", "ask the user to free disk space"),
        EditError::Io(_) => ("IO", "the operating system reported an error; see the message"),
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
    let (code, message) = call_message(failure);
    failed(code, &message, None, Map::new())
}

fn call_message(failure: &CallFailure) -> (&'static str, String) {
    match failure {
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
    }
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
