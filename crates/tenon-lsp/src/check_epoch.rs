//! The epoch of the language-server service: one number that grows when diagnostics change and when a check has collected.

use tenon_contract::epoch::{Epoch, Epochs};
use tokio::sync::watch;

/// A counter that only grows and can be waited on. Clones count together.
///
/// It is not the workspace's own diagnostics epoch: a file that is opened, checked and closed again moves this one, and must
/// not make anyone's cursor stale.
#[derive(Debug, Clone)]
pub struct CheckEpoch(watch::Sender<u64>);

impl CheckEpoch {
    /// Starts above whatever an earlier service of this workspace can have reached.
    pub fn new(epochs: &Epochs) -> Self {
        Self(watch::Sender::new(epochs.get(Epoch::Diagnostics)))
    }

    pub fn current(&self) -> u64 {
        *self.0.borrow()
    }

    /// The diagnostics of a file are not what they were, or a check has collected.
    pub(crate) fn advance(&self) {
        self.0.send_modify(|epoch| *epoch += 1);
    }

    /// Sees every advance from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
