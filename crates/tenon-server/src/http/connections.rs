//! How many connections there may be.
//!
//! Those without a valid token are few and short, and the oldest gives way to a new one after a moment, so that no process
//! without a token keeps others out. Half of the process's file descriptors are left for files and language servers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::HttpLimits;

/// How long a connection may take to send the head of a request before it gives way to a new one.
const GRACE: Duration = Duration::from_millis(200);

/// The connections of one endpoint.
pub(super) struct Connections {
    limits: HttpLimits,
    seats: Arc<Semaphore>,
    strangers: Arc<Strangers>,
}

/// The connections without a valid token.
#[derive(Default)]
struct Strangers {
    open: Mutex<OpenStrangers>,
    left: Notify,
}

#[derive(Default)]
struct OpenStrangers {
    last: u64,
    /// The oldest first: when each was opened, and what ends it.
    by_age: BTreeMap<u64, (Instant, CancellationToken)>,
}

/// One connection, until it is dropped.
pub(super) struct Connection {
    strangers: Arc<Strangers>,
    number: u64,
    is_known: AtomicBool,
    /// Cancelled when it has to give way to a new one.
    evicted: CancellationToken,
    limits: HttpLimits,
    _seat: OwnedSemaphorePermit,
}

impl Connections {
    pub(super) fn new(limits: HttpLimits) -> Self {
        let limits = within_descriptors(limits, open_file_limit());
        let seats = Arc::new(Semaphore::new(limits.connections + limits.unauthenticated));
        Self { limits, seats, strangers: Arc::default() }
    }

    /// Waits until another connection is allowed. The oldest one without a token ends if there are too many.
    pub(super) async fn seat(&self) -> OwnedSemaphorePermit {
        while let Some(oldest) = self.strangers.make_room(self.limits.unauthenticated) {
            tokio::select! {
                () = self.strangers.left.notified() => {}
                () = tokio::time::sleep_until(oldest + GRACE) => {}
            }
        }
        let seat = Arc::clone(&self.seats).acquire_owned().await;
        seat.expect("the semaphore is never closed")
    }

    /// A new connection.
    pub(super) fn open(&self, seat: OwnedSemaphorePermit) -> Arc<Connection> {
        let evicted = CancellationToken::new();
        let mut open = self.strangers.lock();
        open.last += 1;
        let number = open.last;
        open.by_age.insert(number, (Instant::now(), evicted.clone()));
        drop(open);
        Arc::new(Connection {
            strangers: Arc::clone(&self.strangers),
            number,
            is_known: AtomicBool::new(false),
            evicted,
            limits: self.limits,
            _seat: seat,
        })
    }
}

impl Strangers {
    fn lock(&self) -> MutexGuard<'_, OpenStrangers> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the oldest connection if there are too many. Returns when it was opened if that is too short ago.
    fn make_room(&self, limit: usize) -> Option<Instant> {
        let mut open = self.lock();
        if open.by_age.len() < limit {
            return None;
        }
        let oldest = open.by_age.first_entry()?;
        let opened = oldest.get().0;
        if opened.elapsed() < GRACE {
            return Some(opened);
        }
        oldest.remove().1.cancel();
        None
    }

    fn leave(&self, number: u64) {
        if self.lock().by_age.remove(&number).is_some() {
            // Also for a wait that is about to begin.
            self.left.notify_one();
        }
    }
}

impl Connection {
    /// A request on this connection had a valid token.
    pub(super) fn authenticate(&self) {
        if !self.is_known.swap(true, Ordering::Relaxed) {
            self.strangers.leave(self.number);
        }
    }

    /// Ends when the connection must close: it gives way, or there was no valid token for too long.
    pub(super) async fn must_close(&self) {
        tokio::select! {
            () = self.evicted.cancelled() => {}
            () = tokio::time::sleep(self.limits.unauthenticated_timeout) => {
                if self.is_known.load(Ordering::Relaxed) {
                    std::future::pending().await
                }
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.strangers.leave(self.number);
    }
}

/// The limits that use at most half of the descriptors, and an eighth of them for connections without a token.
fn within_descriptors(limits: HttpLimits, descriptors: Option<usize>) -> HttpLimits {
    let Some(descriptors) = descriptors else {
        return limits;
    };
    let unauthenticated = limits.unauthenticated.min(descriptors / 8).max(1);
    let connections = limits.connections.min((descriptors / 2).saturating_sub(unauthenticated)).max(1);
    HttpLimits { connections, unauthenticated, ..limits }
}

#[cfg(unix)]
fn open_file_limit() -> Option<usize> {
    use nix::sys::resource::{Resource, getrlimit};

    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    usize::try_from(soft).ok()
}

#[cfg(not(unix))]
fn open_file_limit() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_descriptors_are_left_for_files() {
        let limits = |descriptors| {
            let limits = within_descriptors(HttpLimits::default(), descriptors);
            (limits.connections, limits.unauthenticated)
        };
        assert_eq!(limits(None), (1024, 64));
        assert_eq!(limits(Some(1 << 20)), (1024, 64));
        assert_eq!(limits(Some(256)), (96, 32));
        assert_eq!(limits(Some(1)), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn oldest_connection_without_a_token_gives_way_after_a_moment() {
        let connections = Connections::new(HttpLimits { unauthenticated: 2, ..HttpLimits::default() });
        let start = Instant::now();
        let mut open = Vec::new();
        for _ in 0..3 {
            open.push(connections.open(connections.seat().await));
        }
        assert_eq!(start.elapsed(), GRACE);
        open[0].must_close().await;
        // One with a token does not count any more.
        open[1].authenticate();
        let fourth = connections.open(connections.seat().await);
        drop(fourth);
        let _fifth = connections.open(connections.seat().await);
        assert_eq!(start.elapsed(), GRACE, "a closed connection makes room");
        assert!(open.iter().skip(1).all(|one| !one.evicted.is_cancelled()));
    }
}
