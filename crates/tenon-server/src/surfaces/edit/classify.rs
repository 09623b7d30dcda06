//! Every failure of the `edit` surface: its code, its words, and the way on.
//!
//! A failure travels as a tool error with one JSON text, `{"error": {"code", "message", "hint"?, …}}`, so that the model
//! which asked for the edit reads it.

use serde_json::{Map, Value, json};
use tenon_code::edit::EditError;

use crate::surface::{Answer, Outcome, Refusal, unknown_tool};

/// What a client gets for an edit that was not made.
pub(super) fn classify(error: &EditError) -> Answer {
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

/// What a client gets that the mechanism refused.
pub(super) fn refuse(tool: &str, refusal: Refusal) -> Outcome {
    let (code, message) = match refusal {
        Refusal::UnknownTool => return Err(unknown_tool(tool)),
        Refusal::Schema(fault) => {
            let at = if fault.path.is_empty() { "arguments" } else { &fault.path };
            ("INVALID_INPUT", format!("{at}: {}", fault.message))
        }
        Refusal::Timeout(limit) => {
            ("TIMEOUT", format!("no answer within {} ms; the file may have been changed", limit.as_millis()))
        }
        Refusal::Cancelled => {
            ("CANCELLED", "the call was cancelled; the file may have been changed".to_owned())
        }
        Refusal::ResponseTooLarge { bytes, limit } => (
            "RESPONSE_TOO_LARGE",
            format!("the file was changed, but the answer has {bytes} bytes and {limit} are allowed"),
        ),
        Refusal::Internal => ("INTERNAL", "the tool failed; the daemon's log says why".to_owned()),
    };
    Ok(refused(code, &message, None))
}

/// An error without details.
pub(super) fn refused(code: &str, message: &str, hint: Option<&str>) -> Answer {
    failed(code, message, hint, Map::new())
}

fn failed(code: &str, message: &str, hint: Option<&str>, details: Map<String, Value>) -> Answer {
    let mut error = Map::new();
    error.insert("code".to_owned(), json!(code));
    error.insert("message".to_owned(), json!(message));
    if let Some(hint) = hint {
        error.insert("hint".to_owned(), json!(hint));
    }
    error.extend(details);
    Answer::text(json!({ "error": error }).to_string()).failed()
}
