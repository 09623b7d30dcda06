//! Graphs: versions, views, queries, validation, merges, conflicts.

use serde_json::{Value, json};
use tenon_work::{Store, StoreLocation};

use crate::client::{Client, on_both};
use crate::fixture::task;

pub async fn apply(client: &Client, branch: &str, ops: Value) -> Value {
    client.ok("memory_graph_apply", json!({"branch": branch, "doc": "g", "ops": ops})).await
}

pub fn node(id: &str, title: &str) -> Value {
    json!({"op": "node_upsert", "id": id, "type": "thing", "title": title})
}

pub fn edge(from: &str, to: &str) -> Value {
    json!({"op": "edge_upsert", "from": from, "rel": "to", "to": to})
}

async fn query(client: &Client, branch: &str, extra: Value) -> Value {
    let mut args = json!({"branch": branch, "doc": "g"});
    args.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    client.ok("memory_graph_query", args).await
}

fn column<'a>(result: &'a Value, list: &str, name: &str) -> Vec<&'a str> {
    result[list].as_array().unwrap().iter().map(|item| item[name].as_str().unwrap()).collect()
}

on_both! {
    async fn apply_writes_versions_and_counts_them(client: &Client) {
        client.ok("memory_init", json!({})).await;
        let done = apply(client, "main", json!([node("a", "A"), node("b", "B"), edge("a", "b")])).await;
        assert_eq!(done["applied"], json!({"nodes_upserted": 2, "nodes_deleted": 0, "edges_upserted": 1, "edges_deleted": 0}));
        assert_eq!((done["branch"].as_str(), done["doc"].as_str()), (Some("main"), Some("g")));
        let again = client.call("memory_graph_apply", json!({"branch": "main", "doc": "g", "ops": [node("a", "A"), node("b", "B2")]})).await;
        assert!(again.warns("1 op(s) changed nothing"));
        let found = query(client, "main", json!({})).await;
        assert_eq!(column(&found, "nodes", "id"), ["b", "a"]);
        assert_eq!((found["nodes"][0]["revision"].as_i64(), found["nodes"][1]["revision"].as_i64()), (Some(1), Some(0)));
        assert_eq!(found["edges"][0]["key"], "a|to|b");
        assert_eq!(found["edges"][0]["revision"], 0);
        apply(client, "main", json!([{"op": "node_delete", "id": "b"}, {"op": "edge_delete", "from": "a", "rel": "to", "to": "b"}])).await;
        let found = query(client, "main", json!({"include_deleted": true})).await;
        assert_eq!(column(&found, "nodes", "id"), ["b", "a"]);
        assert_eq!((found["nodes"][0]["deleted"].as_bool(), found["nodes"][0]["revision"].as_i64()), (Some(true), Some(2)));
        assert_eq!(found["edges"], json!([]));
        let found = query(client, "main", json!({})).await;
        assert_eq!(column(&found, "nodes", "id"), ["a"]);
    }

    // The longest allowed names, with random four-byte characters that do not compress.
    async fn longest_keys_can_be_stored_and_found(client: &Client) {
        let mut state = 1_u32;
        let mut name = |length: usize| -> String {
            let characters = std::iter::repeat_with(|| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                char::from_u32(0x20000 + (state >> 8) % 0xa000).unwrap()
            });
            characters.take(length).collect()
        };
        let (from, rel, to, of_type) = (name(256), name(128), name(256), name(128));
        let (doc, branch) = ("d".repeat(128), "b".repeat(128));
        // Documents whose names differ only in the last character are different.
        let other = format!("{}e", "d".repeat(127));
        client.ok("memory_init", json!({})).await;
        let nodes = json!([
            {"op": "node_upsert", "id": from, "type": of_type},
            {"op": "node_upsert", "id": to, "type": of_type},
            {"op": "edge_upsert", "from": from, "rel": rel, "to": to},
        ]);
        client.ok("memory_graph_apply", json!({"branch": "main", "doc": doc, "ops": nodes})).await;
        client.ok("memory_branch_create", json!({"name": branch, "from": "main"})).await;
        let change = json!([
            {"op": "edge_upsert", "from": from, "rel": rel, "to": to, "meta": {"a": 1}, "expected_revision": 0},
            {"op": "node_upsert", "id": to, "type": of_type, "title": "changed", "expected_revision": 0},
        ]);
        client.ok("memory_graph_apply", json!({"branch": branch, "doc": doc, "ops": change})).await;
        client.ok("memory_graph_apply", json!({"branch": branch, "doc": other, "ops": [{"op": "node_upsert", "id": to, "type": "t"}]})).await;
        for end in [&from, &to] {
            let found = client.ok("memory_graph_query", json!({"branch": branch, "doc": doc, "ids": [end]})).await;
            assert_eq!(column(&found, "nodes", "id"), [end]);
            assert_eq!(found["edges"][0]["meta"], json!({"a": 1}));
            assert_eq!(found["edges"].as_array().unwrap().len(), 1);
        }
        let valid = client.ok("memory_graph_validate", json!({"branch": branch, "doc": doc})).await;
        assert_eq!((&valid["ok"], &valid["stats"]), (&json!(true), &json!({"nodes": 2, "edges": 1})));
        let other = client.ok("memory_graph_query", json!({"branch": branch, "doc": other})).await;
        assert_eq!((other["nodes"].as_array().unwrap().len(), &other["nodes"][0]["revision"]), (1, &json!(0)));
        let diff = client.ok("memory_graph_diff", json!({"from": "main", "to": branch, "doc": doc})).await;
        assert_eq!(diff["changes"].as_array().unwrap().len(), 2);
        let merged = client.ok("memory_graph_merge", json!({"from": branch, "into": "main", "doc": doc})).await;
        assert_eq!(merged["merged"], 2);
        let card = json!({"type": "note", "id": from, "text": "long"});
        client.ok("memory_think_card", json!({"branch": "main", "trace_doc": "t", "graph_doc": doc, "card": card, "supports": [to]})).await;
        // The other backend can store it too.
        let mut export = Vec::new();
        client.work.store().export(&mut export).await.unwrap();
        let fresh = Store::open(&StoreLocation::Postgres(tenon_testkit::postgres::database())).await.unwrap();
        fresh.import(&mut export.as_slice()).await.unwrap();
        let mut again = Vec::new();
        fresh.export(&mut again).await.unwrap();
        fresh.close().await;
        assert!(again == export);
    }

    async fn ids_are_normalised_before_storing(client: &Client) {
        client.ok("memory_init", json!({})).await;
        apply(client, "main", json!([{"op": "node_upsert", "id": "  e\u{301}a ", "type": " t ", "tags": ["B", "a", "b "]}])).await;
        let found = query(client, "main", json!({"ids": ["éa"]})).await;
        assert_eq!(found["nodes"][0]["id"], "éa");
        assert_eq!(found["nodes"][0]["type"], "t");
        assert_eq!(found["nodes"][0]["tags"], json!(["a", "b"]));
        let again = apply(client, "main", json!([{"op": "node_upsert", "id": "éa", "type": "t", "tags": ["b", "A"]}])).await;
        assert_eq!(again["last_seq"], json!(null));
    }

    async fn apply_is_atomic(client: &Client) {
        client.ok("memory_init", json!({})).await;
        apply(client, "main", json!([node("a", "A")])).await;
        for (op, code) in [
            (json!({"op": "node_delete", "id": "zzz"}), "UNKNOWN_ID"),
            (json!({"op": "edge_delete", "from": "a", "rel": "to", "to": "a"}), "UNKNOWN_ID"),
            (json!({"op": "node_upsert", "id": "a", "type": "t", "expected_revision": 3}), "REVISION_MISMATCH"),
            (json!({"op": "node_upsert", "id": "new", "type": "t", "expected_revision": 0}), "REVISION_MISMATCH"),
            (json!({"op": "node_upsert", "id": "x|y", "type": "t"}), "INVALID_INPUT"),
        ] {
            let args = json!({"branch": "main", "doc": "g", "ops": [node("b", "B"), node("c", "C"), op]});
            let rejected = client.call("memory_graph_apply", args).await.fails(code);
            assert_eq!(rejected.error()["index"], 2);
        }
        assert_eq!(column(&query(client, "main", json!({})).await, "nodes", "id"), ["a"]);
        let expected = json!([{"op": "node_upsert", "id": "a", "type": "t", "expected_revision": 0},
            {"op": "node_upsert", "id": "a", "type": "u", "expected_revision": 1},
            {"op": "node_upsert", "id": "n", "type": "t", "expected_revision": -1}]);
        apply(client, "main", expected).await;
    }

    async fn revision_mismatch_suggests_a_query(client: &Client) {
        task(client).await;
        apply(client, "main", json!([node("a", "A"), node("b", "B"), edge("a", "b")])).await;
        apply(client, "main", json!([{"op": "edge_delete", "from": "a", "rel": "to", "to": "b"}])).await;
        let expecting = |mut op: Value, revision: i64| {
            op["expected_revision"] = json!(revision);
            op
        };
        for (op, ids, actual) in [
            (expecting(node("a", "X"), 3), json!(["a"]), json!(0)),
            (expecting(edge("a", "b"), 0), json!(["a", "b"]), json!(1)),
            (expecting(node("new", "X"), 0), json!(["new"]), json!(null)),
            (expecting(edge("a", "new"), 0), json!(["a", "new"]), json!(null)),
        ] {
            for scope in [json!({"branch": "main", "doc": "g"}), json!({"target": "TASK-001"})] {
                let mut args = scope.clone();
                args["ops"] = json!([op]);
                let rejected = client.call("memory_graph_apply", args).await.fails("REVISION_MISMATCH");
                assert_eq!(rejected.suggested(), ["memory_graph_query"]);
                let params = &rejected.envelope["suggestions"][0]["params"];
                assert_eq!((&params["ids"], &params["branch"], &params["target"]), (&ids, &scope["branch"], &scope["target"]));
                if scope["target"].is_null() {
                    assert_eq!(rejected.error()["actual"], actual);
                }
                assert!(rejected.error().get("actual").is_some());
                assert_eq!(rejected.text.contains("does not exist"), rejected.error()["actual"].is_null(), "{}", rejected.text);
            }
        }
    }

    async fn queries_filter_by_every_field(client: &Client) {
        client.ok("memory_init", json!({})).await;
        apply(client, "main", json!([
            {"op": "node_upsert", "id": "n1", "type": "bug", "title": "Crash on start", "status": "open", "tags": ["ui", "p1"]},
            {"op": "node_upsert", "id": "n2", "type": "bug", "title": "Typo", "text": "in the start page", "status": "closed", "tags": ["ui"]},
            {"op": "node_upsert", "id": "n3", "type": "idea", "title": "Start faster", "status": "open", "tags": ["perf", "p1"]},
            {"op": "node_upsert", "id": "n4", "type": "decision", "title": "Use SQLite"},
        ])).await;
        for (filter, ids) in [
            (json!({}), vec!["n4", "n3", "n2", "n1"]),
            (json!({"ids": ["n1", "n3", "n9"]}), vec!["n3", "n1"]),
            (json!({"types": ["bug"]}), vec!["n2", "n1"]),
            (json!({"types": ["idea", "decision"]}), vec!["n4", "n3"]),
            (json!({"status": "open"}), vec!["n3", "n1"]),
            (json!({"tags_any": ["UI", "perf"]}), vec!["n3", "n2", "n1"]),
            (json!({"tags_all": ["p1", "ui"]}), vec!["n1"]),
            (json!({"text": "start"}), vec!["n3", "n2", "n1"]),
            (json!({"text": "start", "types": ["bug"], "status": "open"}), vec!["n1"]),
            (json!({"text": "sql*"}), vec!["n4"]),
            (json!({"ids": ["n1", "n4"], "text": "start"}), vec!["n1"]),
            (json!({"types": ["bug"], "tags_any": ["nothing"]}), vec![]),
        ] {
            assert_eq!(column(&query(client, "main", filter.clone()).await, "nodes", "id"), ids, "{filter}");
        }
    }

    async fn pages_contain_every_node_and_edge(client: &Client) {
        client.ok("memory_init", json!({})).await;
        let mut ops: Vec<Value> = (0..9).map(|n| node(&format!("n{n}"), "t")).collect();
        ops.extend((0..9).flat_map(|n| (0..4).map(move |m| edge(&format!("n{n}"), &format!("n{m}")))));
        apply(client, "main", json!(ops)).await;
        for (limit, edges_limit) in [(1, 1), (2, 3), (4, 200), (50, 7), (50, 200)] {
            let (mut nodes, mut edges) = (Vec::new(), std::collections::BTreeSet::new());
            let mut cursor = json!(null);
            loop {
                let page = query(client, "main", json!({"limit": limit, "edges_limit": edges_limit, "cursor": cursor})).await;
                assert!(page["edges"].as_array().unwrap().len() <= edges_limit);
                assert!(page["nodes"].as_array().unwrap().len() <= limit);
                nodes.extend(column(&page, "nodes", "id").into_iter().map(str::to_owned));
                edges.extend(column(&page, "edges", "key").into_iter().map(str::to_owned));
                cursor = page["pagination"]["next_cursor"].clone();
                if cursor.is_null() { break; }
            }
            assert_eq!(nodes, (0..9).rev().map(|n| format!("n{n}")).collect::<Vec<_>>(), "{limit} {edges_limit}");
            assert_eq!(edges.len(), 36, "{limit} {edges_limit}");
        }
        let without = query(client, "main", json!({"include_edges": false})).await;
        assert_eq!(without["edges"], json!([]));
    }

    async fn validate_finds_dangling_edges(client: &Client) {
        client.ok("memory_init", json!({})).await;
        apply(client, "main", json!([node("a", "A"), node("b", "B"), edge("a", "b"), edge("b", "c"), edge("x", "y")])).await;
        let checked = client.ok("memory_graph_validate", json!({"branch": "main", "doc": "g"})).await;
        assert_eq!((checked["ok"].as_bool(), checked["stats"].clone()), (Some(false), json!({"nodes": 2, "edges": 3})));
        let faults: Vec<(&str, &str)> = column(&checked, "errors", "code").into_iter().zip(column(&checked, "errors", "key")).collect();
        assert_eq!(faults, [("EDGE_TO_MISSING", "b|to|c"), ("EDGE_FROM_MISSING", "x|to|y"), ("EDGE_TO_MISSING", "x|to|y")]);
        let mut paged = Vec::new();
        let mut cursor = json!(null);
        loop {
            let page = client.ok("memory_graph_validate", json!({"branch": "main", "doc": "g", "max_errors": 1, "cursor": cursor})).await;
            assert_eq!(page["errors"].as_array().unwrap().len(), 1);
            paged.extend(page["errors"].as_array().unwrap().clone());
            cursor = page["pagination"]["next_cursor"].clone();
            if cursor.is_null() { break; }
        }
        assert_eq!(json!(paged), checked["errors"]);
        apply(client, "main", json!([node("c", "C"), {"op": "edge_delete", "from": "x", "rel": "to", "to": "y"}])).await;
        let checked = client.ok("memory_graph_validate", json!({"branch": "main", "doc": "g"})).await;
        assert_eq!(checked["ok"], true);
        // A node deleted on the branch is missing only there.
        client.ok("memory_branch_create", json!({"name": "a"})).await;
        apply(client, "a", json!([{"op": "node_delete", "id": "c"}])).await;
        assert_eq!(client.ok("memory_graph_validate", json!({"branch": "a", "doc": "g"})).await["ok"], false);
        assert_eq!(client.ok("memory_graph_validate", json!({"branch": "main", "doc": "g"})).await["ok"], true);
    }

    async fn each_task_has_a_separate_graph(client: &Client) {
        task(client).await;
        let done = client.ok("memory_graph_apply", json!({"target": "TASK-001", "ops": [node("a", "A")]})).await;
        assert_eq!((done["branch"].as_str(), done["doc"].as_str()), (Some("task/TASK-001"), Some("TASK-001-graph")));
        let found = client.ok("memory_graph_query", json!({"target": "TASK-001"})).await;
        assert_eq!(column(&found, "nodes", "id"), ["a"]);
        let other = client.ok("memory_graph_query", json!({"target": "PLAN-001"})).await;
        assert_eq!(other["nodes"], json!([]));
    }

    async fn merge_into_base_is_three_way_and_idempotent(client: &Client) {
        client.ok("memory_init", json!({})).await;
        apply(client, "main", json!([node("same", "0"), node("theirs", "0"), node("ours", "0"), node("both", "0"), node("equal", "0"),
            node("gone", "0"), node("gone-both", "0"), edge("same", "theirs")])).await;
        client.ok("memory_branch_create", json!({"name": "a"})).await;
        apply(client, "a", json!([node("theirs", "T"), node("both", "T"), node("equal", "E"), node("new", "N"), {"op": "node_delete", "id": "gone"},
            {"op": "node_delete", "id": "gone-both"}, {"op": "edge_delete", "from": "same", "rel": "to", "to": "theirs"}])).await;
        apply(client, "main", json!([node("ours", "O"), node("both", "O"), node("equal", "E"), node("gone-both", "changed")])).await;

        let diff = client.ok("memory_graph_diff", json!({"from": "main", "to": "a", "doc": "g"})).await;
        let changed: Vec<String> = diff["changes"].as_array().unwrap().iter()
            .map(|change| change["id"].as_str().or(change["key"].as_str()).unwrap().to_owned()).collect();
        assert_eq!(changed, ["both", "gone", "gone-both", "new", "ours", "theirs", "same|to|theirs"]);
        assert_eq!(diff["changes"][1], json!({"kind": "node", "id": "gone", "to": null}));

        for (from, into) in [("main", "a"), ("a", "a"), ("main", "main")] {
            client.call("memory_graph_merge", json!({"from": from, "into": into, "doc": "g"})).await.fails("MERGE_NOT_SUPPORTED");
        }
        client.ok("memory_branch_create", json!({"name": "b", "from": "a"})).await;
        let rejected = client.call("memory_graph_merge", json!({"from": "b", "into": "main", "doc": "g"})).await.fails("MERGE_NOT_SUPPORTED");
        assert_eq!(rejected.suggested(), ["memory_graph_merge"]);

        let merge = json!({"from": "a", "into": "main", "doc": "g"});
        let dry = client.ok("memory_graph_merge", json!({"from": "a", "into": "main", "doc": "g", "dry_run": true})).await;
        let merged = client.ok("memory_graph_merge", merge.clone()).await;
        for name in ["merged", "skipped", "conflicts_created", "conflict_ids"] {
            assert_eq!(dry[name], merged[name], "{name}");
        }
        assert_eq!((merged["merged"].as_i64(), merged["skipped"].as_i64(), merged["conflicts_created"].as_i64()), (Some(4), Some(1), Some(2)));
        let found = query(client, "main", json!({})).await;
        let title = |id: &str| found["nodes"].as_array().unwrap().iter().find(|n| n["id"] == id).map(|n| n["title"].as_str().unwrap().to_owned());
        assert_eq!(title("theirs").as_deref(), Some("T"));
        assert_eq!(title("ours").as_deref(), Some("O"));
        assert_eq!(title("both").as_deref(), Some("O"));
        assert_eq!(title("new").as_deref(), Some("N"));
        assert_eq!(title("gone"), None);
        assert_eq!(found["edges"], json!([]));

        let again = client.ok("memory_graph_merge", merge.clone()).await;
        assert_eq!((again["merged"].as_i64(), again["conflicts_created"].as_i64()), (Some(0), Some(0)));
        // Later changes on the base do not cause another merge.
        apply(client, "main", json!([node("theirs", "later")])).await;
        let third = client.ok("memory_graph_merge", merge.clone()).await;
        assert_eq!((third["merged"].as_i64(), third["conflicts_created"].as_i64()), (Some(0), Some(0)));
        // A newer change on the branch does, compared with the last merge.
        apply(client, "a", json!([node("theirs", "T2"), node("new", "N2")])).await;
        let fourth = client.ok("memory_graph_merge", merge).await;
        assert_eq!((fourth["merged"].as_i64(), fourth["conflicts_created"].as_i64()), (Some(1), Some(1)));
    }

    async fn conflict_ids_are_deterministic_and_all_listed(client: &Client) {
        let other = Client::new(crate::client::On::Sqlite).await;
        let mut ids = Vec::new();
        for client in [client, &other] {
            client.ok("memory_init", json!({})).await;
            let all = |title: &str| -> Value { (0..25).map(|n| node(&format!("n{n:02}"), title)).collect() };
            apply(client, "main", all("0")).await;
            client.ok("memory_branch_create", json!({"name": "a"})).await;
            apply(client, "a", all("theirs")).await;
            apply(client, "main", all("ours")).await;
            let merged = client.ok("memory_graph_merge", json!({"from": "a", "into": "main", "doc": "g"})).await;
            assert_eq!(merged["conflicts_created"], 25);
            let mut paged = Vec::new();
            let mut cursor = json!(null);
            loop {
                let page = client.ok("memory_graph_conflicts", json!({"into": "main", "doc": "g", "limit": 4, "cursor": cursor})).await;
                paged.extend(column(&page, "conflicts", "conflict_id").into_iter().map(str::to_owned));
                cursor = page["pagination"]["next_cursor"].clone();
                if cursor.is_null() { break; }
            }
            assert_eq!(json!(paged), merged["conflict_ids"]);
            ids.push(paged);
        }
        assert_eq!(ids[0], ids[1], "same on both backends");
        assert!(ids[0].iter().all(|id| id.len() == 41 && id.starts_with("CONFLICT-")));
    }

    async fn conflict_is_resolved_once(client: &Client) {
        client.ok("memory_init", json!({})).await;
        apply(client, "main", json!([node("x", "0"), node("y", "0"), node("z", "0")])).await;
        client.ok("memory_branch_create", json!({"name": "a"})).await;
        apply(client, "a", json!([node("x", "T"), {"op": "node_delete", "id": "y"}, node("z", "T")])).await;
        apply(client, "main", json!([node("x", "O"), node("y", "O"), node("z", "O")])).await;
        let merge = json!({"from": "a", "into": "main", "doc": "g"});
        let merged = client.ok("memory_graph_merge", merge.clone()).await;
        let ids: Vec<String> = serde_json::from_value(merged["conflict_ids"].clone()).unwrap();
        let shown = client.ok("memory_graph_conflict_show", json!({"conflict_id": ids[0]})).await;
        let conflict = &shown["conflict"];
        for (name, value) in [("conflict_id", json!(ids[0])), ("kind", json!("node")), ("key", json!("x")), ("from", json!("a")),
            ("into", json!("main")), ("doc", json!("g")), ("status", json!("open")), ("revision", json!(0))] {
            assert_eq!(conflict[name], value, "{name}");
        }
        let titles = ["base", "theirs", "ours"].map(|side| conflict[side]["title"].as_str().unwrap());
        assert_eq!(titles, ["0", "T", "O"]);

        client.call("memory_graph_conflict_resolve", json!({"conflict_id": ids[0], "resolution": "use_from", "expected_revision": 1})).await.fails("REVISION_MISMATCH");
        let resolved = client.ok("memory_graph_conflict_resolve", json!({"conflict_id": ids[0], "resolution": "use_from", "expected_revision": 0})).await;
        assert_eq!((resolved["status"].as_str(), resolved["applied"].as_bool()), (Some("resolved"), Some(true)));
        let again = client.call("memory_graph_conflict_resolve", json!({"conflict_id": ids[0], "resolution": "use_from"})).await;
        assert!(again.warns("already"));
        client.call("memory_graph_conflict_resolve", json!({"conflict_id": ids[0], "resolution": "use_into"})).await.fails("CONFLICT");
        let unchanged = client.ok("memory_graph_conflict_resolve", json!({"conflict_id": ids[1], "resolution": "use_into"})).await;
        assert_eq!(unchanged["applied"], false);
        // Newer changes on the base are not overwritten.
        apply(client, "main", json!([node("z", "newer")])).await;
        client.call("memory_graph_conflict_resolve", json!({"conflict_id": ids[2], "resolution": "use_from"})).await.fails("CONFLICT");
        client.ok("memory_graph_conflict_resolve", json!({"conflict_id": ids[2], "resolution": "use_into"})).await;

        let found = query(client, "main", json!({})).await;
        let mut titles: Vec<(&str, &str)> = column(&found, "nodes", "id").into_iter().zip(column(&found, "nodes", "title")).collect();
        titles.sort_unstable();
        assert_eq!(titles, [("x", "T"), ("y", "O"), ("z", "newer")]);
        let open = client.ok("memory_graph_conflicts", json!({"into": "main", "doc": "g"})).await;
        assert_eq!(open["conflicts"], json!([]));
        let resolved = client.ok("memory_graph_conflicts", json!({"into": "main", "doc": "g", "status": "resolved"})).await;
        assert_eq!(resolved["conflicts"].as_array().unwrap().len(), 3);
        assert_eq!(resolved["conflicts"][0]["revision"], 1);
        let again = client.ok("memory_graph_merge", merge).await;
        assert_eq!((again["merged"].as_i64(), again["conflicts_created"].as_i64()), (Some(0), Some(0)));
    }
}
