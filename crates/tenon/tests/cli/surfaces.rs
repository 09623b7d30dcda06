//! What holds for every surface.

use std::collections::BTreeMap;

use serde_json::json;
use tenon_testkit::Sandbox;

use super::connect;

/// The number of tools per surface. `edit` needs the user's permission; tests/edit covers it.
const SURFACES: [(&str, usize); 7] =
    [("code", 7), ("nav", 6), ("context", 5), ("work", 8), ("tasks", 25), ("memory", 22), ("workspace", 2)];

/// Its tools read any arguments and say which they ignored; tests/work covers it.
const NATURAL: &str = "work";

#[test]
fn client_sees_exactly_the_chosen_surfaces() {
    let sandbox = Sandbox::new();
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for (surface, count) in SURFACES {
        let mut client = connect(&sandbox, &["--surface", surface]);
        let tools = client.list_tools();
        assert_eq!(tools.len(), count, "{surface}: {tools:?}");
        for tool in tools {
            assert_eq!(owners.insert(tool, surface), None, "a tool belongs to one surface");
        }
    }
    for (surface, _) in SURFACES {
        let mut client = connect(&sandbox, &["--surface", surface]);
        for (tool, owner) in owners.iter().filter(|(_, owner)| **owner != surface) {
            let error = client.call_tool(tool, json!({})).unwrap_err();
            assert_eq!(error.code, -32602, "`{tool}` of `{owner}` called on `{surface}`: {}", error.message);
        }
    }
    let mut client = connect(&sandbox, &["--surface", "nav,workspace"]);
    let both = client.list_tools();
    assert_eq!(both.len(), 8, "{both:?}");
}

#[test]
fn every_tool_rejects_unknown_fields() {
    let sandbox = Sandbox::new();
    for (surface, _) in SURFACES.into_iter().filter(|(surface, _)| *surface != NATURAL) {
        let mut client = connect(&sandbox, &["--surface", surface]);
        // Most calls below also lack required fields, so that the schemas are closed is checked by itself.
        let listed = client.request("tools/list", json!({})).unwrap();
        for tool in listed["tools"].as_array().unwrap() {
            assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{}", tool["name"]);
        }
        for tool in client.list_tools() {
            let rejected = match client.call_tool(&tool, json!({ "no_such_field": "x-value-x" })) {
                Ok(result) => {
                    assert!(result.is_error, "`{tool}` accepted an unknown field: {result:?}");
                    result.text.concat()
                }
                Err(error) => error.message,
            };
            assert!(!rejected.contains("x-value-x"), "`{tool}` repeats the value: {rejected}");
        }
    }
    let store = sandbox.dir("data").join("tenon");
    assert!(!store.exists(), "a rejected call must not open the store");
}
