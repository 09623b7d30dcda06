//! Invalid input yields a diagnostic or a parse error with a position, never a panic, and never more text than the input.

use serde_json::{Value, json};
use tenon_compose::{CompositionInput, compose};

use crate::inputs::{composed, module, route, summaries, with, workspace};

fn faults(input: &Value) -> Vec<(String, String, Value)> {
    let outcome = composed(input);
    assert!(!outcome.ok());
    let fault = |diagnostic: &tenon_compose::WorkspaceDiagnostic| {
        let text = |name: &str| diagnostic.details.text(name).unwrap().to_owned();
        (text("reason"), text("field"), diagnostic.details.get("expected").unwrap().clone())
    };
    outcome.diagnostics.iter().map(fault).collect()
}

#[test]
fn document_that_is_not_an_object_is_rejected() {
    for (value, received) in
        [(json!([]), "array"), (json!(null), "null"), (json!("x"), "string"), (json!(1), "number")]
    {
        let outcome = composed(&value);
        assert_eq!(summaries(&outcome), ["WCP-STRUCT-001 wrong-type"]);
        assert_eq!(outcome.diagnostics[0].details.text("received"), Some(received));
        assert_eq!(json!(outcome.diagnostics[0].subjects), json!([{"ownerKind": "host"}]));
    }
}

#[test]
fn each_mistake_is_reported_once_and_the_rest_is_still_checked() {
    let expect = |input: Value, expected: &[(&str, &str, Value)]| {
        let mut found = faults(&input);
        let mut expected: Vec<_> = expected
            .iter()
            .map(|(reason, field, expected)| (reason.to_string(), field.to_string(), expected.clone()))
            .collect();
        let order = |fault: &(String, String, Value)| (fault.1.clone(), fault.0.clone());
        found.sort_by_key(order);
        expected.sort_by_key(order);
        assert_eq!(found, expected, "{input}");
    };
    expect(
        json!({}),
        &[
            ("missing-field", "compositionSchemaVersion", json!("string")),
            ("missing-field", "modules", json!("array")),
        ],
    );
    expect(
        json!({"compositionSchemaVersion": 0.1, "modules": {}}),
        &[
            ("wrong-type", "compositionSchemaVersion", json!("string")),
            ("wrong-type", "modules", json!("array")),
        ],
    );
    expect(
        json!({"compositionSchemaVersion": "0.1", "modules": [], "extra": 1}),
        &[("unknown-field", "extra", json!(["builtins", "compositionSchemaVersion", "modules", "policy"]))],
    );
    expect(
        json!({"compositionSchemaVersion": "0.1", "modules": [7, null]}),
        &[("wrong-type", "modules[]", json!("object")), ("wrong-type", "modules[]", json!("object"))],
    );
    expect(
        workspace(vec![module("aaa", json!({"pages": []}))], vec![]),
        &[(
            "unknown-collection",
            "modules[].contributions.pages",
            json!([
                "activityRenderers",
                "configurationSurfaces",
                "fallbackSurfaces",
                "integrationSurfaces",
                "messageAppenders",
                "messageRenderers",
                "routes",
                "sidebarItems",
                "toolRenderers"
            ]),
        )],
    );
    expect(
        workspace(vec![module("aaa", json!({"routes": ["home"]}))], vec![]),
        &[("wrong-type", "modules[].contributions.routes[]", json!("object"))],
    );
    let wrong_kind = with(
        route("home", "/home"),
        "renderHandle",
        json!({"renderHandleVersion": "0.1", "kind": "tool-renderer", "id": "x"}),
    );
    expect(
        workspace(vec![module("aaa", json!({"routes": [wrong_kind]}))], vec![]),
        &[("kind-mismatch", "modules[].contributions.routes[].renderHandle.kind", json!("route"))],
    );
    let odd_order = with(with(route("home", "/home"), "order", 1.5), "title", json!(["x"]));
    expect(
        workspace(vec![module("aaa", json!({"routes": [odd_order]}))], vec![]),
        &[
            ("wrong-type", "modules[].contributions.routes[].order", json!("integer")),
            ("wrong-type", "modules[].contributions.routes[].title", json!("string")),
        ],
    );
    let ready_fallback = json!({"id": "x", "status": "ready", "renderHandle": {"renderHandleVersion": "0.1", "kind": "fallback-surface", "id": "x"}});
    expect(
        workspace(vec![module("aaa", json!({"fallbackSurfaces": [ready_fallback]}))], vec![]),
        &[(
            "invalid-enum",
            "modules[].contributions.fallbackSurfaces[].status",
            json!(["disabled", "error", "needs-configuration", "read-only", "unauthorized"]),
        )],
    );
    expect(
        with(
            workspace(vec![], vec![]),
            "policy",
            json!({"policySchemaVersion": "0.1", "operations": [{"id": "x"}, 7], "allowModuleRootRoute": "yes"}),
        ),
        &[
            ("wrong-type", "policy.allowModuleRootRoute", json!("boolean")),
            ("missing-field", "policy.operations[].op", json!("string")),
            ("missing-field", "policy.operations[].target", json!("string")),
            ("wrong-type", "policy.operations[]", json!("object")),
        ],
    );
}

#[test]
fn empty_string_is_not_missing() {
    let blank = json!({
        "routes": [with(with(route("home", "/home"), "title", ""), "renderHandle", json!({"renderHandleVersion": "0.1", "kind": "route", "id": ""}))],
        "configurationSurfaces": [{"id": "x", "purpose": "", "renderHandle": {"renderHandleVersion": "0.1", "kind": "configuration-surface", "id": "x"}}],
    });
    assert!(composed(&workspace(vec![with(module("aaa", blank), "packageId", "")], vec![])).ok());
}

#[test]
fn nothing_below_an_unsupported_version_is_checked() {
    assert_eq!(
        summaries(&composed(&json!({"compositionSchemaVersion": "9", "modules": 7, "zzz": 1}))),
        ["WCP-VERSION-001"]
    );
    let old = json!({"moduleApiVersion": "9", "instanceId": "X", "contributions": 7});
    assert_eq!(summaries(&composed(&workspace(vec![old], vec![]))), ["WCP-VERSION-002"]);
    let mut policy = workspace(vec![], vec![]);
    policy["policy"] = json!({"policySchemaVersion": "9", "operations": 7});
    assert_eq!(summaries(&composed(&policy)), ["WCP-VERSION-005"]);
    let handle = with(route("home", "/home"), "renderHandle", json!({"renderHandleVersion": "9", "kind": 7}));
    let outcome = composed(&workspace(vec![module("aaa", json!({"routes": [handle]}))], vec![]));
    assert_eq!(summaries(&outcome), ["WCP-VERSION-003 aaa:routes/home"]);
    assert_eq!(outcome.diagnostics[0].details.get("supported").unwrap(), &json!(["0.1"]));
}

#[test]
fn missing_version_does_not_stop_other_checks() {
    let mut input = workspace(vec![module("X", json!({}))], vec![]);
    input.as_object_mut().unwrap().remove("compositionSchemaVersion");
    assert_eq!(summaries(&composed(&input)), ["WCP-NS-002 too-short", "WCP-STRUCT-001 missing-field"]);
}

#[test]
fn huge_names_are_truncated_in_diagnostics() {
    let huge = "é".repeat(1_000_000);
    let descriptors: Vec<Value> = (0..100).map(|n| json!({"id": n})).chain([json!({&huge: 1})]).collect();
    let mut broken = module(&huge, json!({"routes": descriptors, &huge: []}));
    broken["runtime"] = json!({"status": huge});
    broken["packageId"] = json!(huge);
    let operations = vec![json!({"id": huge, "op": "hide", "target": huge})];
    let outcome = composed(&workspace(
        vec![
            broken,
            module(&huge, json!({})),
            module("aaa", json!({"routes": [route(&huge, &huge), route("home", &huge)]})),
        ],
        operations,
    ));
    let longest =
        outcome.diagnostics.iter().map(|diagnostic| json!(diagnostic).to_string().len()).max().unwrap();
    assert!(longest < 8_000, "{longest}");
    assert!(outcome.diagnostics.len() > 200);
}

#[test]
fn deep_nesting_is_rejected_with_its_position() {
    for depth in [200, 10_000, 1_000_000] {
        let text = format!("{{\"compositionSchemaVersion\":\"0.1\",\"modules\":{}", "[".repeat(depth));
        let error = CompositionInput::parse(text.as_bytes()).unwrap_err();
        assert_eq!((error.reason.as_str(), error.line), ("recursion limit exceeded", 1));
        assert!(error.column > 40);
    }
    let data = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let text = json!({"compositionSchemaVersion": "0.1", "modules": [module("aaa", json!({"routes": [route("home", "/home")]}))]}).to_string();
    let text = text.replace("\"id\":\"home\",\"kind\"", &format!("\"data\":{data},\"id\":\"home\",\"kind\""));
    let input = CompositionInput::parse(text.as_bytes()).unwrap();
    assert!(compose(&input).ok());
}

#[test]
fn parsed_value_has_the_same_depth_limit() {
    let mut deep = json!([]);
    for _ in 0..1000 {
        deep = json!([deep]);
    }
    assert_eq!(CompositionInput::from_value(&deep).unwrap_err().reason, "recursion limit exceeded");
}

#[test]
fn with_policy_replaces_the_inputs_policy() {
    let input = workspace(
        vec![module("aaa", json!({"routes": [route("home", "/home")]}))],
        vec![json!({"id": "x", "op": "explode", "target": "y"})],
    );
    let other = json!({"policySchemaVersion": "0.1", "operations": []});
    let input = CompositionInput::from_value(&input).unwrap();
    assert!(!compose(&input).ok());
    let input = input.with_policy(CompositionInput::from_value(&other).unwrap());
    assert!(compose(&input).ok());
    let no_object =
        CompositionInput::parse(b"[]").unwrap().with_policy(CompositionInput::from_value(&other).unwrap());
    assert_eq!(summaries(&compose(&no_object)), ["WCP-STRUCT-001 wrong-type"]);
}

/// The JSON pointer of every value in a document.
fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
    found.push(at.clone());
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| pointers(item, format!("{at}/{n}"), found))
        }
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| pointers(member, format!("{at}/{name}"), found))
        }
        _ => {}
    }
}

#[test]
fn replacing_any_value_composes_or_reports_an_error() {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let odd = [
        json!(null),
        json!(true),
        json!(-1.5),
        json!(""),
        json!("*"),
        json!("aaa:routes/x"),
        json!([]),
        json!([[]]),
        json!({}),
        json!({"id": {}}),
    ];
    for name in [
        "happy-single-module",
        "invalid-policy-target",
        "renderer-override",
        "runtime-error",
        "message-appenders-do-not-conflict",
    ] {
        let text = std::fs::read_to_string(fixtures.join(format!("fixture-{name}/input.json"))).unwrap();
        let input = serde_json::from_str::<Value>(&text).unwrap()["input"].clone();
        let mut places = Vec::new();
        pointers(&input, String::new(), &mut places);
        for place in places {
            for value in &odd {
                let mut changed = input.clone();
                *changed.pointer_mut(&place).unwrap() = value.clone();
                let outcome = composed(&changed);
                let errors = outcome.diagnostics.iter().any(tenon_compose::WorkspaceDiagnostic::is_error);
                assert_eq!(outcome.ok(), !errors, "{name}{place} = {value}");
            }
        }
    }
}
