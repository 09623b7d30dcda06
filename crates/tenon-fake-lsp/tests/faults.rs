//! What goes wrong around a server, a hundred times each: no hang, no orphan, no stale answer, no lost response.
//!
//! Waits end by what the engine does about a fault. Only where a fault can end in nothing but a deadline is there one, and
//! it is the engine's own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use futures::future::join_all;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tenon_fake_lsp::Workbench;
use tenon_lsp::model::Why;
use tenon_lsp::registry::ServerId;

const ROUNDS: usize = 100;

/// The process of the one server.
fn pid(bench: &Workbench) -> Pid {
    let status = bench.orchestrator.status();
    Pid::from_raw(i32::try_from(status[0].pid.unwrap()).unwrap())
}

fn id() -> ServerId {
    ServerId::new("fake").unwrap()
}

/// Gone, or nothing but an entry that its parent has not collected yet.
fn is_gone(pid: Pid) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
        Err(_) => true,
    }
}

/// Looks until something is so: a file in another process's hands tells nobody when it grows.
async fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_server_killed_in_the_middle_of_questions_ends_them_all() {
    let script = json!({ "capabilities": { "textDocumentSync": 2, "hoverProvider": true },
        "rules": [{ "on": "textDocument/hover", "do": [] }] });
    let bench = Workbench::new().file("a.fake", "word").server("fake", script).patient().open().await;
    let path = bench.path("a.fake");
    for round in 1..=ROUNDS {
        let call = Workbench::call();
        let questions =
            join_all((0..10).map(|_| bench.orchestrator.hover(&path, Workbench::at(0, 0), &call)));
        let killing = async {
            until(|| bench.heard("fake", "textDocument/hover") == 10 * round).await;
            let pid = pid(&bench);
            kill(pid, Signal::SIGKILL).unwrap();
            pid
        };
        let (answers, pid) = tokio::join!(questions, killing);
        assert!(answers.iter().all(|answer| answer.as_ref().unwrap().gaps[0].why == Why::Broken));
        bench.orchestrator.restart(&id()).await;
        assert!(is_gone(pid));
    }
}
