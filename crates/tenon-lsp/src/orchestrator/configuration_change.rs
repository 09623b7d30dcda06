//! Which files a changed configuration file may affect.

use std::sync::Arc;

use camino::Utf8Path;
use tenon_contract::root::WorkspacePath;
use tokio::task::spawn_blocking;

use super::{Inner, Orchestrator, lock};
use tenon_servers::registry::{Capability, ServerEntry};

impl Orchestrator {
    /// How many files below a changed file have diagnostics that it may affect, because it configures their server. They are not
    /// checked for one change.
    pub(super) async fn configured_files(&self, changed: &WorkspacePath) -> usize {
        let (inner, changed) = (Arc::clone(&self.0), changed.clone());
        spawn_blocking(move || inner.configured_files(&changed)).await.unwrap_or_default()
    }
}

impl Inner {
    fn configured_files(&self, changed: &WorkspacePath) -> usize {
        let servers = Arc::clone(&*lock(&self.servers));
        let checks = |entry: &ServerEntry| {
            entry.has(Capability::Diagnostics) && entry.is_configured_by(changed.as_path())
        };
        let entries: Vec<&ServerEntry> =
            servers.iter().map(|found| &*found.entry).filter(|entry| checks(entry)).collect();
        let Some(folder) = changed.as_path().parent().filter(|_| !entries.is_empty()) else {
            return 0;
        };
        let files = self.files();
        let counts = entries.into_iter().map(|entry| {
            let mut served = files.iter().filter(|file| {
                file.starts_with(folder) && *file != changed.as_path() && entry.language_id(file).is_some()
            });
            let runs = served.clone().next().is_some_and(|file| self.is_checked_by(file, entry));
            if runs { served.by_ref().count() } else { 0 }
        });
        counts.max().unwrap_or_default()
    }

    fn is_checked_by(&self, file: &Utf8Path, entry: &ServerEntry) -> bool {
        let candidates =
            self.gate.admit_path(file).map(|path| self.find_candidates(&path)).unwrap_or_default();
        candidates.iter().any(|candidate| candidate.entry.id == entry.id && candidate.place.is_ok())
    }
}
