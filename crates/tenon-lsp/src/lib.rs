//! Language servers: transport, client, orchestrator, registry.

pub mod census;
pub mod find;
pub mod install;
pub mod registry;
