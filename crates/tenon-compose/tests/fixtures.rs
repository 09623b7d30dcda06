//! Runs every fixture of the contract's matrix: a folder with an input and the expected output.
//!
//! `input.json` names what to run: `compose`, `read-diagnostics` or `render`, and how the providers of a render fixture
//! behave. `expected.json` is the whole output without message texts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};
use tenon_compose::render::{
    BlockReason, Load, LoadKind, ProviderError, ProviderSource, ProviderSummary, Render, RenderPack,
    RenderRuntime, RenderTarget,
};
use tenon_compose::{CompositionInput, compose, read_diagnostics};

datatest_stable::harness! {
    { test = fixture, root = "tests/fixtures", pattern = r"/input\.json$" },
}

/// The matrix: the exact set of codes that each fixture reports.
const MATRIX: &[(&str, &[&str])] = &[
    ("fixture-happy-single-module", &[]),
    ("fixture-happy-multi-instance", &[]),
    ("fixture-same-local-id-across-instances", &[]),
    ("fixture-invalid-input-shape", &["WCP-STRUCT-001"]),
    ("fixture-duplicate-instance-id", &["WCP-NS-001"]),
    ("fixture-invalid-instance-id", &["WCP-NS-002"]),
    ("fixture-duplicate-canonical-key", &["WCP-NS-003"]),
    ("fixture-invalid-local-id", &["WCP-NS-004"]),
    ("fixture-duplicate-route-path", &["WCP-ROUTE-001"]),
    ("fixture-invalid-route-path", &["WCP-ROUTE-002"]),
    ("fixture-route-path-trailing-slash-rejected", &["WCP-ROUTE-002"]),
    ("fixture-route-path-alias", &["WCP-ROUTE-003"]),
    ("fixture-route-path-alias-creates-conflict", &["WCP-ROUTE-001"]),
    ("fixture-duplicate-message-renderer-claim", &["WCP-RENDERER-001"]),
    ("fixture-duplicate-tool-renderer-claim", &["WCP-RENDERER-001"]),
    ("fixture-duplicate-activity-renderer-claim", &["WCP-RENDERER-001"]),
    ("fixture-message-appenders-do-not-conflict", &[]),
    ("fixture-invalid-renderer-claim", &["WCP-RENDERER-002"]),
    ("fixture-default-text-renderer-rejected", &["WCP-RENDERER-003"]),
    ("fixture-renderer-override", &["WCP-RENDERER-004"]),
    ("fixture-unsupported-composition-schema-version", &["WCP-VERSION-001"]),
    ("fixture-unsupported-module-api-version", &["WCP-VERSION-002"]),
    ("fixture-unsupported-render-handle-version", &["WCP-VERSION-003"]),
    ("fixture-unsupported-diagnostic-schema-version", &["WCP-VERSION-004"]),
    ("fixture-unsupported-policy-schema-version", &["WCP-VERSION-005"]),
    ("fixture-invalid-policy-target", &["WCP-POLICY-001"]),
    ("fixture-policy-conflict", &["WCP-POLICY-001"]),
    ("fixture-policy-reorder-cycle", &["WCP-POLICY-001"]),
    ("fixture-render-runtime-missing-handle", &["WCP-HANDLE-001"]),
    ("fixture-render-runtime-duplicate-provider", &["WCP-HANDLE-002"]),
    ("fixture-render-runtime-blocked-handle", &["WCP-HANDLE-003"]),
    ("fixture-render-runtime-unsupported-provider", &["WCP-HANDLE-004"]),
    ("fixture-render-runtime-load-failed", &["WCP-HANDLE-005"]),
    ("fixture-render-runtime-render-failed", &["WCP-HANDLE-006"]),
    ("fixture-render-runtime-unknown-target-fallback", &["WCP-HANDLE-007"]),
    ("fixture-runtime-ready", &[]),
    ("fixture-runtime-read-only", &[]),
    ("fixture-runtime-needs-configuration", &[]),
    ("fixture-runtime-unauthorized", &[]),
    ("fixture-runtime-disabled", &[]),
    ("fixture-runtime-error", &[]),
];

fn fixture(path: &Path) -> datatest_stable::Result<()> {
    let folder = path.parent().expect("fixtures are folders");
    let name = folder.file_name().and_then(|name| name.to_str()).expect("fixture names are text");
    let input: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let mut given = run(&input);
    drop_messages(&mut given);
    let file = folder.join("expected.json");
    let expected: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
    assert_eq!(given, expected, "{name} gives:\n{}", serde_json::to_string_pretty(&given)?);

    let (_, codes) = MATRIX.iter().find(|(known, _)| *known == name).expect("the matrix lists every fixture");
    assert_eq!(codes_in(&given), *codes, "{name}");
    Ok(())
}

fn run(fixture: &Value) -> Value {
    match fixture["run"].as_str() {
        Some("compose") => {
            let outcome =
                compose(&CompositionInput::from_value(&fixture["input"]).expect("fixtures are shallow"));
            json!(outcome)
        }
        Some("read-diagnostics") => {
            let text = fixture["diagnostics"].to_string();
            let diagnostics = read_diagnostics(text.as_bytes()).expect("the fixture can be read");
            json!({"diagnostics": diagnostics})
        }
        Some("render") => render(fixture),
        other => panic!("a fixture runs compose, read-diagnostics or render, not {other:?}"),
    }
}

fn render(fixture: &Value) -> Value {
    let outcome = compose(&CompositionInput::from_value(&fixture["input"]).expect("fixtures are shallow"));
    let composition = outcome.composition.expect("render fixtures compose");
    let list = |name: &str| fixture[name].as_array().cloned().unwrap_or_default();
    let packs = list("packs")
        .iter()
        .map(|pack| RenderPack::read(pack, &provide).expect("packs can be read"))
        .collect();
    let blocked = list("block");
    let admission = |summary: &ProviderSummary| {
        let rule = blocked.iter().find(|rule| rule["id"] == *summary.handle.id);
        match rule.and_then(|rule| rule["reason"].as_str()).and_then(BlockReason::parse) {
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    };
    let runtime = RenderRuntime::new(&composition, packs, &admission);
    let steps = list("steps");
    let answers = steps.iter().map(|step| match step["do"].as_str() {
        Some("coverage") => json!({"coverage": runtime.coverage()}),
        Some("preload") => json!({"preload": runtime.preload()}),
        _ => {
            let text = |name: &str| step["target"][name].as_str().unwrap_or_default();
            let surface =
                runtime.render(RenderTarget { kind: text("kind"), key: text("key") }, &step["props"]);
            json!({"html": surface.html, "diagnostic": surface.diagnostic})
        }
    });
    answers.collect()
}

/// A provider with the behaviour that its entry names.
struct Behaviour {
    name: String,
    failed_before: AtomicBool,
}

fn provide(kind: LoadKind, entry: &Map<String, Value>) -> Option<ProviderSource> {
    let name = entry["behaviour"].as_str()?.to_owned();
    Some(match kind {
        LoadKind::Eager => ProviderSource::Eager(renderer(&name)),
        _ => ProviderSource::Lazy(Arc::new(Behaviour { name, failed_before: AtomicBool::new(false) })),
    })
}

impl Load for Behaviour {
    fn load(&self) -> Result<Arc<dyn Render>, ProviderError> {
        let fails = match self.name.as_str() {
            "fail-load" => true,
            // Only the first attempt fails; a later one must still succeed.
            "fail-preload" => !self.failed_before.swap(true, Ordering::SeqCst),
            _ => false,
        };
        if fails { Err("the loader's secret".into()) } else { Ok(renderer(&self.name)) }
    }
}

fn renderer(behaviour: &str) -> Arc<dyn Render> {
    match behaviour {
        "fail-render" => Arc::new(|_: &Value| Err("the provider's secret".into())),
        "panic" => Arc::new(|_: &Value| panic!("the provider's secret")),
        _ => Arc::new(|props: &Value| {
            Ok(format!("<p>Hello, {}</p>", props["name"].as_str().unwrap_or_default()))
        }),
    }
}

/// Messages are not part of the contract.
fn drop_messages(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_messages),
        Value::Object(members) => {
            if members.contains_key("diagnosticSchemaVersion") {
                members.remove("message").expect("every diagnostic has a message");
            }
            members.values_mut().for_each(drop_messages);
        }
        _ => {}
    }
}

/// The distinct diagnostic codes in an output, sorted.
fn codes_in(value: &Value) -> Vec<&str> {
    fn collect<'v>(value: &'v Value, codes: &mut Vec<&'v str>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| collect(item, codes)),
            Value::Object(members) => {
                if let (Some(code), Some(_)) = (members.get("code"), members.get("diagnosticSchemaVersion")) {
                    codes.extend(code.as_str());
                }
                members.values().for_each(|member| collect(member, codes));
            }
            _ => {}
        }
    }
    let mut codes = Vec::new();
    collect(value, &mut codes);
    codes.sort_unstable();
    codes.dedup();
    codes
}
