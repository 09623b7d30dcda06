//! `tenon hook` as agents meet it: the real program, its daemon, and scripted language servers behind that.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod install;
mod post_edit;
mod refusals;
mod workspace;
