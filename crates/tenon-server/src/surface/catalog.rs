//! The catalog of a surface: its tools in order, as clients see them, and the check of arguments against input schemas.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

use super::input_check::{InputCheck, InputStyle};

/// What clients know about a tool: the wire contract, checked in as data.
#[derive(Debug, Clone, Copy)]
pub struct ToolSpec {
    pub name: &'static str,
    pub description: &'static str,
    /// JSON Schema of the arguments, inlined; closed (`additionalProperties: false`) where it is checked.
    pub input: &'static str,
    /// JSON Schema of the structured result, where the surface publishes one.
    pub output: Option<&'static str>,
    pub read_only: bool,
}

/// A tool of a surface: a variant of the surface's enum.
pub trait SurfaceTool: Debug + Copy + PartialEq + Send + Sync + 'static {
    fn spec(self) -> ToolSpec;

    /// The name on the wire.
    fn name(self) -> &'static str {
        self.spec().name
    }
}

/// Declares the enum of a surface's tools, one line per tool: variant, `reads` or `writes`, wire name, description. After
/// `reads` or `writes`, `text` means that it answers with text alone, and `unlisted` that the tool list
/// leaves out the schema of the result, which takes more bytes than the rest of the tool.
///
/// The schemas of arguments and result are the files in `schemas/tools/` with the tool's name.
macro_rules! tool_set {
    ($(#[$meta:meta])* $vis:vis enum $set:ident {
        $($variant:ident $access:ident $($form:ident)? $name:literal $description:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $set {
            $($variant),*
        }

        impl $set {
            /// Every tool, in the order in which they are listed.
            const ALL: &'static [Self] = &[$(Self::$variant),*];
        }

        impl $crate::surface::SurfaceTool for $set {
            fn spec(self) -> $crate::surface::ToolSpec {
                match self {
                    $(Self::$variant => $crate::surface::ToolSpec {
                        name: $name,
                        description: $description,
                        input: include_str!(
                            concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/tools/", $name, ".json")
                        ),
                        output: $crate::surface::tool_set!(@output $($form)? $name),
                        read_only: $crate::surface::tool_set!(@read_only $access),
                    }),*
                }
            }
        }
    };
    (@output text $name:literal) => { None };
    (@output unlisted $name:literal) => { None };
    (@output $name:literal) => {
        Some(include_str!(
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/tools/", $name, ".output.json")
        ))
    };
    (@read_only reads) => { true };
    (@read_only writes) => { false };
}

pub(crate) use tool_set;

/// The tools of one surface, in the order in which they are listed.
///
/// Schemas are parsed on the first list or call, not at start-up.
pub struct Catalog<T> {
    entries: Vec<Entry<T>>,
    style: InputStyle,
    listed: OnceLock<Vec<Tool>>,
}

struct Entry<T> {
    tool: T,
    spec: ToolSpec,
    check: OnceLock<InputCheck>,
}

impl<T: SurfaceTool> Catalog<T> {
    /// A catalog that checks arguments exactly as they were sent.
    pub fn new(tools: &[T]) -> Self {
        Self::with_style(tools, InputStyle::Exact)
    }

    /// A catalog that normalises arguments before the check: see [`InputStyle::Lenient`].
    pub(crate) fn lenient(tools: &[T]) -> Self {
        Self::with_style(tools, InputStyle::Lenient)
    }

    /// A catalog whose tools read any arguments: see [`InputStyle::Natural`].
    pub(crate) fn natural(tools: &[T]) -> Self {
        Self::with_style(tools, InputStyle::Natural)
    }

    fn with_style(tools: &[T], style: InputStyle) -> Self {
        let entry = |tool: &T| Entry { tool: *tool, spec: tool.spec(), check: OnceLock::new() };
        Self { entries: tools.iter().map(entry).collect(), style, listed: OnceLock::new() }
    }

    /// The tools as `tools/list` shows them.
    pub(super) fn listed(&self) -> &[Tool] {
        self.listed.get_or_init(|| self.entries.iter().map(|entry| describe(&entry.spec)).collect())
    }

    /// Finds a tool by its name, or by its name with `_` for every `.`.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        let matches = |spec: &ToolSpec| spec.name == name || equals_with_underscores(spec.name, name);
        self.entries.iter().position(|entry| matches(&entry.spec))
    }

    pub(super) fn tool(&self, index: usize) -> T {
        self.entries[index].tool
    }

    /// Checks `arguments` against the input schema of the tool at `index`; a lenient catalog normalises them first.
    pub(super) fn check(&self, index: usize, arguments: &mut Value) -> Result<(), SchemaFault> {
        let entry = &self.entries[index];
        let check = entry
            .check
            .get_or_init(|| InputCheck::new(Value::Object(parse_schema(entry.spec.input)), self.style));
        check.run(arguments)
    }
}

/// Some clients cannot send dots in names: for them `a.b_c` is `a_b_c`.
fn equals_with_underscores(name: &str, given: &str) -> bool {
    name.len() == given.len()
        && name.bytes().zip(given.bytes()).all(|(own, given)| own == given || (own == b'.' && given == b'_'))
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

/// Where and how arguments violate their schema. Never contains the invalid value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFault {
    /// JSON pointer into the arguments; empty for the arguments themselves.
    pub path: String,
    pub message: String,
}

impl SchemaFault {
    /// The path for a message: `arguments` where the pointer is empty.
    pub(crate) fn location(&self) -> &str {
        if self.path.is_empty() { "arguments" } else { &self.path }
    }
}
