//! Many questions while the workspace keeps changing.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tenon_fake_lsp::{Builder, Workbench};
use tenon_testkit::code_tools::DOCUMENT_DIAGNOSTICS;

use crate::stage::Stage;

const PULL: &str = "textDocument/diagnostic";
const CLIENTS: usize = 64;

/// A server that takes a moment for each document.
fn slow_server(builder: Builder, pause_ms: u64) -> Builder {
    let script = json!({
        "capabilities": { "textDocumentSync": 1, "diagnosticProvider": { "interFileDependencies": true } },
        "rules": [{ "on": PULL, "do": [{ "wait_ms": pause_ms }, "reply_lint"] }],
    });
    builder.server("fake", script)
}

/// Runs `work` while another thread keeps changing a file.
fn while_changing<T>(stage: &Stage, work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                stage.bench.replace("notes.txt", &format!("{number}"));
            }
        });
        let done = work();
        stop.store(true, Ordering::Relaxed);
        done
    })
}

fn diagnostics(stage: &Stage, file: &str) -> Vec<Value> {
    let payload = stage.payload(DOCUMENT_DIAGNOSTICS, json!({ "uri": stage.uri(file) }));
    payload["diagnostics"].as_array().unwrap().clone()
}

#[test]
fn document_diagnostics_are_answered_while_other_files_keep_changing() {
    let files = Workbench::new().file("a.fake", "bad").file("notes.txt", "");
    let stage = Stage::open(slow_server(files, 100));
    let found = while_changing(&stage, || diagnostics(&stage, "a.fake"));
    assert_eq!(found.len(), 1);
}

#[test]
fn equal_questions_share_requests_while_other_files_keep_changing() {
    let files = Workbench::new().file("a.fake", "bad").file("notes.txt", "");
    let stage = Stage::open(slow_server(files, 300));
    while_changing(&stage, || {
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| assert_eq!(diagnostics(&stage, "a.fake").len(), 1));
            }
        });
    });
    let pulls = stage.bench.received_count("fake", PULL);
    assert!(pulls < CLIENTS / 2, "{pulls} requests for {CLIENTS} equal questions");
}

#[test]
fn different_documents_are_all_answered_while_other_files_keep_changing() {
    let mut files = Workbench::new().file("notes.txt", "");
    for number in 0..CLIENTS {
        files = files.file(&format!("{number}.fake"), &"bad ".repeat(number % 3));
    }
    let stage = Stage::open(slow_server(files, 20));
    while_changing(&stage, || {
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                let stage = &stage;
                scope.spawn(move || {
                    assert_eq!(diagnostics(stage, &format!("{number}.fake")).len(), number % 3);
                });
            }
        });
    });
}
