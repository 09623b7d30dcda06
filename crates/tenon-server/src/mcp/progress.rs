//! Progress of a running call, for clients that asked for it.
//!
//! Progress is best effort: a client that reads slowly loses reports and never slows the work down.

use rmcp::model::{
    ProgressNotification, ProgressNotificationParam, ProgressToken, ServerJsonRpcMessage, ServerNotification,
};
use tokio::sync::mpsc;

use super::json_writer::OutgoingMessage;

/// Receives the notifications of one request, which precede the response.
pub(crate) type Outbox = mpsc::Sender<OutgoingMessage>;

/// How many reports may wait for a slow reader; further ones are dropped.
pub(crate) const OUTBOX_CAPACITY: usize = 64;

/// Reports progress to a client that asked for it; otherwise does nothing.
#[derive(Debug, Clone, Default)]
pub struct ProgressReporter {
    sink: Option<ProgressSink>,
}

#[derive(Debug, Clone)]
struct ProgressSink {
    token: ProgressToken,
    outbox: Outbox,
    has_message: bool,
}

impl ProgressReporter {
    pub(crate) fn new(token: ProgressToken, outbox: Outbox, has_message: bool) -> Self {
        Self { sink: Some(ProgressSink { token, outbox, has_message }) }
    }

    /// Reports that `done` of `total` (where known) is done.
    pub fn report(&self, done: u64, total: Option<u64>, message: &str) {
        let Some(sink) = &self.sink else { return };
        // Counts stay far below 2^53, where a float is still exact.
        let mut param = ProgressNotificationParam::new(sink.token.clone(), done as f64);
        if sink.has_message {
            param = param.with_message(message);
        }
        if let Some(total) = total {
            param = param.with_total(total as f64);
        }
        let notification = ServerNotification::ProgressNotification(ProgressNotification::new(param));
        let _ = sink.outbox.try_send(ServerJsonRpcMessage::notification(notification).into());
    }
}
