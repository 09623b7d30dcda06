//! §3.6.1 and §3.6.2: what makes a cursor stale, what does not, and what is kept for how long.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tenon_contract::snapshot::SnapshotLimits;
use tenon_fake_lsp::{Builder, Workbench};

use crate::stage::{
    DEFINITION, DOCUMENT_DIAGNOSTICS, DOCUMENT_SYMBOLS, HOVER, REFERENCES, Stage, WORKSPACE_DIAGNOSTICS,
    WORKSPACE_SYMBOLS, reply, script, symbol,
};

fn workspace() -> Builder {
    let symbols: Vec<Value> =
        (0..9).map(|n| symbol(&format!("s{n}"), 12, "$root/a.fake", [n, 0, n, 1])).collect();
    let rules = [
        reply("workspace/symbol", json!(symbols)),
        json!({ "on": "textDocument/references", "do": [{ "reply_locations": { "uri": "$uri", "count": 9 } }] }),
        json!({ "on": "textDocument/hover", "do": [{ "reply_word": null }] }),
        reply("textDocument/definition", json!([])),
        reply("textDocument/documentSymbol", json!([])),
    ];
    Workbench::new()
        .file("a.fake", "bad\nx\nx\nx\nx\nx\nx\nx\nx\n")
        .file("b.fake", "bad\nword\n")
        .file("c.fake", "bad\n")
        .file(".gitignore", "ignored/\n*.log\n")
        .server("fake", script(&rules))
}

fn paged(stage: &Stage) -> [(&'static str, Value); 3] {
    let mut references = stage.at("a.fake", 0, 0);
    references["pageSize"] = json!(1);
    [
        (REFERENCES, references),
        (WORKSPACE_SYMBOLS, json!({ "query": "s", "pageSize": 1 })),
        (WORKSPACE_DIAGNOSTICS, json!({ "pageSize": 1 })),
    ]
}

/// The first page's arguments with the cursor of the second.
fn second(stage: &Stage, tool: &str, mut arguments: Value) -> Value {
    arguments["cursor"] = stage.payload(tool, arguments.clone())["nextCursor"].clone();
    assert!(arguments["cursor"].is_string(), "{tool}");
    arguments
}

/// Mints cursors, lets something happen, and says which tools' cursors are stale then.
fn stale_after(stage: &Stage, happens: impl FnOnce(&Stage)) -> Vec<&'static str> {
    let minted: Vec<(&'static str, Value)> =
        paged(stage).into_iter().map(|(tool, arguments)| (tool, second(stage, tool, arguments))).collect();
    happens(stage);
    let is_stale = |(tool, arguments): &(&'static str, Value)| match stage.call(tool, arguments.clone()) {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(crate::stage::code(&error), "CURSOR_STALE", "{tool} {error:?}");
            true
        }
    };
    minted.iter().filter(|one| is_stale(one)).map(|(tool, _)| *tool).collect()
}

const ALL: [&str; 3] = [REFERENCES, WORKSPACE_SYMBOLS, WORKSPACE_DIAGNOSTICS];
const NONE: [&str; 0] = [];

#[test]
fn s3_6_1_an_edit_between_pages_makes_cursors_stale() {
    let stage = Stage::open(workspace());
    assert_eq!(stale_after(&stage, |stage| stage.bench.write("b.fake", "bad\nother\n")), ALL);
    // Also one that leaves the size as it was.
    assert_eq!(stale_after(&stage, |stage| stage.bench.write("b.fake", "bad\nOTHER\n")), ALL);
}

#[test]
fn s3_6_2_files_that_come_go_or_are_renamed_make_cursors_stale() {
    let stage = Stage::open(workspace());
    assert_eq!(stale_after(&stage, |stage| stage.bench.write("new.fake", "fine")), ALL);
    let root = stage.bench.root();
    assert_eq!(
        stale_after(&stage, |_| fs::rename(root.join("new.fake"), root.join("newer.fake")).unwrap()),
        ALL
    );
    assert_eq!(stale_after(&stage, |_| fs::remove_file(root.join("newer.fake")).unwrap()), ALL);
    assert_eq!(stale_after(&stage, |stage| stage.bench.write("deep/er/new.fake", "fine")), ALL);
}

#[test]
fn s3_6_2_ignored_files_and_version_control_make_no_cursor_stale() {
    let stage = Stage::open(workspace());
    let quiet = |stage: &Stage| {
        stage.bench.write("ignored/x.fake", "bad");
        stage.bench.write("build.log", "1");
        stage.bench.write("build.log", "2");
        stage.bench.write(".git/index.lock", "");
        stage.bench.write(".cache/clangd/index/x.idx", "");
    };
    assert_eq!(stale_after(&stage, quiet), NONE);
}

#[test]
fn s3_6_2_other_questions_make_no_cursor_stale() {
    let stage = Stage::open(workspace());
    let asking = |stage: &Stage| {
        for file in ["a.fake", "b.fake", "c.fake"] {
            stage.payload(HOVER, stage.at(file, 0, 0));
            stage.payload(DEFINITION, stage.at(file, 0, 0));
            stage.payload(REFERENCES, stage.at(file, 0, 1));
            stage.payload(DOCUMENT_SYMBOLS, json!({ "uri": stage.uri(file) }));
            stage.payload(DOCUMENT_DIAGNOSTICS, json!({ "uri": stage.uri(file) }));
        }
        stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "other" }));
        stage.payload(WORKSPACE_DIAGNOSTICS, json!({}));
    };
    assert_eq!(stale_after(&stage, asking), NONE);
}

#[test]
fn s3_6_1_the_first_call_on_a_file_does_not_make_its_own_cursor_stale() {
    for tool in ALL {
        let stage = Stage::open(workspace());
        let (tool, arguments) = paged(&stage).into_iter().find(|(name, _)| *name == tool).unwrap();
        let next = second(&stage, tool, arguments);
        stage.payload(tool, next);
    }
}

#[test]
fn s3_6_1_a_restarted_server_makes_cursors_of_code_stale() {
    let stage = Stage::open(workspace());
    let stale = stale_after(&stage, |stage| {
        let id = tenon_servers::registry::ServerId::new("fake").unwrap();
        stage.block_on(stage.bench.orchestrator.restart(&id));
    });
    assert!(stale.starts_with(&[REFERENCES, WORKSPACE_SYMBOLS]), "{stale:?}");
}

#[test]
fn s3_5_pages_come_from_what_was_kept_not_from_a_second_answer() {
    let rules = [
        json!({ "on": "workspace/symbol", "nth": 1, "do": [{ "reply": [
            symbol("a", 1, "$root/a.fake", [0, 0, 0, 1]), symbol("b", 1, "$root/a.fake", [0, 0, 0, 1]),
        ] }] }),
        json!({ "on": "workspace/symbol", "from": 2, "do": [{ "reply": [] }] }),
    ];
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&rules)));
    let next = second(&stage, WORKSPACE_SYMBOLS, json!({ "query": "q", "pageSize": 1 }));
    let page = stage.payload(WORKSPACE_SYMBOLS, next);
    assert_eq!(page["items"][0]["name"], "b");
    assert_eq!(page["nextCursor"], Value::Null);
}

#[test]
fn s3_6_a_snapshot_that_left_is_expired() {
    let limits = SnapshotLimits { entries: 2, ..SnapshotLimits::default() };
    let stage = Stage::with(workspace(), |settings| settings.snapshots = limits);
    let query = |name: &str| json!({ "query": name, "pageSize": 1 });
    let first = second(&stage, WORKSPACE_SYMBOLS, query("one"));
    let other = second(&stage, WORKSPACE_SYMBOLS, query("two"));
    stage.payload(WORKSPACE_SYMBOLS, first.clone());
    stage.payload(WORKSPACE_SYMBOLS, query("three"));
    assert_eq!(stage.refusal(WORKSPACE_SYMBOLS, other).0, "CURSOR_EXPIRED", "least recently used");
    stage.payload(WORKSPACE_SYMBOLS, first);
}

#[test]
fn s3_6_a_snapshot_is_kept_for_ten_minutes() {
    let stage = Stage::open(workspace());
    let next = second(&stage, WORKSPACE_SYMBOLS, json!({ "query": "q", "pageSize": 1 }));
    stage.hands.advance(Duration::from_secs(599));
    stage.payload(WORKSPACE_SYMBOLS, next.clone());
    stage.hands.advance(Duration::from_secs(1));
    assert_eq!(stage.refusal(WORKSPACE_SYMBOLS, next).0, "CURSOR_EXPIRED");
}

#[test]
fn s3_6_what_cannot_be_kept_is_too_large_unless_it_is_one_page() {
    let limits = SnapshotLimits { entry_bytes: 500, ..SnapshotLimits::default() };
    let stage = Stage::with(workspace(), |settings| settings.snapshots = limits);
    for (tool, mut arguments) in paged(&stage) {
        let (code, error) = stage.refusal(tool, arguments.clone());
        assert_eq!(code, "SNAPSHOT_TOO_LARGE", "{tool}");
        assert_eq!(error.data["details"]["limit"], 500);
        arguments["pageSize"] = json!(100);
        let whole = stage.payload(tool, arguments);
        assert_eq!(whole["nextCursor"], Value::Null, "{tool}");
    }
}

#[test]
fn s5_1_twenty_thousand_items_can_be_kept() {
    let limits = SnapshotLimits::default();
    assert_eq!((limits.entry_bytes, limits.total_bytes), (16 << 20, 64 << 20));
    assert_eq!(limits.age, Duration::from_secs(600));
}
