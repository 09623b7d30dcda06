//! Every failure of the `context` surface as the one error object of Context Resolve v0.

use serde::Serialize;
use tenon_context::ContextErrorCode;

use super::{ContextTool, Request, answer, json};
use crate::surface::{Arguments, CallFailure, ToolAnswer};

/// The error object as structured result and, with a newline, as text.
pub(super) fn classify(code: ContextErrorCode) -> ToolAnswer {
    #[derive(Serialize)]
    struct ErrorObject {
        error: Inner,
    }
    #[derive(Serialize)]
    struct Inner {
        code: ContextErrorCode,
        message: &'static str,
    }
    let object = ErrorObject { error: Inner { code, message: code.message() } };
    answer(json(&object) + "\n").failed()
}

pub(super) fn of_call(tool: ContextTool, failure: &CallFailure) -> ContextErrorCode {
    match (failure, tool) {
        (CallFailure::InvalidArguments(_), _) => ContextErrorCode::InvalidQuery,
        // The budget decides the size of the answer: a smaller one helps.
        (CallFailure::ResponseTooLarge { .. }, ContextTool::Resolve) => ContextErrorCode::InvalidBudget,
        (CallFailure::ResponseTooLarge { .. }, ContextTool::ListCaches | ContextTool::InspectCache)
        | (CallFailure::Timeout(_) | CallFailure::Cancelled | CallFailure::Internal, _) => {
            ContextErrorCode::InternalError
        }
    }
}

/// The code of the first invalid argument in the contract's order: budget, query, cache.
pub(super) fn of_arguments(tool: ContextTool, arguments: &Arguments) -> ContextErrorCode {
    // The schema also rejects an empty name, which `Request::read` accepts: no cache has it.
    Request::read(tool, arguments).err().unwrap_or(ContextErrorCode::CacheMissing)
}
