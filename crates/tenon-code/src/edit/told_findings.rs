//! The findings of reports that were not complete, so that the next report on the same change adds only what was missing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenon_contract::root::WorkspacePath;
use tenon_lsp::model::Diagnostic;
use tenon_servers::registry::ServerId;

use crate::delta::{Delta, TextMap};

/// The most findings that are kept. Further ones may be reported twice.
const MAX_FINDINGS: usize = 20_000;

/// What one server's findings in files were, by file and server.
#[derive(Debug, Clone, Default)]
pub(super) struct ToldFindings(BTreeMap<(WorkspacePath, ServerId), ToldFile>);

#[derive(Debug, Clone)]
struct ToldFile {
    text: Arc<str>,
    findings: Vec<Diagnostic>,
}

/// One server's findings now, compared with those that it was reported with.
pub(super) struct Repeated<'a> {
    told: BTreeSet<*const Diagnostic>,
    /// The reported findings that are gone.
    pub(super) gone: Vec<&'a Diagnostic>,
}

impl Repeated<'_> {
    /// Whether a finding of the list after was reported already.
    pub(super) fn has(&self, found: &Diagnostic) -> bool {
        self.told.contains(&std::ptr::from_ref(found))
    }
}

impl ToldFindings {
    /// Compares a server's findings in a text with those that were reported.
    pub(super) fn compare<'a>(
        &'a self,
        path: &WorkspacePath,
        server: &ServerId,
        text: &str,
        after: &[&'a Diagnostic],
    ) -> Repeated<'a> {
        let Some(told) = self.0.get(&(path.clone(), server.clone())) else {
            return Repeated { told: BTreeSet::new(), gone: Vec::new() };
        };
        let map = TextMap::new(&told.text, text);
        let delta = Delta::new(&told.findings, after.iter().copied(), &map);
        let told = delta.unchanged.into_iter().map(std::ptr::from_ref).collect();
        Repeated { told, gone: delta.gone }
    }

    /// The findings of a server in a file; none if all are gone.
    pub(super) fn put(
        &mut self,
        path: &WorkspacePath,
        server: &ServerId,
        text: &Arc<str>,
        findings: Vec<Diagnostic>,
    ) {
        self.0.insert((path.clone(), server.clone()), ToldFile { text: Arc::clone(text), findings });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces the findings of the files and servers that `newer` has.
    pub(super) fn merge(&mut self, newer: Self) {
        for (key, file) in newer.0 {
            self.0.remove(&key);
            let kept: usize = self.0.values().map(|file| file.findings.len()).sum();
            if !file.findings.is_empty() && kept + file.findings.len() <= MAX_FINDINGS {
                self.0.insert(key, file);
            }
        }
    }
}
