//! A workspace of files with an engine on real language servers.

use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use tempfile::TempDir;
use tenon_contract::position::Position;
use tenon_contract::root::RootGate;
use tenon_lsp::CallContext;
use tenon_lsp::model::LspAnswer;
use tenon_lsp::orchestrator::{ChangeCheck, ChangedText, Options, Orchestrator};
use tenon_lsp::workspace_check;
use tenon_servers::confinement::ConfinementSettings;
use tenon_servers::find::{Finder, SearchPath, Trust};
use tenon_servers::registry::{Registry, ServerEntry, Switch};
use tenon_testkit::{PATIENCE, program};

/// No messages.
pub const NONE: [&str; 0] = [];

pub struct Workspace {
    pub folder: TempDir,
    pub orchestrator: Orchestrator,
}

/// What differs from a trusted workspace with some servers.
pub struct Setup {
    pub trust: Trust,
    /// How long a server may take to exit.
    pub polite: Duration,
    pub path: OsString,
    pub registry: Registry,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            trust: Trust::Trusted,
            polite: PATIENCE,
            path: program::search_path(),
            registry: Registry::built_in(),
        }
    }
}

impl Setup {
    /// With these servers and no others.
    pub fn with_servers(servers: &[&str]) -> Self {
        let known = Registry::built_in();
        let chosen = known.entries().iter().filter(|entry| servers.contains(&entry.id.as_str()));
        let entries: Vec<ServerEntry> =
            chosen.map(|entry| ServerEntry { enabled: Switch::On, ..entry.clone() }).collect();
        assert_eq!(entries.len(), servers.len());
        Self { registry: Registry::of(entries), ..Self::default() }
    }
}

impl Workspace {
    pub async fn open(servers: &[&str], files: &[(&str, &str)]) -> Self {
        Self::open_in(folder(files), Setup::with_servers(servers)).await
    }

    pub async fn open_in(folder: TempDir, setup: Setup) -> Self {
        let gate = RootGate::new([folder.path()]).unwrap();
        let root = gate.primary().unwrap().to_owned();
        let confinement = ConfinementSettings::new(None, root.join(".cache/tenon"));
        let finder =
            Finder::new(root, setup.trust, SearchPath::new(&setup.path)).with_confinement(confinement);
        let mut options = Options::new(gate, setup.registry, finder);
        options.timeouts = workspace_check::timeouts();
        options.timeouts.polite = setup.polite;
        Self { folder, orchestrator: Orchestrator::open(options).await }
    }

    pub fn put(&self, path: &str, text: &str) {
        put(&self.folder, path, text);
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.folder.path().join(path)).unwrap();
    }

    pub fn rename(&self, from: &str, to: &str) {
        fs::rename(self.folder.path().join(from), self.folder.path().join(to)).unwrap();
    }

    /// The messages of a file's diagnostics.
    pub async fn check_answer(&self, file: &str) -> LspAnswer<Vec<String>> {
        let path = self.orchestrator.gate().admit_path(file).unwrap();
        let answer = self.orchestrator.check(&path, None, &call()).await.unwrap();
        answer.map(|found| found.into_iter().map(|one| one.message).collect())
    }

    /// The messages of a file's diagnostics, in an answer that is complete.
    pub async fn check(&self, file: &str) -> Vec<String> {
        let answer = self.check_answer(file).await;
        assert!(answer.is_complete(), "{:?}", answer.gaps);
        answer.value
    }

    /// The files with references to the symbol at a position.
    pub async fn references(&self, path: &str, line: u32, character: u32) -> Vec<String> {
        let gate = self.orchestrator.gate();
        let path = gate.admit_path(path).unwrap();
        let at = Position::new(line, character);
        let answer = self.orchestrator.references(&path, at, true, &call()).await.unwrap();
        let mut files: Vec<String> = answer.value.iter().map(|one| gate.display(&one.path)).collect();
        files.dedup();
        files
    }

    /// The files that declare a symbol.
    pub async fn symbols(&self, name: &str) -> Vec<String> {
        let answer = self.orchestrator.workspace_symbols(name, &call()).await;
        let named = answer.value.iter().filter(|one| one.name == name);
        named.map(|one| self.orchestrator.gate().display(&one.path)).collect()
    }

    /// Replaces a part of a file, and reports what that changed.
    pub async fn change(&self, file: &str, from: &str, to: &str) -> ChangeCheck {
        let before = fs::read_to_string(self.folder.path().join(file)).unwrap();
        let after = before.replacen(from, to, 1);
        assert_ne!(before, after, "`{from}` is in {file}");
        self.write(file, Some(before), after).await
    }

    /// Creates a file, and reports what that changed.
    pub async fn create(&self, file: &str, text: &str) -> ChangeCheck {
        self.write(file, Some(String::new()), text.to_owned()).await
    }

    async fn write(&self, file: &str, before: Option<String>, after: String) -> ChangeCheck {
        self.put(file, &after);
        let path = self.orchestrator.gate().admit_path(file).unwrap();
        let changed = ChangedText { path, before, after: Some(after) };
        self.orchestrator.check_change(&[changed], PATIENCE, &call()).await
    }
}

/// A folder with these files.
pub fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        put(&folder, path, text);
    }
    folder
}

pub fn put(folder: &TempDir, path: &str, text: &str) {
    let path = folder.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn call() -> CallContext {
    CallContext::within(Duration::from_secs(120))
}
