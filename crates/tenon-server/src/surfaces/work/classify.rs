//! Failures outside the tools as errors of the domain, which renders them as envelopes.

use tenon_work::{WorkError, WorkTool};

use crate::surface::CallFailure;

pub(super) fn classify(tool: WorkTool, failure: &CallFailure) -> WorkError {
    match failure {
        CallFailure::InvalidArguments(fault) => WorkError::arguments(tool, &fault.path, &fault.message),
        CallFailure::Timeout(_) => WorkError::unfinished("the call timed out"),
        CallFailure::Cancelled => WorkError::unfinished("the call was cancelled"),
        CallFailure::ResponseTooLarge { bytes, limit } => WorkError::too_large(*bytes, *limit),
        CallFailure::Internal => WorkError::internal(),
    }
}
