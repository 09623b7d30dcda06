//! Files that are not shown to a server: their text ended it before, or it misreads their names.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;

use super::instance::ServerInstance;
use super::{Key, Orchestrator, lock};
use crate::call_context::CallContext;
use crate::model::GapReason;
use tenon_servers::registry::{Capability, ServerEntry, ServerId};

/// How often a server that ended is started again for other files.
const MAX_REVIVALS: u32 = 16;

#[derive(Debug, Default)]
pub(super) struct SkippedFiles {
    /// The hash of the text that ended the server.
    texts: BTreeMap<(ServerId, WorkspacePath), u64>,
    revivals: BTreeMap<ServerId, u32>,
}

impl SkippedFiles {
    /// Whether this text ended a server before.
    fn has(&self, server: &ServerId, path: &WorkspacePath, lines: &LineIndex) -> bool {
        !self.texts.is_empty()
            && self.texts.get(&(server.clone(), path.clone())).is_some_and(|text| *text == hash(lines))
    }

    /// Forgets the files and restarts of one server, or of all.
    pub(super) fn clear(&mut self, server: Option<&ServerId>) {
        self.texts.retain(|(id, _), _| server.is_some_and(|server| id != server));
        self.revivals.retain(|id, _| server.is_some_and(|server| id != server));
    }
}

/// The reason of a skipped file.
pub const ENDED_THE_SERVER: &str = "ended while it checked this file";

fn hash(lines: &LineIndex) -> u64 {
    let mut hasher = DefaultHasher::new();
    lines.text().hash(&mut hasher);
    hasher.finish()
}

impl Orchestrator {
    /// Why a server does not get this text.
    pub(super) fn skip_reason(
        &self,
        entry: &ServerEntry,
        path: &WorkspacePath,
        lines: &LineIndex,
    ) -> Option<GapReason> {
        if let Some(found) = path.as_str().chars().find(|one| entry.misread_characters.contains(*one)) {
            return Some(GapReason::UnsupportedPath(found));
        }
        let ended = lock(&self.0.skipped).has(&entry.id, path, lines);
        ended.then(|| GapReason::Refused(ENDED_THE_SERVER.to_owned()))
    }

    /// Does not show this text to a server again.
    pub(crate) fn skip_file(&self, server: &ServerId, path: &WorkspacePath, lines: &LineIndex) {
        lock(&self.0.skipped).texts.insert((server.clone(), path.clone()), hash(lines));
    }

    /// Lets the next request start a server again that ended while it was running. `false` if it never ran or ended too often.
    pub(crate) fn revive(&self, server: &ServerId) -> bool {
        let mut instances = lock(&self.0.instances);
        let broken = |key: &Key| key.0 == *server && instances[key].is_broken();
        let keys: Vec<Key> = instances.keys().filter(|key| broken(key)).cloned().collect();
        if keys.is_empty() {
            // Another caller has revived it.
            return true;
        }
        if keys.iter().any(|key| !instances[key].has_run()) {
            return false;
        }
        let mut skipped = lock(&self.0.skipped);
        let revivals = skipped.revivals.entry(server.clone()).or_default();
        if *revivals == MAX_REVIVALS {
            return false;
        }
        *revivals += 1;
        for key in keys {
            instances.remove(&key);
        }
        true
    }
    /// Ends a server that does not finish its work; the next request starts it again.
    pub(crate) async fn replace_stuck(&self, server: &ServerId) {
        let stuck: Vec<Arc<ServerInstance>> = {
            let mut instances = lock(&self.0.instances);
            let mut skipped = lock(&self.0.skipped);
            let revivals = skipped.revivals.entry(server.clone()).or_default();
            if *revivals == MAX_REVIVALS {
                return;
            }
            *revivals += 1;
            let keys: Vec<Key> = instances.keys().filter(|key| key.0 == *server).cloned().collect();
            keys.iter().filter_map(|key| instances.remove(key)).collect()
        };
        let grace = self.0.timeouts.grace;
        join_all(stuck.iter().map(|instance| instance.shutdown(Duration::ZERO, grace))).await;
    }

    /// Closes a document in all servers, so that the next check opens it again: typescript-language-server sometimes forgets a
    /// document that was opened while it checked others.
    pub(crate) async fn close_everywhere(&self, path: &WorkspacePath, call: &CallContext) {
        for client in self.live_clients() {
            // On an error the check reports why.
            let _ = client.close(call, path.as_str()).await;
        }
    }

    /// The available servers that check a file, in registry order.
    pub(crate) fn checkers_of(&self, path: &WorkspacePath) -> Vec<ServerId> {
        let known = self.0.known_candidates(path);
        known
            .unwrap_or_else(|| self.0.find_candidates(path))
            .into_iter()
            .filter(|candidate| candidate.entry.has(Capability::Diagnostics) && candidate.place.is_ok())
            .map(|candidate| candidate.entry.id.clone())
            .collect()
    }
}
