//! `tenon hook` and `tenon check` with a daemon: the real program, its daemon, and scripted language servers.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod check;
mod hostile;
mod ignored_events;
mod post_edit;
mod stop;
mod workspace;
