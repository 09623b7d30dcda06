//! The root gate, tested on a real tree of files, links, pipes and sockets.
#![expect(clippy::unwrap_used, reason = "a test fails if its setup fails")]
#![cfg(unix)]

mod fixture;
mod hostile_paths;
mod random_paths;
mod reading;
mod roots;
