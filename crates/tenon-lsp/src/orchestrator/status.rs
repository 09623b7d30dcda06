//! The status of every configured server.

use serde::{Deserialize, Serialize};

use super::instance::InstanceState;
use super::{Orchestrator, lock};
use tenon_servers::find::Availability;
use tenon_servers::registry::ServerId;

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
                        ..line(ServerState::Active, (!client.is_ready()).then(|| "indexing".to_owned()))
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
