//! A surface: an exact, versioned catalog of MCP tools with one error style.
//!
//! The way of a call through this file never goes back: catalog lookup, input schema (unknown
//! fields are refused before any domain code runs), domain call under a deadline and a cancel
//! token, response cap. Each refusal on the way is worded by the surface itself, in its own error
//! style, so a client of one surface meets one kind of error only.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;
use tenon_contract::budget::serialized_len;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use rmcp::model::{ContentBlock, ErrorCode, ErrorData};

use crate::mcp::progress::Progress;

/// The arguments of one call, already checked against the tool's input schema.
pub type Arguments = JsonObject;

/// What a tool is to its clients: the wire contract, checked in as data.
#[derive(Debug, Clone, Copy)]
pub struct ToolSpec {
    pub name: &'static str,
    pub description: &'static str,
    /// JSON Schema of the arguments, inlined, `additionalProperties: false`.
    pub input: &'static str,
    /// JSON Schema of the structured result, where the surface publishes one.
    pub output: Option<&'static str>,
    pub read_only: bool,
}

/// One tool that only reads, whose schemas, of its arguments and of its result, are the files named after it.
macro_rules! tool {
    ($name:literal, $description:literal) => {
        $crate::surface::ToolSpec {
            name: $name,
            description: $description,
            input: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/tools/", $name, ".json")),
            output: Some(include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../schemas/tools/",
                $name,
                ".output.json"
            ))),
            read_only: true,
        }
    };
}

pub(crate) use tool;

/// The tools of one surface, in the order in which they are listed.
///
/// Schemas are parsed on the first list or call, not at start-up.
pub struct Catalog {
    specs: &'static [ToolSpec],
    tools: OnceLock<Vec<Tool>>,
    inputs: Vec<OnceLock<jsonschema::Validator>>,
}

impl Catalog {
    pub fn new(specs: &'static [ToolSpec]) -> Self {
        let inputs = specs.iter().map(|_| OnceLock::new()).collect();
        Self { specs, tools: OnceLock::new(), inputs }
    }

    /// The tools as `tools/list` shows them.
    pub fn tools(&self) -> &[Tool] {
        self.tools.get_or_init(|| self.specs.iter().map(describe).collect())
    }

    pub fn specs(&self) -> &'static [ToolSpec] {
        self.specs
    }

    /// Finds a tool by its name, or by its name with `_` for every `.`.
    fn position(&self, name: &str) -> Option<usize> {
        let dotted = |spec: &&ToolSpec| spec.name == name || same_but_for_dots(spec.name, name);
        self.specs.iter().position(|spec| dotted(&spec))
    }

    /// Checks `arguments` against the input schema of the tool at `index`.
    fn check(&self, index: usize, arguments: &Value) -> Result<(), SchemaFault> {
        let validator = self.inputs[index].get_or_init(|| {
            let schema = Value::Object(parse_schema(self.specs[index].input));
            jsonschema::validator_for(&schema).expect("checked-in input schemas compile (schemas test)")
        });
        validator.validate(arguments).map_err(|error| SchemaFault {
            path: error.instance_path().to_string(),
            message: error.masked().to_string(),
        })
    }
}

/// `a.b_c` and `a_b_c` are one name to clients that cannot say dots.
fn same_but_for_dots(name: &str, given: &str) -> bool {
    name.len() == given.len()
        && name
            .bytes()
            .zip(given.bytes())
            .all(|(ours, theirs)| ours == theirs || (ours == b'.' && theirs == b'_'))
}

fn parse_schema(text: &str) -> JsonObject {
    serde_json::from_str(text).expect("checked-in schemas are JSON objects (schemas test)")
}

fn describe(spec: &ToolSpec) -> Tool {
    let mut tool = Tool::new(spec.name, spec.description, Arc::new(parse_schema(spec.input)));
    if let Some(output) = spec.output {
        tool = tool.with_raw_output_schema(Arc::new(parse_schema(output)));
    }
    tool.with_annotations(ToolAnnotations::new().read_only(spec.read_only))
}

/// Where and how arguments break their schema. Never carries the offending value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFault {
    /// JSON pointer into the arguments; empty for the arguments themselves.
    pub path: String,
    pub message: String,
}

/// Why the mechanism refused or ended a call before the tool could answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    UnknownTool,
    Schema(SchemaFault),
    Timeout(Duration),
    Cancelled,
    ResponseTooLarge {
        bytes: usize,
        limit: usize,
    },
    /// The tool panicked; what it said went to the log.
    Internal,
}

/// The answer of a tool: a result, or a JSON-RPC error for surfaces whose contract wants that.
pub type Outcome = Result<Answer, ErrorData>;

/// A tool result. `is_error` marks failures that travel as results.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub structured: Option<Value>,
    pub content: Vec<ContentBlock>,
    pub is_error: bool,
}

impl Answer {
    /// A structured result with no text beside it.
    pub fn structured(value: Value) -> Self {
        Self { structured: Some(value), content: Vec::new(), is_error: false }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self { structured: None, content: vec![ContentBlock::text(text)], is_error: false }
    }

    /// Adds one text item.
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.content.push(ContentBlock::text(text));
        self
    }

    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// The bytes this answer puts on the wire, without building them.
    fn delivered_bytes(&self) -> usize {
        let counted =
            serialized_len(&self.structured).and_then(|bytes| Ok(bytes + serialized_len(&self.content)?));
        counted.expect("JSON values serialise")
    }
}

/// Cancelled once the client has said all it will ever say: it still takes answers, but waits for nothing new.
#[derive(Debug, Clone, Default)]
pub struct Ended(pub CancellationToken);

/// Who waits for a call.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// Cancelled when the client takes the request back or goes away.
    pub cancel: CancellationToken,
    pub ended: Ended,
    /// Reaches the client only if it asked for progress.
    pub progress: Progress,
}

/// What a running call may know of the request that started it.
#[derive(Debug, Clone)]
pub struct Call {
    /// When the mechanism ends the call; a tool that can say more than "timeout" ends before.
    pub deadline: Instant,
    pub caller: Caller,
}

/// The bounds of every call of a surface.
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
    /// The name by which clients pick it: one lower-case word.
    fn name(&self) -> &'static str;

    fn catalog(&self) -> &Catalog;

    fn limits(&self, _tool: &str) -> CallLimits {
        CallLimits::default()
    }

    /// Whether arguments are checked against the input schema here. A surface whose domain does that itself, with the
    /// same schema and before anything else, because its own answers word the faults, says no.
    fn checks_arguments(&self) -> bool {
        true
    }

    /// Runs `tool`, which is in the catalog, with arguments that satisfy its schema.
    fn call<'a>(&'a self, tool: &'static str, arguments: Arguments, call: Call) -> BoxFuture<'a, Outcome>;

    /// Words a refusal in this surface's error style.
    fn refuse(&self, tool: &str, refusal: Refusal) -> Outcome;

    /// Words the refusal of arguments that break their schema. Of several faults the schema's check names some one; a
    /// surface whose contract says which comes first looks for itself.
    fn refuse_arguments(&self, tool: &str, _arguments: &Arguments, fault: SchemaFault) -> Outcome {
        self.refuse(tool, Refusal::Schema(fault))
    }
}

/// How tool names are listed; calls accept both forms always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolNames {
    #[default]
    Dotted,
    Underscore,
}

/// What a client gets to see: some surfaces, in catalog order.
#[derive(Clone)]
pub struct SurfaceSet {
    surfaces: Vec<Arc<dyn Surface>>,
    names: ToolNames,
}

impl SurfaceSet {
    pub fn new(surfaces: Vec<Arc<dyn Surface>>, names: ToolNames) -> Self {
        Self { surfaces, names }
    }

    pub fn surfaces(&self) -> impl Iterator<Item = &dyn Surface> {
        self.surfaces.iter().map(AsRef::as_ref)
    }

    pub fn is_empty(&self) -> bool {
        self.surfaces.is_empty()
    }

    /// All tools, surface by surface.
    pub fn tools(&self) -> Vec<Tool> {
        let mut tools: Vec<Tool> =
            self.surfaces.iter().flat_map(|surface| surface.catalog().tools().iter().cloned()).collect();
        if self.names == ToolNames::Underscore {
            for tool in &mut tools {
                tool.name = tool.name.replace('.', "_").into();
            }
        }
        tools
    }

    /// Runs one call from its name to its bounded answer.
    pub async fn call(&self, name: &str, arguments: Arguments, caller: Caller) -> Outcome {
        let found =
            self.surfaces.iter().find_map(|surface| Some((surface, surface.catalog().position(name)?)));
        let Some((surface, index)) = found else {
            return match self.surfaces.first() {
                Some(first) => first.refuse(name, Refusal::UnknownTool),
                None => Err(unknown_tool(name)),
            };
        };
        let tool = surface.catalog().specs[index].name;
        let arguments = Value::Object(arguments);
        let checked = match surface.checks_arguments() {
            true => surface.catalog().check(index, &arguments),
            false => Ok(()),
        };
        let Value::Object(arguments) = arguments else { unreachable!("built as an object above") };
        if let Err(fault) = checked {
            return surface.refuse_arguments(tool, &arguments, fault);
        }

        let limits = surface.limits(tool);
        let deadline = Instant::now() + limits.deadline;
        let cancel = caller.cancel.clone();
        let running = surface.call(tool, arguments, Call { deadline, caller });
        let outcome = tokio::select! {
            biased;
            finished = AssertUnwindSafe(running).catch_unwind() => finished,
            () = cancel.cancelled() => return surface.refuse(tool, Refusal::Cancelled),
            () = tokio::time::sleep_until(deadline) => return surface.refuse(tool, Refusal::Timeout(limits.deadline)),
        };
        let outcome = outcome.unwrap_or_else(|_panic| {
            tracing::error!(tool, "a tool panicked");
            surface.refuse(tool, Refusal::Internal)
        });
        match &outcome {
            Ok(answer) => {
                let bytes = answer.delivered_bytes();
                if bytes > limits.response_bytes {
                    return surface
                        .refuse(tool, Refusal::ResponseTooLarge { bytes, limit: limits.response_bytes });
                }
                outcome
            }
            Err(_) => outcome,
        }
    }
}

/// The JSON-RPC error for a tool that no surface of the set has.
pub fn unknown_tool(name: &str) -> ErrorData {
    let shown: String = name.chars().take(100).collect();
    ErrorData::new(ErrorCode::INVALID_PARAMS, format!("unknown tool: {shown}"), None)
}
