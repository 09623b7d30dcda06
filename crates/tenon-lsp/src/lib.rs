//! Language servers at work: transport, client, orchestrator.

pub use call_context::{CallContext, Interrupted};
pub use tenon_servers::registry::{Capability, ServerId};

mod call_context;
mod check_epoch;
mod client;
pub mod codec;
pub mod diagnostic_line;
mod from_protocol;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod identifiers;
pub mod message;
pub mod model;
pub mod orchestrator;
pub mod outside;
#[cfg(unix)]
pub mod process;
#[cfg(not(unix))]
#[path = "process/non_unix.rs"]
pub mod process;
#[cfg(unix)]
mod sandbox;
pub mod server_edit;
mod server_log;
pub mod service;
pub mod transport;
pub mod watch;
pub mod workspace_check;
