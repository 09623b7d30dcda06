//! The seven tools over fake language servers, served over HTTP as the product serves them.

use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::Value;
use tenon_code::{CodeLimits, CodeTools, Options};
use tenon_contract::clock::{Clock, Entropy};
use tenon_contract::snapshot::SnapshotLimits;
use tenon_fake_lsp::{Builder, Workbench};
use tenon_server::http::{self, Authority, Endpoint, HttpLimits, Principal};
use tenon_server::surface::{ContentMode, ToolNames};
use tenon_server::surfaces::Surfaces;
use tenon_server::surfaces::code::CodeSurface;
use tenon_testkit::mcp_client::{McpError, ToolResult};
use tenon_testkit::{McpClient, PATIENCE, Revision, code_tools};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// What a test may change.
pub struct Settings {
    pub limits: CodeLimits,
    pub snapshots: SnapshotLimits,
    pub content: ContentMode,
}

/// A served workspace; dropping it ends everything it started.
pub struct Stage {
    runtime: Runtime,
    pub bench: Workbench,
    pub code: CodeTools,
    address: SocketAddr,
    stop: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

struct Anyone;

impl Authority for Anyone {
    fn principal(&self, _bearer: Option<&str>) -> Option<Principal> {
        Some(Principal { id: "anyone".to_owned(), surfaces: None })
    }
}

impl Stage {
    pub fn open(builder: Builder) -> Self {
        Self::with(builder, |_| {})
    }

    pub fn with(builder: Builder, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings {
            limits: CodeLimits::default(),
            snapshots: SnapshotLimits::default(),
            content: ContentMode::default(),
        };
        change(&mut settings);
        let runtime = Runtime::new().unwrap();
        let bench = runtime.block_on(builder.open());
        let code = CodeTools::new(Options {
            engine: bench.orchestrator.clone(),
            limits: settings.limits,
            snapshots: settings.snapshots,
            clock: Clock::system(),
        });
        let endpoint = Endpoint {
            surfaces: Surfaces::new(ToolNames::Dotted, settings.content)
                .with(CodeSurface::over(code.clone())),
            default_surfaces: vec![CodeSurface::NAME.to_owned()],
            open_surfaces: vec![CodeSurface::NAME.to_owned()],
            authority: Box::new(Anyone),
            entropy: Entropy::system(),
            limits: HttpLimits::default(),
        };
        let stop = CancellationToken::new();
        let listener = runtime.block_on(http::bind(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
        let address = listener.local_addr().unwrap();
        let serving = {
            let (handle, stop) = (runtime.handle().clone(), stop.clone());
            std::thread::spawn(move || handle.block_on(http::serve(listener, endpoint, stop)))
        };
        Self { runtime, bench, code, address, stop, serving: Some(serving) }
    }

    /// A client after its handshake.
    pub fn client(&self) -> McpClient {
        let mut client = self.connect(Revision::Sessions);
        client.initialize();
        client
    }

    /// A client before its handshake.
    pub fn connect(&self, revision: Revision) -> McpClient {
        McpClient::over_http(self.address, "/mcp/code", Some("anything"), revision)
    }

    /// Calls a tool once, with a new client.
    pub fn ask(&self, tool: &str, arguments: Value) -> Result<Value, McpError> {
        self.client().call_tool(tool, arguments).map(|result: ToolResult| result.structured)
    }

    /// Repeats a call while the error asks for a retry. For tests that are not about time.
    pub fn call(&self, tool: &str, arguments: Value) -> Result<Value, McpError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let outcome = self.ask(tool, arguments.clone());
            let retry = matches!(&outcome, Err(error) if error.data["details"]["retryAfterMs"].is_u64());
            if !retry || Instant::now() > deadline {
                return outcome;
            }
        }
    }

    /// The payload of a call that succeeds.
    pub fn payload(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).unwrap_or_else(|error| panic!("{tool}: {error:?}"))
    }

    /// The contract's code of a call that fails, and the error itself.
    pub fn failure(&self, tool: &str, arguments: Value) -> (String, McpError) {
        let error = match self.call(tool, arguments) {
            Err(error) => error,
            Ok(payload) => panic!("{tool} succeeded: {payload}"),
        };
        (code(&error), error)
    }

    pub fn uri(&self, relative: &str) -> String {
        self.bench.uri(relative)
    }

    /// `{uri, position}`.
    pub fn at(&self, relative: &str, line: u32, character: u32) -> Value {
        code_tools::at(&self.uri(relative), line, character)
    }

    /// Arguments that a tool accepts, for one file of the workspace.
    pub fn arguments(&self, tool: &str, file: &str) -> Value {
        code_tools::arguments(tool, &self.uri(file))
    }

    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(serving) = self.serving.take() {
            let _ = serving.join();
        }
        self.runtime.block_on(async {
            self.code.close().await;
            self.bench.orchestrator.shutdown().await;
        });
    }
}

/// The contract's code of an error. Panics unless it goes with the JSON-RPC code and a short message.
pub fn code(error: &McpError) -> String {
    let code = error.data["code"].as_str().unwrap_or_else(|| panic!("no code: {error:?}"));
    let short = code.strip_prefix("MCP_LSP_GATEWAY/").unwrap_or_else(|| panic!("{code}"));
    let expected = match short {
        "INVALID_PARAMS" | "URI_INVALID" | "WORKSPACE_DENIED" | "SNAPSHOT_TOO_LARGE" => -32602,
        "CURSOR_INVALID" | "CURSOR_STALE" | "CURSOR_EXPIRED" => -32602,
        "NOT_FOUND" | "CAP_EXCEEDED" | "PROVIDER_UNAVAILABLE" | "INTERNAL" => -32603,
        other => panic!("the contract has no code `{other}`"),
    };
    assert_eq!(error.code, expected, "{error:?}");
    let message = error.data["message"].as_str().unwrap_or_else(|| panic!("no message: {error:?}"));
    assert!(!message.is_empty() && message.len() <= 300, "{message}");
    short.to_owned()
}
