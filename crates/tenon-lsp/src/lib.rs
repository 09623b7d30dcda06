//! Language servers: transport, client, orchestrator, registry.

pub mod aftermath;
pub mod block;
pub mod call;
pub mod census;
pub mod check;
pub mod client;
pub mod codec;
pub mod epoch;
pub mod find;
pub mod finding;
pub mod install;
pub mod log;
pub mod message;
pub mod model;
pub mod orchestrator;
#[cfg(unix)]
pub mod process;
#[cfg(not(unix))]
#[path = "process/portable.rs"]
pub mod process;
pub mod registry;
pub mod service;
pub mod transport;
pub mod walk;
pub mod watch;
mod wire;
mod words;
