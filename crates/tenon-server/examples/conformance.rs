//! The product's HTTP edge with the official conformance suite's fixture tools behind it.
//!
//! For tests alone: the suite calls tools by its own names and sends no token, so this program opens
//! to everybody on loopback. It prints the address it listens on and ends with its stdin.

use std::io::{self, Write};
use std::sync::LazyLock;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::ResourceContents;
use tenon_contract::clock::Entropy;
use tenon_server::http::{self, Authority, Endpoint, HttpLimits, Principal};
use tenon_server::surface::{
    Answer, Arguments, Call, Catalog, ContentBlock, ErrorCode, ErrorData, Outcome, Refusal, Surface,
    ToolNames, ToolSpec,
};
use tenon_server::surfaces::Surfaces;
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

const NAME: &str = "conformance";

/// A PNG of one red pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// A WAV file of no samples.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{},"additionalProperties":false}"#;

/// The schema that must reach clients keyword by keyword.
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

static TOOLS: [ToolSpec; 11] = [
    fixture("test_simple_text", "Returns text", NO_ARGUMENTS),
    fixture("test_image_content", "Returns an image", NO_ARGUMENTS),
    fixture("test_audio_content", "Returns audio", NO_ARGUMENTS),
    fixture("test_embedded_resource", "Returns a resource", NO_ARGUMENTS),
    fixture("test_multiple_content_types", "Returns text, an image and a resource", NO_ARGUMENTS),
    fixture("test_error_handling", "Always fails", NO_ARGUMENTS),
    fixture("test_tool_with_progress", "Reports progress three times", NO_ARGUMENTS),
    fixture("test_missing_capability", "Needs sampling, which no client of ours is asked for", NO_ARGUMENTS),
    fixture("test_streaming_elicitation", "Answers without asking back", NO_ARGUMENTS),
    fixture("test_logging_tool", "Answers without log messages", NO_ARGUMENTS),
    fixture("json_schema_2020_12_tool", "Has a schema with many keywords", WIDE_SCHEMA),
];

const fn fixture(name: &'static str, description: &'static str, input: &'static str) -> ToolSpec {
    ToolSpec { name, description, input, output: None, read_only: true }
}

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::new(&TOOLS));

struct Fixtures;

impl Surface for Fixtures {
    fn name(&self) -> &'static str {
        NAME
    }

    fn catalog(&self) -> &Catalog {
        &CATALOG
    }

    fn call<'a>(&'a self, tool: &'static str, _arguments: Arguments, call: Call) -> BoxFuture<'a, Outcome> {
        async move {
            match tool {
                "test_missing_capability" => Err(missing_capability()),
                _ => Ok(answer(tool, &call)),
            }
        }
        .boxed()
    }

    fn refuse(&self, tool: &str, refusal: Refusal) -> Outcome {
        Err(ErrorData::new(ErrorCode::INVALID_PARAMS, format!("{tool}: {refusal:?}"), None))
    }
}

fn answer(tool: &str, call: &Call) -> Answer {
    let picture = ContentBlock::image(PIXEL, "image/png");
    let content = match tool {
        "test_simple_text" => vec![ContentBlock::text("This is a simple text response for testing.")],
        "test_image_content" => vec![picture],
        "test_audio_content" => vec![ContentBlock::audio(SILENCE, "audio/wav")],
        "test_embedded_resource" => {
            let text = "This is an embedded resource content.";
            vec![ContentBlock::resource(ResourceContents::text(text, "test://embedded-resource"))]
        }
        "test_multiple_content_types" => {
            let data =
                ResourceContents::text(r#"{"test":"data","value":123}"#, "test://mixed-content-resource");
            let data = ContentBlock::resource(data.with_mime_type("application/json"));
            vec![ContentBlock::text("Multiple content types test:"), picture, data]
        }
        "test_error_handling" => {
            return Answer::text("This tool intentionally returns an error for testing").failed();
        }
        "test_tool_with_progress" => {
            for done in [0, 50, 100] {
                call.caller.progress.report(done, Some(100), "working");
            }
            vec![ContentBlock::text("done")]
        }
        _ => vec![ContentBlock::text(tool)],
    };
    Answer { structured: None, content, is_error: false }
}

/// The error of 2026-07-28 that must become status 400 on its way out.
fn missing_capability() -> ErrorData {
    let data = serde_json::json!({ "requiredCapabilities": { "sampling": {} } });
    ErrorData::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, "sampling is needed", Some(data))
}

/// Everybody is the same one.
struct Open;

impl Authority for Open {
    fn principal(&self, _bearer: Option<&str>) -> Option<Principal> {
        Some(Principal { id: NAME.into(), surfaces: None })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = http::bind("127.0.0.1:0".parse()?).await?;
    writeln!(io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    let endpoint = Endpoint {
        surfaces: Surfaces::new(ToolNames::Dotted).with(Fixtures),
        default_surfaces: vec![NAME.into()],
        open_surfaces: vec![NAME.into()],
        authority: Box::new(Open),
        entropy: Entropy::system(),
        limits: HttpLimits::default(),
    };
    let stop = CancellationToken::new();
    let ending = stop.clone();
    tokio::spawn(async move {
        let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
        ending.cancel();
    });
    http::serve(listener, endpoint, stop).await;
    Ok(())
}
