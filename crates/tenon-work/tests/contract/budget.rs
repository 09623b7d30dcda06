//! Budgets: every reading tool stays within any budget from 600 to 20,000, and all pages together are complete.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::client::{Client, on_both};
use crate::fixture::{close, step};
use crate::graph::{edge, node};

/// Fills a workspace with records of every kind, some of them large.
pub async fn fill(client: &Client) {
    client.ok("tasks_create", json!({"title": "Plan ".repeat(20), "description": "p".repeat(1200)})).await;
    let steps: Vec<Value> = (0..5)
        .map(|n| {
            let mut step = step(&format!("Step {n} {}", "é".repeat(n * 9)));
            step["tests"] = json!(["quoted \"tests\"\n".repeat(n)]);
            step
        })
        .collect();
    for number in 0..3 {
        let args = json!({"title": format!("Task {number}"), "parent": "PLAN-001", "contract": "why ".repeat(number * 100),
            "contract_data": {"list": (0..number * 12).collect::<Vec<_>>()}, "steps": steps});
        client.call_quietly("tasks_create", args).await.ok();
    }
    for number in 0..7 {
        let note = format!("note {number} {}", "long \u{1}text\n".repeat(number * number));
        client
            .call_quietly("tasks_note", json!({"task": "TASK-001", "path": "s:3", "note": note}))
            .await
            .ok();
    }
    client
        .call_quietly("tasks_block", json!({"task": "TASK-001", "blocked": true, "reason": "b".repeat(700)}))
        .await
        .ok();
    close(client, "TASK-001", "s:0").await;
    for number in 0..4 {
        let card = json!({"type": "decision", "title": format!("Decide {number}"), "text": "because ".repeat(number * 12)});
        client.call_quietly("memory_think_card", json!({"target": "TASK-001", "card": card})).await.ok();
    }
    let mut ops: Vec<Value> = (0..8)
        .map(|n| {
            let mut node = node(&format!("n{n}"), &"title ".repeat(n + 1));
            node["text"] = json!("text ".repeat(n * n * 3));
            node
        })
        .collect();
    ops.extend((0..8).map(|n| edge(&format!("n{n}"), &format!("n{}", (n * 7) % 11))));
    client.ok("memory_graph_apply", json!({"branch": "main", "doc": "g", "ops": ops})).await;
    client.ok("memory_branch_create", json!({"name": "a"})).await;
    let changed: Value = (0..6).map(|n| node(&format!("n{n}"), "theirs")).collect();
    client.ok("memory_graph_apply", json!({"branch": "a", "doc": "g", "ops": changed})).await;
    let changed: Value = (0..5).map(|n| node(&format!("n{n}"), &"ours ".repeat(80))).collect();
    client.ok("memory_graph_apply", json!({"branch": "main", "doc": "g", "ops": changed})).await;
    client.ok("memory_graph_merge", json!({"from": "a", "into": "main", "doc": "g"})).await;
    client
        .ok("memory_notes_commit", json!({"branch": "a", "doc": "notes", "content": "n".repeat(1500)}))
        .await;
    client.ok("memory_notes_commit", json!({"branch": "a", "doc": "notes", "content": "short"})).await;
}

/// Every reading tool, with arguments that give a long answer.
async fn reads(client: &Client) -> Vec<(&'static str, Value)> {
    let conflicts = client.ok("memory_graph_conflicts", json!({"into": "main", "doc": "g"})).await;
    vec![
        ("tasks_context", json!({})),
        ("tasks_next", json!({})),
        ("tasks_focus_get", json!({})),
        ("tasks_radar", json!({"task": "TASK-001"})),
        ("tasks_handoff", json!({"task": "TASK-001"})),
        ("tasks_resume", json!({"task": "TASK-001"})),
        ("tasks_delta", json!({})),
        ("tasks_history", json!({"task": "TASK-001"})),
        ("memory_status", json!({})),
        ("memory_show", json!({"target": "TASK-001"})),
        ("memory_show", json!({"target": "TASK-001", "doc_kind": "trace"})),
        ("memory_export", json!({"target": "TASK-001"})),
        ("memory_diff", json!({"from": "main", "to": "a"})),
        ("memory_branch_list", json!({})),
        ("memory_graph_query", json!({"branch": "main", "doc": "g"})),
        ("memory_graph_validate", json!({"branch": "main", "doc": "g"})),
        ("memory_graph_diff", json!({"from": "a", "to": "main", "doc": "g"})),
        ("memory_graph_conflicts", json!({"into": "main", "doc": "g"})),
        ("memory_graph_conflict_show", json!({"conflict_id": conflicts["conflicts"][0]["conflict_id"]})),
        ("memory_think_template", json!({"type": "decision"})),
        ("memory_think_context", json!({"target": "TASK-001"})),
        ("memory_search", json!({"query": "note"})),
    ]
}

/// The content of all pages of an answer, list by list, with slices joined.
#[derive(Debug, Default, PartialEq)]
struct Content {
    lists: BTreeMap<String, Vec<Value>>,
    values: BTreeMap<String, Value>,
}

const CURSORS: [&str; 3] = ["/pagination", "/notes/pagination", "/trace/pagination"];

/// Follows every cursor to the end. Entries come page by page from the newest, ascending inside a page.
async fn read_all(client: &Client, tool: &str, args: &Value, max_chars: usize) -> Content {
    let mut content = Content::default();
    let mut open: BTreeMap<String, String> = BTreeMap::new();
    let mut todo: Vec<Value> = vec![Value::Null];
    let mut pages = 0;
    while let Some(cursor) = todo.pop() {
        pages += 1;
        assert!(pages < 5000, "{tool} at {max_chars} does not end");
        let mut args = args.clone();
        args["max_chars"] = json!(max_chars);
        if !["tasks_focus_get", "memory_status", "memory_think_template"].contains(&tool) {
            args["cursor"] = cursor;
            args["limit"] = json!(200);
        }
        let mut answer = client.call_quietly(tool, args.clone()).await;
        if answer.envelope["success"] == json!(false) {
            // The budget is below the minimum; with the reported minimum the call succeeds.
            answer = answer.fails("BUDGET_EXCEEDED");
            let minimum = answer.error()["minimum"].as_u64().unwrap();
            assert!(minimum as usize > max_chars);
            args["max_chars"] = json!(minimum);
            answer = client.call_quietly(tool, args.clone()).await;
        } else {
            assert!(answer.text.len() <= max_chars, "{tool}: {} of {max_chars}", answer.text.len());
        }
        let result = answer.clone().ok();
        let budget = &result["budget"];
        assert_eq!(budget["used"].as_u64().unwrap() as usize, answer.text.len());
        assert_eq!(result["truncated"], budget["truncated"]);
        assert_eq!(answer.warns("cut to max_chars"), result["truncated"] == json!(true), "{}", answer.text);
        collect(&result, "", &mut content, &mut open);
        for pointer in CURSORS {
            if let Some(next) =
                result.pointer(&format!("{pointer}/next_cursor")).filter(|next| next.is_string())
            {
                todo.push(next.clone());
            }
        }
    }
    assert!(open.is_empty(), "{tool}: {open:?} was never completed");
    content
}

/// Adds the lists of a page to those of earlier pages. Entries are prepended, since later pages are older.
fn collect(value: &Value, at: &str, content: &mut Content, open: &mut BTreeMap<String, String>) {
    let Value::Object(fields) = value else { return };
    for (name, value) in fields {
        let path = format!("{at}/{name}");
        match value {
            Value::Array(items) if name != "supported_types" => {
                let items: Vec<Value> = items.iter().filter_map(|item| joined(&path, item, open)).collect();
                let list = content.lists.entry(path).or_default();
                if name == "entries" {
                    list.splice(0..0, items);
                } else {
                    list.extend(items);
                }
            }
            Value::Object(inner) if inner.contains_key("content_truncated") => {
                if let Some(item) = joined(&path, value, open) {
                    content.values.insert(path, item);
                }
            }
            Value::Object(_) if name == "pagination" || name == "budget" => {}
            Value::Object(_) if ["task", "base", "theirs", "ours", "template"].contains(&name.as_str()) => {
                content.values.insert(path, value.clone());
            }
            Value::Object(_) => collect(value, &path, content, open),
            Value::Null => {}
            _ if name == "truncated" => {}
            _ => {
                content.values.insert(path, value.clone());
            }
        }
    }
}

/// A complete item, or the item that this slice completes.
fn joined(path: &str, item: &Value, open: &mut BTreeMap<String, String>) -> Option<Value> {
    if item.get("content_truncated").is_none() {
        return Some(item.clone());
    }
    let text = open.entry(path.to_owned()).or_default();
    assert_eq!(item["content_offset"], text.len(), "slices are contiguous");
    text.push_str(item["content"].as_str().unwrap());
    if text.len() < item["content_bytes"].as_u64().unwrap() as usize {
        return None;
    }
    let text = open.remove(path).unwrap();
    if item.get("doc").is_some() && item.get("kind").is_some() && item.get("seq").is_some() {
        // An entry: other fields plus the joined content.
        let mut entry: Map<String, Value> = item.as_object().unwrap().clone();
        entry.retain(|name, _| !name.starts_with("content_"));
        entry.insert("content".into(), json!(text));
        return Some(Value::Object(entry));
    }
    Some(serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// Removes duplicate edges: an edge between nodes on different pages is on both pages.
fn deduplicate_edges(content: &mut Content) {
    if let Some(edges) = content.lists.get_mut("/edges") {
        let mut seen = std::collections::BTreeSet::new();
        edges.retain(|edge| seen.insert(edge["key"].as_str().unwrap().to_owned()));
        edges.sort_by_key(|edge| edge["key"].as_str().unwrap().to_owned());
    }
}

/// The smallest useful budget and some larger ones, different for each tool.
fn budgets(tool: &str) -> Vec<usize> {
    let entropy = tenon_contract::clock::Entropy::seeded(tool.len() as u64);
    let random = std::iter::repeat_with(|| 601 + u32::from_le_bytes(entropy.bytes()) as usize % 19_400);
    std::iter::once(600).chain(random.take(5)).collect()
}

on_both! {
    async fn too_small_budget_suggests_the_call_with_the_minimum(client: &Client) {
        fill(client).await;
        for (tool, args) in [
            ("tasks_radar", json!({"task": "TASK-001"})),
            ("tasks_context", json!({"kind": "task"})),
            ("memory_show", json!({"branch": "a", "doc": "notes"})),
            ("tasks_delta", json!({"wait_ms": 1})),
        ] {
            let mut small = args.clone();
            small["max_chars"] = json!(20);
            let answer = client.call(tool, small).await.fails("BUDGET_EXCEEDED");
            assert_eq!(answer.suggested(), [tool]);
            let params = &answer.envelope["suggestions"][0]["params"];
            assert_eq!(params["max_chars"], answer.error()["minimum"]);
            for (name, value) in args.as_object().unwrap() {
                assert_eq!(params[name], *value, "{tool}");
            }
            client.call_quietly(tool, params.clone()).await.ok();
        }
    }

    async fn paged_reads_fit_the_budget_and_are_complete(client: &Client) {
        fill(client).await;
        for (tool, args) in reads(client).await {
            let mut expected = read_all(client, tool, &args, 100_000).await;
            deduplicate_edges(&mut expected);
            assert!(!expected.lists.values().all(Vec::is_empty) || !expected.values.is_empty(), "{tool} has content");
            for max_chars in budgets(tool) {
                let mut found = read_all(client, tool, &args, max_chars).await;
                deduplicate_edges(&mut found);
                assert_eq!(found, expected, "{tool} at {max_chars}");
            }
        }
    }
}
