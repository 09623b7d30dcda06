//! The capabilities of one server: from `initialize`, plus registrations while it runs.

use std::collections::BTreeMap;

use serde_json::Value;
use tenon_contract::position::Encoding;

use super::watched::{DocumentSelector, Globs};
use tenon_servers::registry::Capability;

/// The number of registrations that are kept.
const MAX_REGISTRATIONS: usize = 1000;

/// The size of all registrations that are kept, in bytes of JSON.
const MAX_REGISTERED_BYTES: usize = 16 * 1024 * 1024;

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
    /// Whether it wants `didSave` for all documents, and then whether with the text.
    save: Option<bool>,
    /// Whether it runs requests of tsserver for us.
    pub(crate) runs_tsserver: bool,
}

#[derive(Debug)]
struct Registration {
    method: String,
    options: Value,
    bytes: usize,
    globs: Option<Globs>,
    /// The documents that a registration is about.
    documents: DocumentSelector,
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
            save: match sync.get("save") {
                Some(save) if offers(save) => Some(includes_text(save)),
                Some(_) => None,
                // A bare number means all notifications, as in the protocol's first versions.
                None => sync.as_u64().is_some_and(|kind| kind > 0).then_some(false),
            },
            runs_tsserver: false,
            offered,
        }
    }

    /// Notes whether it offers the command that runs requests of tsserver.
    pub(crate) fn with_tsserver(mut self, command: Option<&str>) -> Self {
        let commands = self.offered.pointer("/executeCommandProvider/commands").and_then(Value::as_array);
        let offers = |command: &str| commands.into_iter().flatten().any(|one| one.as_str() == Some(command));
        self.runs_tsserver = command.is_some_and(offers);
        self
    }

    pub(crate) fn has(&self, capability: Capability) -> bool {
        match capability {
            // Pushed diagnostics need no capability.
            Capability::Diagnostics => true,
            _ => self.offers(provider(capability), method(capability)),
        }
    }

    pub(super) fn offers(&self, provider: &str, method: &str) -> bool {
        self.offered.get(provider).is_some_and(offers) || self.registrations(method).next().is_some()
    }

    /// Whether a provider has an option, such as a second request.
    pub(crate) fn has_option(&self, capability: Capability, option: &str) -> bool {
        let has = |options: &Value| options.get(option) == Some(&Value::Bool(true));
        self.offered.get(provider(capability)).is_some_and(has)
            || self.registrations(method(capability)).any(|one| has(&one.options))
    }

    /// Whether diagnostics can be pulled.
    pub(crate) fn pulls(&self) -> bool {
        self.runs_tsserver || self.offers("diagnosticProvider", "textDocument/diagnostic")
    }

    /// Whether an edit of one file may change the pulled diagnostics of another.
    pub(crate) fn has_inter_file_dependencies(&self) -> bool {
        let depends = |options: &Value| options.get("interFileDependencies") == Some(&Value::Bool(true));
        self.runs_tsserver
            || self.offered.get("diagnosticProvider").is_some_and(depends)
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

    /// Whether the server wants `didSave` for a document, and then whether with the text.
    pub(crate) fn wants_save(&self, path: &str, language: &str) -> Option<bool> {
        let registered = self.registrations("textDocument/didSave");
        let matching = registered.filter(|one| one.documents.matches(path, language));
        matching.map(|one| includes_text(&one.options)).chain(self.save).max()
    }

    fn registrations(&self, method: &str) -> impl Iterator<Item = &Registration> {
        self.registered.values().filter(move |one| one.method == method)
    }

    /// `client/registerCapability`. A second registration with the same id replaces the first. Returns whether all were
    /// kept; those above the limits are not.
    pub(crate) fn register(&mut self, params: &Value, root: &str) -> bool {
        let mut all = true;
        for registration in params.get("registrations").and_then(Value::as_array).into_iter().flatten() {
            let text = |key: &str| registration.get(key).and_then(Value::as_str);
            let (Some(id), Some(method)) = (text("id"), text("method")) else {
                continue;
            };
            self.registered.remove(id);
            let bytes = registration.to_string().len();
            let held: usize = self.registered.values().map(|one| one.bytes).sum();
            if self.registered.len() >= MAX_REGISTRATIONS || held + bytes > MAX_REGISTERED_BYTES {
                all = false;
                continue;
            }
            let options = registration.get("registerOptions").cloned().unwrap_or(Value::Null);
            let globs = (method == "workspace/didChangeWatchedFiles").then(|| Globs::new(&options, root));
            let documents = DocumentSelector::new(&options, root);
            let registration = Registration { method: method.to_owned(), options, bytes, globs, documents };
            self.registered.insert(id.to_owned(), registration);
        }
        all
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

fn includes_text(options: &Value) -> bool {
    options.get("includeText") == Some(&Value::Bool(true))
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
        Capability::Rename => "renameProvider",
        Capability::CodeActions => "codeActionProvider",
        Capability::Formatting => "documentFormattingProvider",
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
        Capability::Rename => "textDocument/rename",
        Capability::CodeActions => "textDocument/codeAction",
        Capability::Formatting => "textDocument/formatting",
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
        assert!(capabilities.open_close);
        assert_eq!(capabilities.wants_save("/r/a.rs", "rust"), Some(false));
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
    fn registrations_above_the_limits_are_not_kept() {
        let mut capabilities = Capabilities::from_initialize(&json!({}));
        let one = |id: usize, filler: &str| json!({ "registrations": [{ "id": id.to_string(), "method": "x", "registerOptions": filler }] });
        for id in 0..MAX_REGISTRATIONS {
            assert!(capabilities.register(&one(id, ""), "/r"), "{id}");
        }
        assert!(!capabilities.register(&one(MAX_REGISTRATIONS, ""), "/r"));
        assert!(capabilities.register(&one(0, ""), "/r"), "a known id is replaced");
        assert_eq!(capabilities.registered.len(), MAX_REGISTRATIONS);

        let mut capabilities = Capabilities::from_initialize(&json!({}));
        let filler = "x".repeat(MAX_REGISTERED_BYTES / 4);
        let kept = (0..10).filter(|id| capabilities.register(&one(*id, &filler), "/r")).count();
        assert_eq!(kept, 3);
    }

    #[test]
    fn server_that_runs_tsserver_requests_pulls() {
        let offered =
            json!({ "capabilities": { "executeCommandProvider": { "commands": ["a", "ts.request"] } } });
        let with = |command: Option<&str>| Capabilities::from_initialize(&offered).with_tsserver(command);
        assert!(with(Some("ts.request")).pulls() && with(Some("ts.request")).has_inter_file_dependencies());
        assert!(!with(Some("other")).pulls() && !with(None).pulls());
    }

    #[test]
    fn saves_are_wanted_by_option_by_number_or_by_registration() {
        let wants = |sync: Value| {
            let capabilities =
                Capabilities::from_initialize(&json!({ "capabilities": { "textDocumentSync": sync } }));
            capabilities.wants_save("/r/a.rs", "rust")
        };
        assert_eq!(wants(json!({ "change": 1 })), None);
        assert_eq!(wants(json!({ "change": 1, "save": false })), None);
        assert_eq!(wants(json!({ "save": true })), Some(false));
        assert_eq!(wants(json!({ "save": { "includeText": true } })), Some(true));
        assert_eq!((wants(json!(0)), wants(json!(1))), (None, Some(false)));

        let mut capabilities = Capabilities::from_initialize(&json!({}));
        capabilities.register(
            &json!({ "registrations": [{ "id": "1", "method": "textDocument/didSave", "registerOptions": {
                "includeText": false,
                "documentSelector": [{ "pattern": "**/*.rs" }, { "language": "toml", "scheme": "file" }],
            }}]}),
            "/r",
        );
        assert_eq!(capabilities.wants_save("/r/src/a.rs", "rust"), Some(false));
        assert_eq!(capabilities.wants_save("/r/Cargo.toml", "toml"), Some(false));
        assert_eq!(capabilities.wants_save("/r/a.md", "markdown"), None);
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
