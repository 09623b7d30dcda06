//! A surface: an exact, versioned catalog of MCP tools with one error style.
//!
//! A call takes one path: catalog lookup, input schema (unknown fields are rejected before any domain code runs), domain
//! call with a deadline and a cancel token, response size check. Each surface maps failures on that path to its own error
//! style (its `classify.rs`), so a client of one surface sees one kind of error.
//!
//! [`Surface`] is typed by an enum of tools; [`SurfaceSet`] holds surfaces of different types and runs calls.

use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::Value;
use tenon_contract::budget::{serialized_len, value_len};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use catalog::{Catalog, SchemaFault, SurfaceTool, ToolSpec};
pub use rmcp::model::{ContentBlock, ErrorCode, ErrorData};
pub use surface_set::{ContentMode, SurfaceSet, ToolNames};

pub(crate) use catalog::tool_set;
pub(crate) use surface_set::AnySurface;

use crate::mcp::progress::ProgressReporter;

mod catalog;
mod input_check;
mod surface_set;

/// The arguments of one call, already checked against the tool's input schema.
pub type Arguments = JsonObject;

/// Why a call failed outside its tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallFailure {
    InvalidArguments(SchemaFault),
    Timeout(Duration),
    Cancelled,
    ResponseTooLarge {
        bytes: usize,
        limit: usize,
    },
    /// The tool panicked; the log has the panic message.
    Internal,
}

/// The answer of a tool, or a JSON-RPC error for surfaces whose contract wants that.
pub type ToolOutcome = Result<ToolAnswer, ErrorData>;

/// A tool result. `is_error` marks failures that are sent as results.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAnswer {
    pub structured: Option<Value>,
    pub content: Vec<ContentBlock>,
    pub is_error: bool,
}

impl ToolAnswer {
    /// A structured result without text.
    pub fn structured(value: Value) -> Self {
        Self { structured: Some(value), content: Vec::new(), is_error: false }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self { structured: None, content: vec![ContentBlock::text(text)], is_error: false }
    }

    /// Adds one text item.
    pub(crate) fn with_text(mut self, text: impl Into<String>) -> Self {
        self.content.push(ContentBlock::text(text));
        self
    }

    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// The size of this answer on the wire, computed without building the bytes.
    pub(crate) fn delivered_bytes(&self) -> usize {
        let structured = self.structured.as_ref().unwrap_or(&Value::Null);
        value_len(structured) + serialized_len(&self.content).expect("JSON values serialise")
    }
}

/// Cancelled at the end of the client's input: the client still reads answers, but sends no further requests.
#[derive(Debug, Clone, Default)]
pub struct InputEnded(pub CancellationToken);

/// Which connected client a call comes from. Clients share the language servers fairly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientNumber(pub u64);

/// The client side of a call.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    pub client: ClientNumber,
    /// As the client calls itself.
    pub name: Option<String>,
    /// Cancelled when the client cancels the request or disconnects.
    pub cancel: CancellationToken,
    pub input_ended: InputEnded,
    /// Reaches the client only if it asked for progress.
    pub progress: ProgressReporter,
    /// Whether the model sees only the text of an answer.
    pub text: bool,
}

/// The request that a running tool belongs to.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// When the call times out. A tool with a better explanation than "timeout" ends before.
    pub deadline: Instant,
    pub caller: Caller,
}

/// The limits of every call of a surface.
#[derive(Debug, Clone, Copy)]
pub struct CallLimits {
    pub deadline: Duration,
    pub response_bytes: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(30), response_bytes: 512 * 1024 }
    }
}

/// A catalog with the code behind it.
pub trait Surface: Send + Sync + 'static {
    /// The tools, as an enum that `call` matches exhaustively.
    type Tool: SurfaceTool;

    /// The name by which clients pick it: one lower-case word.
    fn name(&self) -> &'static str;

    fn catalog(&self) -> &Catalog<Self::Tool>;

    fn limits(&self) -> CallLimits {
        CallLimits::default()
    }

    /// What `initialize` tells a model about the tools.
    fn instructions(&self) -> Option<&'static str> {
        None
    }

    /// Runs `tool` with arguments that satisfy its schema.
    fn call(
        &self,
        tool: Self::Tool,
        arguments: Arguments,
        call: ToolCall,
    ) -> impl Future<Output = ToolOutcome> + Send;

    /// Maps a failure outside the tool to this surface's error style.
    fn classify(&self, tool: Self::Tool, failure: CallFailure) -> ToolOutcome;

    /// Maps invalid arguments to this surface's error style. `fault` is one of possibly several faults; a surface whose
    /// contract fixes which fault is reported inspects the arguments itself.
    fn classify_arguments(
        &self,
        tool: Self::Tool,
        _arguments: &Arguments,
        fault: SchemaFault,
    ) -> ToolOutcome {
        self.classify(tool, CallFailure::InvalidArguments(fault))
    }

    /// The error for a name that is not in the catalog.
    fn unknown_tool(&self, name: &str) -> ErrorData {
        unknown_tool(name)
    }

    /// The error for a call whose arguments are not an object.
    fn malformed_call(&self) -> ErrorData {
        malformed_call()
    }
}

/// The JSON-RPC error for a tool that is not in any surface of the set.
pub(crate) fn unknown_tool(name: &str) -> ErrorData {
    let shown: String = name.chars().take(100).collect();
    ErrorData::new(ErrorCode::INVALID_PARAMS, format!("unknown tool: {shown}"), None)
}

/// The JSON-RPC error for `tools/call` with parameters of the wrong type.
pub(crate) fn malformed_call() -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_PARAMS, "malformed parameters of tools/call", None)
}
