//! The capabilities of one server: from `initialize`, plus registrations while it runs.

use std::collections::BTreeMap;

use serde_json::Value;
use tenon_contract::position::Encoding;

use super::watched::Globs;
use tenon_servers::registry::Capability;

/// How a server receives text changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    None,
    Full,
    Incremental,
}

/// A server's capabilities. Parsed field by field, so that one invalid provider does not hide the others.
#[derive(Debug)]
pub(crate) struct Capabilities {
    offered: Value,
    registered: BTreeMap<String, Registration>,
    pub(crate) encoding: Encoding,
    pub(crate) sync: Sync,
    pub(crate) open_close: bool,
    pub(crate) save: bool,
}

#[derive(Debug)]
struct Registration {
    method: String,
    options: Value,
    globs: Option<Globs>,
}

impl Capabilities {
    /// From the answer to `initialize`.
    pub(crate) fn from_initialize(result: &Value) -> Self {
        let offered = result.get("capabilities").cloned().unwrap_or(Value::Null);
        let sync = offered.get("textDocumentSync").unwrap_or(&Value::Null);
        let kind = sync.as_u64().or_else(|| sync.get("change")?.as_u64());
        let encoding = match offered.get("positionEncoding").and_then(Value::as_str) {
            Some("utf-8") => Encoding::Utf8,
            Some("utf-32") => Encoding::Utf32,
            _ => Encoding::Utf16,
        };
        Self {
            registered: BTreeMap::new(),
            encoding,
            sync: match kind {
                Some(1) => Sync::Full,
                Some(2) => Sync::Incremental,
                _ => Sync::None,
            },
            // A bare number means both. An object without the field still means a server that keeps documents.
            open_close: sync.get("openClose").and_then(Value::as_bool).unwrap_or(true),
            save: sync.get("save").is_some_and(offers),
            offered,
        }
    }

    pub(crate) fn has(&self, capability: Capability) -> bool {
        match capability {
            // Pushed diagnostics need no capability.
            Capability::Diagnostics => true,
            _ => self.offers(provider(capability), method(capability)),
        }
    }

    fn offers(&self, provider: &str, method: &str) -> bool {
        self.offered.get(provider).is_some_and(offers) || self.registrations(method).next().is_some()
    }

    /// Whether diagnostics can be pulled.
    pub(crate) fn pulls(&self) -> bool {
        self.offers("diagnosticProvider", "textDocument/diagnostic")
    }

    /// Whether it supports folding ranges, a cheap request that needs only the text.
    pub(crate) fn folds(&self) -> bool {
        self.offers("foldingRangeProvider", "textDocument/foldingRange")
    }

    /// Whether an edit of one file may change the pulled diagnostics of another.
    pub(crate) fn has_inter_file_dependencies(&self) -> bool {
        let depends = |options: &Value| options.get("interFileDependencies") == Some(&Value::Bool(true));
        self.offered.get("diagnosticProvider").is_some_and(depends)
            || self.registrations("textDocument/diagnostic").any(|one| depends(&one.options))
    }

    /// The identifier that a diagnostics provider wants with each request.
    pub(crate) fn diagnostic_identifier(&self) -> Option<&str> {
        self.offered
            .get("diagnosticProvider")
            .and_then(|options| options.get("identifier"))
            .and_then(Value::as_str)
            .or_else(|| {
                self.registrations("textDocument/diagnostic")
                    .find_map(|one| one.options.get("identifier")?.as_str())
            })
    }

    /// Whether the server watches this file.
    pub(crate) fn watches(&self, path: &str) -> bool {
        self.registered.values().filter_map(|one| one.globs.as_ref()).any(|globs| globs.matches(path))
    }

    fn registrations(&self, method: &str) -> impl Iterator<Item = &Registration> {
        self.registered.values().filter(move |one| one.method == method)
    }

    /// `client/registerCapability`. A second registration with the same id replaces the first.
    pub(crate) fn register(&mut self, params: &Value, root: &str) {
        for registration in params.get("registrations").and_then(Value::as_array).into_iter().flatten() {
            let text = |key: &str| registration.get(key).and_then(Value::as_str);
            let (Some(id), Some(method)) = (text("id"), text("method")) else {
                continue;
            };
            let options = registration.get("registerOptions").cloned().unwrap_or(Value::Null);
            let globs = (method == "workspace/didChangeWatchedFiles").then(|| Globs::new(&options, root));
            let registration = Registration { method: method.to_owned(), options, globs };
            self.registered.insert(id.to_owned(), registration);
        }
    }

    /// `client/unregisterCapability`, whose list is misspelled in the protocol.
    pub(crate) fn unregister(&mut self, params: &Value) {
        let lists = ["unregisterations", "unregistrations"].map(|key| params.get(key));
        for one in lists.into_iter().flatten().filter_map(Value::as_array).flatten() {
            if let Some(id) = one.get("id").and_then(Value::as_str) {
                self.registered.remove(id);
            }
        }
    }
}

fn offers(provider: &Value) -> bool {
    !matches!(provider, Value::Null | Value::Bool(false))
}

fn provider(capability: Capability) -> &'static str {
    match capability {
        Capability::Diagnostics => "diagnosticProvider",
        Capability::Definition => "definitionProvider",
        Capability::References => "referencesProvider",
        Capability::Hover => "hoverProvider",
        Capability::DocumentSymbols => "documentSymbolProvider",
        Capability::WorkspaceSymbols => "workspaceSymbolProvider",
        Capability::Implementation => "implementationProvider",
        Capability::CallHierarchy => "callHierarchyProvider",
    }
}

/// The request method of a capability.
pub(crate) fn method(capability: Capability) -> &'static str {
    match capability {
        Capability::Diagnostics => "textDocument/diagnostic",
        Capability::Definition => "textDocument/definition",
        Capability::References => "textDocument/references",
        Capability::Hover => "textDocument/hover",
        Capability::DocumentSymbols => "textDocument/documentSymbol",
        Capability::WorkspaceSymbols => "workspace/symbol",
        Capability::Implementation => "textDocument/implementation",
        Capability::CallHierarchy => "textDocument/prepareCallHierarchy",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn capabilities_are_booleans_objects_or_registrations() {
        let mut capabilities = Capabilities::from_initialize(&json!({ "capabilities": {
            "positionEncoding": "utf-8", "textDocumentSync": { "change": 2, "save": { "includeText": false } },
            "hoverProvider": {}, "definitionProvider": false, "referencesProvider": true,
        }}));
        assert_eq!(capabilities.encoding, Encoding::Utf8);
        assert_eq!(capabilities.sync, Sync::Incremental);
        assert!(capabilities.save && capabilities.open_close);
        assert!(capabilities.has(Capability::Hover) && capabilities.has(Capability::References));
        assert!(!capabilities.has(Capability::Definition) && !capabilities.pulls());

        let registration = |id: &str| {
            json!({ "registrations": [{ "id": id, "method": "textDocument/diagnostic",
                "registerOptions": { "interFileDependencies": true, "identifier": "p" } }] })
        };
        capabilities.register(&registration("1"), "/r");
        capabilities.register(&registration("2"), "/r");
        capabilities.unregister(&json!({ "unregisterations": [{ "id": "1" }] }));
        assert!(capabilities.pulls() && capabilities.has_inter_file_dependencies());
        assert_eq!(capabilities.diagnostic_identifier(), Some("p"));
        capabilities.unregister(&json!({ "unregisterations": [{ "id": "2" }] }));
        assert!(!capabilities.pulls());
    }

    #[test]
    fn invalid_capabilities_count_as_missing() {
        for odd in [
            json!(null),
            json!({}),
            json!({ "capabilities": 7 }),
            json!({ "capabilities": { "textDocumentSync": "x" } }),
        ] {
            let capabilities = Capabilities::from_initialize(&odd);
            assert_eq!(capabilities.sync, Sync::None);
            assert!(!capabilities.has(Capability::Hover));
        }
    }
}
