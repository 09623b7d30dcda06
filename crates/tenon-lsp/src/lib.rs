//! Language servers: transport, client, orchestrator, registry.
