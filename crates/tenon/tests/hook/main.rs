//! Commands that ask the daemon about files, `tenon hook` and `tenon check`: the real program, its daemon, and scripted language
//! servers behind that.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod check;
mod hostile;
mod install;
mod post_edit;
mod refusals;
mod workspace;
