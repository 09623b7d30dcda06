//! `tenon lsp-service` from the host's side: the real program over pipes, with scripted language servers.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod bootstrap;
mod host;
mod life;
mod methods;
mod nav;
mod node;
