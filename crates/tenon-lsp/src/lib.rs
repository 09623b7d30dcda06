//! Language servers: transport, client, orchestrator, registry.

pub mod registry;
