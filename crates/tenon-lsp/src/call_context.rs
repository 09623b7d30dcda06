//! The bounds of a call: one deadline and one cancel token that every wait obeys.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The bounds of one call. Cheap to clone; clones share the cancel token.
#[derive(Debug, Clone)]
pub struct CallContext {
    pub deadline: Instant,
    pub cancel: CancellationToken,
    /// Whether this call already knows all earlier changes on disk.
    caught_up: bool,
    /// When the text that the call passes was known, compared with other calls.
    text_order: Option<u64>,
    /// Who asks; 0 for work that no client waits for.
    client: u64,
    /// Whether it may be answered without changes of other files that are being checked.
    passes_changes: bool,
}

/// The order of the next text.
static NEXT_TEXT: AtomicU64 = AtomicU64::new(1);

/// Why a wait ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    #[error("the deadline passed")]
    Deadline,
    #[error("the call was cancelled")]
    Cancelled,
}

impl CallContext {
    pub fn new(deadline: Instant, cancel: CancellationToken) -> Self {
        Self { deadline, cancel, caught_up: false, text_order: None, client: 0, passes_changes: false }
    }

    /// A call that is never cancelled.
    pub fn within(timeout: Duration) -> Self {
        Self::new(Instant::now() + timeout, CancellationToken::new())
    }

    /// The same call, on behalf of a client. Clients share a busy server fairly.
    #[must_use]
    pub fn for_client(self, client: u64) -> Self {
        Self { client, ..self }
    }

    /// The same call, on behalf of the client of another one.
    #[must_use]
    pub fn for_client_of(self, other: &Self) -> Self {
        self.for_client(other.client)
    }

    /// The same call, which does not wait for edits of other files that are not answered yet: the answer is that from before
    /// such an edit, or from after it.
    #[must_use]
    pub fn beside_changes(self) -> Self {
        Self { passes_changes: true, ..self }
    }

    pub(crate) fn passes_changes(&self) -> bool {
        self.passes_changes
    }

    pub(crate) fn client(&self) -> u64 {
        self.client
    }

    /// The same call, ending at most `timeout` from now.
    #[must_use]
    pub fn at_most(&self, timeout: Duration) -> Self {
        Self { deadline: self.deadline.min(Instant::now() + timeout), ..self.clone() }
    }

    /// The same call after [`crate::orchestrator::Orchestrator::catch_up`]: the orchestrator skips that step.
    #[must_use]
    pub fn caught_up(self) -> Self {
        Self { caught_up: true, ..self }
    }

    /// The same call, whose text is newer than those of all calls that were marked before. A server never gets an older text of
    /// a file after a newer one.
    #[must_use]
    pub fn in_order(self) -> Self {
        let order = self.text_order.unwrap_or_else(|| NEXT_TEXT.fetch_add(1, Ordering::Relaxed));
        Self { text_order: Some(order), ..self }
    }

    /// The same call, for a text that was passed earlier.
    pub(crate) fn with_text_order(self, order: u64) -> Self {
        Self { text_order: Some(order), ..self }
    }

    pub(crate) fn text_order(&self) -> Option<u64> {
        self.text_order
    }

    pub(crate) fn is_caught_up(&self) -> bool {
        self.caught_up
    }

    /// Waits for `work` within the bounds of this call. Finished work wins over a passed deadline.
    pub async fn bound<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.cancel.cancelled() => Err(Interrupted::Cancelled),
            () = tokio::time::sleep_until(self.deadline) => Err(Interrupted::Deadline),
        }
    }

    /// Fails if the call is over.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        if self.cancel.is_cancelled() {
            Err(Interrupted::Cancelled)
        } else if self.remaining().is_zero() {
            Err(Interrupted::Deadline)
        } else {
            Ok(())
        }
    }

    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}
