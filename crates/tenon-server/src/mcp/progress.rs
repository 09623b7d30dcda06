//! Progress of a running call, for clients that asked for it.
//!
//! Progress is best effort: a client that reads slowly loses reports and never slows the work down.

use rmcp::model::{
    ProgressNotification, ProgressNotificationParam, ProgressToken, ServerJsonRpcMessage, ServerNotification,
};
use tokio::sync::mpsc;

/// Receives the notifications of one request, which precede the response.
pub(crate) type Outbox = mpsc::Sender<ServerJsonRpcMessage>;

/// How many reports may wait for a slow reader; further ones are dropped.
pub(crate) const OUTBOX_CAPACITY: usize = 64;

/// Reports progress to a client that asked for it; otherwise does nothing.
#[derive(Debug, Clone, Default)]
pub struct ProgressReporter {
    sink: Option<(ProgressToken, Outbox)>,
}

impl ProgressReporter {
    pub(crate) fn new(token: ProgressToken, outbox: Outbox) -> Self {
        Self { sink: Some((token, outbox)) }
    }

    /// Reports that `done` of `total` (where known) is done.
    pub fn report(&self, done: u64, total: Option<u64>, message: &str) {
        let Some((token, outbox)) = &self.sink else { return };
        // Counts stay far below 2^53, where a float is still exact.
        let mut param = ProgressNotificationParam::new(token.clone(), done as f64).with_message(message);
        if let Some(total) = total {
            param = param.with_total(total as f64);
        }
        let notification = ServerNotification::ProgressNotification(ProgressNotification::new(param));
        let _ = outbox.try_send(ServerJsonRpcMessage::notification(notification));
    }
}
