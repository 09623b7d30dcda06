//! The `workspace` surface: the state of the served workspace, and composing workspaces.
//!
//! Failures are tool errors with a code. Settings with their default value are omitted. Values that may contain a secret
//! are masked.

use std::sync::Arc;

use serde_json::{Value, json};
use tenon_work::StoreLocation;

use crate::config::{Setting, SettingOrigin};
use crate::daemon::protocol::ServerSummary;
use crate::engine::Engine;
use crate::log::redact::redact;
use crate::mcp::revision::REVISIONS;
use crate::surface::{Arguments, CallFailure, Catalog, Surface, ToolAnswer, ToolCall, ToolOutcome, tool_set};
use crate::trust::TrustState;
use crate::workspace::Workspace;

mod classify;
mod compose;
mod status_text;

use classify::{Failure, classify};

tool_set! {
    /// The tools, in the order in which they are listed.
    pub enum WorkspaceTool {
        Status reads "workspace_status"
            "Which workspace is served and how: root, allowed roots, trust, settings with their origins, \
             surfaces, language servers, store and versions.";
        Compose reads "workspace_compose"
            "Compose a host application's modules and built-ins into one workspace, under an optional policy. \
             Answers with the composition, or with structured diagnostics that name the problem, its owner and \
             a fix. Reads and changes no files.";
    }
}

/// See the module.
pub(crate) struct WorkspaceSurface {
    catalog: Catalog<WorkspaceTool>,
    workspace: Arc<Workspace>,
    /// The names of all surfaces of this service.
    surfaces: Vec<&'static str>,
    engine: Arc<Engine>,
}

impl WorkspaceSurface {
    pub(crate) const NAME: &'static str = "workspace";

    pub(crate) fn new(workspace: Arc<Workspace>, surfaces: Vec<&'static str>, engine: Arc<Engine>) -> Self {
        Self { catalog: Catalog::new(WorkspaceTool::ALL), workspace, surfaces, engine }
    }

    fn status(&self) -> ToolAnswer {
        let servers = self.engine.status();
        let status = self.structured_status(&servers);
        let text = status_text::text(&status, &servers);
        ToolAnswer::structured(status).with_text(text)
    }

    fn structured_status(&self, servers: &[ServerSummary]) -> Value {
        let workspace = &self.workspace;
        let changed = match workspace.trust() {
            TrustState::Stale { changed } => changed.as_slice(),
            _ => &[],
        };
        let made =
            workspace.settings().iter().filter(|(_, setting)| setting.origins != [SettingOrigin::Default]);
        let ignored = workspace.settings().ignored().iter().map(|ignored| {
            json!({"key": ignored.path, "origin": ignored.origin.to_string(), "reason": ignored.reason})
        });
        let versions: Vec<&str> = REVISIONS.iter().map(|revision| revision.as_str()).collect();
        json!({
            "root": workspace.root(),
            "roots": workspace.gate().roots(),
            "trust": {"state": workspace.trust().name(), "changed": changed},
            "config": {
                "settings": made.map(|(path, setting)| shown(path, setting)).collect::<Vec<_>>(),
                "ignored": ignored.collect::<Vec<_>>(),
            },
            "surfaces": self.surfaces,
            "servers": servers,
            "store": store(workspace),
            "versions": {"tenon": env!("CARGO_PKG_VERSION"), "mcp": versions},
        })
    }
}

fn shown(path: &str, setting: &Setting) -> Value {
    let origins: Vec<String> = setting.origins.iter().map(SettingOrigin::to_string).collect();
    json!({"key": path, "value": masked(&setting.value), "origin": origins.join(", ")})
}

/// `value` with secrets masked: passwords in URLs, tokens in environments of servers.
pub fn masked(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(redact(text)),
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let value = match value {
                    // The name next to the value may mark it as a secret.
                    Value::String(text) => {
                        let pair = format!("{name}={text}");
                        let clean = redact(&pair);
                        Value::from(clean.strip_prefix(&format!("{name}=")).unwrap_or(&clean))
                    }
                    other => masked(other),
                };
                (name.clone(), value)
            };
            Value::Object(members.iter().map(member).collect())
        }
        other => other.clone(),
    }
}

fn store(workspace: &Workspace) -> Value {
    match workspace.config().work.store.as_deref().map(StoreLocation::parse) {
        Some(Ok(StoreLocation::Postgres(url))) => json!({"kind": "postgres", "location": redact(&url)}),
        Some(Ok(StoreLocation::Sqlite(path))) => json!({"kind": "sqlite", "location": path}),
        Some(Err(misplaced)) => json!({"kind": "none", "problem": misplaced.to_string()}),
        None => json!({"kind": "sqlite", "location": workspace.dirs().store()}),
    }
}

impl Surface for WorkspaceSurface {
    type Tool = WorkspaceTool;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn catalog(&self) -> &Catalog<WorkspaceTool> {
        &self.catalog
    }

    async fn call(&self, tool: WorkspaceTool, arguments: Arguments, _call: ToolCall) -> ToolOutcome {
        match tool {
            WorkspaceTool::Status => Ok(self.status()),
            WorkspaceTool::Compose => {
                let composing = tokio::task::spawn_blocking(move || compose::answer(&arguments));
                composing.await.or_else(|_panic| self.classify(tool, CallFailure::Internal))
            }
        }
    }

    fn classify(&self, _tool: WorkspaceTool, failure: CallFailure) -> ToolOutcome {
        Ok(classify(&Failure::Call(failure)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_settings_are_masked_by_pattern_and_by_name() {
        let value =
            json!({"store": "postgres://ada:hunter2@db/x", "env": {"API_KEY": "abcd1234", "PLAIN": "x"}});
        let masked = masked(&value);
        assert_eq!(masked["store"], "postgres://ada:[redacted]@db/x");
        assert_eq!(masked["env"]["API_KEY"], "[redacted]");
        assert_eq!(masked["env"]["PLAIN"], "x");
    }
}
