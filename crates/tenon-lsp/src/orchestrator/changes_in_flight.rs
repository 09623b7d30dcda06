//! Files whose change is being checked: on disk already, but held back from the servers until their dependents are known.
//!
//! A question about another document does not have to wait for such a change: until the edit is answered, its state before is
//! as true as the one after. Questions that did not wait make the end of the change count as a change of the workspace, so
//! that no later question shares their answers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tenon_contract::epoch::{Epoch, Epochs};
use tenon_contract::root::WorkspacePath;

use super::lock;

#[derive(Debug, Default)]
pub(super) struct ChangesInFlight {
    files: Mutex<BTreeMap<WorkspacePath, usize>>,
    /// Whether a question was answered without some of these changes.
    passed: AtomicBool,
}

/// Holds files back until it is dropped.
pub(super) struct HeldFiles {
    changes: Arc<ChangesInFlight>,
    files: Vec<WorkspacePath>,
    epochs: Arc<Epochs>,
}

impl ChangesInFlight {
    pub(super) fn hold(self: &Arc<Self>, files: Vec<WorkspacePath>, epochs: &Arc<Epochs>) -> HeldFiles {
        let mut held = lock(&self.files);
        for path in &files {
            *held.entry(path.clone()).or_default() += 1;
        }
        HeldFiles { changes: Arc::clone(self), files, epochs: Arc::clone(epochs) }
    }

    /// The held files other than these.
    pub(super) fn without(&self, own: &[WorkspacePath]) -> Vec<WorkspacePath> {
        lock(&self.files).keys().filter(|path| !own.contains(path)).cloned().collect()
    }

    /// The held files other than this one, for a question that is answered without them.
    pub(super) fn pass(&self, about: &WorkspacePath) -> Vec<WorkspacePath> {
        let own = std::slice::from_ref(about);
        if self.without(own).is_empty() {
            return Vec::new();
        }
        self.passed.store(true, Ordering::SeqCst);
        // Those that are still held will see the mark when they end.
        self.without(own)
    }
}

impl Drop for HeldFiles {
    fn drop(&mut self) {
        let mut held = lock(&self.changes.files);
        for path in &self.files {
            if let Some(count) = held.get_mut(path) {
                *count -= 1;
                if *count == 0 {
                    held.remove(path);
                }
            }
        }
        drop(held);
        if self.changes.passed.swap(false, Ordering::SeqCst) {
            self.epochs.advance(Epoch::Text);
        }
    }
}
