//! The place of one server: started once, watched until it ends, broken after it ended by itself.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenon_contract::root::WorkspacePath;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::Inner;
use super::untold::Untold;
use crate::call::{Call, Interrupted};
use crate::client::{Client, Start};
use crate::log::ServerLog;
use crate::model::Why;
use tenon_servers::registry::ServerEntry;

/// Where a server is in its life.
#[derive(Clone)]
pub(super) enum Life {
    Starting,
    Live(Arc<Client>),
    Broken(String),
    Unavailable(String),
}

pub(super) struct Slot {
    pub(super) entry: Arc<ServerEntry>,
    pub(super) root: WorkspacePath,
    pub(super) log: ServerLog,
    pub(super) untold: Mutex<Untold>,
    /// Held by whoever tells the server what it has not been told.
    pub(super) telling: tokio::sync::Mutex<()>,
    life: watch::Sender<Life>,
    /// Cancelled when we end the server, so that its end is no crash.
    leaving: CancellationToken,
}

impl Slot {
    pub(super) fn new(entry: Arc<ServerEntry>, root: WorkspacePath) -> Arc<Self> {
        Arc::new(Self {
            entry,
            root,
            log: ServerLog::default(),
            untold: Mutex::default(),
            telling: tokio::sync::Mutex::default(),
            life: watch::Sender::new(Life::Starting),
            leaving: CancellationToken::new(),
        })
    }

    pub(super) fn life(&self) -> Life {
        self.life.borrow().clone()
    }

    pub(super) fn live(&self) -> Option<Arc<Client>> {
        match &*self.life.borrow() {
            Life::Live(client) if client.is_alive() => Some(Arc::clone(client)),
            _ => None,
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        match &*self.life.borrow() {
            Life::Broken(_) | Life::Unavailable(_) => true,
            Life::Live(client) => !client.is_alive(),
            Life::Starting => false,
        }
    }

    /// The running server. Waits for a start that is under way.
    pub(super) async fn client(&self, call: &Call) -> Result<Arc<Client>, Why> {
        let mut life = self.life.subscribe();
        let settled = call.bound(life.wait_for(|life| !matches!(life, Life::Starting))).await;
        match settled {
            Ok(Ok(life)) => match &*life {
                Life::Live(client) if client.is_alive() => Ok(Arc::clone(client)),
                Life::Unavailable(reason) => Err(Why::Unavailable(reason.clone())),
                _ => Err(Why::Broken),
            },
            Ok(Err(_)) => Err(Why::Broken),
            Err(Interrupted::Deadline) => Err(Why::Indexing),
            Err(Interrupted::Cancelled) => Err(Why::Pending),
        }
    }

    /// Starts the server and stays with it to its end.
    pub(super) async fn run(self: Arc<Self>, orchestrator: Arc<Inner>) {
        let finder = orchestrator.finder.clone();
        let (entry, root) = (Arc::clone(&self.entry), self.root.clone());
        let found = spawn_blocking(move || finder.find(&entry, root.as_path())).await;
        let program = match found {
            Ok(Ok(program)) => program,
            Ok(Err(unavailable)) => {
                self.life.send_replace(Life::Unavailable(unavailable.reason.to_string()));
                return;
            }
            Err(_) => {
                self.life.send_replace(Life::Broken("the search for it failed".to_owned()));
                return;
            }
        };
        let start = Start {
            entry: Arc::clone(&self.entry),
            program,
            root: self.root.clone(),
            group: orchestrator.group,
            epoch: orchestrator.epoch.clone(),
            log: self.log.clone(),
        };
        let mut call = Call::within(orchestrator.timeouts.start);
        call.cancel = self.leaving.clone();
        // A server reads files from the handshake on. Whatever changes after that must not be missed.
        let watching = async {
            if let Some(watch) = &orchestrator.watch {
                watch.flush(&call).await;
            }
        };
        let client = match Client::start(start, &call, watching).await {
            Ok(client) => client,
            Err(error) => {
                tracing::warn!(server = %self.entry.id, root = %self.root.as_str(), %error, "did not start");
                let said = self.log.last().map(|line| format!(": {line}")).unwrap_or_default();
                self.life.send_replace(Life::Broken(format!("{error}{said}")));
                return;
            }
        };
        tracing::info!(server = %self.entry.id, root = %self.root.as_str(), pid = client.pid(), "started");
        self.life.send_replace(Life::Live(Arc::clone(&client)));
        let reason = client.ended().await;
        if !self.leaving.is_cancelled() {
            tracing::warn!(server = %self.entry.id, root = %self.root.as_str(), reason, "ended by itself");
        }
        self.life.send_replace(Life::Broken(reason));
    }

    /// Ends the server, or its start.
    pub(super) async fn shutdown(&self, polite: Duration, grace: Duration) {
        self.leaving.cancel();
        let mut life = self.life.subscribe();
        // A start that is cancelled ends at once, by a killed process.
        let life = life.wait_for(|life| !matches!(life, Life::Starting)).await.map(|life| life.clone());
        if let Ok(Life::Live(client)) = life {
            client.shutdown(polite, grace).await;
        }
    }
}
