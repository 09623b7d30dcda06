//! The epoch of the language-server service: one number that grows when diagnostics change and when a check has collected.

use tenon_contract::epoch::{Epoch, Epochs};
use tokio::sync::watch;

/// A growing counter that can be waited on. Clones share it.
///
/// It differs from the workspace's diagnostics epoch (decision 0304): opening and closing a file advances this one, but must
/// not make cursors stale.
#[derive(Debug, Clone)]
pub(crate) struct CheckEpoch(watch::Sender<u64>);

impl CheckEpoch {
    /// Starts above every value of an earlier service for this workspace.
    pub(crate) fn new(epochs: &Epochs) -> Self {
        Self(watch::Sender::new(epochs.get(Epoch::Diagnostics)))
    }

    pub(crate) fn current(&self) -> u64 {
        *self.0.borrow()
    }

    /// Called when the diagnostics of a file changed, or a check has collected.
    pub(crate) fn advance(&self) {
        self.0.send_modify(|epoch| *epoch += 1);
    }

    /// Sees every advance from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
