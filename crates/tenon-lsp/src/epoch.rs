//! The epoch of the language-server service: one number that grows when diagnostics change and when a check has collected.

use std::sync::Arc;

use tenon_contract::epoch::{Epoch, Epochs};
use tokio::sync::watch;

/// A counter that only grows and can be waited on. Clones count together.
///
/// It is not the workspace's own diagnostics epoch, which moves with real changes alone: a check that finds nothing new
/// must not make anyone's cursor stale.
#[derive(Debug, Clone)]
pub struct CheckEpoch {
    counter: watch::Sender<u64>,
    epochs: Arc<Epochs>,
}

impl CheckEpoch {
    pub fn new(epochs: Arc<Epochs>) -> Self {
        let counter = watch::Sender::new(epochs.get(Epoch::Diagnostics));
        Self { counter, epochs }
    }

    pub fn current(&self) -> u64 {
        *self.counter.borrow()
    }

    /// The diagnostics of a file are not what they were.
    pub(crate) fn diagnostics_changed(&self) {
        self.epochs.advance(Epoch::Diagnostics);
        self.counter.send_modify(|epoch| *epoch += 1);
    }

    /// A check has collected, whatever it found.
    pub(crate) fn collected(&self) {
        self.counter.send_modify(|epoch| *epoch += 1);
    }

    /// Sees every advance from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.counter.subscribe()
    }
}
