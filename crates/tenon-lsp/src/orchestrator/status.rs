//! The status of every configured server.

use serde::{Deserialize, Serialize};

use super::instance::InstanceState;
use super::{Orchestrator, lock};
use crate::client::Client;
use tenon_servers::find::Availability;
use tenon_servers::registry::ServerId;

/// The most files that a status names.
const MAX_NAMES: usize = 3;

/// The state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// Found, but not started yet.
    Idle,
    Starting,
    Active,
    Broken,
    Disabled,
    Unavailable,
}

impl ServerState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Active => "active",
            Self::Broken => "broken",
            Self::Disabled => "disabled",
            Self::Unavailable => "unavailable",
        }
    }
}

/// One line of the status list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    pub id: ServerId,
    pub state: ServerState,
    pub language: String,
    pub pid: Option<u32>,
    pub detail: Option<String>,
    /// Relative to the workspace; only of servers that were started.
    pub project: Option<String>,
    /// Whether a running server has loaded its project.
    pub ready: bool,
}

impl Orchestrator {
    /// Every configured server, sorted by id, then project: one line per started instance, else one line.
    pub fn status(&self) -> Vec<ServerStatus> {
        let servers = std::sync::Arc::clone(&*lock(&self.0.servers));
        let instances = lock(&self.0.instances);
        let mut list = Vec::new();
        for found in servers.iter() {
            let line = |state, detail: Option<String>| ServerStatus {
                id: found.entry.id.clone(),
                state,
                language: found.entry.language.clone(),
                pid: None,
                detail,
                project: None,
                ready: false,
            };
            let mut started =
                instances.values().filter(|instance| instance.entry.id == found.entry.id).peekable();
            if started.peek().is_none() {
                list.push(match &found.availability {
                    Availability::Found(_) => line(ServerState::Idle, None),
                    Availability::Disabled(why) => line(ServerState::Disabled, Some(why.to_string())),
                    Availability::Unavailable(why) => {
                        line(ServerState::Unavailable, Some(format!("{}: {}", why.reason, why.fix)))
                    }
                });
                continue;
            }
            list.extend(started.map(|instance| {
                let mut line = match instance.state() {
                    InstanceState::Starting => line(ServerState::Starting, None),
                    InstanceState::Running(client) if !client.is_alive() => {
                        line(ServerState::Broken, client.ending())
                    }
                    InstanceState::Running(client) => ServerStatus {
                        pid: Some(client.pid()),
                        ready: client.is_ready(),
                        ..line(ServerState::Active, self.running_detail(&client))
                    },
                    InstanceState::Broken(reason) => line(ServerState::Broken, Some(reason)),
                    InstanceState::Unavailable(reason) => line(ServerState::Unavailable, Some(reason)),
                };
                line.project = Some(self.0.gate.display(&instance.root));
                line
            }));
        }
        list.sort_by(|a, b| (&a.id, &a.project).cmp(&(&b.id, &b.project)));
        list
    }

    /// Why a server is not available.
    pub(super) fn why_unavailable(&self, id: &ServerId) -> String {
        let servers = std::sync::Arc::clone(&*lock(&self.0.servers));
        let found = servers.iter().find(|one| one.entry.id == *id);
        match found.map(|one| &one.availability) {
            Some(Availability::Unavailable(why)) => why.reason.to_string(),
            _ => "not found".to_owned(),
        }
    }

    /// What a running server has not done yet: callers whose answers have no room for it find it here.
    fn running_detail(&self, client: &Client) -> Option<String> {
        if !client.is_ready() {
            return Some("indexing".to_owned());
        }
        let expected = client.expected_files();
        let names = expected.iter().take(MAX_NAMES).filter_map(|key| self.0.gate.admit_path(key).ok());
        let names: Vec<String> = names.map(|path| self.0.gate.display(&path)).collect();
        let more = if expected.len() > MAX_NAMES { ", …" } else { "" };
        (!expected.is_empty())
            .then(|| format!("diagnostics pending ({}): {}{more}", expected.len(), names.join(", ")))
    }

    /// The last log lines of the servers with this id, oldest first.
    pub fn logs(&self, id: &ServerId) -> Vec<String> {
        let instances = lock(&self.0.instances);
        instances
            .values()
            .filter(|instance| instance.entry.id == *id)
            .flat_map(|instance| instance.log.lines())
            .collect()
    }
}
