//! `tenon tasks` and `tenon memory`: text output and JSON output.

use serde_json::{Value, json};
use tenon_testkit::Sandbox;

use crate::{assert_envelope, call, connect, planned, tenon, transcript};

#[test]
fn list_prints_one_line_per_item() {
    let sandbox = planned();
    insta::assert_snapshot!(transcript(&sandbox, &["tasks"]), @"
    exit: 0
    --- stdout
    PLAN-001  todo    medium  Ship it
    TASK-001  active  high    Build
    TASK-002  todo    medium  Announce ␛[31mit
    TASK-003  todo    low     Clean up
    ");
    assert_eq!(transcript(&sandbox, &["tasks", "list"]), transcript(&sandbox, &["tasks"]));
    insta::assert_snapshot!(transcript(&sandbox, &["tasks", "list", "--kind", "task", "--tag", "ci"]), @"
    exit: 0
    --- stdout
    TASK-001  active  high    Build
    ");
    insta::assert_snapshot!(transcript(&sandbox, &["tasks", "--status", "done"]), @"
    exit: 0
    ");
}

#[test]
fn long_list_prints_the_next_cursor() {
    let sandbox = planned();
    let mut seen = Vec::new();
    let mut line = vec!["tasks".to_owned(), "list".into(), "--limit".into(), "3".into()];
    loop {
        let output = sandbox.tenon().args(&line).output().unwrap();
        let (out, err) = (crate::text(&output.stdout), crate::text(&output.stderr));
        seen.extend(out.lines().map(|line| line.split(' ').next().unwrap().to_owned()));
        let Some(cursor) = err.split("--cursor ").nth(1).and_then(|rest| rest.split('`').next()) else {
            break;
        };
        line.truncate(4);
        line.extend(["--cursor".to_owned(), cursor.to_owned()]);
    }
    assert_eq!(seen, ["PLAN-001", "TASK-001", "TASK-002", "TASK-003"]);
}

#[test]
fn show_prints_the_whole_task() {
    let sandbox = planned();
    let shown = transcript(&sandbox, &["tasks", "show", "TASK-001"]);
    // Replace the time of the note, which differs between runs.
    let shown: Vec<String> = shown
        .lines()
        .map(|line| match line.strip_prefix("note: ") {
            Some(note) => format!("note: [TIME] {}", note.split_once(' ').unwrap().1),
            None => line.to_owned(),
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    exit: 0
    --- stdout
    TASK-001 Build
    status: active
    revision: 2
    steps: 0 of 3 done
    now: s:0.s:0 Fetch
    why: It builds on a clean machine
    verify: criteria: Fetch worked
    verify: tests
    next: s:0 Prepare
    next: s:1 Compile
    blocker: STEP-00000002 no network
    [ ] s:0 Prepare
      [ ] s:0.s:0 Fetch
    [ ] s:1 Compile
    note: [TIME] half way through the lemons
    ");
}

#[test]
fn card_is_shown_by_title_or_text() {
    let sandbox = planned();
    let mut client = connect(&sandbox);
    for card in [
        json!({"type": "note", "text": "lemons\nare sour"}),
        json!({"type": "decision", "title": "Use limes", "text": "they are at hand"}),
    ] {
        let written = call(&mut client, "memory_think_card", json!({"target": "TASK-003", "card": card}));
        assert_eq!(written["success"], true, "{written}");
    }
    client.close();
    let shown = transcript(&sandbox, &["tasks", "show", "TASK-003"]);
    assert!(shown.ends_with("\ndecision: Use limes\nnote: lemons are sour\n"), "{shown}");
}

#[test]
fn next_takes_a_cursor() {
    let sandbox = planned();
    let first = tenon(&sandbox, &["tasks", "next", "--limit", "1", "--json"]);
    let envelope: Value = serde_json::from_slice(&first.stdout).unwrap();
    let cursor = envelope["result"]["pagination"]["next_cursor"].as_str().unwrap();
    let second = transcript(&sandbox, &["tasks", "next", "--limit", "1", "--cursor", cursor]);
    assert_eq!(second, "exit: 0\n--- stdout\nTASK-003  todo    low     Clean up\n");
}

#[test]
fn radar_prints_a_summary() {
    let sandbox = planned();
    insta::assert_snapshot!(transcript(&sandbox, &["tasks", "radar", "TASK-001"]), @"
    exit: 0
    --- stdout
    TASK-001 Build
    status: active
    revision: 2
    steps: 0 of 3 done
    now: s:0.s:0 Fetch
    why: It builds on a clean machine
    verify: criteria: Fetch worked
    verify: tests
    next: s:0 Prepare
    next: s:1 Compile
    blocker: STEP-00000002 no network
    ");
    insta::assert_snapshot!(transcript(&sandbox, &["tasks", "radar"]), @"
    exit: 1
    --- stderr
    warning: no task given, and no focus is set
    ");
}

#[test]
fn next_can_claim_a_task() {
    let sandbox = planned();
    insta::assert_snapshot!(transcript(&sandbox, &["tasks", "next"]), @"
    exit: 0
    --- stdout
    TASK-001  active  high    Build
    TASK-003  todo    low     Clean up
    ");
    let claim =
        |agent| tenon(&sandbox, &["tasks", "next", "--claim", "--agent", agent, "--ttl", "60", "--json"]);
    let envelope: Value = serde_json::from_slice(&claim("ada").stdout).unwrap();
    assert_envelope(&envelope);
    assert_eq!(envelope["result"]["task"]["id"], "TASK-001");
    assert_eq!(envelope["result"]["claim"]["agent"], "ada");
    // The next agent gets the next task; a third agent gets none.
    let envelope: Value = serde_json::from_slice(&claim("bob").stdout).unwrap();
    assert_eq!(envelope["result"]["task"]["id"], "TASK-003");
    assert_eq!(claim("eve").status.code(), Some(1));
}

#[test]
fn search_prints_hits_and_exits_1_without_any() {
    let sandbox = planned();
    insta::assert_snapshot!(transcript(&sandbox, &["memory", "search", "LEMONS"]), @"
    exit: 0
    --- stdout
    note 12  task/TASK-001 notes  half way through the lemons
    ");
    insta::assert_snapshot!(transcript(&sandbox, &["memory", "search", "--in", "tasks,cards", "build"]), @"
    exit: 0
    --- stdout
    task TASK-001  task/TASK-001  Build It builds on a clean machine ci
    ");
    insta::assert_snapshot!(transcript(&sandbox, &["memory", "search", "zebra"]), @"
    exit: 1
    --- stderr
    nothing found
    ");
}

#[test]
fn json_output_is_the_envelope_for_success_and_failure() {
    let sandbox = planned();
    for (line, code, intent) in [
        (&["tasks", "list"][..], 0, "context"),
        (&["tasks", "show", "TASK-001"], 0, "resume"),
        (&["tasks", "radar", "PLAN-001"], 0, "radar"),
        (&["tasks", "next"], 0, "next"),
        (&["memory", "search", "build"], 0, "search"),
        (&["tasks", "show", "TASK-404"], 1, "resume"),
        (&["tasks", "radar", "STEP-00000001"], 2, "radar"),
        (&["tasks", "list", "--workspace", "no spaces"], 2, "context"),
        (&["memory", "search", "..."], 2, "search"),
    ] {
        let output = tenon(&sandbox, &[line, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(code), "{line:?}: {output:?}");
        let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_envelope(&envelope);
        assert_eq!(
            (envelope["success"].clone(), envelope["intent"].clone()),
            (json!(code == 0), json!(intent))
        );
    }
}

#[test]
fn errors_have_a_message_a_hint_and_an_exit_code() {
    let sandbox = planned();
    insta::assert_snapshot!(transcript(&sandbox, &["tasks", "show", "TASK-404"]), @"
    exit: 1
    --- stderr
    error: plan or task `TASK-404` does not exist
      hint: `tenon tasks list` lists plans and tasks
    ");
    insta::assert_snapshot!(transcript(&sandbox, &["tasks", "radar", "s:0"]), @"
    exit: 2
    --- stderr
    error: `s:0` is not a plan or task
      hint: give an id like PLAN-001 or TASK-001
    ");
    insta::assert_snapshot!(transcript(&sandbox, &["tasks", "next", "--claim"]), @"
    exit: 2
    --- stderr
    error: the following required arguments were not provided:
      --agent <NAME>

    Usage: tenon tasks next --agent <NAME> --claim

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(transcript(&sandbox, &["tasks", "list", "--cursor", "x"]), @"
    exit: 2
    --- stderr
    error: invalid cursor
      hint: call again without cursor
    ");
    let strict = Sandbox::with_tree("//- tenon.toml\n");
    let output = strict.tenon().args(["tasks", "list"]).env("TENON_WORK_STRICT", "true").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
