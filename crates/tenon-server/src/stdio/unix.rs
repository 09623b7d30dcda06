//! Unix: pipes and sockets without blocking.
//!
//! Whether a descriptor blocks is a property that it shares with its copies in other processes. So a pipe is opened again, which
//! only Linux can do. A socket is used as it is, unless standard error is the same one, whose users expect that it blocks.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream as StdUnixStream;

use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::{Input, Output};

pub(super) fn input() -> Option<Input> {
    let (file, metadata) = opened(io::stdin()).ok()?;
    if metadata.file_type().is_fifo() {
        let pipe = pipe::OpenOptions::new().open_receiver("/proc/self/fd/0").ok()?;
        return Some(Box::new(pipe));
    }
    Some(Box::new(socket(file, &metadata)?))
}

pub(super) fn output() -> Option<Output> {
    let (file, metadata) = opened(io::stdout()).ok()?;
    if metadata.file_type().is_fifo() {
        let pipe = pipe::OpenOptions::new().open_sender("/proc/self/fd/1").ok()?;
        return Some(Box::new(pipe));
    }
    Some(Box::new(socket(file, &metadata)?))
}

fn opened(descriptor: impl AsFd) -> io::Result<(File, Metadata)> {
    let file = File::from(descriptor.as_fd().try_clone_to_owned()?);
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

fn socket(file: File, metadata: &Metadata) -> Option<UnixStream> {
    let (_, errors) = opened(io::stderr()).ok()?;
    let is_shared = (errors.dev(), errors.ino()) == (metadata.dev(), metadata.ino());
    if !metadata.file_type().is_socket() || is_shared {
        return None;
    }
    let socket = StdUnixStream::from(OwnedFd::from(file));
    socket.set_nonblocking(true).ok()?;
    UnixStream::from_std(socket).ok()
}
