//! Checks that have begun and have not shown their text to the servers yet.
//!
//! A server that gets a change between two requests checks what the change affects again for each of them, or cancels the
//! request. So a check that has shown its text waits, before it asks for diagnostics, for those that began before: the
//! server gets all changes first, then the requests.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use super::lock;

#[derive(Debug, Default)]
pub(super) struct ArrivingChecks {
    tickets: Mutex<Tickets>,
    left: Notify,
}

#[derive(Debug, Default)]
struct Tickets {
    next: u64,
    arriving: BTreeSet<u64>,
}

/// A check that has not shown its text. It is dropped as soon as it has, or waits for a server.
#[derive(Debug)]
pub(super) struct ArrivingCheck {
    checks: Arc<ArrivingChecks>,
    ticket: u64,
}

impl ArrivingChecks {
    pub(super) fn enter(self: &Arc<Self>) -> ArrivingCheck {
        let mut tickets = lock(&self.tickets);
        tickets.next += 1;
        let ticket = tickets.next;
        tickets.arriving.insert(ticket);
        ArrivingCheck { checks: Arc::clone(self), ticket }
    }

    /// Waits until the checks that have begun by now have shown their texts, at most `longest`. Later ones do not prolong the
    /// wait.
    pub(super) async fn all_shown(&self, longest: Duration) {
        let last = lock(&self.tickets).next;
        let shown = async {
            loop {
                let left = self.left.notified();
                if lock(&self.tickets).arriving.first().is_none_or(|first| *first > last) {
                    return;
                }
                left.await;
            }
        };
        // A check that takes longer comes too late to be worth the wait.
        let _ = tokio::time::timeout(longest, shown).await;
    }
}

impl Drop for ArrivingCheck {
    fn drop(&mut self) {
        lock(&self.checks.tickets).arriving.remove(&self.ticket);
        self.checks.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn wait_ends_when_earlier_checks_have_shown_their_texts() {
        let checks = Arc::new(ArrivingChecks::default());
        let (first, second) = (checks.enter(), checks.enter());
        let mut wait = Box::pin(checks.all_shown(Duration::from_secs(1)));
        assert!((&mut wait).now_or_never().is_none());
        let later = checks.enter();
        drop(first);
        assert!((&mut wait).now_or_never().is_none());
        drop(second);
        assert!(wait.now_or_never().is_some(), "a later check does not prolong the wait");
        drop(later);
        assert!(checks.all_shown(Duration::from_secs(1)).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn check_that_never_shows_its_text_does_not_block_others() {
        let checks = Arc::new(ArrivingChecks::default());
        let _stuck = checks.enter();
        checks.all_shown(Duration::from_secs(1)).await;
    }
}
