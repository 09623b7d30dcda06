//! The product's HTTP edge with the fixture tools of the official conformance suite behind it.
//!
//! The suite calls tools by its own names and sends no token, so every client on loopback may call it.

use std::sync::LazyLock;

use rmcp::model::ResourceContents;
use tenon_contract::clock::Entropy;
use tenon_server::http::{self, Authority, Endpoint, HttpLimits, Principal};
use tenon_server::surface::{
    Arguments, CallFailure, Catalog, ContentBlock, ErrorCode, ErrorData, Surface, SurfaceTool, ToolAnswer,
    ToolCall, ToolOutcome, ToolSpec,
};
use tenon_server::surfaces::Surfaces;
use tokio_util::sync::CancellationToken;

const NAME: &str = "conformance";

/// A PNG of one red pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// A WAV file without samples.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{},"additionalProperties":false}"#;

/// A schema with many keywords, all of which must reach clients.
const WIDE_SCHEMA: &str = r##"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {
    "address": {
      "$anchor": "addressDef",
      "type": "object",
      "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
    }
  },
  "properties": {
    "name": { "type": "string" },
    "address": { "$ref": "#/$defs/address" },
    "contactMethod": { "type": "string", "enum": ["phone", "email"] },
    "phone": { "type": "string" },
    "email": { "type": "string" }
  },
  "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
  "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
  "then": { "required": ["phone"] },
  "else": { "required": ["email"] },
  "additionalProperties": false
}"##;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FixtureTool {
    SimpleText,
    ImageContent,
    AudioContent,
    EmbeddedResource,
    MultipleContentTypes,
    ErrorHandling,
    ToolWithProgress,
    MissingCapability,
    StreamingElicitation,
    LoggingTool,
    JsonSchema202012,
}

impl FixtureTool {
    const ALL: [Self; 11] = [
        Self::SimpleText,
        Self::ImageContent,
        Self::AudioContent,
        Self::EmbeddedResource,
        Self::MultipleContentTypes,
        Self::ErrorHandling,
        Self::ToolWithProgress,
        Self::MissingCapability,
        Self::StreamingElicitation,
        Self::LoggingTool,
        Self::JsonSchema202012,
    ];
}

impl SurfaceTool for FixtureTool {
    fn spec(self) -> ToolSpec {
        let (name, description) = match self {
            Self::SimpleText => ("test_simple_text", "Returns text"),
            Self::ImageContent => ("test_image_content", "Returns an image"),
            Self::AudioContent => ("test_audio_content", "Returns audio"),
            Self::EmbeddedResource => ("test_embedded_resource", "Returns a resource"),
            Self::MultipleContentTypes => {
                ("test_multiple_content_types", "Returns text, an image and a resource")
            }
            Self::ErrorHandling => ("test_error_handling", "Always fails"),
            Self::ToolWithProgress => ("test_tool_with_progress", "Reports progress three times"),
            Self::MissingCapability => {
                ("test_missing_capability", "Needs sampling, which Tenon never requests")
            }
            Self::StreamingElicitation => ("test_streaming_elicitation", "Answers without asking back"),
            Self::LoggingTool => ("test_logging_tool", "Answers without log messages"),
            Self::JsonSchema202012 => ("json_schema_2020_12_tool", "Has a schema with many keywords"),
        };
        let input = if self == Self::JsonSchema202012 { WIDE_SCHEMA } else { NO_ARGUMENTS };
        ToolSpec { name, description, input, output: None, read_only: true }
    }
}

static CATALOG: LazyLock<Catalog<FixtureTool>> = LazyLock::new(|| Catalog::new(&FixtureTool::ALL));

struct Fixtures;

impl Surface for Fixtures {
    type Tool = FixtureTool;

    fn name(&self) -> &'static str {
        NAME
    }

    fn catalog(&self) -> &Catalog<FixtureTool> {
        &CATALOG
    }

    async fn call(&self, tool: FixtureTool, _arguments: Arguments, call: ToolCall) -> ToolOutcome {
        answer(tool, &call)
    }

    fn classify(&self, tool: FixtureTool, failure: CallFailure) -> ToolOutcome {
        Err(ErrorData::new(ErrorCode::INVALID_PARAMS, format!("{}: {failure:?}", tool.name()), None))
    }
}

fn answer(tool: FixtureTool, call: &ToolCall) -> ToolOutcome {
    let picture = ContentBlock::image(PIXEL, "image/png");
    let content = match tool {
        FixtureTool::SimpleText => {
            vec![ContentBlock::text("This is a simple text response for testing.")]
        }
        FixtureTool::ImageContent => vec![picture],
        FixtureTool::AudioContent => vec![ContentBlock::audio(SILENCE, "audio/wav")],
        FixtureTool::EmbeddedResource => {
            let text = "This is an embedded resource content.";
            vec![ContentBlock::resource(ResourceContents::text(text, "test://embedded-resource"))]
        }
        FixtureTool::MultipleContentTypes => {
            let data =
                ResourceContents::text(r#"{"test":"data","value":123}"#, "test://mixed-content-resource");
            let data = ContentBlock::resource(data.with_mime_type("application/json"));
            vec![ContentBlock::text("Multiple content types test:"), picture, data]
        }
        FixtureTool::ErrorHandling => {
            return Ok(ToolAnswer::text("This tool intentionally returns an error for testing").failed());
        }
        FixtureTool::ToolWithProgress => {
            for done in [0, 50, 100] {
                call.caller.progress.report(done, Some(100), "working");
            }
            vec![ContentBlock::text("done")]
        }
        FixtureTool::MissingCapability => return Err(missing_capability()),
        FixtureTool::StreamingElicitation | FixtureTool::LoggingTool | FixtureTool::JsonSchema202012 => {
            vec![ContentBlock::text(tool.name())]
        }
    };
    Ok(ToolAnswer { structured: None, content, is_error: false })
}

/// An error of 2026-07-28 that must become status 400.
fn missing_capability() -> ErrorData {
    let data = serde_json::json!({ "requiredCapabilities": { "sampling": {} } });
    ErrorData::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, "sampling is needed", Some(data))
}

/// Accepts every client.
struct Open;

impl Authority for Open {
    fn principal(&self, _bearer: Option<&str>) -> Option<Principal> {
        Some(Principal { id: NAME.into(), surfaces: None })
    }
}

/// Serves on a free port until the test ends. Returns the address of the endpoint.
pub(crate) async fn start() -> String {
    let listener = http::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    let endpoint = Endpoint {
        surfaces: Surfaces::default().with(Fixtures),
        default_surfaces: vec![NAME.into()],
        open_surfaces: vec![NAME.into()],
        authority: Box::new(Open),
        entropy: Entropy::system(),
        limits: HttpLimits::default(),
    };
    tokio::spawn(http::serve(listener, endpoint, CancellationToken::new()));
    address
}
