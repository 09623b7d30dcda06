//! The protocol of the language-server service: method names, parameters and results.
//!
//! `tenon lsp-service` speaks it over pipes, with the framing of language servers; [`client::LspServiceClient`] is the client
//! for hosts that embed it. Names and shapes are a contract and must not change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::diagnostic_line::DiagnosticLine;
use crate::model::{self, Severity};
use crate::orchestrator::{self, ServerState};

#[cfg(unix)]
pub mod client;

/// The environment variable with `{"workspaceRoot": …, "config": {…}}` that a service is started with.
pub const BOOTSTRAP: &str = "LSP_BOOTSTRAP";

/// Sent by the service as the last step of the start.
pub const READY: &str = "lsp/ready";
pub const CHECK_FILE: &str = "lsp/checkFile";
pub const DIAGNOSTICS: &str = "lsp/diagnostics";
pub const GET_DIAGNOSTIC_EPOCH: &str = "lsp/getDiagnosticEpoch";
pub const DIAGNOSTICS_AFTER: &str = "lsp/diagnosticsAfter";
pub const STATUS: &str = "lsp/status";
pub const SHUTDOWN: &str = "lsp/shutdown";

/// The params of [`CHECK_FILE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckFile {
    /// Absolute.
    pub file_path: String,
    /// The text to check, even if it is empty; `None` means the text on disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The params of [`DIAGNOSTICS_AFTER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticsAfter {
    pub after_epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// One diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceDiagnostic {
    /// Relative to the workspace, with `/`.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// Counted from 1, in UTF-16 units.
    pub character: u32,
    pub severity: Severity,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// The diagnostics of files by relative path, in byte order, without clean files.
pub type Files = BTreeMap<String, Vec<ServiceDiagnostic>>;

impl ServiceDiagnostic {
    /// A server's diagnostic of `file`.
    pub fn new(file: &str, diagnostic: &model::Diagnostic) -> Self {
        let DiagnosticLine { line, character, severity, message, code, source } = diagnostic.into();
        Self { file: file.to_owned(), line, character, severity, message, code, source }
    }
}

impl From<ServiceDiagnostic> for DiagnosticLine {
    fn from(diagnostic: ServiceDiagnostic) -> Self {
        let ServiceDiagnostic { file: _, line, character, severity, message, code, source } = diagnostic;
        Self { line, character, severity, message, code, source }
    }
}

/// The status of one language server. Hosts read `id` and `status`, or `serverId` and `state`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceServerStatus {
    pub id: String,
    /// The name that the host configured it by, else `id`.
    #[serde(default)]
    pub server_id: String,
    pub status: ServerState,
    #[serde(default)]
    pub state: ServiceServerState,
    pub language: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Whether a server works, in three words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceServerState {
    /// It runs, or it was found and starts with the first file.
    Ok,
    Starting,
    /// It crashed, was not found, may not run or is switched off.
    #[default]
    Broken,
}

impl From<ServerState> for ServiceServerState {
    fn from(state: ServerState) -> Self {
        match state {
            ServerState::Idle | ServerState::Active => Self::Ok,
            ServerState::Starting => Self::Starting,
            ServerState::Broken | ServerState::Disabled | ServerState::Unavailable => Self::Broken,
        }
    }
}

impl ServiceServerStatus {
    /// The status of the server that the host calls `server_id`.
    #[must_use]
    pub fn called(mut self, server_id: &str) -> Self {
        server_id.clone_into(&mut self.server_id);
        self
    }
}

impl From<orchestrator::ServerStatus> for ServiceServerStatus {
    fn from(status: orchestrator::ServerStatus) -> Self {
        Self {
            id: status.id.to_string(),
            server_id: status.id.to_string(),
            status: status.state,
            state: status.state.into(),
            language: status.language,
            server_pid: status.pid,
            detail: status.detail,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_have_the_contracts_shapes() {
        let diagnostic = ServiceDiagnostic {
            file: "a/b.ts".to_owned(),
            line: 1,
            character: 7,
            severity: Severity::Warning,
            message: "unused".to_owned(),
            code: Some("6133".to_owned()),
            source: None,
        };
        let written = json!({ "file": "a/b.ts", "line": 1, "character": 7, "severity": "warning", "message": "unused", "code": "6133" });
        assert_eq!(serde_json::to_value(&diagnostic).unwrap(), written);
        assert_eq!(serde_json::from_value::<ServiceDiagnostic>(written).unwrap(), diagnostic);
        let status = ServiceServerStatus {
            id: "pyright".to_owned(),
            server_id: "python".to_owned(),
            status: ServerState::Active,
            state: ServiceServerState::Ok,
            language: "Python".to_owned(),
            server_pid: Some(7),
            detail: None,
        };
        let written = json!({ "id": "pyright", "serverId": "python", "status": "active", "state": "ok", "language": "Python", "serverPid": 7 });
        assert_eq!(serde_json::to_value(&status).unwrap(), written);
        assert_eq!(serde_json::from_value::<ServiceServerStatus>(written).unwrap(), status);
    }

    #[test]
    fn parameters_leave_out_what_is_not_given() {
        let check = CheckFile { file_path: "/w/a".to_owned(), text: None };
        assert_eq!(serde_json::to_value(check).unwrap(), json!({ "filePath": "/w/a" }));
        let after = DiagnosticsAfter { after_epoch: 3, wait_ms: Some(9) };
        assert_eq!(serde_json::to_value(after).unwrap(), json!({ "afterEpoch": 3, "waitMs": 9 }));
    }
}
