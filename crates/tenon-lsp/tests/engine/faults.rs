//! Server faults, a hundred times each: no hang, no orphan, no stale answer, no lost response.
//!
//! Waits end when the engine reacts to the fault. Only a fault that the engine cannot see ends at the engine's deadline.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use futures::future::join_all;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tenon_fake_lsp::{Workbench, scripts};
use tenon_lsp::CallContext;
use tenon_lsp::model::{GapReason, HoverInfo, LspAnswer};
use tenon_servers::registry::ServerId;

use crate::support::is_gone;

const ROUNDS: usize = 100;

/// The process of the only server.
fn pid(bench: &Workbench) -> Pid {
    let status = bench.orchestrator.status();
    Pid::from_raw(i32::try_from(status[0].pid.unwrap()).unwrap())
}

fn id() -> ServerId {
    ServerId::new("fake").unwrap()
}

#[tokio::test]
async fn killed_server_ends_all_its_requests() {
    let script = json!({ "capabilities": { "textDocumentSync": 2, "hoverProvider": true },
        "rules": [{ "on": "textDocument/hover", "do": [] }] });
    let bench = Workbench::new().file("a.fake", "word").server("fake", script).patient().open().await;
    let path = bench.path("a.fake");
    for round in 1..=ROUNDS {
        let call = Workbench::call();
        let questions =
            join_all((0..10).map(|_| bench.orchestrator.hover(&path, Workbench::at(0, 0), &call)));
        let killing = async {
            Workbench::until("asked", || bench.received_count("fake", "textDocument/hover") == 10 * round)
                .await;
            let pid = pid(&bench);
            kill(pid, Signal::SIGKILL).unwrap();
            pid
        };
        let (answers, pid) = tokio::join!(questions, killing);
        assert!(answers.iter().all(|answer| answer.as_ref().unwrap().gaps[0].why == GapReason::Broken));
        bench.orchestrator.restart(&id()).await;
        assert!(is_gone(pid));
    }
}

/// Publishes diagnostics, and answers hovers with the word at the position.
fn linter() -> Value {
    let mut script = scripts::linter();
    script["capabilities"]["hoverProvider"] = json!(true);
    script["rules"].as_array_mut().unwrap().push(json!({ "on": "textDocument/hover", "do": ["reply_word"] }));
    script
}

/// The same with pulled diagnostics.
fn pull_linter() -> Value {
    json!({ "capabilities": { "textDocumentSync": 2, "hoverProvider": true,
            "diagnosticProvider": { "interFileDependencies": false, "workspaceDiagnostics": false } },
        "rules": [
            { "on": "textDocument/diagnostic", "do": ["reply_lint"] },
            { "on": "textDocument/hover", "do": ["reply_word"] },
        ] })
}

async fn word(bench: &Workbench, file: &str, call: &CallContext) -> LspAnswer<Option<HoverInfo>> {
    bench.orchestrator.hover(&bench.path(file), Workbench::at(0, 0), call).await.unwrap()
}

fn hover_text(answer: &LspAnswer<Option<HoverInfo>>) -> &str {
    &answer.value.as_ref().unwrap().parts[0].value
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_exits_right_after_its_answer_is_never_clean() {
    let script = json!({
        "capabilities": { "textDocumentSync": 2, "diagnosticProvider": { "interFileDependencies": true } },
        "rules": [{ "on": "textDocument/diagnostic", "do": ["reply_lint", { "exit": 1 }] }],
    });
    let bench = Workbench::new().file("a.fake", "bad").server("fake", script).patient().open().await;
    for round in 1..=ROUNDS {
        let answer = bench.check("a.fake").await;
        let is_clean = answer.value.is_empty() && answer.is_complete();
        assert!(!is_clean, "round {round}: {answer:?}");
        bench.orchestrator.restart(&id()).await;
    }
}

#[tokio::test]
async fn stopped_server_times_out_and_answers_for_the_new_text_when_continued() {
    let bench = Workbench::new().file("a.fake", "start").server("fake", linter()).patient().open().await;
    assert_eq!(hover_text(&word(&bench, "a.fake", &Workbench::call()).await), "start");
    let pid = pid(&bench);
    for round in 0..ROUNDS {
        kill(pid, Signal::SIGSTOP).unwrap();
        bench.write("a.fake", &format!("old{round}"));
        let call = CallContext::within(Duration::from_millis(5));
        assert_eq!(word(&bench, "a.fake", &call).await.gaps[0].why, GapReason::Pending);
        bench.write("a.fake", &format!("new{round}"));
        kill(pid, Signal::SIGCONT).unwrap();
        assert_eq!(hover_text(&word(&bench, "a.fake", &Workbench::call()).await), format!("new{round}"));
    }
    bench.orchestrator.shutdown().await;
    assert!(is_gone(pid));
}

#[tokio::test]
async fn server_that_closes_its_input_is_broken_at_once_and_killed() {
    // The server closes its stdin and keeps running.
    let script = json!({ "capabilities": { "textDocumentSync": 2, "hoverProvider": true }, "deaf_to_eof": true,
        "rules": [{ "on": "textDocument/hover", "do": ["close_stdin"] }] });
    let bench = Workbench::new().file("a.fake", "word").server("fake", script).patient().open().await;
    let events = |kind: &str| {
        bench.transcript("fake").iter().filter_map(|line| number(line.get(kind)?)).collect::<Vec<_>>()
    };
    for round in 1..=ROUNDS {
        let call = Workbench::call();
        let later = async {
            Workbench::until("closed", || events("closed").len() == round).await;
            join_all((0..5).map(|_| word(&bench, "a.fake", &call))).await
        };
        // The request it has already read ends with the first write that fails.
        let (first, later) = tokio::join!(word(&bench, "a.fake", &call), later);
        assert!(
            later.iter().chain([&first]).all(|answer| answer.gaps[0].why == GapReason::Broken),
            "{later:?}"
        );
        bench.orchestrator.restart(&id()).await;
    }
    let started = events("started");
    assert_eq!(started.len(), ROUNDS);
    assert!(started.into_iter().all(is_gone));
}

fn number(value: &Value) -> Option<Pid> {
    Some(Pid::from_raw(i32::try_from(value.as_i64()?).ok()?))
}

#[tokio::test]
async fn fifty_concurrent_checks_answer_each_for_its_own_text() {
    for script in [linter(), pull_linter()] {
        let mut builder = Workbench::new().server("fake", script).patient();
        for file in 0..50 {
            builder = builder.file(&format!("f{file}.fake"), "");
        }
        let bench = builder.open().await;
        for round in 0..ROUNDS {
            let answers = join_all((0..50).map(|file| {
                let text = "bad ".repeat((file + round) % 7);
                let bench = &bench;
                async move { bench.check_text(&format!("f{file}.fake"), Some(&text)).await }
            }));
            for (file, answer) in answers.await.into_iter().enumerate() {
                assert!(answer.is_complete(), "{answer:?}");
                assert_eq!(answer.value.len(), (file + round) % 7);
            }
        }
    }
}

#[tokio::test]
async fn fifty_concurrent_checks_of_one_file_never_mix_their_texts() {
    let bench = Workbench::new().file("a.fake", "").server("fake", pull_linter()).patient().open().await;
    for round in 0..ROUNDS {
        let answers = join_all((0..50).map(|number| {
            let text = format!("{}{round}", "bad ".repeat(number % 5));
            let bench = &bench;
            async move { bench.check_text("a.fake", Some(&text)).await }
        }));
        let answers = answers.await;
        assert!(answers.iter().any(LspAnswer::is_complete), "the last check completes");
        for (number, answer) in answers.into_iter().enumerate() {
            // A check that was superseded is incomplete and empty.
            let own = answer.value.len() == number % 5;
            assert!(own || (answer.value.is_empty() && !answer.is_complete()), "{number}: {answer:?}");
        }
    }
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    // Automatic gc would remove folders while the next command runs.
    command.current_dir(folder).args(identity).args(["-c", "gc.auto=0"]).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A repository with two branches that differ in every file.
async fn branches(files: usize) -> Workbench {
    let mut script = linter();
    // It watches every file, as most servers do.
    script["rules"].as_array_mut().unwrap().push(json!({ "on": "initialized", "do": [{ "request": {
        "method": "client/registerCapability",
        "params": { "registrations": [{ "id": "w", "method": "workspace/didChangeWatchedFiles",
            "registerOptions": { "watchers": [{ "globPattern": "**/*.fake" }] } }] } } }] }));
    let bench = Workbench::new().file("d0/f0.fake", "").server("fake", script).patient().open().await;
    let root = bench.root();
    git(&root, &["init", "-q", "-b", "one"]);
    for branch in ["one", "two"] {
        if branch == "two" {
            git(&root, &["checkout", "-q", "-b", "two"]);
        }
        for file in 0..files {
            bench.write(&format!("d{}/f{file}.fake", file % 20), &format!("{branch}{file} bad"));
        }
        git(&root, &["add", "-A"]);
        git(&root, &["commit", "-q", "-m", branch]);
    }
    bench
}

/// Switches branches, then asks at once about two files.
async fn switched(bench: &Workbench, branch: &str, files: usize) {
    git(&bench.root(), &["checkout", "-q", branch]);
    let (first, last) = (files / 2, files - 1);
    for file in [first, last] {
        let name = format!("d{}/f{file}.fake", file % 20);
        assert_eq!(hover_text(&word(bench, &name, &Workbench::call()).await), format!("{branch}{file}"));
        assert_eq!(bench.check(&name).await.value.len(), 1);
    }
}

#[tokio::test]
async fn answers_after_a_checkout_never_come_from_the_other_branch() {
    let bench = branches(60).await;
    for round in 0..ROUNDS {
        switched(&bench, ["one", "two"][round % 2], 60).await;
    }
}

#[tokio::test]
async fn server_is_notified_of_ten_thousand_files_that_change_at_once() {
    let files = 10_000;
    let bench = branches(files).await;
    switched(&bench, "two", files).await;
    let before = bench.received("fake", "workspace/didChangeWatchedFiles").len();
    switched(&bench, "one", files).await;
    let told = bench.received("fake", "workspace/didChangeWatchedFiles");
    let told: BTreeSet<&str> = told[before..]
        .iter()
        .flat_map(|message| message["params"]["changes"].as_array().unwrap())
        .map(|change| change["uri"].as_str().unwrap())
        .collect();
    assert_eq!(told.len(), files);
}
