//! The transports, from bytes to bytes: HTTP statuses, byte streams, lifecycle, limits.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod http_client;
mod http_limits;
mod http_status;
mod older_revisions;
mod probe;
mod revisions;
mod stream;
