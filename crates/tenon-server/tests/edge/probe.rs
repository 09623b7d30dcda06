//! A surface for these tests: tools that echo, wait, report, overflow and panic.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_server::mcp::Handler;
use tenon_server::surface::{
    Arguments, CallFailure, CallLimits, Catalog, ErrorCode, ErrorData, Surface, SurfaceTool, ToolAnswer,
    ToolCall, ToolOutcome, ToolSpec,
};
use tenon_server::surfaces::Surfaces;

const EMPTY: &str = r#"{"type":"object","additionalProperties":false}"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeTool {
    Echo,
    Hang,
    News,
    Overflow,
    Panic,
    Report,
    Fail,
}

impl ProbeTool {
    const ALL: [Self; 7] =
        [Self::Echo, Self::Hang, Self::News, Self::Overflow, Self::Panic, Self::Report, Self::Fail];
}

impl SurfaceTool for ProbeTool {
    fn spec(self) -> ToolSpec {
        let (name, input) = match self {
            Self::Echo => (
                "probe.echo",
                r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}"#,
            ),
            Self::Hang => ("probe.hang", EMPTY),
            Self::News => ("probe.news", EMPTY),
            Self::Overflow => ("probe.overflow", EMPTY),
            Self::Panic => ("probe.panic", EMPTY),
            Self::Report => (
                "probe.report",
                r#"{"type":"object","properties":{"steps":{"type":"integer"}},"required":["steps"],"additionalProperties":false}"#,
            ),
            Self::Fail => ("probe.fail", EMPTY),
        };
        let output = (self == Self::Echo).then_some(r#"{"type":"object"}"#);
        ToolSpec { name, description: "For tests.", input, output, read_only: true }
    }
}

pub struct Probe {
    catalog: Catalog<ProbeTool>,
    deadline: Duration,
    name: &'static str,
}

impl Probe {
    pub fn new(name: &'static str) -> Self {
        Self { catalog: Catalog::new(&ProbeTool::ALL), deadline: Duration::from_secs(5), name }
    }

    pub fn ending_after(deadline: Duration) -> Self {
        Self { deadline, ..Self::new("probe") }
    }
}

impl Surface for Probe {
    type Tool = ProbeTool;

    fn name(&self) -> &'static str {
        self.name
    }

    fn catalog(&self) -> &Catalog<ProbeTool> {
        &self.catalog
    }

    fn limits(&self) -> CallLimits {
        CallLimits { deadline: self.deadline, response_bytes: 10_000 }
    }

    async fn call(&self, tool: ProbeTool, arguments: Arguments, call: ToolCall) -> ToolOutcome {
        match tool {
            ProbeTool::Echo => Ok(ToolAnswer::structured(json!({ "text": arguments["text"] }))),
            ProbeTool::Hang => std::future::pending().await,
            ProbeTool::News => {
                call.caller.input_ended.0.cancelled().await;
                Ok(ToolAnswer::text("none"))
            }
            ProbeTool::Overflow => Ok(ToolAnswer::text("x".repeat(10_001))),
            ProbeTool::Panic => panic!("requested by the test"),
            ProbeTool::Report => {
                let steps = arguments["steps"].as_u64().unwrap_or(0);
                for step in 1..=steps {
                    call.caller.progress.report(step, Some(steps), "working");
                    tokio::task::yield_now().await;
                }
                Ok(ToolAnswer::structured(json!({ "steps": steps })))
            }
            ProbeTool::Fail => Ok(ToolAnswer::text("no").failed()),
        }
    }

    fn classify(&self, _tool: ProbeTool, failure: CallFailure) -> ToolOutcome {
        let (code, reason) = match &failure {
            CallFailure::InvalidArguments(_) => (ErrorCode::INVALID_PARAMS, "schema"),
            CallFailure::Timeout(_) => (ErrorCode::INTERNAL_ERROR, "timeout"),
            CallFailure::Cancelled => (ErrorCode::INTERNAL_ERROR, "cancelled"),
            CallFailure::ResponseTooLarge { .. } => (ErrorCode::INTERNAL_ERROR, "too large"),
            CallFailure::Internal => (ErrorCode::INTERNAL_ERROR, "internal"),
        };
        let data: Option<Value> = match failure {
            CallFailure::InvalidArguments(fault) => {
                Some(json!({ "path": fault.path, "message": fault.message }))
            }
            _ => None,
        };
        Err(ErrorData::new(code, reason, data))
    }
}

/// `code` is served with the contract's handshake, as the real one.
pub fn surfaces() -> Surfaces {
    Surfaces::default().with(Probe::new("probe")).with(Probe::new("other")).with(Probe::new("code"))
}

pub fn handler() -> Handler {
    handler_of(&["probe"])
}

pub fn handler_of(names: &[&str]) -> Handler {
    Handler::new(surfaces().select(names).expect("the surfaces exist"))
}
