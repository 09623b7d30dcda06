//! Cards and search.

use serde_json::{Value, json};

use crate::client::{Client, on_both};
use crate::fixture::task;

fn hits(result: &Value) -> Vec<(String, String)> {
    let hit = |hit: &Value| {
        let id = hit["id"].as_str().map(str::to_owned).unwrap_or_else(|| hit["seq"].to_string());
        (hit["kind"].as_str().unwrap().to_owned(), id)
    };
    result["hits"].as_array().unwrap().iter().map(hit).collect()
}

on_both! {
    async fn card_is_written_to_trace_and_graph(client: &Client) {
        task(client).await;
        let card = json!({"id": "c1", "type": "hypothesis", "title": "It is the cache", "text": "since yesterday", "tags": ["Cache"]});
        let written = client.ok("memory_think_card", json!({"target": "TASK-001", "card": card, "supports": ["c0"], "blocks": []})).await;
        for (name, value) in [("branch", json!("task/TASK-001")), ("trace_doc", json!("TASK-001-trace")), ("graph_doc", json!("TASK-001-graph")),
            ("card_id", json!("c1")), ("inserted", json!(true)), ("graph_applied", json!(true))] {
            assert_eq!(written[name], value, "{name}");
        }
        let trace = client.ok("memory_show", json!({"target": "TASK-001", "doc_kind": "trace", "limit": 1})).await;
        let entry = &trace["entries"][0];
        assert_eq!((entry["format"].as_str(), entry["meta"]["card_id"].as_str()), (Some("card"), Some("c1")));
        let stored: Value = serde_json::from_str(entry["content"].as_str().unwrap()).unwrap();
        assert_eq!(stored["title"], "It is the cache");
        let graph = client.ok("memory_graph_query", json!({"target": "TASK-001"})).await;
        assert_eq!((graph["nodes"][0]["id"].as_str(), graph["nodes"][0]["type"].as_str()), (Some("c1"), Some("hypothesis")));
        assert_eq!(graph["edges"][0]["key"], "c1|supports|c0");

        // The same card in another spelling is not inserted again.
        let lines = "id: c1\ntype: hypothesis\ntitle: It is the cache\ntext: since yesterday\ntags: cache";
        for same in [card.clone(), json!(card.to_string()), json!(lines)] {
            let again = client.ok("memory_think_card", json!({"target": "TASK-001", "card": same, "supports": ["c0"]})).await;
            assert_eq!((again["inserted"].as_bool(), again["graph_applied"].as_bool()), (Some(false), Some(false)));
        }
        // Changed content under the same id is inserted.
        let changed = client.ok("memory_think_card", json!({"target": "TASK-001", "card": {"id": "c1", "type": "hypothesis", "title": "It is not"}})).await;
        assert_eq!(changed["inserted"], true);
        let context = client.ok("memory_think_context", json!({"target": "TASK-001"})).await;
        assert_eq!(context["stats"], json!({"cards": 1, "by_type": {"hypothesis": 1}}));
        assert_eq!((context["cards"][0]["title"].as_str(), context["cards"][0]["revision"].as_i64()), (Some("It is not"), Some(1)));
    }

    async fn card_without_id_gets_a_deterministic_id(client: &Client) {
        client.ok("memory_init", json!({})).await;
        let card = json!({"card": {"type": "note", "text": "remember"}, "branch": "main", "graph_doc": "g", "trace_doc": "t"});
        let first = client.ok("memory_think_card", card.clone()).await;
        let second = client.ok("memory_think_card", card).await;
        assert_eq!(first["card_id"], second["card_id"]);
        assert_eq!(second["inserted"], false);
        for kind in ["frame", "question", "test", "evidence", "decision", "update"] {
            let card = json!({"card": {"type": kind, "title": kind}, "branch": "main", "graph_doc": "g", "trace_doc": "t"});
            client.ok("memory_think_card", card).await;
        }
        let context = client.ok("memory_think_context", json!({"branch": "main", "graph_doc": "g", "limit": 3})).await;
        assert_eq!(context["stats"]["cards"], 7);
        let types: Vec<&str> = context["cards"].as_array().unwrap().iter().map(|card| card["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["update", "decision", "evidence"]);
        let rest = client.ok("memory_think_context", json!({"branch": "main", "graph_doc": "g", "limit": 3, "cursor": context["pagination"]["next_cursor"]})).await;
        assert_eq!(rest["cards"].as_array().unwrap().len(), 3);
        let trace = client.ok("memory_show", json!({"branch": "main", "doc": "t"})).await;
        assert_eq!(trace["entries"].as_array().unwrap().len(), 7);
    }

    async fn card_lines_are_parsed_as_strictly_as_objects(client: &Client) {
        client.ok("memory_init", json!({})).await;
        let lines = "type: note\nid: l\nmeta: {\"a\": 1}\ntags: [b, a]\ntext: m\n  bogus: part of the text";
        client.ok("memory_think_card", json!({"card": lines})).await;
        let card = client.ok("memory_think_context", json!({})).await["cards"][0].clone();
        assert_eq!((&card["meta"], &card["tags"]), (&json!({"a": 1}), &json!(["a", "b"])));
        assert_eq!(card["text"], "m\n  bogus: part of the text");
        for bogus in [json!("type: note\ntext: m\nbogus: x"), json!({"type": "note", "text": "m", "bogus": "x"})] {
            let rejected = client.call("memory_think_card", json!({"card": bogus})).await.fails("INVALID_INPUT");
            assert!(rejected.error()["message"].as_str().unwrap().contains("unknown field `bogus`"), "{}", rejected.text);
        }
    }

    async fn every_template_is_a_valid_card(client: &Client) {
        for kind in ["frame", "hypothesis", "question", "test", "evidence", "decision", "note", "update"] {
            let template = client.ok("memory_think_template", json!({"type": kind})).await;
            assert_eq!(template["supported_types"].as_array().unwrap().len(), 8);
            client.ok("memory_think_card", json!({"card": template["template"]})).await;
        }
    }

    async fn search_finds_notes_cards_and_tasks_newest_first(client: &Client) {
        task(client).await;
        let note = client.ok("memory_notes_commit", json!({"content": "The compiler crashes on Größe in src/main.rs", "title": "Found"})).await;
        client.ok("memory_think_card", json!({"target": "TASK-001", "card": {"id": "c1", "type": "question", "title": "Which compiler?"}})).await;
        client.ok("memory_graph_apply", json!({"target": "TASK-001", "ops": [{"op": "node_upsert", "id": "n1", "type": "tool", "title": "compiler"}]})).await;
        client.ok("tasks_note", json!({"task": "TASK-001", "path": "s:1", "note": "another compiler"})).await;
        let found = client.ok("memory_search", json!({"query": "COMPILER"})).await;
        let kinds: Vec<String> = hits(&found).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, ["note", "card", "note"]);
        assert_eq!(found["hits"][2]["seq"], note["entry"]["seq"]);
        assert_eq!((found["hits"][2]["branch"].as_str(), found["hits"][2]["doc"].as_str()), (Some("main"), Some("notes")));
        assert!(found["hits"][2]["snippet"].as_str().unwrap().contains("compiler crashes"));
        for (query, within, expected) in [
            ("compil*", json!(["tasks"]), vec![("step", "STEP-00000004")]),
            ("compile", json!(null), vec![("step", "STEP-00000004")]),
            ("clean machine", json!(null), vec![("task", "TASK-001")]),
            ("ship", json!(null), vec![("plan", "PLAN-001")]),
            ("größe MAIN", json!(["notes"]), vec![("note", "?")]),
            ("compiler", json!(["nodes"]), vec![("node", "n1")]),
            ("compiler", json!(["cards"]), vec![("card", "c1")]),
            ("unheard", json!(null), vec![]),
        ] {
            let found = client.ok("memory_search", json!({"query": query, "in": within})).await;
            let found = hits(&found);
            assert_eq!(found.len(), expected.len(), "{query}: {found:?}");
            for ((kind, id), (expected_kind, expected_id)) in found.iter().zip(expected) {
                assert_eq!(kind, expected_kind, "{query}");
                assert!(expected_id == "?" || id == expected_id, "{query}: {id}");
            }
        }
    }

    async fn search_follows_changes(client: &Client) {
        task(client).await;
        let count = async |query: &str| {
            client.ok("memory_search", json!({"query": query})).await["hits"].as_array().unwrap().len()
        };
        assert_eq!(count("whole").await, 1);
        client.ok("tasks_edit", json!({"task": "TASK-001", "description": "Only a part"})).await;
        assert_eq!((count("whole").await, count("part").await), (0, 1));
        client.ok("tasks_undo", json!({"task": "TASK-001"})).await;
        assert_eq!((count("whole").await, count("part").await), (1, 0));
        client.ok("tasks_delete", json!({"task": "TASK-001", "path": "s:1"})).await;
        assert_eq!(count("warnings").await, 0);
        client.ok("tasks_delete", json!({"task": "TASK-001"})).await;
        assert_eq!((count("whole").await, count("unpack").await), (0, 0));
        client.ok("tasks_undo", json!({"task": "TASK-001"})).await;
        assert_eq!((count("whole").await, count("unpack").await), (1, 1));
        client.ok("memory_think_card", json!({"card": {"id": "c", "type": "note", "title": "old words"}})).await;
        client.ok("memory_think_card", json!({"card": {"id": "c", "type": "note", "title": "new words"}})).await;
        assert_eq!((count("old").await, count("new").await, count("words").await), (0, 1, 1));
        // A change on a branch does not affect the card on the base.
        client.ok("memory_branch_create", json!({"name": "a"})).await;
        client.ok("memory_think_card", json!({"branch": "a", "graph_doc": "graph", "trace_doc": "trace", "card": {"id": "c", "type": "note", "title": "branch words"}})).await;
        let on = async |branch: &str, text: &str| {
            client.ok("memory_graph_query", json!({"branch": branch, "doc": "graph", "text": text})).await["nodes"].as_array().unwrap().len()
        };
        assert_eq!((on("main", "new").await, on("a", "new").await, on("a", "branch").await, on("main", "branch").await), (1, 0, 1, 0));
    }

    async fn search_pages_contain_every_hit_once(client: &Client) {
        client.ok("memory_init", json!({})).await;
        for number in 0..23 {
            client.ok("memory_notes_commit", json!({"content": format!("needle {number} {}", if number % 3 == 0 { "odd" } else { "even" })})).await;
        }
        for (query, expected) in [("needle", 23), ("needle odd", 8), ("nee* eve*", 15)] {
            let mut seen = Vec::new();
            let mut cursor = json!(null);
            loop {
                let page = client.ok("memory_search", json!({"query": query, "limit": 4, "cursor": cursor})).await;
                seen.extend(page["hits"].as_array().unwrap().iter().map(|hit| hit["seq"].as_i64().unwrap()));
                cursor = page["pagination"]["next_cursor"].clone();
                if cursor.is_null() { break; }
            }
            assert_eq!(seen.len(), expected, "{query}");
            assert!(seen.is_sorted_by(|a, b| a > b));
        }
    }
}
