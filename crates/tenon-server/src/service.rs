//! A workspace with its surfaces: what every transport serves, with and without a daemon.
//!
//! Surfaces are assembled here. A surface that is not allowed (`edit` without the user's permission) is not in the set, so
//! no transport can serve it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tenon_contract::clock::Entropy;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::activity::ActivityLog;
use crate::daemon::client_settings::SessionSettings;
use crate::engine::Engine;
use crate::http::port_memory::PortMemory;
use crate::http::{self, BindError, Endpoint, HttpLimits};
use crate::mcp::Handler;
use crate::mcp::stream::{self, StreamLimits};
use crate::surfaces::code::CodeSurface;
use crate::surfaces::context::ContextSurface;
use crate::surfaces::edit::EditSurface;
use crate::surfaces::explore::ExploreSurface;
use crate::surfaces::lean::LeanSurface;
use crate::surfaces::nav::{NavOptions, NavSurface};
use crate::surfaces::work::{StoreHandle, WorkSurface};
use crate::surfaces::workspace::WorkspaceSurface;
use crate::surfaces::{Surfaces, UnknownSurface};
use crate::token::TokenFile;
use crate::web::{DaemonAccess, DaemonControl, WebApp};
use crate::workspace::Workspace;

/// See the module.
pub struct Service {
    workspace: Arc<Workspace>,
    engine: Arc<Engine>,
    surfaces: Surfaces,
    activity: Arc<ActivityLog>,
}

impl Service {
    pub fn new(workspace: Workspace) -> Self {
        let workspace = Arc::new(workspace);
        let engine = Arc::new(Engine::new(Arc::clone(&workspace)));
        let store = Arc::new(StoreHandle::new(&workspace));
        engine.use_store(&store);
        let cache_root = workspace.config().context.cache_root.clone();
        let mcp = &workspace.config().mcp;
        let activity = ActivityLog::new(workspace.clock().clone());
        let surfaces = Surfaces::new(mcp.tool_names, mcp.content)
            .recorded(&activity)
            .with(ExploreSurface::new(&engine))
            .with(CodeSurface::new(&engine))
            .with(NavSurface::new(&engine, nav_options(&workspace)))
            .with_allowed(EditSurface::allowed(&workspace, &engine))
            .with(ContextSurface::of_workspace(cache_root.map(Into::into), &engine))
            .with(LeanSurface::new(&workspace, &store, &engine))
            .with(WorkSurface::tasks(&store))
            .with(WorkSurface::memory(&store));
        let mut names = surfaces.names();
        names.push(WorkspaceSurface::NAME);
        let surface = WorkspaceSurface::new(Arc::clone(&workspace), names, Arc::clone(&engine));
        Self { workspace, engine, surfaces: surfaces.with(surface), activity }
    }

    /// The language servers of the workspace.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Starts the language servers that the workspace needs, and returns when they are ready.
    pub async fn warm_up(&self) {
        self.engine.warm_up().await;
    }

    /// Ends all language servers.
    pub async fn shutdown(&self) {
        self.engine.shutdown().await;
    }

    pub(crate) fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// The names of all surfaces, in the order in which they are listed.
    pub(crate) fn surfaces(&self) -> Vec<&'static str> {
        self.surfaces.names()
    }

    /// Serves the chosen surfaces; `None` for the configured ones that are available.
    pub fn handler(&self, chosen: Option<&[String]>) -> Result<Handler, UnknownSurface> {
        self.session_handler(chosen, &SessionSettings::default())
    }

    /// As [`Self::handler`], for a client that chooses some settings itself.
    pub(crate) fn session_handler(
        &self,
        chosen: Option<&[String]>,
        session: &SessionSettings,
    ) -> Result<Handler, UnknownSurface> {
        let set = match (chosen, &session.surfaces) {
            (Some(names), _) => self.surfaces.select(names)?,
            (None, Some(configured)) => self.surfaces.select(&self.available(configured))?,
            (None, None) => self.surfaces.select(&self.configured())?,
        };
        Ok(Handler::new(set.presented(session.tool_names, session.content)).connected(Some(&self.activity)))
    }

    fn configured(&self) -> Vec<String> {
        self.available(&self.workspace.config().mcp.surfaces)
    }

    fn available(&self, configured: &[String]) -> Vec<String> {
        let available = self.surfaces.names();
        configured.iter().filter(|name| available.contains(&name.as_str())).cloned().collect()
    }

    /// Serves one client over a byte stream until its input ends or `stop` is cancelled.
    pub async fn serve_stream<R, W>(
        &self,
        read: R,
        write: W,
        handler: Handler,
        stop: CancellationToken,
    ) -> std::io::Result<()>
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let request_bytes = self.workspace.config().limits.max_request_bytes;
        let limits = StreamLimits { request_bytes, ..StreamLimits::default() };
        stream::serve(read, write, handler, limits, stop).await
    }

    /// Listens on a loopback port; `None` for the configured one, else the one of the last time if it is free.
    pub(crate) async fn bind_http(&self, port: Option<u16>) -> Result<tokio::net::TcpListener, BindError> {
        let bind = |port: u16| http::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let configured = self.workspace.config().http.port;
        if let Some(port) = port.or((configured != 0).then_some(configured)) {
            return bind(port).await;
        }
        self.bind_remembered(&PortMemory::of(&self.workspace)).await
    }

    async fn bind_remembered(&self, memory: &PortMemory) -> Result<tokio::net::TcpListener, BindError> {
        let bind = |port: u16| http::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        if let Some(port) = memory.read()
            && let Ok(listener) = bind(port).await
        {
            return Ok(listener);
        }
        let listener = bind(0).await?;
        if let Ok(address) = listener.local_addr() {
            memory.write(address.port());
        }
        Ok(listener)
    }

    /// What a web application may use.
    pub(crate) fn access(&self, control: Arc<dyn DaemonControl>) -> DaemonAccess {
        let names: Vec<&str> =
            self.surfaces.names().into_iter().filter(|name| *name != EditSurface::NAME).collect();
        let surfaces = self.surfaces.select(&names).expect("the names are those of the surfaces themselves");
        DaemonAccess {
            workspace: Arc::clone(&self.workspace),
            engine: Arc::clone(&self.engine),
            surfaces: surfaces.recorded(None),
            activity: Arc::clone(&self.activity),
            control,
        }
    }

    /// Listens on a loopback port for the web console; the one of the last time if it is free.
    pub(crate) async fn bind_console(&self) -> Result<tokio::net::TcpListener, BindError> {
        self.bind_remembered(&PortMemory::of_console(&self.workspace)).await
    }

    /// Serves a web application without MCP until `stop` is cancelled.
    pub(crate) async fn serve_console(
        &self,
        listener: tokio::net::TcpListener,
        web: Arc<dyn WebApp>,
        stop: CancellationToken,
    ) {
        let endpoint = Endpoint { surfaces: Surfaces::default(), ..self.endpoint() };
        http::serve_beside(listener, endpoint, Some(web), stop).await;
    }

    /// Serves HTTP until `stop` is cancelled.
    pub(crate) async fn serve_http(&self, listener: tokio::net::TcpListener, stop: CancellationToken) {
        http::serve(listener, self.endpoint(), stop).await;
    }

    fn endpoint(&self) -> Endpoint {
        let tokens = self.workspace.dirs().tokens();
        let clock = self.workspace.clock().clone();
        let open = self.surfaces.names().into_iter().filter(|name| *name != EditSurface::NAME);
        Endpoint {
            surfaces: self.surfaces.clone(),
            default_surfaces: self.configured(),
            open_surfaces: open.map(str::to_owned).collect(),
            authority: Box::new(TokenFile::new(tokens.into_std_path_buf(), clock, Entropy::system())),
            entropy: Entropy::system(),
            limits: HttpLimits {
                request_bytes: self.workspace.config().limits.max_request_bytes,
                ..HttpLimits::default()
            },
        }
    }
}

/// The `nav` tools show the severities that are configured for `tenon check`.
fn nav_options(workspace: &Workspace) -> NavOptions {
    NavOptions { severities: workspace.config().check.severities.clone(), ..NavOptions::default() }
}
