//! The seven tools over fake language servers, called in process. Every payload is checked against its output schema.

use std::time::Instant;

use serde_json::Value;
use tenon_code::{CodeError, CodeLimits, CodeReply, CodeTools, Options};
use tenon_contract::clock::{Clock, ClockControl};
use tenon_contract::snapshot::SnapshotLimits;
use tenon_fake_lsp::{Builder, Workbench};
use tenon_lsp::CallContext;
use tenon_lsp::ServerId;
use tenon_testkit::PATIENCE;
use tenon_testkit::code_tools::{self, check_payload};
use tokio::runtime::Runtime;

/// What a test may change.
pub struct Settings {
    pub limits: CodeLimits,
    pub snapshots: SnapshotLimits,
}

/// A workspace with its servers and tools; dropping it ends everything it started.
pub struct Stage {
    runtime: Runtime,
    pub bench: Workbench,
    pub code: CodeTools,
    /// Moves the clock by which snapshots age.
    pub clock_control: ClockControl,
}

impl Stage {
    pub fn open(builder: Builder) -> Self {
        Self::with(builder, |_| {})
    }

    pub fn with(builder: Builder, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings { limits: CodeLimits::default(), snapshots: SnapshotLimits::default() };
        change(&mut settings);
        let runtime = Runtime::new().unwrap();
        let bench = runtime.block_on(builder.open());
        let (clock, clock_control) = Clock::fixed("2026-01-02T03:04:05Z".parse().unwrap());
        let code = CodeTools::new(Options {
            engine: bench.orchestrator.clone(),
            limits: settings.limits,
            snapshots: settings.snapshots,
            clock,
        });
        Self { runtime, bench, code, clock_control }
    }

    /// One call, with the time that the limits give it.
    pub fn ask(&self, tool: &str, arguments: Value) -> Result<CodeReply, CodeError> {
        let call = CallContext::within(self.code.limits().timeout);
        let reply = self.block_on(call_tool(&self.code, tool, arguments, &call))?;
        check_payload(tool, &reply.payload);
        Ok(reply)
    }

    /// Repeats a call while the answer is late. For tests that are not about time.
    pub fn call(&self, tool: &str, arguments: Value) -> Result<CodeReply, CodeError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.ask(tool, arguments.clone()) {
                Err(CodeError::Timeout | CodeError::Indexing { .. }) if Instant::now() < deadline => {}
                outcome => return outcome,
            }
        }
    }

    /// The payload of a call that succeeds.
    pub fn payload(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).unwrap_or_else(|error| panic!("{tool}: {error:?}")).payload
    }

    /// The error of a call that fails.
    pub fn error(&self, tool: &str, arguments: Value) -> CodeError {
        match self.call(tool, arguments) {
            Err(error) => error,
            Ok(reply) => panic!("{tool} succeeded: {}", reply.payload),
        }
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
        self.runtime.block_on(async {
            self.code.close().await;
            self.bench.orchestrator.shutdown().await;
        });
    }
}

/// Calls a tool by its name.
pub async fn call_tool(
    code: &CodeTools,
    tool: &str,
    arguments: Value,
    call: &CallContext,
) -> Result<CodeReply, CodeError> {
    fn read<T: serde::de::DeserializeOwned>(arguments: Value) -> T {
        serde_json::from_value(arguments).unwrap()
    }
    match tool {
        code_tools::DEFINITION => code.definition(read(arguments), call).await,
        code_tools::REFERENCES => code.references(read(arguments), call).await,
        code_tools::HOVER => code.hover(read(arguments), call).await,
        code_tools::DOCUMENT_SYMBOLS => code.document_symbols(read(arguments), call).await,
        code_tools::WORKSPACE_SYMBOLS => code.workspace_symbols(read(arguments), call).await,
        code_tools::DOCUMENT_DIAGNOSTICS => code.document_diagnostics(read(arguments), call).await,
        code_tools::WORKSPACE_DIAGNOSTICS => code.workspace_diagnostics(read(arguments), call).await,
        other => panic!("unknown tool `{other}`"),
    }
}

pub fn server_id(id: &str) -> ServerId {
    ServerId::new(id).unwrap()
}
