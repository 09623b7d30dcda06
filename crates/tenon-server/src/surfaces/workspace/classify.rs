//! Every failure of the `workspace` surface as a tool error with a code.

use serde_json::json;

use crate::surface::{CallFailure, ToolAnswer};

/// Why there is no result.
pub(super) enum Failure {
    Call(CallFailure),
    /// The input satisfies the schema but is not a composition input.
    Compose(tenon_compose::ParseError),
}

/// The tool error that a client gets.
pub(super) fn classify(failure: &Failure) -> ToolAnswer {
    let (code, message) = match failure {
        Failure::Compose(error) => ("INVALID_INPUT", error.to_string()),
        Failure::Call(CallFailure::InvalidArguments(fault)) => {
            ("INVALID_INPUT", format!("{}: {}", fault.location(), fault.message))
        }
        Failure::Call(CallFailure::Timeout(limit)) => {
            ("TIMEOUT", format!("no answer within {} ms", limit.as_millis()))
        }
        Failure::Call(CallFailure::Cancelled) => ("CANCELLED", "the call was cancelled".to_owned()),
        Failure::Call(CallFailure::ResponseTooLarge { bytes, limit }) => {
            ("RESPONSE_TOO_LARGE", format!("the answer has {bytes} bytes, {limit} are allowed"))
        }
        Failure::Call(CallFailure::Internal) => {
            ("INTERNAL", "the tool failed; see the daemon's log".to_owned())
        }
    };
    ToolAnswer::text(json!({"error": {"code": code, "message": message}}).to_string()).failed()
}
