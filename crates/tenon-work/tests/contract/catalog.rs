//! The tool catalog: its size, and that its schemas agree with the code.

use serde_json::{Map, Value, json};
use tenon_work::{Access, WorkErrorCode, WorkRequest, WorkSurfaceKind, WorkTool, WorkspaceName};

use crate::client::{Client, On};

/// The `tools/list` response of a surface.
fn listed(surface: WorkSurfaceKind) -> String {
    let tools = WorkTool::ALL.iter().filter(|tool| tool.surface() == surface);
    let entries: Vec<Value> = tools
        .map(|tool| {
            let schema: Value = serde_json::from_str(tool.schema()).unwrap();
            json!({
                "name": tool.name(),
                "description": tool.description(),
                "inputSchema": schema,
                "annotations": {"readOnlyHint": tool.access() == Access::Read},
            })
        })
        .collect();
    json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": entries}}).to_string()
}

#[test]
fn tool_list_of_each_surface_is_under_16_kib() {
    for (surface, tools) in [(WorkSurfaceKind::Tasks, 25), (WorkSurfaceKind::Memory, 22)] {
        assert_eq!(WorkTool::ALL.iter().filter(|tool| tool.surface() == surface).count(), tools);
        let bytes = listed(surface).len();
        assert!(bytes < 16 * 1024, "{surface:?}: {bytes}");
    }
}

#[test]
fn envelope_schema_lists_every_error_code() {
    let schema: Value = serde_json::from_str(include_str!("../../../../schemas/envelope.json")).unwrap();
    let known: Vec<&str> = WorkErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(schema["properties"]["error"]["properties"]["code"]["enum"], json!(known));
}

#[test]
fn all_writes_and_reads_take_the_common_arguments() {
    for tool in WorkTool::ALL {
        let schema: Value = serde_json::from_str(tool.schema()).unwrap();
        let has = |name: &str| schema["properties"].get(name).is_some();
        if tool.access() == Access::Write {
            for name in ["expected_revision", "expected_version", "strict_targeting", "expected_target_id"] {
                assert!(has(name), "{} {name}", tool.name());
            }
        } else {
            assert!(has("max_chars"), "{}", tool.name());
        }
        assert_eq!(has("cursor"), has("limit"), "{}", tool.name());
    }
}

/// A value that satisfies one of our schemas.
fn sample(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind {
        Some("string") => json!("x"),
        Some("integer") => json!(1),
        Some("boolean") => json!(false),
        // Nested steps: the schema does not repeat their shape.
        Some("array") if schema["items"] == json!({"type": "object"}) => json!([]),
        Some("array") => json!([sample(&schema["items"])]),
        Some("object") => {
            let properties = schema["properties"].as_object().cloned().unwrap_or_default();
            properties
                .iter()
                .map(|(name, schema)| (name.clone(), sample(schema)))
                .collect::<Map<_, _>>()
                .into()
        }
        _ => json!(null),
    }
}

/// The code accepts every argument of a schema, with the type in the schema.
#[tokio::test]
async fn schemas_and_code_agree() {
    let client = Client::new(On::Sqlite).await;
    for tool in WorkTool::ALL {
        let schema: Value = serde_json::from_str(tool.schema()).unwrap();
        let mut samples = vec![sample(&schema)];
        for name in schema["properties"].as_object().unwrap().keys() {
            let mut args = Map::new();
            let required =
                schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap());
            for name in required.chain([name.as_str()]) {
                args.insert(name.to_owned(), sample(&schema["properties"][name]));
            }
            samples.push(Value::Object(args));
        }
        for mut args in samples {
            args["workspace"] = json!("w");
            // The schema does not describe the content of a card.
            if args.get("card").is_some() {
                args["card"] = json!("type: note\ntext: x");
            }
            let answer = client.call_quietly(tool.name(), args).await;
            for word in ["unknown field", "missing field", "invalid type", "unknown variant", "input schema"]
            {
                assert!(!answer.text.contains(word), "{}: {}", tool.name(), answer.text);
            }
        }
    }
}

/// Values of every JSON type, and lists that are empty, written as objects or filled with the wrong thing.
fn misfits() -> Vec<Value> {
    vec![
        json!("x"),
        json!(1),
        json!(1.5),
        json!(true),
        json!([]),
        json!([1]),
        json!(["x"]),
        json!([[]]),
        json!({}),
        json!({"x": 1}),
    ]
}

/// Replaces each part of a value, however deep, by something else.
fn mutations(value: &Value) -> Vec<Value> {
    let mut found = misfits();
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                for mutated in mutations(item) {
                    let mut items = items.clone();
                    items[at] = mutated;
                    found.push(items.into());
                }
            }
        }
        Value::Object(members) => {
            for (name, item) in members {
                let changed = mutations(item).into_iter().map(Some).chain([None]);
                for mutated in changed {
                    let mut members = members.clone();
                    match mutated {
                        Some(mutated) => drop(members.insert(name.clone(), mutated)),
                        None => drop(members.remove(name)),
                    }
                    found.push(members.into());
                }
            }
            for value in [Value::Null, json!(1)] {
                let mut members = members.clone();
                members.insert("unknown".into(), value);
                found.push(members.into());
            }
        }
        _ => {}
    }
    found
}

/// Typed requests are checked without the schema inside batches, so they must reject whatever it rejects.
#[test]
fn typed_requests_accept_what_the_schema_accepts() {
    let workspace = WorkspaceName::parse("w").unwrap();
    for tool in WorkTool::ALL {
        let schema: Value = serde_json::from_str(tool.schema()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        for arguments in mutations(&sample(&schema)) {
            let Value::Object(mut arguments) = arguments else { continue };
            arguments.remove("workspace");
            let by_schema = validator.is_valid(&Value::Object(arguments.clone()));
            let request = WorkRequest::from_json(*tool, arguments.clone(), Some(&workspace));
            let by_type = match &request {
                Ok(_) => true,
                Err(error) => !error.to_string().contains("arguments:") && !error.to_string().contains("`/"),
            };
            assert_eq!(by_schema, by_type, "{} {arguments:?}: {request:?}", tool.name());
        }
    }
}
