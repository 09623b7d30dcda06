//! Documents on branches: notes, views, paging, diffs, merges, exports.

use serde_json::{Value, json};

use crate::client::{Client, on_both};
use crate::fixture::{close, task};

async fn note(client: &Client, branch: &str, content: &str) -> i64 {
    let written =
        client.ok("memory_notes_commit", json!({"branch": branch, "doc": "notes", "content": content})).await;
    written["entry"]["seq"].as_i64().unwrap()
}

/// The contents of all entries, oldest first, read in pages of three.
async fn shown(client: &Client, tool: &str, mut args: Value) -> Vec<String> {
    let mut pages = Vec::new();
    args["limit"] = json!(3);
    loop {
        let page = client.ok(tool, args.clone()).await;
        let entries = page["entries"].as_array().unwrap();
        let seqs: Vec<i64> = entries.iter().map(|entry| entry["seq"].as_i64().unwrap()).collect();
        assert!(seqs.is_sorted(), "ascending inside a page");
        assert_eq!(page["pagination"]["count"], entries.len());
        pages.push(
            entries.iter().map(|entry| entry["content"].as_str().unwrap().to_owned()).collect::<Vec<_>>(),
        );
        args["cursor"] = page["pagination"]["next_cursor"].clone();
        if args["cursor"].is_null() {
            break;
        }
    }
    pages.into_iter().rev().flatten().collect()
}

async fn view(client: &Client, branch: &str) -> Vec<String> {
    shown(client, "memory_show", json!({"branch": branch, "doc": "notes"})).await
}

on_both! {
    async fn secrets_are_redacted_in_every_spelling(client: &Client) {
        let token = |end: char| format!("ghp_{}{end}", "a1".repeat(18));
        let texts = [
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQdGBFm1\n-----END PGP PRIVATE KEY BLOCK-----",
            "curl -H 'Authorization: Basic dXNlcjpwYXNz'",
            "gcloud says ya29.a0AfB_byC3xK-0123456789abcdef",
        ];
        for text in texts {
            assert!(client.call("memory_notes_commit", json!({"content": text})).await.warns("redacted"), "{text}");
        }
        let meta = json!({token('x'): 1, token('y'): 2, "token_count": 3});
        let noted = client.ok("memory_notes_commit", json!({"content": "Basic Authorization is plain prose", "meta": meta})).await;
        assert_eq!(noted["entry"]["meta"], json!({"[redacted]": 1, "[redacted] 2": 2, "token_count": 3}));
        assert_eq!(noted["entry"]["content"], "Basic Authorization is plain prose");
        client.ok("tasks_create", json!({"title": "t", "contract_data": {"deep": [{token('z'): "v"}]}})).await;
        let mut export = Vec::new();
        client.work.store().export(&mut export).await.unwrap();
        let export = String::from_utf8(export).unwrap();
        for secret in ["lQdGBFm1", "dXNlcjpwYXNz", "ya29", "ghp_"] {
            assert!(!export.contains(secret), "{secret} is in the store");
        }
    }

    async fn note_is_stored_as_an_entry(client: &Client) {
        let args = json!({"content": "hello", "title": "T", "format": "markdown", "meta": {"who": "me"}});
        let answer = client.call("memory_notes_commit", args).await;
        assert!(answer.warns("using document `notes` on branch `main`"));
        let entry = &answer.envelope["result"]["entry"];
        let seq = entry["seq"].as_i64().unwrap();
        for (name, value) in [("branch", json!("main")), ("doc", json!("notes")), ("kind", json!("note")), ("title", json!("T")),
            ("format", json!("markdown")), ("meta", json!({"who": "me"})), ("content", json!("hello"))] {
            assert_eq!(entry[name], value, "{name}");
        }
        assert!(entry["ts"].is_string() && entry["ts_ms"].is_i64());
        let one = client.ok("memory_show", json!({"seq": seq})).await;
        assert_eq!(&one["entries"][0], entry);
        assert_eq!(one["pagination"]["has_more"], false);
        client.call("memory_show", json!({"seq": seq + 1})).await.fails("UNKNOWN_ID");
        let long = client.call("memory_notes_commit", json!({"content": "é".repeat(20_000)})).await;
        assert!(long.warns("cut to"));
        assert_eq!(long.envelope["result"]["entry"]["content_bytes"], 40_000);
    }

    async fn branch_view_has_own_entries_and_base_entries_before_the_fork(client: &Client) {
        for content in ["m1", "m2"] {
            note(client, "main", content).await;
        }
        let created = client.ok("memory_branch_create", json!({"name": "a"})).await;
        assert_eq!(created["branch"]["base_branch"], "main");
        note(client, "main", "m3").await;
        note(client, "a", "a1").await;
        client.ok("memory_branch_create", json!({"name": "b", "from": "a"})).await;
        note(client, "a", "a2").await;
        note(client, "b", "b1").await;
        note(client, "main", "m4").await;
        assert_eq!(view(client, "main").await, ["m1", "m2", "m3", "m4"]);
        assert_eq!(view(client, "a").await, ["m1", "m2", "a1", "a2"]);
        assert_eq!(view(client, "b").await, ["m1", "m2", "a1", "b1"]);
        let diff = |from: &str, to: &str| json!({"from": from, "to": to});
        assert_eq!(shown(client, "memory_diff", diff("main", "b")).await, ["a1", "b1"]);
        assert_eq!(shown(client, "memory_diff", diff("b", "main")).await, ["m3", "m4"]);
        assert_eq!(shown(client, "memory_diff", diff("a", "b")).await, ["b1"]);
        assert_eq!(shown(client, "memory_diff", diff("b", "b")).await, Vec::<String>::new());
        client.call("memory_diff", diff("a", "nowhere")).await.fails("UNKNOWN_ID");
    }

    async fn merge_copies_each_note_once(client: &Client) {
        note(client, "main", "m1").await;
        client.ok("memory_branch_create", json!({"name": "a"})).await;
        for number in 0..5 {
            note(client, "a", &format!("a{number}")).await;
        }
        let merge = |extra: Value| {
            let mut args = json!({"from": "a", "into": "main"});
            args.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            args
        };
        let dry = client.ok("memory_merge", merge(json!({"dry_run": true}))).await;
        assert_eq!((dry["merged"].as_i64(), dry["skipped"].as_i64()), (Some(5), Some(0)));
        assert_eq!(view(client, "main").await, ["m1"]);
        // In pages: each call continues where the previous one ended.
        let first = client.ok("memory_merge", merge(json!({"limit": 2}))).await;
        assert_eq!((first["merged"].as_i64(), first["pagination"]["has_more"].as_bool()), (Some(2), Some(true)));
        let second = client.ok("memory_merge", merge(json!({"limit": 2, "cursor": first["pagination"]["next_cursor"]}))).await;
        assert_eq!(second["merged"], 2);
        let rest = client.ok("memory_merge", merge(json!({}))).await;
        assert_eq!((rest["merged"].as_i64(), rest["skipped"].as_i64()), (Some(1), Some(4)));
        assert_eq!(view(client, "main").await, ["m1", "a0", "a1", "a2", "a3", "a4"]);
        let again = client.ok("memory_merge", merge(json!({}))).await;
        assert_eq!((again["merged"].as_i64(), again["skipped"].as_i64()), (Some(0), Some(5)));
        // Copies are not copied back.
        let back = client.ok("memory_merge", json!({"from": "main", "into": "a"})).await;
        assert_eq!(back["merged"], 0);
        let shown = client.ok("memory_show", json!({"branch": "main", "doc": "notes", "limit": 1})).await;
        assert_eq!(shown["entries"][0]["meta"]["merged_from"]["branch"], "a");
    }

    async fn branches_can_be_listed_and_checked_out_but_not_duplicated(client: &Client) {
        task(client).await;
        client.ok("memory_branch_create", json!({"name": "idea", "from": "task/TASK-001"})).await;
        let rejected = client.call("memory_branch_create", json!({"name": "idea"})).await.fails("CONFLICT");
        assert_eq!(rejected.suggested(), ["memory_checkout"]);
        let moved = client.ok("memory_checkout", json!({"ref": "idea"})).await;
        assert_eq!((moved["previous"].as_str(), moved["current"].as_str()), (Some("main"), Some("idea")));
        let unknown = client.call("memory_checkout", json!({"ref": "elsewhere"})).await.fails("UNKNOWN_ID");
        assert_eq!(unknown.suggested(), ["memory_branch_create"]);
        let created = client.ok("memory_branch_create", json!({"name": "second"})).await;
        assert_eq!(created["branch"]["base_branch"], "idea");
        client.ok("memory_notes_commit", json!({"content": "here"})).await;
        assert_eq!(view(client, "idea").await, ["here"]);
        let mut names = Vec::new();
        let mut cursor = json!(null);
        loop {
            let page = client.ok("memory_branch_list", json!({"limit": 2, "cursor": cursor})).await;
            names.extend(page["branches"].as_array().unwrap().iter().map(|branch| branch["name"].as_str().unwrap().to_owned()));
            cursor = page["pagination"]["next_cursor"].clone();
            if cursor.is_null() { break; }
        }
        assert_eq!(names, ["main", "idea", "second", "plan/PLAN-001", "task/TASK-001"]);
    }

    async fn branches_nest_at_most_32_deep(client: &Client) {
        note(client, "main", "root").await;
        let mut from = "main".to_owned();
        for depth in 1..=32 {
            let name = format!("b{depth}");
            client.ok("memory_branch_create", json!({"name": name, "from": from})).await;
            from = name;
        }
        note(client, &from, "leaf").await;
        assert_eq!(view(client, &from).await, ["root", "leaf"]);
        client.call("memory_branch_create", json!({"name": "b33", "from": from})).await.fails("INVALID_INPUT");
    }

    async fn export_pages_notes_and_trace_separately(client: &Client) {
        task(client).await;
        for number in 0..4 {
            client.ok("tasks_note", json!({"task": "TASK-001", "note": format!("n{number}")})).await;
        }
        close(client, "TASK-001", "s:1").await;
        let first = client.ok("memory_export", json!({"target": "TASK-001", "limit": 3})).await;
        assert_eq!(first["target"]["id"], "TASK-001");
        assert_eq!(first["reasoning_ref"]["branch"], "task/TASK-001");
        let mut found = [Vec::new(), Vec::new()];
        for (list, name) in found.iter_mut().zip(["notes", "trace"]) {
            let mut page = first.clone();
            loop {
                let mut seqs: Vec<i64> = page[name]["entries"].as_array().unwrap().iter().map(|e| e["seq"].as_i64().unwrap()).collect();
                assert!(seqs.is_sorted());
                seqs.extend(&*list);
                *list = seqs;
                let cursor = page[name]["pagination"]["next_cursor"].clone();
                if cursor.is_null() { break; }
                page = client.ok("memory_export", json!({"target": "TASK-001", "limit": 3, "cursor": cursor})).await;
                let other = if name == "notes" { "trace" } else { "notes" };
                assert_eq!(page[other]["entries"], json!([]));
            }
        }
        assert_eq!((found[0].len(), found[1].len()), (4, 7));
        assert!(found.iter().all(|seqs| seqs.is_sorted_by(|a, b| a < b)));
    }

    async fn doc_and_doc_kind_must_agree(client: &Client) {
        task(client).await;
        note(client, "main", "one").await;
        for (doc, kind) in [("notes", "notes"), ("trace", "trace"), ("TASK-001-trace", "trace")] {
            client.ok("memory_show", json!({"branch": "main", "doc": doc, "doc_kind": kind})).await;
        }
        for (doc, kind) in [("notes", "trace"), ("trace", "notes"), ("other", "notes"), ("other", "trace")] {
            client.call("memory_show", json!({"branch": "main", "doc": doc, "doc_kind": kind})).await.fails("INVALID_INPUT");
        }
    }

    async fn entry_can_be_read_from_any_offset(client: &Client) {
        let content: String = (0..3000).map(|n| if n % 7 == 0 { 'é' } else { 'x' }).collect();
        let seq = note(client, "main", &content).await;
        let mut joined = String::new();
        loop {
            let page = client.ok("memory_show", json!({"seq": seq, "offset": joined.len(), "max_chars": 900})).await;
            let entry = &page["entries"][0];
            assert_eq!(entry["content_bytes"], content.len());
            assert_eq!(entry["content_offset"], joined.len());
            joined.push_str(entry["content"].as_str().unwrap());
            if joined.len() == content.len() { break; }
        }
        assert_eq!(joined, content);
        // An offset inside a character is moved to its start, an offset past the end to the end.
        let inside = client.ok("memory_show", json!({"seq": seq, "offset": 1})).await;
        assert_eq!(inside["entries"][0].get("content_offset"), Some(&json!(0)));
        let past = client.ok("memory_show", json!({"seq": seq, "offset": 1_000_000})).await;
        assert_eq!(past["entries"][0]["content"], "");
    }
}
