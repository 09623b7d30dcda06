//! `tenon lsp-service` as its hosts meet it: the real program over pipes, with scripted language servers behind it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bootstrap;
mod host;
mod life;
mod methods;
mod nav;
mod node;
