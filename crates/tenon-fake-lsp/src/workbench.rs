//! A temporary workspace with fake servers, for tests of the engine.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tenon_contract::position::Position;
use tenon_contract::root::{RootGate, WorkspacePath};
use tenon_lsp::CallContext;
use tenon_lsp::model::{Diagnostic, LspAnswer};
use tenon_lsp::orchestrator::{Options, Orchestrator};
use tenon_servers::find::{Finder, SearchPath, Trust};
use tenon_servers::registry::{Registry, ServerEntry};

use crate::{Script, program};

/// A change of the orchestrator's options.
type Change = Box<dyn FnOnce(&mut Options)>;

/// A workspace under construction.
pub struct Builder {
    folder: TempDir,
    scripts: TempDir,
    entries: Vec<ServerEntry>,
    options: Vec<Change>,
}

/// A workspace with its servers.
pub struct Workbench {
    folder: TempDir,
    scripts: TempDir,
    pub orchestrator: Orchestrator,
}

impl Workbench {
    #[expect(clippy::new_ret_no_self, reason = "a workbench has a builder")]
    pub fn new() -> Builder {
        Builder {
            folder: tempfile::tempdir().expect("a temporary folder can be created"),
            scripts: tempfile::tempdir().expect("a temporary folder can be created"),
            entries: Vec::new(),
            options: Vec::new(),
        }
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("the workspace is there")
    }

    /// A file of the workspace, admitted by the gate.
    pub fn path(&self, relative: &str) -> WorkspacePath {
        self.orchestrator.gate().admit_path(relative).expect("the file is there")
    }

    /// The canonical URI of a file of the workspace.
    pub fn uri(&self, relative: &str) -> String {
        self.path(relative).uri().as_str().to_owned()
    }

    pub fn write(&self, relative: &str, text: &str) {
        let path = self.folder.path().join(relative);
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
        std::fs::write(path, text).expect("a written file");
    }

    /// Replaces a file in one step, so that a request in flight never reads half of the text.
    pub fn replace(&self, relative: &str, text: &str) {
        let temporary = self.scripts.path().join("replacement");
        std::fs::write(&temporary, text).expect("a written file");
        std::fs::rename(temporary, self.folder.path().join(relative)).expect("a renamed file");
    }

    /// Checks a file with the text on disk.
    pub async fn check(&self, relative: &str) -> LspAnswer<Vec<Diagnostic>> {
        self.check_text(relative, None).await
    }

    pub async fn check_text(&self, relative: &str, text: Option<&str>) -> LspAnswer<Vec<Diagnostic>> {
        let call = Self::call();
        let path = self.path(relative);
        let checked = self.orchestrator.check(&path, text.map(str::to_owned), &call);
        checked.await.expect("the file can be read")
    }

    /// The transcript of a server, in order.
    pub fn transcript(&self, server: &str) -> Vec<Value> {
        crate::transcript(self.scripts.path(), server)
    }

    /// The messages of one method that a server received, in order.
    pub fn received(&self, server: &str, method: &str) -> Vec<Value> {
        let messages =
            self.transcript(server).into_iter().filter_map(|mut line| line.get_mut("in").map(Value::take));
        messages.filter(|message| message["method"] == method).collect()
    }

    /// The number of messages of a method that a server has received; cheap enough for polling.
    pub fn received_count(&self, server: &str, method: &str) -> usize {
        let text =
            std::fs::read_to_string(crate::transcript_path(self.scripts.path(), server)).unwrap_or_default();
        text.matches(&format!(r#""method":"{method}""#)).count()
    }

    /// Diagnostics as text: `line:character message`.
    pub fn shown(diagnostics: &[Diagnostic]) -> Vec<String> {
        diagnostics
            .iter()
            .map(|one| format!("{}:{} {}", one.range.start.line, one.range.start.character, one.message))
            .collect()
    }

    /// Polls a condition: files and processes of others give no event when they change.
    ///
    /// # Panics
    /// When the condition is false for half a minute.
    pub async fn until(what: &str, mut done: impl FnMut() -> bool) {
        let mut ticks = tokio::time::interval(Duration::from_millis(2));
        // A slow check must not starve other tasks.
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let waited = tokio::time::timeout(Duration::from_secs(30), async {
            while !done() {
                ticks.tick().await;
            }
        });
        assert!(waited.await.is_ok(), "{what}");
    }

    /// A call without cancellation and with a deadline past every test.
    pub fn call() -> CallContext {
        CallContext::within(Duration::from_secs(900))
    }

    pub fn at(line: u32, character: u32) -> Position {
        Position::new(line, character)
    }
}

impl Builder {
    #[must_use]
    pub fn file(self, relative: &str, text: &str) -> Self {
        let path = self.folder.path().join(relative);
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
        std::fs::write(path, text).expect("a written file");
        self
    }

    /// Adds a server for `.fake` files that is ready at once.
    #[must_use]
    pub fn server(self, id: &str, script: Value) -> Self {
        self.server_with(id, script, |_| {})
    }

    #[must_use]
    pub fn server_with(mut self, id: &str, script: Value, change: impl FnOnce(&mut ServerEntry)) -> Self {
        let script: Script = serde_json::from_value(script).unwrap_or_else(|error| panic!("{id}: {error}"));
        let at = |ending: &str| {
            let path = self.scripts.path().join(format!("{id}.{ending}"));
            path.into_os_string().into_string().expect("temporary folders have readable names")
        };
        std::fs::write(at("json"), serde_json::to_vec(&script).expect("scripts are JSON")).expect("a script");
        let mut entry: ServerEntry = serde_json::from_value(json!({
            "id": id, "language": "Fake", "command": program(),
            "args": ["--script", at("json"), "--transcript", at("jsonl")],
            "extensions": { ".fake": "fake" }, "capabilities": tenon_servers::registry::Capability::ALL,
            "install": { "manual": { "see": "nowhere" } }, "ready": "immediate", "settle_ms": 50,
        }))
        .expect("an entry");
        entry.user_command = true;
        change(&mut entry);
        self.entries.push(entry);
        self
    }

    /// Disables the timeouts of checks, so that only the event under test ends a wait.
    #[must_use]
    pub fn patient(self) -> Self {
        self.option(|options| {
            options.timeouts.check = Duration::from_secs(600);
            options.timeouts.first_check = Duration::from_secs(600);
            options.timeouts.gather = Duration::from_secs(600);
        })
    }

    /// Changes the options of the orchestrator.
    #[must_use]
    pub fn option(mut self, change: impl FnOnce(&mut Options) + 'static) -> Self {
        self.options.push(Box::new(change));
        self
    }

    pub async fn open(self) -> Workbench {
        let gate = RootGate::new([self.folder.path()]).expect("a root");
        let root = gate.primary().expect("one root").to_owned();
        let search = SearchPath::new(OsStr::new(&std::env::var_os("PATH").unwrap_or_default()));
        let finder = Finder::new(root, Trust::Trusted, search).without_confinement();
        let mut options = Options::new(gate, Registry::of(self.entries), finder);
        for change in self.options {
            change(&mut options);
        }
        let orchestrator = Orchestrator::open(options).await;
        Workbench { folder: self.folder, scripts: self.scripts, orchestrator }
    }
}
