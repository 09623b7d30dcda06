//! Language servers at work: transport, client, orchestrator.

pub use tenon_servers::registry::{Capability, ServerId};

pub mod aftermath;
pub mod block;
pub mod call;
pub mod client;
pub mod codec;
pub mod epoch;
pub mod finding;
pub mod log;
pub mod message;
pub mod model;
pub mod orchestrator;
#[cfg(unix)]
pub mod process;
#[cfg(not(unix))]
#[path = "process/portable.rs"]
pub mod process;
pub mod service;
pub mod transport;
pub mod watch;
mod wire;
mod words;
pub mod workspace_check;
