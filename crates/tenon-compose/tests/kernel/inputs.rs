//! Builders for composer inputs, and short views of outcomes.

use serde_json::{Value, json};
use tenon_compose::{CompositionInput, CompositionOutcome, WorkspaceDiagnostic, compose};

pub(crate) fn handle(kind: &str, id: &str) -> Value {
    json!({"renderHandleVersion": "0.1", "kind": kind, "id": id})
}

pub(crate) fn route(id: &str, path: &str) -> Value {
    json!({"id": id, "path": path, "renderHandle": handle("route", id)})
}

pub(crate) fn sidebar_item(id: &str, route_key: &str) -> Value {
    json!({"id": id, "label": id, "routeKey": route_key})
}

pub(crate) fn tool(id: &str, claim: &str) -> Value {
    json!({"id": id, "claim": claim, "renderHandle": handle("tool-renderer", id)})
}

pub(crate) fn appender(id: &str) -> Value {
    json!({"id": id, "targetMessageType": "assistant-text", "position": "after", "renderHandle": handle("message-appender", id)})
}

pub(crate) fn with(mut value: Value, field: &str, content: impl Into<Value>) -> Value {
    value[field] = content.into();
    value
}

pub(crate) fn module(id: &str, contributions: Value) -> Value {
    module_in("ready", id, contributions)
}

pub(crate) fn module_in(status: &str, id: &str, contributions: Value) -> Value {
    json!({
        "packageId": format!("@acme/{id}"),
        "moduleApiVersion": "0.1",
        "instanceId": id,
        "runtime": {"status": status},
        "contributions": contributions,
    })
}

pub(crate) fn workspace(modules: Vec<Value>, operations: Vec<Value>) -> Value {
    json!({
        "compositionSchemaVersion": "0.1",
        "modules": modules,
        "policy": {"policySchemaVersion": "0.1", "operations": operations},
    })
}

pub(crate) fn composed(input: &Value) -> CompositionOutcome {
    compose(&CompositionInput::from_value(input).expect("test inputs are shallow"))
}

/// The keys of one collection, in order.
pub(crate) fn keys(outcome: &CompositionOutcome, collection: &str) -> Vec<String> {
    let outcome = json!(outcome);
    let entries = outcome["composition"][collection].as_array().expect("it composes").clone();
    entries.iter().map(|entry| entry["key"].as_str().expect("keys are text").to_owned()).collect()
}

/// Each diagnostic as one line: code, reason, policy id and the subjects' keys.
pub(crate) fn summaries(outcome: &CompositionOutcome) -> Vec<String> {
    outcome.diagnostics.iter().map(brief).collect()
}

pub(crate) fn brief(diagnostic: &WorkspaceDiagnostic) -> String {
    let mut words = vec![diagnostic.code.as_str().to_owned()];
    words.extend(diagnostic.details.reason().map(str::to_owned));
    words.extend(diagnostic.details.text("policyId").map(str::to_owned));
    words.extend(diagnostic.subjects.iter().filter_map(|subject| subject.canonical_key.clone()));
    words.join(" ")
}
