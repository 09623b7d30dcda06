//! Every failure of the `code` surface as its JSON-RPC error: code, message and details (contract §6).
//!
//! Messages repeat neither client input nor paths outside the roots nor what a language server said, which may name one.

use serde_json::{Value, json};
use tenon_code::{CodeError, ProviderFailure, RETRY_AFTER};
use tenon_contract::cursor::CursorError;
use tenon_contract::root::GateError;

use crate::surface::{CallFailure, ErrorCode, ErrorData};

/// Longer schema messages are cut: they contain unknown field names, which are client input.
const MESSAGE_CHARACTERS: usize = 200;

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Failure {
    Code(CodeError),
    Call(CallFailure),
    UnknownTool,
    /// The arguments satisfy the schema, but not their types.
    Arguments,
    /// The configured language servers cannot be used.
    Servers,
}

/// The codes of the contract (§6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    InvalidParams,
    WorkspaceDenied,
    UriInvalid,
    CursorInvalid,
    CursorStale,
    CursorExpired,
    SnapshotTooLarge,
    NotFound,
    CapExceeded,
    ProviderUnavailable,
    Internal,
}

impl Code {
    fn as_str(self) -> &'static str {
        match self {
            Self::InvalidParams => "MCP_LSP_GATEWAY/INVALID_PARAMS",
            Self::WorkspaceDenied => "MCP_LSP_GATEWAY/WORKSPACE_DENIED",
            Self::UriInvalid => "MCP_LSP_GATEWAY/URI_INVALID",
            Self::CursorInvalid => "MCP_LSP_GATEWAY/CURSOR_INVALID",
            Self::CursorStale => "MCP_LSP_GATEWAY/CURSOR_STALE",
            Self::CursorExpired => "MCP_LSP_GATEWAY/CURSOR_EXPIRED",
            Self::SnapshotTooLarge => "MCP_LSP_GATEWAY/SNAPSHOT_TOO_LARGE",
            Self::NotFound => "MCP_LSP_GATEWAY/NOT_FOUND",
            Self::CapExceeded => "MCP_LSP_GATEWAY/CAP_EXCEEDED",
            Self::ProviderUnavailable => "MCP_LSP_GATEWAY/PROVIDER_UNAVAILABLE",
            Self::Internal => "MCP_LSP_GATEWAY/INTERNAL",
        }
    }

    /// Whether the client or the server is at fault.
    fn rpc(self) -> ErrorCode {
        match self {
            Self::InvalidParams
            | Self::WorkspaceDenied
            | Self::UriInvalid
            | Self::CursorInvalid
            | Self::CursorStale
            | Self::CursorExpired
            | Self::SnapshotTooLarge => ErrorCode::INVALID_PARAMS,
            Self::NotFound | Self::CapExceeded | Self::ProviderUnavailable | Self::Internal => {
                ErrorCode::INTERNAL_ERROR
            }
        }
    }
}

/// The error that a client gets.
pub(super) fn classify(failure: &Failure) -> ErrorData {
    let (code, message, details) = match failure {
        Failure::Code(error) => {
            let (code, details) = of_code(error);
            (code, error.to_string(), details)
        }
        Failure::Call(failure) => of_call(failure),
        Failure::UnknownTool => (Code::InvalidParams, "unknown tool".to_owned(), None),
        Failure::Arguments => (Code::InvalidParams, "the arguments are malformed".to_owned(), None),
        Failure::Servers => {
            let message = "the configured language servers cannot be used; see the log";
            (Code::ProviderUnavailable, message.to_owned(), None)
        }
    };
    let mut data = json!({ "code": code.as_str(), "message": message });
    if let Some(details) = details {
        data["details"] = details;
    }
    ErrorData::new(code.rpc(), message, Some(data))
}

fn of_code(error: &CodeError) -> (Code, Option<Value>) {
    let code = match error {
        CodeError::BlankQuery => Code::InvalidParams,
        CodeError::Gate(error) => match error {
            GateError::Denied => Code::WorkspaceDenied,
            GateError::Malformed(_) | GateError::Missing | GateError::Unresolvable => Code::UriInvalid,
            GateError::NotAFile | GateError::NotAFolder | GateError::RootMissing => Code::NotFound,
        },
        CodeError::Cursor(error) => match error {
            CursorError::Invalid(_) => Code::CursorInvalid,
            CursorError::Stale => Code::CursorStale,
        },
        CodeError::CursorExpired => Code::CursorExpired,
        CodeError::Snapshot(_) => Code::SnapshotTooLarge,
        CodeError::Unreadable(_) | CodeError::Position(_) => Code::NotFound,
        CodeError::TooMany { .. }
        | CodeError::ResponseTooLarge { .. }
        | CodeError::Timeout
        | CodeError::Indexing { .. }
        | CodeError::ServerLimit { .. }
        | CodeError::AnswerTooLarge { .. } => Code::CapExceeded,
        CodeError::NoProvider | CodeError::Provider { .. } => Code::ProviderUnavailable,
        CodeError::Cancelled | CodeError::Internal => Code::Internal,
    };
    let details = match error {
        CodeError::Snapshot(error) => Some(json!({ "bytes": error.bytes, "limit": error.limit })),
        CodeError::TooMany { limit, .. } => Some(json!({ "reason": "items", "limit": limit })),
        CodeError::ResponseTooLarge { limit, fits } => Some(too_large(*limit, *fits)),
        CodeError::Timeout => Some(json!({ "reason": "timeout", "retryAfterMs": retry_after() })),
        CodeError::Indexing { servers, progress } => {
            let mut details =
                json!({ "reason": "indexing", "retryAfterMs": retry_after(), "servers": servers });
            if let Some(progress) = progress {
                details["done"] = json!(progress.done);
                details["total"] = json!(progress.total);
                details["pending"] = json!(progress.pending);
            }
            Some(details)
        }
        CodeError::ServerLimit { server } => Some(json!({ "reason": "server_limit", "server": server })),
        CodeError::AnswerTooLarge { server, limit } => {
            Some(json!({ "reason": "server_limit", "server": server, "limit": limit }))
        }
        CodeError::Provider { server, failure: ProviderFailure::Rejected(file) } => {
            Some(json!({ "server": server, "file": file }))
        }
        CodeError::Provider { server, .. } => Some(json!({ "server": server })),
        _ => None,
    };
    (code, details)
}

fn of_call(failure: &CallFailure) -> (Code, String, Option<Value>) {
    match failure {
        CallFailure::InvalidArguments(fault) => {
            let message: String = fault.message.chars().take(MESSAGE_CHARACTERS).collect();
            let at: String = fault.path.chars().take(MESSAGE_CHARACTERS).collect();
            (Code::InvalidParams, message, Some(json!({ "at": at })))
        }
        CallFailure::Timeout(_) => {
            let error = CodeError::Timeout;
            let (code, details) = of_code(&error);
            (code, error.to_string(), details)
        }
        CallFailure::Cancelled => (Code::Internal, CodeError::Cancelled.to_string(), None),
        CallFailure::ResponseTooLarge { limit, .. } => {
            let error = CodeError::ResponseTooLarge { limit: *limit, fits: None };
            let (code, details) = of_code(&error);
            (code, error.to_string(), details)
        }
        CallFailure::Internal => (Code::Internal, CodeError::Internal.to_string(), None),
    }
}

fn too_large(limit: usize, fits: Option<usize>) -> Value {
    let mut details = json!({ "reason": "response_bytes", "limit": limit });
    if let Some(fits) = fits {
        details["pageSize"] = json!(fits);
    }
    details
}

fn retry_after() -> u64 {
    u64::try_from(RETRY_AFTER.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tenon_code::IndexingProgress;
    use tenon_contract::cursor::CursorFault;
    use tenon_contract::root::Malformed;
    use tenon_servers::registry::ServerId;

    use super::*;
    use crate::surface::SchemaFault;

    fn shown(failure: Failure) -> (i32, String) {
        let error = classify(&failure);
        let data = error.data.expect("every error has data");
        let code =
            data["code"].as_str().expect("a code").strip_prefix("MCP_LSP_GATEWAY/").expect("a namespace");
        (error.code.0, code.to_owned())
    }

    #[test]
    fn every_failure_has_its_code() {
        let code = |error: CodeError| shown(Failure::Code(error));
        let invalid = |code: &str| (-32602, code.to_owned());
        let failed = |code: &str| (-32603, code.to_owned());
        assert_eq!(code(CodeError::BlankQuery), invalid("INVALID_PARAMS"));
        assert_eq!(code(CodeError::Gate(GateError::Denied)), invalid("WORKSPACE_DENIED"));
        assert_eq!(code(CodeError::Gate(Malformed::Host.into())), invalid("URI_INVALID"));
        assert_eq!(code(CodeError::Gate(GateError::Missing)), invalid("URI_INVALID"));
        assert_eq!(code(CodeError::Gate(GateError::NotAFile)), failed("NOT_FOUND"));
        assert_eq!(code(CodeError::Gate(GateError::RootMissing)), failed("NOT_FOUND"));
        assert_eq!(
            code(CodeError::Cursor(CursorError::Invalid(CursorFault::Shape))),
            invalid("CURSOR_INVALID")
        );
        assert_eq!(code(CodeError::Cursor(CursorError::Stale)), invalid("CURSOR_STALE"));
        assert_eq!(code(CodeError::CursorExpired), invalid("CURSOR_EXPIRED"));
        assert_eq!(code(CodeError::Timeout), failed("CAP_EXCEEDED"));
        assert_eq!(code(CodeError::NoProvider), failed("PROVIDER_UNAVAILABLE"));
        assert_eq!(code(CodeError::Internal), failed("INTERNAL"));
        let schema = SchemaFault { path: "/uri".to_owned(), message: "x".repeat(5_000) };
        assert_eq!(shown(Failure::Call(CallFailure::InvalidArguments(schema))), invalid("INVALID_PARAMS"));
        assert_eq!(shown(Failure::UnknownTool), invalid("INVALID_PARAMS"));
        assert_eq!(shown(Failure::Call(CallFailure::Timeout(RETRY_AFTER))), failed("CAP_EXCEEDED"));
        assert_eq!(shown(Failure::Call(CallFailure::Cancelled)), failed("INTERNAL"));
        assert_eq!(shown(Failure::Call(CallFailure::Internal)), failed("INTERNAL"));
        assert_eq!(shown(Failure::Servers), failed("PROVIDER_UNAVAILABLE"));
    }

    #[test]
    fn indexing_error_has_progress_and_retry_time() {
        let servers = vec![ServerId::new("pyright").expect("an id")];
        let progress = IndexingProgress { done: 3, total: 9, pending: vec!["src/a.py".to_owned()] };
        let error = classify(&Failure::Code(CodeError::Indexing { servers, progress: Some(progress) }));
        let details = error.data.expect("data")["details"].clone();
        let expected = json!({
            "reason": "indexing", "retryAfterMs": 500, "servers": ["pyright"], "done": 3, "total": 9,
            "pending": ["src/a.py"],
        });
        assert_eq!(details, expected);
    }
}
