//! The surface `work`: natural calls, the same bytes from both backends, ranking, checks and a day with a lost context.

use serde_json::{Map, Value, json};
use tenon_work::{
    Check, CheckOutcome, CheckResult, LeanAnswer, LeanCaller, LeanError, LeanRequest, LeanTool, VcsHead, Work,
};

use crate::client::{Client, On, on_both};

fn caller() -> LeanCaller {
    let head = VcsHead {
        commit: Some("0123456789abcdef0123456789abcdef01234567".into()),
        branch: Some("main".into()),
    };
    LeanCaller { agent: "ada".into(), head: Some(head), checks: Vec::new() }
}

fn request(tool: &str, args: Value) -> Result<LeanRequest, LeanError> {
    let tool = LeanTool::by_name(tool).unwrap_or_else(|| panic!("there is no tool {tool}"));
    let Value::Object(args) = args else { panic!("arguments are an object: {args}") };
    LeanRequest::read(tool, args, caller())
}

async fn call(work: &Work, tool: &str, args: Value) -> Result<LeanAnswer, LeanError> {
    let request = request(tool, args)?;
    // As for a user who does not allow commands.
    let unchecked = |check| CheckResult {
        check,
        outcome: CheckOutcome::NotAllowed,
        output: "not allowed".into(),
        exit_code: None,
    };
    let checks = Box::pin(work.lean_checks(&request)).await?.into_iter().map(unchecked).collect();
    Box::pin(work.lean(&request.with_checks(checks))).await
}

/// The text of a call that must succeed.
async fn ok(work: &Work, tool: &str, args: Value) -> String {
    let shown = args.to_string();
    match Box::pin(call(work, tool, args)).await {
        Ok(answer) => answer.text,
        Err(error) => panic!("{tool} {shown}: {error}"),
    }
}

/// The call at the end of an error: `…: task_list {}`.
fn offered(error: &LeanError) -> Option<(String, Value)> {
    let text = error.to_string();
    let at = LeanTool::ALL.iter().filter_map(|tool| text.rfind(&format!(": {} {{", tool.name()))).max()?;
    let (tool, args) = text[at + 2..].split_once(' ')?;
    Some((tool.to_owned(), serde_json::from_str(args).ok()?))
}

fn natural_calls() -> Vec<(String, Value, bool)> {
    let lines = include_str!("data/natural_calls.jsonl").lines();
    let parsed = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    parsed
        .map(|case| {
            let tool = case["tool"].as_str().unwrap().to_owned();
            (tool, case["args"].clone(), case["error"] == json!(true))
        })
        .collect()
}

/// Every call succeeds at the first try, or its error ends with a call that does. Both backends answer with the same bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn natural_calls_succeed_or_offer_one_that_does_on_both_backends() {
    let (sqlite, postgres) = (Client::new(On::Sqlite).await, Client::new(On::Postgres).await);
    let calls = natural_calls();
    assert!(calls.len() >= 60);
    for (tool, args, fails) in calls {
        let one = call(&sqlite.work, &tool, args.clone()).await;
        let other = call(&postgres.work, &tool, args.clone()).await;
        assert_eq!(one, other, "{tool} {args}");
        match one {
            Ok(answer) => assert!(!fails && !answer.text.is_empty(), "{tool} {args}: {}", answer.text),
            Err(error) => {
                assert!(fails, "{tool} {args}: {error}");
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
                let (tool, args) =
                    offered(&error).unwrap_or_else(|| panic!("{tool} {args}: no call in: {error}"));
                // On a copy of the workspace: an offered call must not change what follows.
                let copy = Box::pin(sqlite.copy())
                    .await
                    .in_workspace(tenon_work::WorkspaceName::parse("w").unwrap());
                let repeated = call(&copy, &tool, args.clone()).await;
                assert!(repeated.is_ok(), "{error}\noffered {tool} {args}: {repeated:?}");
            }
        }
    }
}

on_both! {
    async fn task_goes_through_its_life_in_few_calls(client: &Client) {
        let work = &client.work;
        let added = ok(work, "task_add", json!({"title": "Fix the login", "steps": ["Reproduce", "Find the cause"]})).await;
        assert_eq!(added, "added TASK-001 Fix the login in PLAN-001 Tasks\n>  1 [ ] Reproduce\n   2 [ ] Find the cause");
        let updated = ok(work, "task_update", json!({"step": 1, "done": true, "note": "it is the clock"})).await;
        assert_eq!(updated, "TASK-001: noted #7; step 1 done\nTASK-001 Fix the login (active, 1 of 2 steps done)\n\
            open step: 2 Find the cause\nnext: task_update {\"id\":\"TASK-001\",\"step\":\"2\",\"done\":true}");
        ok(work, "remember", json!({"text": "Decision: freeze the clock. The cookie stays as it is."})).await;
        let shown = ok(work, "task_show", json!({})).await;
        assert!(shown.contains("decision: freeze the clock"), "{shown}");
        assert!(shown.contains("it is the clock"), "{shown}");
        let done = ok(work, "task_update", json!({"id": "TASK-001", "done": true})).await;
        assert!(done.contains("(done, 2 of 2 steps done)"), "{done}");
        let shown = ok(work, "task_show", json!({"id": 1})).await;
        assert!(shown.contains("closed at: 0123456789ab on main"), "{shown}");
        // The rules of the contract: the other surface sees the same task.
        let found = client.ok("tasks_context", json!({"ids": ["TASK-001"]})).await;
        assert_eq!(found["tasks"][0]["status"], "done");
        assert_eq!(client.ok("tasks_context", json!({"kind": "plan"})).await["plans"][0]["tags"], json!(["default"]));
    }

    async fn claims_belong_to_one_agent(client: &Client) {
        let work = &client.work;
        ok(work, "task_add", json!({"title": "One"})).await;
        ok(work, "task_add", json!({"title": "Two"})).await;
        let claimed = ok(work, "task_claim", json!({})).await;
        assert!(claimed.starts_with("TASK-001 One (active, claimed by ada until "), "{claimed}");
        let other = LeanCaller { agent: "bob".into(), ..LeanCaller::default() };
        let as_bob = |args: Value| LeanRequest::read(LeanTool::TaskClaim, args.as_object().unwrap().clone(), other.clone());
        let refused = work.lean(&as_bob(json!({"id": 1})).unwrap()).await.unwrap_err().to_string();
        assert!(refused.starts_with("TASK-001 is claimed by ada until ") && refused.ends_with("task_claim {}"), "{refused}");
        let next = work.lean(&as_bob(json!({})).unwrap()).await.unwrap();
        assert_eq!(next.data["id"], "TASK-002");
        let refused = work.lean(&as_bob(json!({"id": 1, "release": true})).unwrap()).await.unwrap_err();
        assert!(refused.to_string().contains("only that agent can release it"), "{refused}");
        assert_eq!(ok(work, "task_claim", json!({"release": true})).await, "released TASK-001");
    }

    async fn forgotten_notes_are_not_recalled_but_stay_in_their_document(client: &Client) {
        let work = &client.work;
        let said = ok(work, "remember", json!({"text": "The cluster has nine nodes", "about": "project"})).await;
        let id = said.trim_start_matches("remembered ").to_owned();
        assert!(ok(work, "recall", json!({"query": "nodes of the cluster"})).await.starts_with(&id));
        let forgot = ok(work, "forget", json!({"id": id})).await;
        assert!(forgot.starts_with("forgot #"), "{forgot}");
        assert_eq!(ok(work, "recall", json!({"query": "cluster"})).await, "nothing about `cluster`");
        assert_eq!(ok(work, "forget", json!({"id": id})).await, format!("{id} was forgotten before"));
        let shown = client.ok("memory_show", json!({"branch": "main", "doc": "notes"})).await;
        assert_eq!(shown["entries"][0]["format"], "forgotten");
        // A copy has the same index.
        let copy = Box::pin(client.copy()).await.in_workspace(tenon_work::WorkspaceName::parse("w").unwrap());
        assert_eq!(ok(&copy, "recall", json!({"query": "cluster"})).await, "nothing about `cluster`");

        ok(work, "remember", json!({"text": "Decision: use zstd"})).await;
        let found = ok(work, "recall", json!({"query": "zstd"})).await;
        let id = found.split(' ').next().unwrap();
        ok(work, "forget", json!({"id": id})).await;
        assert_eq!(ok(work, "recall", json!({"query": "zstd"})).await, "nothing about `zstd`");
    }

    async fn failed_check_keeps_the_step_open_with_its_findings_as_evidence(client: &Client) {
        let work = &client.work;
        ok(work, "task_add", json!({"title": "Guard", "steps": ["Make it pass [cmd: make check]"]})).await;
        let request = request("task_update", json!({"step": 1, "done": true})).unwrap();
        let checks = work.lean_checks(&request).await.unwrap();
        assert_eq!(checks, [Check::Command("make check".into())]);
        let result = |outcome: CheckOutcome, output: &str| {
            vec![CheckResult { check: checks[0].clone(), outcome, output: output.into(), exit_code: Some(2) }]
        };
        let refused = work.lean(&request.clone().with_checks(result(CheckOutcome::Failed, "a.c:1: error"))).await.unwrap();
        assert_eq!(refused.data["refused"], true);
        assert!(refused.text.starts_with("step 1 stays open: `cmd: make check` failed\n  a.c:1: error\n"), "{}", refused.text);
        // Without a result nothing is known, so it stays open, too.
        let unknown = work.lean(&request).await.unwrap();
        assert!(unknown.text.contains("could not be checked"), "{}", unknown.text);
        let passed = work.lean(&request.with_checks(result(CheckOutcome::Passed, "ok"))).await.unwrap();
        assert!(passed.text.contains("step 1 done (`cmd: make check` passed)"), "{}", passed.text);
        let steps = client.ok("tasks_resume", json!({"task": "TASK-001"})).await;
        assert_eq!(steps["steps"][0]["evidence"].as_array().unwrap().len(), 2);
    }

    async fn title_of_a_step_as_the_id_means_that_step(client: &Client) {
        let work = &client.work;
        ok(work, "task_add", json!({"title": "Release", "steps": ["Write the docs", "Tag it"]})).await;
        ok(work, "task_add", json!({"title": "Sweep"})).await;
        let done = ok(work, "task_update", json!({"id": "tag it", "status": "done"})).await;
        assert!(done.starts_with("TASK-001: step 2 done\n"), "{done}");
        let noted = ok(work, "task_update", json!({"id": "Write the docs", "note": "half of it"})).await;
        assert!(noted.contains("(active, 1 of 2 steps done)"), "{noted}");
        assert!(ok(work, "task_show", json!({"id": "Write the docs"})).await.starts_with("TASK-001 Release"));
        // Only a task has what this changes, and the title of a task comes first.
        let refused = call(work, "task_update", json!({"id": "Tag it", "title": "Tag"})).await.unwrap_err();
        assert!(refused.to_string().starts_with("there is no task `Tag it`"), "{refused}");
        // Nothing is removed on a guess.
        let refused = call(work, "task_update", json!({"id": "Tag it", "status": "cancelled"})).await.unwrap_err();
        assert!(refused.to_string().starts_with("there is no task `Tag it`"), "{refused}");
        ok(work, "task_add", json!({"title": "Write the docs"})).await;
        let done = ok(work, "task_update", json!({"id": "Write the docs", "done": true})).await;
        assert!(done.contains("TASK-003"), "{done}");
    }

    async fn step_without_its_task_is_found_in_active_tasks_and_then_in_all(client: &Client) {
        let work = &client.work;
        ok(work, "task_add", json!({"title": "Old", "steps": ["Write the docs", "Tag it"]})).await;
        ok(work, "task_add", json!({"title": "Running", "steps": ["Measure it", "Tag it"]})).await;
        ok(work, "task_add", json!({"title": "New", "steps": ["Sweep"]})).await;
        ok(work, "task_update", json!({"id": 2, "status": "active"})).await;
        ok(work, "task_update", json!({"id": 3, "status": "active"})).await;
        client.ok("tasks_focus_set", json!({"task": "TASK-003"})).await;
        let said = ok(work, "task_update", json!({"step": "measure", "done": true})).await;
        assert!(said.starts_with("TASK-002: step 1 done"), "{said}");
        // Active before the others.
        let said = ok(work, "task_update", json!({"step": "Tag it", "note": "v1"})).await;
        assert!(said.starts_with("TASK-002: noted"), "{said}");
        let said = ok(work, "task_update", json!({"step": "write the docs", "done": true})).await;
        assert!(said.starts_with("TASK-001: step 1 done"), "{said}");
        // A position means the current task.
        let said = ok(work, "task_update", json!({"step": 1, "done": true})).await;
        assert!(said.starts_with("TASK-003: step 1 done"), "{said}");
        ok(work, "task_add", json!({"title": "Another", "steps": ["Tag it"]})).await;
        ok(work, "task_update", json!({"id": 4, "status": "active"})).await;
        let several = call(work, "task_update", json!({"step": "Tag it", "done": true})).await.unwrap_err();
        assert_eq!(several.to_string(), "3 steps match `Tag it`: TASK-004 step 1 Tag it, TASK-002 step 2 Tag it, TASK-001 step 2 Tag it: \
            task_update {\"done\":true,\"id\":\"TASK-004\",\"step\":\"1\"}");
        let none = call(work, "task_update", json!({"step": "fly", "done": true})).await.unwrap_err();
        assert!(none.to_string().starts_with("TASK-003 has no step `fly`"), "{none}");
    }

    async fn cut_list_of_hits_is_said(client: &Client) {
        let work = &client.work;
        for number in 0..102 {
            client.ok("memory_notes_commit", json!({"branch": "main", "doc": "notes", "content": format!("common word {number}")})).await;
        }
        let all = ok(work, "recall", json!({"query": "word 7"})).await;
        assert!(all.lines().next().unwrap().contains("common word 7"), "{all}");
        let last = ok(work, "recall", json!({"query": "common"})).await.lines().last().unwrap().to_owned();
        assert_eq!(last, "at least 90 more; of a common word, the newest 100 are compared: use rarer words to find older ones");
    }

    async fn markdown_tasks_survive_a_round_trip(client: &Client) {
        let work = &client.work;
        let markdown = "# Release\n\n- [ ] Ship it\n  criteria: all green\n  - [x] Build\n    tests: cmd: make\n  - [ ] Publish\n    - [x] npm\n    - [ ] pypi\n- [x] Announce\n\n# Later\n\n- [ ] Celebrate\n";
        let imported = work.import_tasks(markdown).await.unwrap();
        assert_eq!((imported.added.len(), imported.skipped.len()), (3, 0));
        let exported = work.export_tasks().await.unwrap();
        assert_eq!(exported, markdown);
        let again = work.import_tasks(&exported).await.unwrap();
        assert_eq!((again.added.len(), again.skipped.len()), (0, 3));
        let elsewhere = work.in_workspace(tenon_work::WorkspaceName::parse("copy").unwrap());
        elsewhere.import_tasks(&exported).await.unwrap();
        assert_eq!(elsewhere.export_tasks().await.unwrap(), exported);
        assert_eq!(work.import_tasks("# Notes\n\nJust prose.\n").await.unwrap().added, Vec::<String>::new());
    }

    async fn resume_needs_no_focus_and_cards_in_focus_belong_to_the_task(client: &Client) {
        let work = &client.work;
        ok(work, "task_add", json!({"title": "First", "steps": ["a"]})).await;
        ok(work, "task_add", json!({"title": "Second", "steps": ["b"]})).await;
        ok(work, "task_update", json!({"id": 1, "status": "active"})).await;
        assert_eq!(client.ok("tasks_resume", json!({})).await["target"]["id"], "TASK-001");
        client.ok("tasks_focus_set", json!({"task": "TASK-002"})).await;
        let card = json!({"type": "decision", "title": "Use B"});
        let written = client.ok("memory_think_card", json!({"card": card})).await;
        assert_eq!(written["graph_doc"], "TASK-002-graph");
        let resumed = client.ok("tasks_resume", json!({})).await;
        assert_eq!((&resumed["target"]["id"], &resumed["cards"][0]["title"]), (&json!("TASK-002"), &json!("Use B")));
        assert!(ok(work, "task_show", json!({})).await.contains("decision: Use B"));
    }
}

/// A day with a lost context: what a new session gets is enough to go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_session_knows_task_open_step_last_decision_and_next_action() {
    let client = Client::new(On::Sqlite).await;
    let work = &client.work;
    assert_eq!(work.resume_text(&caller()).await.unwrap().text, "");
    ok(work, "task_add", json!({"title": "Old chores", "steps": ["sweep"]})).await;
    let long =
        "Move sessions to Redis, because the table of sessions is the hottest one and its vacuum never ends";
    ok(
        work,
        "task_add",
        json!({"title": "Move sessions to Redis", "description": long.repeat(20),
        "steps": ["Read the code", "Write the adapter", "Migrate the data", "Remove the table"]}),
    )
    .await;
    ok(work, "task_claim", json!({"id": 2})).await;
    ok(work, "task_update", json!({"step": "Read the code", "done": true, "note": "x".repeat(2000)})).await;
    ok(work, "remember", json!({"text": "Decision: keys expire after an hour"})).await;
    for number in 0..20 {
        ok(work, "remember", json!({"text": format!("detail {number} {}", "of the adapter ".repeat(30))}))
            .await;
    }
    ok(work, "remember", json!({"text": "Decision: one hash per user, not one key per session"})).await;
    // The context is lost here. Another agent name, as of a new process.
    let text =
        work.resume_text(&LeanCaller { agent: "new".into(), ..LeanCaller::default() }).await.unwrap().text;
    assert!(text.len() < 1200, "{} bytes", text.len());
    assert!(
        text.starts_with("Current task: TASK-002 Move sessions to Redis (active, 1 of 4 steps done"),
        "{text}"
    );
    assert!(text.contains("\nOpen step: 2 Write the adapter\n"), "{text}");
    assert!(
        text.contains("\nLast decision: #") && text.contains("one hash per user, not one key per session"),
        "{text}"
    );
    assert!(text.contains(r#"task_update {"id":"TASK-002","step":"2","done":true}"#), "{text}");
    // The next action works unchanged.
    let next = ok(work, "task_update", json!({"id": "TASK-002", "step": "2", "done": true})).await;
    assert!(next.contains("open step: 3 Migrate the data"), "{next}");
    assert!(
        ok(work, "recall", json!({"query": "when do keys expire"}))
            .await
            .contains("keys expire after an hour")
    );
}

/// The first of the notes that a search finds is the right one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recall_puts_the_right_note_first_in_the_same_order_on_both_backends() {
    let (sqlite, postgres) = (Client::new(On::Sqlite).await, Client::new(On::Postgres).await);
    let mut ids = std::collections::BTreeMap::new();
    for line in include_str!("data/project_notes.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [id, title, text] = fields[..] else { panic!("{line}") };
        let title = (!title.is_empty()).then_some(title);
        let mut args = json!({"text": text, "about": "project"});
        if let Some(title) = title {
            args["title"] = json!(title);
        }
        for client in [&sqlite, &postgres] {
            let answer = call(&client.work, "remember", args.clone()).await.unwrap();
            ids.insert(answer.data["id"].as_i64().unwrap(), id);
        }
    }
    let (mut first, mut all_words, mut wrong) = (0, 0, Vec::new());
    let questions: Vec<(&str, &str)> =
        include_str!("data/questions.tsv").lines().map(|line| line.split_once('\t').unwrap()).collect();
    assert_eq!(questions.len(), 60);
    for (id, question) in &questions {
        let one = call(&sqlite.work, "recall", json!({"query": question})).await.unwrap();
        let other = call(&postgres.work, "recall", json!({"query": question})).await.unwrap();
        assert_eq!(one, other, "{question}");
        let found = one.data["hits"][0].as_i64().and_then(|seq| ids.get(&seq)).copied();
        if found == Some(id) {
            first += 1
        } else {
            wrong.push((question, id, found))
        }
        let searched = sqlite.ok("memory_search", json!({"query": question})).await;
        let found = searched["hits"][0]["seq"].as_i64().and_then(|seq| ids.get(&seq)).copied();
        all_words += usize::from(found == Some(id));
    }
    println!("right note first: {first} of 60; search for all words: {all_words} of 60\n{wrong:#?}");
    assert!(first >= 48, "{first} of 60 right: {wrong:#?}");
}

#[test]
fn every_tool_has_a_short_schema_that_names_what_it_reads() {
    let mut bytes = 0;
    for tool in LeanTool::ALL {
        let schema: Value = serde_json::from_str(tool.schema()).unwrap();
        bytes += schema.to_string().len() + tool.name().len() + tool.description().len();
        // Nothing in the schema is ignored.
        let properties = schema["properties"].as_object().unwrap();
        let value = |name: &str| if name == "status" { json!("done") } else { json!("1") };
        let given: Map<String, Value> = properties.keys().map(|name| (name.clone(), value(name))).collect();
        LeanRequest::read(*tool, given, caller()).unwrap();
    }
    assert!(bytes < 2600, "{bytes}");
}
