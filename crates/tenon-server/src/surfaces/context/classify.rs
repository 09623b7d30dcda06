//! Every failure of the `context` surface as the one error object of Context Resolve v0.

use serde::Serialize;
use serde_json::Value;
use tenon_context::{ContextErrorCode, FindError, FindRequest};

use super::{ContextTool, Request, answer, json};
use crate::engine::PassageError;
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
        (
            CallFailure::ResponseTooLarge { .. },
            ContextTool::Resolve | ContextTool::Find | ContextTool::Pack,
        ) => ContextErrorCode::InvalidBudget,
        (CallFailure::ResponseTooLarge { .. }, ContextTool::ListCaches | ContextTool::InspectCache)
        | (CallFailure::Timeout(_) | CallFailure::Cancelled | CallFailure::Internal, _) => {
            ContextErrorCode::InternalError
        }
    }
}

/// The code of a question about the workspace that failed.
pub(super) fn of_question(error: &PassageError) -> ContextErrorCode {
    match error {
        PassageError::Find(FindError::Budget { .. }) => ContextErrorCode::InvalidBudget,
        PassageError::Find(FindError::QueryTooLong { .. } | FindError::Path(_)) | PassageError::Task(_) => {
            ContextErrorCode::InvalidQuery
        }
        PassageError::Servers(_) | PassageError::Internal => ContextErrorCode::InternalError,
    }
}

/// The code of the first invalid argument in the contract's order: budget, query, cache.
pub(super) fn of_arguments(tool: ContextTool, arguments: &Arguments) -> ContextErrorCode {
    // The schema also rejects an empty name, which `Request::read` accepts: no cache has it.
    let otherwise = match tool {
        ContextTool::Find | ContextTool::Pack => of_limits(arguments),
        _ => ContextErrorCode::CacheMissing,
    };
    Request::read(tool, arguments).err().unwrap_or(otherwise)
}

/// Which limit the arguments of a question exceed.
fn of_limits(arguments: &Arguments) -> ContextErrorCode {
    let is_large = |budget: u64| budget > FindRequest::MAX_BUDGET as u64;
    match arguments.get("budget").and_then(Value::as_u64).is_some_and(is_large) {
        true => ContextErrorCode::InvalidBudget,
        false => ContextErrorCode::InvalidQuery,
    }
}
