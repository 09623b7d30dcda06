//! The typed configuration: what the rest of the program reads.
//!
//! One struct per table of the file, one field per key; a test compares them with the list of keys.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;
use tenon_lsp::model::Severity;

use super::value;
use crate::surface::{ContentMode, ToolNames};

/// The configuration of one workspace.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub workspace: WorkspaceSection,
    pub mcp: McpSection,
    pub limits: LimitsSection,
    pub http: HttpSection,
    pub console: ConsoleSection,
    pub daemon: DaemonSection,
    pub log: LogSection,
    pub sandbox: SandboxSection,
    #[serde(default)]
    pub servers: BTreeMap<String, Value>,
    pub check: CheckSection,
    #[serde(default)]
    pub context: ContextSection,
    pub work: WorkSection,
    pub edit: EditSection,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceSection {
    pub id: Option<String>,
    pub roots: Vec<Utf8PathBuf>,
    pub ignore: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpSection {
    pub surfaces: Vec<String>,
    pub content: ContentMode,
    pub tool_names: ToolNames,
}

/// The limits of the `code` surface and of every request; never above the contract's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsSection {
    pub max_request_bytes: usize,
    pub max_response_bytes: usize,
    pub request_timeout_ms: u64,
    pub max_items_nonpaged: usize,
    pub max_page_size: usize,
    pub max_workspace_diagnostics_items_total: usize,
    pub max_workspace_symbols_items_total: usize,
    pub max_references_items_total: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpSection {
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleSection {
    pub modules: Vec<Utf8PathBuf>,
    pub policy: Option<Utf8PathBuf>,
    pub editor: EditorLinks,
}

/// The editor that links open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EditorLinks {
    None,
    Vscode,
    Cursor,
    Zed,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DaemonSection {
    #[serde(deserialize_with = "span_of_time")]
    pub idle: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSection {
    pub level: LogLevel,
    pub folder: Option<Utf8PathBuf>,
    pub max_bytes: u64,
    pub keep: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxSection {
    pub except: Vec<String>,
    pub write: Vec<Utf8PathBuf>,
}

/// The log level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckSection {
    pub severities: Vec<Severity>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextSection {
    pub cache_root: Option<Utf8PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkSection {
    pub store: Option<String>,
    pub strict: bool,
    pub run_commands: Vec<Utf8PathBuf>,
}

impl WorkSection {
    /// Whether the user allows the commands of checks in a workspace.
    pub(crate) fn runs_commands_in(&self, root: &Utf8Path) -> bool {
        contains(&self.run_commands, root)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditSection {
    pub allow: Vec<Utf8PathBuf>,
    pub severities: Vec<Severity>,
    pub wait_ms: u64,
}

impl EditSection {
    /// How long to wait for new diagnostics in other files after an edit.
    pub(crate) fn wait(&self) -> Duration {
        Duration::from_millis(self.wait_ms)
    }

    /// Whether the user allows the `edit` surface to change files of the workspace at `root`.
    pub(crate) fn allows(&self, root: &Utf8Path) -> bool {
        contains(&self.allow, root)
    }
}

/// Whether a workspace is one of these folders or below one.
fn contains(folders: &[Utf8PathBuf], root: &Utf8Path) -> bool {
    folders.iter().any(|folder| {
        let real = folder.canonicalize_utf8().unwrap_or_else(|_| folder.clone());
        root.starts_with(real)
    })
}

fn span_of_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    value::duration(&text).ok_or_else(|| de::Error::custom("not a duration"))
}
