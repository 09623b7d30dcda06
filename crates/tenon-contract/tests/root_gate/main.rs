//! The root gate over a real tree of files, links, pipes and sockets.
#![expect(clippy::unwrap_used, reason = "what a test cannot set up or read back must fail it")]
#![cfg(unix)]

mod hostile;
mod reading;
mod roots;
mod soup;
mod tree;
