//! Servers start on demand, fail, restart and shut down without orphans.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::linter;
use tenon_lsp::CallContext;
use tenon_lsp::model::GapReason;
use tenon_lsp::orchestrator::ServerState;
use tenon_servers::registry::{Capability, ServerId};

use crate::support::is_gone;

fn id(id: &str) -> ServerId {
    ServerId::new(id).unwrap()
}

fn state(bench: &Workbench, server: &str) -> ServerState {
    bench.orchestrator.status().into_iter().find(|line| line.id.as_str() == server).unwrap().state
}

fn pids(bench: &Workbench, server: &str, kind: &str) -> Vec<Pid> {
    let lines = bench.transcript(server);
    let numbers = lines.iter().filter_map(|line| line.get(kind)?.as_i64());
    numbers.map(|pid| Pid::from_raw(i32::try_from(pid).unwrap())).collect()
}

#[tokio::test]
async fn server_starts_with_the_first_request() {
    let bench = Workbench::new().file("a.fake", "bad").server("fake", linter()).open().await;
    assert_eq!(state(&bench, "fake"), ServerState::Idle);
    bench.check("a.fake").await;
    assert_eq!(state(&bench, "fake"), ServerState::Active);
    let line = &bench.orchestrator.status()[0];
    assert_eq!(line.pid, pids(&bench, "fake", "started").first().map(|pid| pid.as_raw().unsigned_abs()));
}

#[tokio::test]
async fn crash_drops_the_servers_diagnostics_and_leaves_other_servers_running() {
    let crashing = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }, { "publish": { "uri": "b.fake", "version": "none", "diagnostics": [{ "message": "elsewhere" }] } }] },
        { "on": "textDocument/didChange", "do": ["die"] },
    ]});
    let bench = Workbench::new()
        .file("a.fake", "bad")
        .file("b.fake", "")
        .server("crashing", crashing)
        .server("fine", linter())
        .patient()
        .open()
        .await;
    assert_eq!(bench.check("a.fake").await.value.len(), 1);
    assert_eq!(bench.orchestrator.diagnostics().await.len(), 2, "diagnostics of other files are known, too");
    let epoch = bench.orchestrator.epoch();

    let answer = bench.check_text("a.fake", Some("bad bad")).await;
    assert_eq!(answer.value.len(), 2, "the other server still answers");
    assert_eq!(answer.gaps[0].why, GapReason::Broken);
    assert!(bench.orchestrator.epoch() > epoch);
    let known = bench.orchestrator.diagnostics().await;
    assert_eq!(
        known.keys().collect::<Vec<_>>(),
        [&bench.path("a.fake")],
        "diagnostics of the dead server are dropped"
    );
    assert_eq!(state(&bench, "crashing"), ServerState::Broken);

    // The server is skipped until it is restarted.
    let again = bench.check("a.fake").await;
    assert_eq!(again.gaps[0].why, GapReason::Broken);
    assert_eq!(pids(&bench, "crashing", "started").len(), 1);
    bench.orchestrator.restart(&id("crashing")).await;
    assert!(bench.check("a.fake").await.is_complete());
    assert_eq!(pids(&bench, "crashing", "started").len(), 2);
}

#[tokio::test]
async fn broken_servers_are_forgiven_when_a_session_begins() {
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [{ "on": "textDocument/didOpen", "do": ["die"] }] });
    let bench = Workbench::new().file("a.fake", "").server("fake", script).patient().open().await;
    bench.check("a.fake").await;
    bench.check("a.fake").await;
    assert_eq!(pids(&bench, "fake", "started").len(), 1);
    bench.orchestrator.reset_failures();
    bench.check("a.fake").await;
    assert_eq!(pids(&bench, "fake", "started").len(), 2);
}

/// The message and the empty answer arrive together.
#[tokio::test]
async fn server_without_its_worker_is_broken_and_its_empty_answer_is_dropped() {
    let message = json!({ "type": 1, "message": "[worker] Exited. Signal: SIGKILL" });
    let script = json!({ "capabilities": { "textDocumentSync": 2, "hoverProvider": true }, "rules": [
        { "on": "textDocument/hover", "do": [{ "notify": { "method": "window/logMessage", "params": message } }, { "reply": null }] },
    ]});
    let bench = Workbench::new()
        .file("a.fake", "word")
        .server_with("fake", script, |entry| entry.exit_message = Some("[worker] Exited.".to_owned()))
        .patient()
        .open()
        .await;
    let path = bench.path("a.fake");
    let answer = bench.orchestrator.hover(&path, Workbench::at(0, 0), &Workbench::call()).await.unwrap();
    assert_eq!(answer.gaps[0].why, GapReason::Broken);
    assert_eq!(state(&bench, "fake"), ServerState::Broken);
    assert!(bench.orchestrator.status()[0].detail.clone().unwrap().contains("process that it needs"));
    let pid = pids(&bench, "fake", "started")[0];
    Workbench::until("the process is ended", || is_gone(pid)).await;
}

#[tokio::test]
async fn server_that_hangs_in_initialize_is_killed() {
    let script = json!({ "initialize": { "hang": true }, "deaf_to_sigterm": true, "deaf_to_eof": true });
    let bench = Workbench::new()
        .file("a.fake", "")
        .server("hung", script)
        .server("fine", linter())
        .patient()
        .option(|options| options.timeouts.start = Duration::from_millis(300))
        .open()
        .await;
    let answer = bench.check("a.fake").await;
    assert_eq!(answer.gaps.len(), 1);
    assert_eq!(answer.gaps[0].why, GapReason::Broken);
    assert_eq!(state(&bench, "hung"), ServerState::Broken);
    assert!(is_gone(pids(&bench, "hung", "started")[0]));
}

#[tokio::test]
async fn slow_start_counts_towards_the_first_check() {
    let script = json!({ "initialize": { "delay_ms": 3000 }, "capabilities": {} });
    let bench = Workbench::new()
        .file("a.fake", "bad")
        .server("slow", script)
        .server("fine", linter())
        .option(|options| options.timeouts.first_check = Duration::from_millis(300))
        .open()
        .await;
    let answer = bench.check("a.fake").await;
    assert_eq!(answer.value.len(), 1);
    assert_eq!(answer.gaps[0].why, GapReason::Indexing);
    assert_eq!(state(&bench, "slow"), ServerState::Starting);
}

#[tokio::test]
async fn failed_start_reports_its_reason() {
    let bench = Workbench::new()
        .file("a.fake", "")
        .server("exits", json!({ "initialize": { "exit": 9 } }))
        .server("refuses", json!({ "initialize": { "refuse": "not today" } }))
        .server_with("no-program", json!({}), |entry| entry.command = "/etc/passwd".to_owned())
        .open()
        .await;
    bench.check("a.fake").await;
    let details: Vec<String> =
        bench.orchestrator.status().into_iter().map(|line| line.detail.unwrap_or_default()).collect();
    assert!(details[0].contains("exit code 9"), "{details:?}");
    assert!(details[1].contains("not found"), "{details:?}");
    assert!(details[2].contains("not today"), "{details:?}");
}

#[tokio::test]
async fn shutdown_asks_first_then_kills_and_reaches_grandchildren() {
    let deaf = json!({ "capabilities": { "textDocumentSync": 2 }, "deaf_to_eof": true, "deaf_to_sigterm": true, "deaf_to_exit": true, "child": true });
    let bench = Workbench::new()
        .file("a.fake", "")
        .server("polite", linter())
        .server("deaf", deaf)
        .option(|options| {
            options.timeouts.first_check = Duration::from_millis(1500);
            options.timeouts.polite = Duration::from_millis(200);
            options.timeouts.grace = Duration::from_millis(200);
        })
        .open()
        .await;
    bench.check("a.fake").await;
    bench.orchestrator.shutdown().await;
    assert_eq!(bench.received("polite", "shutdown").len(), 1);
    assert_eq!(bench.received("polite", "exit").len(), 1);
    for server in ["polite", "deaf"] {
        assert!(is_gone(pids(&bench, server, "started")[0]), "{server}");
    }
    let child = pids(&bench, "deaf", "child")[0];
    Workbench::until("the grandchild is killed with its process group", || is_gone(child)).await;
    assert!(bench.check("a.fake").await.value.is_empty(), "no server starts after shutdown");
}

#[tokio::test]
async fn children_of_a_dead_server_are_killed() {
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "child": true,
        "rules": [{ "on": "textDocument/didOpen", "do": [{ "exit": 1 }] }] });
    let bench = Workbench::new().file("a.fake", "").server("fake", script).patient().open().await;
    bench.check("a.fake").await;
    let child = pids(&bench, "fake", "child")[0];
    Workbench::until("the child is killed", || is_gone(child)).await;
}

#[tokio::test]
async fn stopped_server_times_out_and_recovers_when_continued() {
    let mut script = linter();
    script["capabilities"]["hoverProvider"] = json!(true);
    script["rules"].as_array_mut().unwrap().push(json!({ "on": "textDocument/hover", "do": ["reply_word"] }));
    let bench = Workbench::new().file("a.fake", "word").server("fake", script).patient().open().await;
    let path = bench.path("a.fake");
    bench.check("a.fake").await;
    let pid = pids(&bench, "fake", "started")[0];
    kill(pid, Signal::SIGSTOP).unwrap();
    for _ in 0..10 {
        let call = CallContext::within(Duration::from_millis(50));
        let answer = bench.orchestrator.hover(&path, Workbench::at(0, 0), &call).await.unwrap();
        assert_eq!(answer.gaps[0].why, GapReason::Pending);
    }
    kill(pid, Signal::SIGCONT).unwrap();
    let answer = bench.orchestrator.hover(&path, Workbench::at(0, 0), &Workbench::call()).await.unwrap();
    assert_eq!(answer.value.unwrap().parts[0].value, "word");
}

#[tokio::test]
async fn server_that_stops_reading_does_not_delay_other_servers() {
    let deaf = json!({ "capabilities": { "textDocumentSync": 1, "hoverProvider": true },
        "rules": [
            { "on": "textDocument/didOpen", "file": "a.fake", "do": ["stop_reading"] },
            { "on": "textDocument/hover", "file": "b.fake", "do": ["reply_word"] },
        ] });
    let bench = Workbench::new()
        .file("a.fake", &"word ".repeat(20_000))
        .file("b.fake", "word")
        .server_with("deaf", deaf, |entry| entry.capabilities = vec![Capability::Hover])
        .server("fine", linter())
        .patient()
        .open()
        .await;
    let (listened, place) = (bench.path("b.fake"), Workbench::at(0, 0));
    assert!(bench.orchestrator.hover(&listened, place, &Workbench::call()).await.unwrap().is_complete());
    // Fill its pipe, then its queue.
    let path = bench.path("a.fake");
    let call = CallContext::within(Duration::from_millis(500));
    let questions = (0..300).map(|_| bench.orchestrator.hover(&path, place, &call)).collect::<Vec<_>>();
    for answer in futures::future::join_all(questions).await {
        assert_eq!(answer.unwrap().gaps[0].why, GapReason::Pending);
    }
    bench.write("a.fake", "changed on disk");
    bench.write("b.fake", "bad");
    let answer = bench.check("b.fake").await;
    assert_eq!((answer.value.len(), answer.is_complete()), (1, true), "{answer:?}");
    // It gets no request before it has received the change.
    let call = CallContext::within(Duration::from_millis(50));
    let answer = bench.orchestrator.hover(&path, place, &call).await.unwrap();
    assert_eq!(answer.gaps[0].why, GapReason::Pending);
}

#[tokio::test]
async fn each_project_has_its_own_servers() {
    let bench = Workbench::new()
        .file("one/mark", "")
        .file("one/deep/a.fake", "bad")
        .file("two/mark", "")
        .file("two/a.fake", "")
        .file("a.fake", "")
        .server_with("fake", linter(), |entry| entry.root_markers = vec![vec!["mark".to_owned()]])
        .server_with("linter", linter(), |entry| {
            entry.root_markers = vec![vec!["mark".to_owned()]];
            entry.needs_marker = true;
        })
        .patient()
        .open()
        .await;
    for file in ["one/deep/a.fake", "two/a.fake", "a.fake", "one/deep/a.fake"] {
        assert!(bench.check(file).await.is_complete());
    }
    let lines: Vec<_> = bench
        .orchestrator
        .status()
        .into_iter()
        .map(|line| format!("{} {}", line.id, line.project.unwrap()))
        .collect();
    assert_eq!(lines, ["fake .", "fake one", "fake two", "linter one", "linter two"]);
}

#[tokio::test]
async fn least_recently_used_documents_are_closed_past_the_limit() {
    let mut builder = Workbench::new().server("fake", linter()).patient();
    for number in 0..130 {
        builder = builder.file(&format!("f{number:03}.fake"), "");
    }
    let bench = builder.open().await;
    for number in 0..128 {
        bench.check(&format!("f{number:03}.fake")).await;
    }
    bench.check("f000.fake").await;
    bench.check("f128.fake").await;
    bench.check("f129.fake").await;
    let closed: Vec<String> = bench
        .received("fake", "textDocument/didClose")
        .iter()
        .map(|message| {
            message["params"]["textDocument"]["uri"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
        })
        .collect();
    assert_eq!(closed, ["f001.fake", "f002.fake"]);
}
