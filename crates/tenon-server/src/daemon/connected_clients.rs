//! Counts connected clients and decides when the daemon exits, under one lock so that the two cannot race.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct State {
    connected: usize,
    /// Open pages of the console. They keep the daemon from exiting when idle, but not from making way for a new one.
    watching: usize,
    leaving: bool,
}

/// The clients of one daemon.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectedClients(Arc<watch::Sender<State>>);

/// Counts one client as connected until it is dropped.
#[derive(Debug)]
pub(super) struct ClientGuard(Arc<watch::Sender<State>>);

/// Counts one open page until it is dropped.
#[derive(Debug)]
pub(super) struct PageGuard(Arc<watch::Sender<State>>);

impl Drop for PageGuard {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.watching -= 1);
    }
}

impl ConnectedClients {
    /// Counts a client as connected, unless the daemon is exiting.
    pub(super) fn enter(&self) -> Option<ClientGuard> {
        let mut entered = false;
        self.0.send_if_modified(|state| {
            entered = !state.leaving;
            state.connected += usize::from(entered);
            entered
        });
        entered.then(|| ClientGuard(Arc::clone(&self.0)))
    }

    /// Counts an open page, unless the daemon is exiting.
    pub(super) fn watch_page(&self) -> Option<PageGuard> {
        let mut entered = false;
        self.0.send_if_modified(|state| {
            entered = !state.leaving;
            state.watching += usize::from(entered);
            entered
        });
        entered.then(|| PageGuard(Arc::clone(&self.0)))
    }

    pub(super) fn count(&self) -> usize {
        self.0.borrow().connected
    }

    /// Decides to exit. No client is admitted any more.
    pub(super) fn leave(&self) {
        self.0.send_modify(|state| state.leaving = true);
    }

    /// Decides to exit if no client is connected. Returns whether the daemon is exiting.
    pub(super) fn leave_if_idle(&self) -> bool {
        let mut leaving = false;
        self.0.send_if_modified(|state| {
            leaving = state.leaving || state.connected == 0;
            let changed = leaving && !state.leaving;
            state.leaving = leaving;
            changed
        });
        leaving
    }

    /// Cancels `stop` once the daemon has decided to exit, which it does itself after `idle` without clients.
    pub(super) async fn watch(&self, idle: Duration, stop: CancellationToken) {
        let mut states = self.0.subscribe();
        loop {
            let state = *states.borrow_and_update();
            if state.leaving {
                return stop.cancel();
            }
            tokio::select! {
                changed = states.changed() => if changed.is_err() { return },
                () = stop.cancelled() => return,
                () = tokio::time::sleep(idle), if state.connected + state.watching == 0 => {
                    self.leave_if_idle();
                }
            }
        }
    }
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.connected -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(900);

    #[tokio::test(start_paused = true)]
    async fn daemon_exits_after_a_full_idle_time_without_clients() {
        let (clients, stop) = (ConnectedClients::default(), CancellationToken::new());
        let watching = tokio::spawn({
            let (clients, stop) = (clients.clone(), stop.clone());
            async move { clients.watch(IDLE, stop).await }
        });
        let client = clients.enter().unwrap();
        tokio::time::sleep(IDLE * 3).await;
        assert!(!stop.is_cancelled());
        drop(client);
        tokio::time::sleep(IDLE - Duration::from_secs(1)).await;
        drop(clients.enter().unwrap());
        tokio::time::sleep(IDLE - Duration::from_secs(1)).await;
        assert!(!stop.is_cancelled(), "a connection restarts the idle time");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(stop.is_cancelled());
        assert!(clients.enter().is_none(), "an exiting daemon admits no client");
        watching.await.unwrap();
    }

    #[tokio::test]
    async fn daemon_with_clients_exits_only_on_request() {
        let clients = ConnectedClients::default();
        let client = clients.enter().unwrap();
        assert!(!clients.leave_if_idle());
        clients.leave();
        assert!(clients.leave_if_idle());
        assert_eq!(clients.count(), 1);
        drop(client);
        assert_eq!(clients.count(), 0);
    }
}
