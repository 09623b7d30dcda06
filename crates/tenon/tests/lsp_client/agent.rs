//! A minimal agent with an edit and a write tool that return diagnostics as text for a model. Language server failures never
//! fail a tool.

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value};
use tenon_code::{DiagnosticsLimits, DiagnosticsText, ServiceDiagnostics};
use tenon_lsp::service::Files;
use tenon_lsp::service::client::{LspServiceClient, Options};
use tenon_testkit::Sandbox;
use tokio_util::sync::CancellationToken;

/// Whether the agent uses language servers, and their settings.
pub(crate) enum Lsp {
    Off,
    On(Value),
}

/// A workspace with an agent in it.
pub(crate) struct Agent {
    pub(crate) sandbox: Sandbox,
    servers: Map<String, Value>,
    pub(crate) client: LspServiceClient,
}

impl Agent {
    /// An agent that has not started anything yet.
    pub(crate) fn new(tree: &str) -> Self {
        let sandbox = Sandbox::with_tree(tree);
        Self { sandbox, servers: Map::new(), client: LspServiceClient::off() }
    }

    /// A fake server for `.fake` files.
    pub(crate) fn server(mut self, id: &str, script: Value) -> Self {
        let entry = tenon_fake_lsp::entry(&self.sandbox.dir("state"), id, script);
        self.servers.insert(id.to_owned(), entry);
        self
    }

    /// Starts the agent. It also starts if the language servers do not.
    pub(crate) async fn start(self, lsp: Lsp) -> Self {
        let program = self.sandbox.command(env!("CARGO_BIN_EXE_tenon"));
        self.start_with(program, lsp).await
    }

    pub(crate) async fn start_with(mut self, mut command: Command, lsp: Lsp) -> Self {
        if let Lsp::On(mut config) = lsp {
            command.arg("lsp-service");
            config["servers"] = Value::Object(self.servers.clone());
            let Value::Object(config) = config else { panic!("a configuration must be an object") };
            let options = Options { command, workspace_root: self.root(), config };
            self.client = LspServiceClient::start(options).await;
        }
        self
    }

    pub(crate) fn root(&self) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.sandbox.root().canonicalize().unwrap()).unwrap()
    }

    /// The edit tool, with diagnostics of one file.
    pub(crate) async fn edit(&self, file: &str, old: &str, new: &str) -> String {
        let path = self.root().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches(old).count(), 1, "the old text must occur once");
        std::fs::write(&path, text.replace(old, new)).unwrap();
        let mut found = Vec::new();
        if self.client.is_alive() {
            found = self.client.check_file(&path, None, &CancellationToken::new()).await;
        }
        let diagnostics = ServiceDiagnostics::new(file, found, Files::new());
        DiagnosticsText::new(&diagnostics, &DiagnosticsLimits::default()).below(&format!("Edited {file}."))
    }

    /// The write tool, with diagnostics of other files, too.
    pub(crate) async fn write(&self, file: &str, text: &str) -> String {
        let path = self.root().join(file);
        std::fs::write(&path, text).unwrap();
        let (mut found, mut all) = (Vec::new(), Files::new());
        if self.client.is_alive() {
            let never = CancellationToken::new();
            let epoch = self.client.get_diagnostic_epoch().await;
            found = self.client.check_file(&path, Some(text), &never).await;
            all = self.client.get_all_diagnostics_after(epoch, None, &never).await;
        }
        let diagnostics = ServiceDiagnostics::new(file, found, all);
        DiagnosticsText::new(&diagnostics, &DiagnosticsLimits::default()).below(&format!("Wrote {file}."))
    }

    pub(crate) fn file(&self, file: &str) -> String {
        std::fs::read_to_string(self.root().join(file)).unwrap()
    }

    /// The states of the servers that this agent configured.
    pub(crate) async fn states(&self) -> Vec<(String, String)> {
        let status = self.client.status().await.into_iter();
        let configured = status.filter(|one| self.servers.contains_key(&one.id));
        configured.map(|one| (one.id, one.status.as_str().to_owned())).collect()
    }
}

/// A path that does not exist.
pub(crate) fn nowhere() -> &'static Utf8Path {
    Utf8Path::new("/nowhere/tenon")
}
