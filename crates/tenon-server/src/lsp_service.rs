//! Unix: the language-server service for embedding hosts: JSON-RPC on stdin and stdout, the `nav` tools on two more pipes.
//!
//! It reads the bootstrap, opens the workspace, serves navigation, and sends `lsp/ready` last. The end of stdin, SIGTERM,
//! SIGINT and `lsp/shutdown` end it with all its servers within two seconds. Servers stay in its process group, so that a
//! host that kills the group also kills them.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Duration;

use serde_json::json;
use tenon_contract::root::RootGate;
use tenon_lsp::orchestrator::{Options, Orchestrator};
use tenon_lsp::process::ProcessGroup;
use tenon_servers::find::Finder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::mcp::Handler;
use crate::mcp::stream::{self, StreamLimits};
use crate::surface::{SurfaceSet, ToolNames};
use crate::surfaces::nav::{NavOptions, NavSurface};

mod bootstrap;
mod diagnostics_json;
mod host_servers;
mod rpc_service;

use rpc_service::RpcService;

pub use bootstrap::{Bootstrap, BootstrapError};

/// The two pipes for navigation, taken before the process opens other descriptors.
pub struct NavPipes {
    /// Written by the host.
    pub read: Option<OwnedFd>,
    /// Read by the host.
    pub write: Option<OwnedFd>,
}

impl NavPipes {
    /// Descriptor 3 is read, 4 is written. Call this once, before anything else.
    pub fn inherited() -> Self {
        Self { read: tenon_lsp::process::inherited(3), write: tenon_lsp::process::inherited(4) }
    }
}

/// How long servers may take to exit: the whole service must end within two seconds.
const POLITE: Duration = Duration::from_millis(700);
const GRACE: Duration = Duration::from_millis(700);
const LEAVING: Duration = Duration::from_millis(1700);

/// Serves until the host or a signal ends it. `finder` decides what may run for this root; `notice` gets messages for people.
pub async fn serve<R, W>(
    bootstrap: Bootstrap,
    gate: RootGate,
    finder: Finder,
    pipes: NavPipes,
    stdin: R,
    stdout: W,
    mut notice: impl FnMut(&str),
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    // Installed before anything is started, so that no signal is missed.
    let mut signals = Signals::new()?;
    let mut options = Options::new(gate, bootstrap.registry, finder);
    options.group = ProcessGroup::Inherited;
    options.timeouts.check = bootstrap.check_timeout;
    options.timeouts.first_check = bootstrap.first_check_timeout;
    options.timeouts.start = bootstrap.request_timeout;
    options.timeouts.polite = POLITE;
    options.timeouts.grace = GRACE;
    let orchestrator = Orchestrator::open(options).await;

    let stop = CancellationToken::new();
    let nav = if bootstrap.navigation {
        let options =
            NavOptions { timeout: bootstrap.navigation_timeout, severities: bootstrap.severities.clone() };
        let surface = NavSurface::over(orchestrator.clone(), options);
        navigate(pipes, surface, stop.clone(), &mut notice)?
    } else {
        None
    };

    let (service, outbox) = RpcService::new(orchestrator.clone(), bootstrap.severities, bootstrap.host_ids);
    service.notify(tenon_lsp::service::READY, &json!({})).await;
    let ended = tokio::select! {
        ended = rpc_service::run(&service, outbox, stdin, stdout) => ended,
        () = signals.any() => Ok(()),
    };
    stop.cancel();
    // A server that does not exit in time is killed with this process.
    let _ = tokio::time::timeout(LEAVING, orchestrator.shutdown()).await;
    if let Some(nav) = nav {
        // It ends with `stop`; its last messages cannot be delivered any more.
        nav.abort();
    }
    ended
}

/// Serves the `nav` tools on the host's pipes, if both are open.
fn navigate(
    pipes: NavPipes,
    surface: NavSurface,
    stop: CancellationToken,
    notice: &mut impl FnMut(&str),
) -> io::Result<Option<tokio::task::JoinHandle<()>>> {
    let (Some(read), Some(write)) = (pipes.read, pipes.write) else {
        notice("navigation is off: descriptors 3 and 4 must both be pipes or sockets");
        return Ok(None);
    };
    let (read, write) = (reader(read)?, writer(write)?);
    let surfaces = SurfaceSet::single(surface, ToolNames::default());
    let handler = Handler::new(surfaces);
    Ok(Some(tokio::spawn(async move {
        if let Err(error) = stream::serve(read, write, handler, StreamLimits::default(), stop).await {
            tracing::debug!(%error, "navigation ended");
        }
    })))
}

/// Node passes sockets, other hosts FIFOs.
fn is_socket(descriptor: &OwnedFd) -> io::Result<bool> {
    let file = std::fs::File::from(descriptor.try_clone()?);
    Ok(file.metadata()?.file_type().is_socket())
}

fn socket(descriptor: OwnedFd) -> io::Result<UnixStream> {
    let socket = StdUnixStream::from(descriptor);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

fn reader(descriptor: OwnedFd) -> io::Result<Box<dyn AsyncRead + Unpin + Send>> {
    if is_socket(&descriptor)? {
        return Ok(Box::new(socket(descriptor)?));
    }
    Ok(Box::new(pipe::Receiver::from_owned_fd(descriptor)?))
}

fn writer(descriptor: OwnedFd) -> io::Result<Box<dyn AsyncWrite + Unpin + Send>> {
    if is_socket(&descriptor)? {
        return Ok(Box::new(socket(descriptor)?));
    }
    Ok(Box::new(pipe::Sender::from_owned_fd(descriptor)?))
}

/// The signals that end the service.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
