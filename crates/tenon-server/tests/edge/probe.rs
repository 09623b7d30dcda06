//! A surface made for these tests: tools that echo, wait, report, overflow and panic.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tenon_server::mcp::Handler;
use tenon_server::surface::{
    Answer, Arguments, Call, CallLimits, Catalog, ErrorCode, ErrorData, Outcome, Refusal, Surface, ToolSpec,
    unknown_tool,
};
use tenon_server::surfaces::Surfaces;

const EMPTY: &str = r#"{"type":"object","additionalProperties":false}"#;

const fn tool(name: &'static str, input: &'static str) -> ToolSpec {
    ToolSpec { name, description: "For tests.", input, output: None, read_only: true }
}

static TOOLS: [ToolSpec; 7] = [
    tool(
        "probe.echo",
        r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}"#,
    ),
    tool("probe.hang", EMPTY),
    tool("probe.news", EMPTY),
    tool("probe.overflow", EMPTY),
    tool("probe.panic", EMPTY),
    tool(
        "probe.report",
        r#"{"type":"object","properties":{"steps":{"type":"integer"}},"required":["steps"],"additionalProperties":false}"#,
    ),
    tool("probe.fail", EMPTY),
];

pub struct Probe {
    catalog: Catalog,
    deadline: Duration,
    name: &'static str,
}

impl Probe {
    pub fn new(name: &'static str) -> Self {
        Self { catalog: Catalog::new(&TOOLS), deadline: Duration::from_secs(5), name }
    }

    pub fn ending_after(deadline: Duration) -> Self {
        Self { deadline, ..Self::new("probe") }
    }
}

impl Surface for Probe {
    fn name(&self) -> &'static str {
        self.name
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn limits(&self, _tool: &str) -> CallLimits {
        CallLimits { deadline: self.deadline, response_bytes: 10_000 }
    }

    fn call<'a>(&'a self, tool: &'static str, arguments: Arguments, call: Call) -> BoxFuture<'a, Outcome> {
        async move {
            match tool {
                "probe.echo" => Ok(Answer::structured(json!({ "text": arguments["text"] }))),
                "probe.hang" => std::future::pending().await,
                "probe.news" => {
                    call.caller.ended.0.cancelled().await;
                    Ok(Answer::text("none"))
                }
                "probe.overflow" => Ok(Answer::text("x".repeat(10_001))),
                "probe.panic" => panic!("the probe was told to"),
                "probe.report" => {
                    let steps = arguments["steps"].as_u64().unwrap_or(0);
                    for step in 1..=steps {
                        call.caller.progress.report(step, Some(steps), "working");
                        tokio::task::yield_now().await;
                    }
                    Ok(Answer::structured(json!({ "steps": steps })))
                }
                _ => Ok(Answer::text("no").failed()),
            }
        }
        .boxed()
    }

    fn refuse(&self, tool: &str, refusal: Refusal) -> Outcome {
        let (code, reason) = match &refusal {
            Refusal::UnknownTool => return Err(unknown_tool(tool)),
            Refusal::Schema(_) => (ErrorCode::INVALID_PARAMS, "schema"),
            Refusal::Timeout(_) => (ErrorCode::INTERNAL_ERROR, "timeout"),
            Refusal::Cancelled => (ErrorCode::INTERNAL_ERROR, "cancelled"),
            Refusal::ResponseTooLarge { .. } => (ErrorCode::INTERNAL_ERROR, "too large"),
            Refusal::Internal => (ErrorCode::INTERNAL_ERROR, "internal"),
        };
        let data: Option<Value> = match refusal {
            Refusal::Schema(fault) => Some(json!({ "path": fault.path, "message": fault.message })),
            _ => None,
        };
        Err(ErrorData::new(code, reason, data))
    }
}

pub fn surfaces() -> Surfaces {
    Surfaces::default().with(Probe::new("probe")).with(Probe::new("other"))
}

pub fn handler() -> Handler {
    Handler::new(surfaces().select(&["probe"]).expect("the probe is there"))
}
