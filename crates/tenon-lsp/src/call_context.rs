//! How long and for whom work goes on: one deadline and one cancel token that every wait obeys.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The bounds of one call. Cheap to clone; clones share the cancel token.
#[derive(Debug, Clone)]
pub struct CallContext {
    pub deadline: Instant,
    pub cancel: CancellationToken,
    /// Whether all that happened on disk before has been taken note of on behalf of this call.
    caught_up: bool,
}

/// Why a wait ended before what it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    #[error("the deadline passed")]
    Deadline,
    #[error("the call was cancelled")]
    Cancelled,
}

impl CallContext {
    pub fn new(deadline: Instant, cancel: CancellationToken) -> Self {
        Self { deadline, cancel, caught_up: false }
    }

    /// A call that nobody cancels.
    pub fn within(timeout: Duration) -> Self {
        Self::new(Instant::now() + timeout, CancellationToken::new())
    }

    /// The same call with an earlier deadline, when `timeout` from now is earlier.
    #[must_use]
    pub fn at_most(&self, timeout: Duration) -> Self {
        Self { deadline: self.deadline.min(Instant::now() + timeout), ..self.clone() }
    }

    /// The same call for whoever has just waited for [`crate::orchestrator::Orchestrator::catch_up`]: the engine need not
    /// look at the disk again.
    #[must_use]
    pub fn caught_up(self) -> Self {
        Self { caught_up: true, ..self }
    }

    pub(crate) fn is_caught_up(&self) -> bool {
        self.caught_up
    }

    /// Waits for `work` as long as this call lasts. Work that is done wins over a deadline that has passed.
    pub async fn bound<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.cancel.cancelled() => Err(Interrupted::Cancelled),
            () = tokio::time::sleep_until(self.deadline) => Err(Interrupted::Deadline),
        }
    }

    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}
