//! §3.6.1 and §3.6.2: what makes a cursor stale, and how long snapshots are kept.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tenon_code::CodeError;
use tenon_contract::cursor::CursorError;
use tenon_contract::snapshot::SnapshotLimits;
use tenon_fake_lsp::scripts::{reply, script, symbol};
use tenon_fake_lsp::{Builder, Workbench};
use tenon_testkit::code_tools::{
    DEFINITION, DOCUMENT_DIAGNOSTICS, DOCUMENT_SYMBOLS, HOVER, REFERENCES, WORKSPACE_DIAGNOSTICS,
    WORKSPACE_SYMBOLS,
};

use crate::stage::{Stage, server_id};

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

/// The arguments for the second page: those of the first with its next cursor.
fn second(stage: &Stage, tool: &str, mut arguments: Value) -> Value {
    arguments["cursor"] = stage.payload(tool, arguments.clone())["nextCursor"].clone();
    assert!(arguments["cursor"].is_string(), "{tool}");
    arguments
}

/// The tools whose cursors are stale after something happened.
fn stale_after(stage: &Stage, event: impl FnOnce(&Stage)) -> Vec<&'static str> {
    let minted: Vec<(&'static str, Value)> =
        paged(stage).into_iter().map(|(tool, arguments)| (tool, second(stage, tool, arguments))).collect();
    event(stage);
    let is_stale = |(tool, arguments): &(&'static str, Value)| match stage.call(tool, arguments.clone()) {
        Ok(_) => false,
        Err(CodeError::Cursor(CursorError::Stale)) => true,
        Err(error) => panic!("{tool}: {error:?}"),
    };
    minted.iter().filter(|one| is_stale(one)).map(|(tool, _)| *tool).collect()
}

const ALL: [&str; 3] = [REFERENCES, WORKSPACE_SYMBOLS, WORKSPACE_DIAGNOSTICS];
const NONE: [&str; 0] = [];

#[test]
fn s3_6_1_edit_between_pages_makes_cursors_stale() {
    let stage = Stage::open(workspace());
    assert_eq!(stale_after(&stage, |stage| stage.bench.write("b.fake", "bad\nother\n")), ALL);
    // An edit that keeps the file's size counts as well.
    assert_eq!(stale_after(&stage, |stage| stage.bench.write("b.fake", "bad\nOTHER\n")), ALL);
}

#[test]
fn s3_6_2_created_renamed_and_deleted_files_make_cursors_stale() {
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
fn s3_6_2_ignored_files_and_version_control_leave_cursors_valid() {
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
fn s3_6_2_other_requests_leave_cursors_valid() {
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
fn s3_6_1_first_request_for_a_file_leaves_its_own_cursor_valid() {
    for tool in ALL {
        let stage = Stage::open(workspace());
        let (tool, arguments) = paged(&stage).into_iter().find(|(name, _)| *name == tool).unwrap();
        let next = second(&stage, tool, arguments);
        stage.payload(tool, next);
    }
}

#[test]
fn s3_6_1_server_restart_makes_cursors_of_references_and_symbols_stale() {
    let stage = Stage::open(workspace());
    let stale = stale_after(&stage, |stage| {
        stage.block_on(stage.bench.orchestrator.restart(&server_id("fake")));
    });
    assert!(stale.starts_with(&[REFERENCES, WORKSPACE_SYMBOLS]), "{stale:?}");
}

#[test]
fn s3_5_pages_come_from_the_snapshot_not_from_a_second_request() {
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
fn s3_6_cursor_of_an_evicted_snapshot_is_expired() {
    let limits = SnapshotLimits { entries: 2, ..SnapshotLimits::default() };
    let stage = Stage::with(workspace(), |settings| settings.snapshots = limits);
    let query = |name: &str| json!({ "query": name, "pageSize": 1 });
    let first = second(&stage, WORKSPACE_SYMBOLS, query("one"));
    let other = second(&stage, WORKSPACE_SYMBOLS, query("two"));
    stage.payload(WORKSPACE_SYMBOLS, first.clone());
    stage.payload(WORKSPACE_SYMBOLS, query("three"));
    let error = stage.error(WORKSPACE_SYMBOLS, other);
    assert_eq!(error, CodeError::CursorExpired, "the least recently used is evicted");
    stage.payload(WORKSPACE_SYMBOLS, first);
}

#[test]
fn s3_6_snapshot_is_kept_for_ten_minutes() {
    let stage = Stage::open(workspace());
    let next = second(&stage, WORKSPACE_SYMBOLS, json!({ "query": "q", "pageSize": 1 }));
    stage.clock_control.advance(Duration::from_secs(599));
    stage.payload(WORKSPACE_SYMBOLS, next.clone());
    stage.clock_control.advance(Duration::from_secs(1));
    assert_eq!(stage.error(WORKSPACE_SYMBOLS, next), CodeError::CursorExpired);
}

#[test]
fn s3_6_result_over_the_snapshot_limit_is_rejected_unless_it_fits_one_page() {
    let limits = SnapshotLimits { entry_bytes: 500, ..SnapshotLimits::default() };
    let stage = Stage::with(workspace(), |settings| settings.snapshots = limits);
    for (tool, mut arguments) in paged(&stage) {
        let error = stage.error(tool, arguments.clone());
        assert!(
            matches!(error, CodeError::Snapshot(too_large) if too_large.limit == 500),
            "{tool}: {error:?}"
        );
        arguments["pageSize"] = json!(100);
        let whole = stage.payload(tool, arguments);
        assert_eq!(whole["nextCursor"], Value::Null, "{tool}");
    }
}

#[test]
fn s5_1_default_snapshot_limits_are_16_mib_each_64_mib_in_all_and_ten_minutes() {
    let limits = SnapshotLimits::default();
    assert_eq!((limits.entry_bytes, limits.total_bytes), (16 << 20, 64 << 20));
    assert_eq!(limits.age, Duration::from_secs(600));
}
