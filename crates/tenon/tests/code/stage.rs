//! The seven tools over fake language servers, served as the product serves them, with what a test wants to turn.

use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::{Value, json};
use tenon_code::{Code, CodeLimits, Options};
use tenon_contract::clock::{Clock, ClockControl, Entropy};
use tenon_contract::snapshot::SnapshotLimits;
use tenon_fake_lsp::{Builder, Workbench};
use tenon_server::http::{self, Authority, Endpoint, HttpLimits, Principal};
use tenon_server::surfaces::Surfaces;
use tenon_server::surfaces::code::CodeSurface;
use tenon_testkit::client::{RpcError, ToolResult};
use tenon_testkit::{Client, PATIENCE, Revision};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

pub const DEFINITION: &str = "vscode.lsp.definition";
pub const REFERENCES: &str = "vscode.lsp.references";
pub const HOVER: &str = "vscode.lsp.hover";
pub const DOCUMENT_SYMBOLS: &str = "vscode.lsp.documentSymbols";
pub const WORKSPACE_SYMBOLS: &str = "vscode.lsp.workspaceSymbols";
pub const DOCUMENT_DIAGNOSTICS: &str = "vscode.lsp.diagnostics.document";
pub const WORKSPACE_DIAGNOSTICS: &str = "vscode.lsp.diagnostics.workspace";

pub const TOOLS: [&str; 7] = [
    DEFINITION,
    REFERENCES,
    HOVER,
    DOCUMENT_SYMBOLS,
    WORKSPACE_SYMBOLS,
    DOCUMENT_DIAGNOSTICS,
    WORKSPACE_DIAGNOSTICS,
];

/// What a test may turn.
pub struct Settings {
    pub limits: CodeLimits,
    pub snapshots: SnapshotLimits,
    pub listing: bool,
}

/// A served workspace. Ends with everything it started.
pub struct Stage {
    runtime: Runtime,
    pub bench: Workbench,
    pub code: Code,
    /// Turns the clock that snapshots age by.
    pub hands: ClockControl,
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
        let mut settings =
            Settings { limits: CodeLimits::default(), snapshots: SnapshotLimits::default(), listing: false };
        change(&mut settings);
        let runtime = Runtime::new().unwrap();
        let bench = runtime.block_on(builder.open());
        let (clock, hands) = Clock::fixed("2026-01-02T03:04:05Z".parse().unwrap());
        let code = Code::new(Options {
            engine: bench.orchestrator.clone(),
            limits: settings.limits,
            snapshots: settings.snapshots,
            clock,
            listing: settings.listing,
        });
        let endpoint = Endpoint {
            surfaces: Surfaces::default().with(CodeSurface::over(code.clone())),
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
        Self { runtime, bench, code, hands, address, stop, serving: Some(serving) }
    }

    /// A client that has shaken hands.
    pub fn client(&self) -> Client {
        let mut client = Client::over_http(self.address, "/mcp/code", Some("anything"), Revision::Sessions);
        client.initialize();
        client
    }

    /// Calls a tool once, as a client of its own.
    pub fn ask(&self, tool: &str, arguments: Value) -> Result<Value, RpcError> {
        self.client().call_tool(tool, arguments).map(|result: ToolResult| result.structured)
    }

    /// Calls a tool as patient clients do: one that says to come back is asked again. For tests that are not about time.
    pub fn call(&self, tool: &str, arguments: Value) -> Result<Value, RpcError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let outcome = self.ask(tool, arguments.clone());
            let again = matches!(&outcome, Err(error) if error.data["details"]["retryAfterMs"].is_u64());
            if !again || Instant::now() > deadline {
                return outcome;
            }
        }
    }

    /// The payload of a call that succeeds.
    pub fn payload(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).unwrap_or_else(|error| panic!("{tool}: {error:?}"))
    }

    /// The code of a call that fails, with the error around it.
    pub fn refusal(&self, tool: &str, arguments: Value) -> (String, RpcError) {
        let error = match self.call(tool, arguments) {
            Err(error) => error,
            Ok(payload) => panic!("{tool} answered: {payload}"),
        };
        (code(&error), error)
    }

    pub fn uri(&self, relative: &str) -> String {
        self.bench.path(relative).uri().as_str().to_owned()
    }

    /// `{uri, position}`.
    pub fn at(&self, relative: &str, line: u32, character: u32) -> Value {
        json!({ "uri": self.uri(relative), "position": { "line": line, "character": character } })
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

/// The contract's code of an error, which must be there and fit the JSON-RPC code.
pub fn code(error: &RpcError) -> String {
    let code = error.data["code"].as_str().unwrap_or_else(|| panic!("no code: {error:?}"));
    let short = code.strip_prefix("MCP_LSP_GATEWAY/").unwrap_or_else(|| panic!("{code}"));
    let expected = match short {
        "INVALID_PARAMS" | "URI_INVALID" | "WORKSPACE_DENIED" | "SNAPSHOT_TOO_LARGE" => -32602,
        "CURSOR_INVALID" | "CURSOR_STALE" | "CURSOR_EXPIRED" => -32602,
        "NOT_FOUND" | "CAP_EXCEEDED" | "PROVIDER_UNAVAILABLE" | "INTERNAL" => -32603,
        other => panic!("`{other}` is no code of the contract"),
    };
    assert_eq!(error.code, expected, "{error:?}");
    let message = error.data["message"].as_str().unwrap_or_else(|| panic!("no message: {error:?}"));
    assert!(!message.is_empty() && message.len() <= 300, "{message}");
    short.to_owned()
}

/// Everything a server of the seven tools offers.
pub fn capabilities() -> Value {
    json!({
        "textDocumentSync": 1, "definitionProvider": true, "referencesProvider": true, "hoverProvider": true,
        "documentSymbolProvider": true, "workspaceSymbolProvider": true,
    })
}

/// A server that offers everything, does what `rules` say, and finds `bad` wrong in every text.
pub fn script(rules: &[Value]) -> Value {
    let mut all = vec![
        json!({ "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] }),
        json!({ "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] }),
    ];
    all.extend_from_slice(rules);
    json!({ "capabilities": capabilities(), "rules": all })
}

/// A rule that answers a request.
pub fn reply(on: &str, value: Value) -> Value {
    json!({ "on": on, "do": [{ "reply": value }] })
}

pub fn range(numbers: [u32; 4]) -> Value {
    let [line, character, end_line, end_character] = numbers;
    json!({
        "start": { "line": line, "character": character },
        "end": { "line": end_line, "character": end_character },
    })
}

/// A location in the server's words; `$root/…` is a file of the workspace.
pub fn location(uri: &str, numbers: [u32; 4]) -> Value {
    json!({ "uri": uri, "range": range(numbers) })
}

/// A symbol of the workspace in the server's words.
pub fn symbol(name: &str, kind: u32, uri: &str, numbers: [u32; 4]) -> Value {
    json!({ "name": name, "kind": kind, "location": location(uri, numbers) })
}

/// Arguments that every tool accepts, for one file of the workspace.
pub fn arguments(stage: &Stage, tool: &str, file: &str) -> Value {
    match tool {
        DEFINITION | REFERENCES | HOVER => stage.at(file, 0, 0),
        DOCUMENT_SYMBOLS | DOCUMENT_DIAGNOSTICS => json!({ "uri": stage.uri(file) }),
        WORKSPACE_SYMBOLS => json!({ "query": "a" }),
        _ => json!({}),
    }
}

/// The tools that take a URI.
pub const ABOUT_A_FILE: [&str; 5] = [DEFINITION, REFERENCES, HOVER, DOCUMENT_SYMBOLS, DOCUMENT_DIAGNOSTICS];

/// The same arguments for another URI.
pub fn with_uri(mut arguments: Value, uri: &str) -> Value {
    arguments["uri"] = json!(uri);
    arguments
}
