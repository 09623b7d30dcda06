//! §2 and §8: the tools and schemas that `tools/list` shows.

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::script;
use tenon_testkit::code_tools::{FILE_TOOLS, REFERENCES, TOOLS, WORKSPACE_DIAGNOSTICS, WORKSPACE_SYMBOLS};
use tenon_testkit::repository_root;

use crate::stage::{Stage, code};

fn listed(stage: &Stage) -> Vec<Value> {
    let mut listed = stage.client().request("tools/list", json!({})).unwrap();
    match listed["tools"].take() {
        Value::Array(tools) => tools,
        other => panic!("{other}"),
    }
}

fn stage() -> Stage {
    Stage::open(Workbench::new().file("a.fake", "").server("fake", script(&[])))
}

#[test]
fn s2_1_catalog_is_exactly_the_seven_tools() {
    let tools = listed(&stage());
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, TOOLS);
}

#[test]
fn s2_2_every_tool_has_name_description_schemas_and_the_read_only_hint() {
    for tool in listed(&stage()) {
        let description = tool["description"].as_str().unwrap();
        assert!((10..=120).contains(&description.len()), "{description}");
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{tool}");
            assert!(!tool[schema].to_string().contains("$ref"), "{tool}");
        }
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
    }
}

#[test]
fn tool_list_has_at_most_12_kib() {
    let bytes = serde_json::to_string(&json!({ "tools": listed(&stage()) })).unwrap().len();
    assert!(bytes <= 12 * 1024, "{bytes}");
}

#[test]
fn s8_published_schemas_equal_the_files_named_after_the_tools() {
    for tool in listed(&stage()) {
        let name = tool["name"].as_str().unwrap();
        for (field, ending) in [("inputSchema", "json"), ("outputSchema", "output.json")] {
            let path = repository_root().join(format!("schemas/tools/{name}.{ending}"));
            let file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(tool[field], file, "{}", path.display());
        }
    }
}

/// Every object in a schema, with the path to it.
fn objects<'a>(schema: &'a Value, path: &str, found: &mut Vec<(String, &'a Value)>) {
    if schema["type"] == "object" {
        found.push((path.to_owned(), schema));
    }
    match schema {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| objects(value, &format!("{path}/{key}"), found));
        }
        Value::Array(items) => items.iter().for_each(|item| objects(item, path, found)),
        _ => {}
    }
}

#[test]
fn s8_schemas_are_closed_and_list_required_fields() {
    for tool in listed(&stage()) {
        for field in ["inputSchema", "outputSchema"] {
            let mut found = Vec::new();
            objects(&tool[field], field, &mut found);
            for (path, schema) in found {
                assert_eq!(schema["additionalProperties"], false, "{} {path}", tool["name"]);
            }
        }
        let name = tool["name"].as_str().unwrap();
        let required = &tool["inputSchema"]["required"];
        let expected = match name {
            WORKSPACE_DIAGNOSTICS => Value::Null,
            WORKSPACE_SYMBOLS => json!(["query"]),
            _ if tool["inputSchema"]["properties"]["position"].is_object() => json!(["uri", "position"]),
            _ => json!(["uri"]),
        };
        assert_eq!(*required, expected, "{name}");
        let paged = [REFERENCES, WORKSPACE_SYMBOLS, WORKSPACE_DIAGNOSTICS].contains(&name);
        for paging in ["pageSize", "cursor"] {
            assert_eq!(tool["inputSchema"]["properties"][paging].is_object(), paged, "{name}");
        }
        assert_eq!(tool["inputSchema"]["properties"]["uri"].is_object(), FILE_TOOLS.contains(&name));
    }
}

#[test]
fn tool_names_may_use_underscores_for_dots() {
    let stage = stage();
    let mut client = stage.client();
    let dotted = client.call_tool("vscode.lsp.documentSymbols", json!({ "uri": "x" })).unwrap_err();
    let underscored = client.call_tool("vscode_lsp_documentSymbols", json!({ "uri": "x" })).unwrap_err();
    assert_eq!(dotted, underscored);
    assert_eq!(code(&dotted), "URI_INVALID");
}

#[test]
fn s6_3_unknown_tool_is_invalid_params() {
    let error = stage().client().call_tool("vscode.lsp.rename", json!({})).unwrap_err();
    assert_eq!(code(&error), "INVALID_PARAMS");
}
