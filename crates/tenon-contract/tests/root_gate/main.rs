//! The root gate over a real tree of files, links, pipes and sockets.
#![cfg(unix)]

mod hostile;
mod reading;
mod roots;
mod soup;
mod tree;
