//! Changes that are only tried: servers see the text for a short time, and nothing else is answered from it.
//!
//! A try holds the lock of each server that it asks ([`ServerInstance::texts`]), which every question holds for reading. However
//! the try ends, a separate task shows the text on disk again before the locks are released (decision 0411).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenon_contract::root::WorkspacePath;
use tenon_servers::registry::{Capability, ServerId};
use tokio::sync::OwnedRwLockWriteGuard;

use super::change_check::{ChangeCheck, ChangeMode, ChangedText};
use super::instance::ServerInstance;
use super::{Inner, Key, Orchestrator, lock};
use crate::call_context::CallContext;
use crate::client::FileChangeKind;

/// How long a try waits for the questions before it.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// The longest time that questions wait for a try.
const TRY_TIME: Duration = Duration::from_secs(10);
/// How long it may take to show the text on disk again. After that, it is shown before the next question.
const RESTORE_TIME: Duration = Duration::from_secs(2);

/// What servers reported on a tried change.
#[derive(Debug, Clone, Default)]
pub struct TriedChange {
    pub check: ChangeCheck,
    /// Servers with a check of saved files, which is not part of the report.
    pub saved_only: Vec<ServerId>,
    /// Servers that read files other than the checked one from disk, so that nothing is known about dependents.
    pub disk_readers: Vec<ServerId>,
}

/// Why a change was not tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TryError {
    #[error("{0} answers other questions; try again")]
    Busy(ServerId),
}

/// The locks of all servers that see tried texts.
struct TriedTexts {
    inner: Arc<Inner>,
    paths: Vec<WorkspacePath>,
    locked: Vec<(Arc<ServerInstance>, OwnedRwLockWriteGuard<()>)>,
}

impl Orchestrator {
    /// Collects diagnostics before and after a change that is not made. Dependents may take up to `wait` before and after.
    pub async fn try_change(
        &self,
        files: &[ChangedText],
        wait: Duration,
        call: &CallContext,
    ) -> Result<TriedChange, TryError> {
        let mut tried = TriedChange::default();
        let mut instances: BTreeMap<Key, Arc<ServerInstance>> = BTreeMap::new();
        for file in files {
            // Servers start and report on the text on disk before others have to wait.
            let _ = self.check(&file.path, None, call).await;
            for candidate in self.candidates(&file.path).await {
                let (true, Ok(root)) = (candidate.entry.has(Capability::Diagnostics), &candidate.place)
                else {
                    continue;
                };
                let id = &candidate.entry.id;
                let is_new = |list: &[ServerId]| !list.contains(id);
                if candidate.entry.on_save.is_some() && is_new(&tried.saved_only) {
                    tried.saved_only.push(id.clone());
                }
                if candidate.entry.rebuilds && is_new(&tried.disk_readers) {
                    tried.disk_readers.push(id.clone());
                }
                if let Ok(instance) = self.instance(&candidate) {
                    instances.insert((id.clone(), root.as_path().to_owned()), instance);
                }
            }
        }
        self.prepare_try(files, wait, call).await;
        let paths = files.iter().map(|file| file.path.clone()).collect();
        let mut texts = TriedTexts { inner: Arc::clone(&self.0), paths, locked: Vec::new() };
        // In the order of the keys, so that two tries never wait for each other.
        let waiting = call.at_most(LOCK_WAIT);
        for ((server, _), instance) in instances {
            match waiting.bound(Arc::clone(&instance.texts).write_owned()).await {
                Ok(guard) => texts.locked.push((instance, guard)),
                Err(_) => return Err(TryError::Busy(server)),
            }
        }
        tried.check = self.change(files, ChangeMode::Tried, wait, &call.at_most(TRY_TIME)).await;
        Ok(tried)
    }
}

impl Drop for TriedTexts {
    fn drop(&mut self) {
        let (inner, paths) = (Arc::clone(&self.inner), std::mem::take(&mut self.paths));
        for path in &paths {
            lock(&inner.users).forget(path);
        }
        for (instance, guard) in std::mem::take(&mut self.locked) {
            let (tracker, inner, paths) = (inner.tasks.clone(), Arc::clone(&inner), paths.clone());
            // The runtime is gone only at the end of the process.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                tracker.spawn_on(
                    async move {
                        for path in &paths {
                            inner.restore(&instance, path).await;
                        }
                        drop(guard);
                    },
                    &runtime,
                );
            }
        }
    }
}

impl Inner {
    /// Shows the text on disk again; if that fails, it is shown before the next question.
    async fn restore(&self, instance: &ServerInstance, path: &WorkspacePath) {
        let Some(client) = instance.live() else {
            return;
        };
        if client.open_text(path.as_str()).is_none() {
            return;
        }
        let is_unsaved = lock(&self.passed).unsaved.contains_key(path);
        let lines = self.read(path).ok().filter(|_| !is_unsaved);
        let mut call = CallContext::within(RESTORE_TIME).in_order();
        call.cancel = self.closing.clone();
        let restored = match lines {
            Some(lines) => client.restore(&call, path, &lines).await.is_ok(),
            None => false,
        };
        if !restored {
            lock(&instance.pending_changes).note(path, FileChangeKind::Changed);
        }
    }
}
