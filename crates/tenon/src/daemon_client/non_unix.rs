//! Systems without Unix sockets: the daemon is not supported yet.

use std::time::Duration;

use camino::Utf8Path;
use tenon_server::daemon::protocol::{DaemonInfo, DaemonRequest, DaemonResponse};

use super::{DaemonCheck, Probe, ServeOptions};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

fn unsupported() -> Failure {
    Failure::new(Exit::Daemon, "the daemon is not supported on this system yet")
        .hint("`tenon mcp` works without it")
}

pub(super) fn status(_: &Invocation, _: &Utf8Path) -> Result<Option<DaemonInfo>, Failure> {
    Ok(None)
}

pub(super) fn stop(_: &Invocation, _: &Utf8Path, _: bool) -> Result<bool, Failure> {
    Ok(false)
}

pub(super) fn bridge(
    invocation: &mut Invocation,
    root: &Utf8Path,
    surfaces: Option<Vec<String>>,
) -> Result<Exit, Failure> {
    super::serve_in_process(invocation, root, surfaces.as_deref())
}

pub(super) fn probe(_: &Invocation, _: &Utf8Path) -> Result<Probe, Failure> {
    Err(unsupported())
}

pub(super) fn console_link(_: &Invocation, _: &Utf8Path) -> Result<String, Failure> {
    Err(unsupported())
}

pub(super) fn request(_: &Invocation, _: &Utf8Path, _: DaemonRequest) -> Result<DaemonResponse, Failure> {
    Err(unsupported())
}

pub(super) fn request_or_start(
    _: &Invocation,
    _: &Utf8Path,
    _: DaemonRequest,
    _: Duration,
) -> Result<DaemonResponse, Failure> {
    Err(unsupported())
}

pub(super) fn check_files(_: &Invocation, _: &Utf8Path, _: DaemonRequest) -> Option<DaemonCheck> {
    None
}

pub(super) fn serve(_: &mut Invocation, _: &Utf8Path, _: ServeOptions) -> Result<Exit, Failure> {
    Err(unsupported())
}

pub(super) fn run_daemon(_: &Invocation, _: &Utf8Path, _: bool) -> Exit {
    Exit::Daemon
}
