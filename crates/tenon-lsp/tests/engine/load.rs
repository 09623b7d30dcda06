//! Many clients on one server: shares of it, questions beside edits, and a disk that never rests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};
use tenon_contract::epoch::Epoch;
use tenon_fake_lsp::Workbench;
use tenon_lsp::orchestrator::ChangedText;
use tokio_util::sync::CancellationToken;

const PULL: &str = "textDocument/diagnostic";
const REFERENCES: &str = "textDocument/references";
const LONG: Duration = Duration::from_secs(600);

/// A server that is asked for diagnostics, with more rules.
fn pulling(rules: Vec<Value>) -> Value {
    json!({ "rules": rules, "capabilities": {
        "textDocumentSync": 2, "diagnosticProvider": { "interFileDependencies": true },
        "documentSymbolProvider": true, "referencesProvider": true,
    }})
}

fn lint(file: &str) -> Value {
    json!({ "on": PULL, "file": file, "do": ["reply_lint"] })
}

/// Never answers.
fn silent(on: &str, file: &str) -> Value {
    json!({ "on": on, "file": file, "do": [] })
}

#[tokio::test]
async fn flood_of_one_client_delays_another_by_a_bounded_number_of_requests() {
    const FLOOD: usize = 60;
    let script = pulling(vec![silent(PULL, "flood.fake"), lint("other.fake")]);
    let mut builder = Workbench::new().file("other.fake", "bad").server("fake", script).patient();
    for number in 0..FLOOD {
        builder = builder.file(&format!("{number}-flood.fake"), "text");
    }
    let bench = builder.open().await;
    let cancels: Vec<CancellationToken> = (0..FLOOD).map(|_| CancellationToken::new()).collect();
    let mut flood: FuturesUnordered<_> = cancels
        .iter()
        .enumerate()
        .map(|(number, cancel)| {
            let (path, mut call) =
                (bench.path(&format!("{number}-flood.fake")), Workbench::call().for_client(1));
            call.cancel = cancel.clone();
            let orchestrator = &bench.orchestrator;
            async move {
                let _ = orchestrator.check(&path, None, &call).await;
                number
            }
        })
        .collect();
    let pulls = || bench.received_count("fake", PULL);
    let opened = Workbench::until("all are opened", || {
        bench.received_count("fake", "textDocument/didOpen") == FLOOD && pulls() > 0
    });
    tokio::select! {
        () = opened => {}
        ended = flood.next() => panic!("{ended:?} was answered"),
    }
    let at_server = pulls();
    let (path, call) = (bench.path("other.fake"), Workbench::call().for_client(2));
    let other = bench.orchestrator.check(&path, None, &call);
    tokio::pin!(other);
    let mut cancelled = cancels.iter();
    // Its document is opened before it waits for a place at the server.
    let is_opened = || bench.received_count("fake", "textDocument/didOpen") > FLOOD;
    let answer = loop {
        tokio::select! {
            biased;
            answer = &mut other => break answer.unwrap(),
            // A place at the server becomes free.
            Some(_) = flood.next() => {}
            () = tokio::task::yield_now() => if is_opened() && let Some(cancel) = cancelled.next() {
                cancel.cancel();
            },
        }
    };
    assert!(answer.is_complete() && answer.value.len() == 1);
    let own = bench.received("fake", PULL).iter().position(|one| {
        one["params"]["textDocument"]["uri"].as_str().is_some_and(|uri| uri.ends_with("other.fake"))
    });
    // Without turns it would come after the whole flood.
    assert!(at_server <= 8 && own.unwrap() < FLOOD / 2, "{at_server} at the server, then {own:?}");
    cancels.iter().for_each(CancellationToken::cancel);
    flood.collect::<Vec<_>>().await;
    bench.orchestrator.shutdown().await;
}

/// The names of files whose texts and diagnostics a server was sent and asked for, in order.
fn order(bench: &Workbench, skipped: usize) -> Vec<String> {
    let transcript = bench.transcript("fake");
    let shown = transcript.iter().skip(skipped).filter_map(|message| {
        let message = &message["in"];
        let method = message["method"].as_str()?;
        let sign = match method {
            PULL => '?',
            "textDocument/didOpen" | "textDocument/didChange" => '=',
            _ => return None,
        };
        let file = message["params"]["textDocument"]["uri"].as_str()?.rsplit('/').next()?;
        Some(format!("{sign}{file}"))
    });
    shown.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_checked_at_once_are_all_shown_before_the_first_request() {
    const FILES: usize = 6;
    let mut builder = Workbench::new().server("fake", pulling(vec![lint(".fake")])).patient();
    for number in 0..FILES {
        builder = builder.file(&format!("{number}.fake"), "text");
    }
    let bench = builder.open().await;
    for number in 0..FILES {
        bench.check(&format!("{number}.fake")).await;
    }
    let before = bench.transcript("fake").len();
    let checks =
        (0..FILES).map(|number| {
            let (orchestrator, path) = (bench.orchestrator.clone(), bench.path(&format!("{number}.fake")));
            async move {
                orchestrator.check(&path, Some("text bad".to_owned()), &Workbench::call()).await.unwrap()
            }
        });
    for answer in futures::future::join_all(checks).await {
        assert!(answer.is_complete() && answer.value.len() == 1, "{answer:?}");
    }
    let order = order(&bench, before);
    let (shown, asked) = order.split_at(FILES);
    assert!(shown.iter().all(|one| one.starts_with('=')), "{order:?}");
    assert!(asked.iter().all(|one| one.starts_with('?')), "{order:?}");
    bench.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn check_does_not_wait_for_one_whose_server_is_starting() {
    let slow = json!({ "rules": [{ "on": "initialize", "do": [] }] });
    let bench = Workbench::new()
        .file("a.fake", "text bad")
        .file("b.slow", "text")
        .server("fake", pulling(vec![lint(".fake")]))
        .server_with("slow", slow, |entry| {
            entry.extensions = [(".slow".to_owned(), "slow".to_owned())].into();
        })
        .patient()
        .open()
        .await;
    let (orchestrator, path) = (bench.orchestrator.clone(), bench.path("b.slow"));
    let call = Workbench::call();
    let cancel = call.cancel.clone();
    let starting = tokio::spawn(async move { orchestrator.check(&path, None, &call).await });
    Workbench::until("the server is starting", || bench.received_count("slow", "initialize") > 0).await;
    let answer = bench.check("a.fake").await;
    assert!(answer.is_complete() && answer.value.len() == 1, "{answer:?}");
    cancel.cancel();
    starting.await.unwrap().unwrap();
    bench.orchestrator.shutdown().await;
}

#[tokio::test]
async fn question_about_another_document_does_not_wait_for_an_edit() {
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 3 } });
    let symbols = json!([{ "name": "fun", "kind": 12, "range": range, "selectionRange": range }]);
    let script = pulling(vec![
        lint(".fake"),
        json!({ "on": "textDocument/documentSymbol", "do": [{ "reply": symbols }] }),
        silent(REFERENCES, "a.fake"),
    ]);
    let files = Workbench::new().file("a.fake", "fun\n").file("b.fake", "bad").server("fake", script);
    let bench = files.patient().open().await;
    bench.check("a.fake").await;
    bench.replace("a.fake", "funny\n");
    let changed = [ChangedText {
        path: bench.path("a.fake"),
        before: Some("fun\n".to_owned()),
        after: Some("funny\n".to_owned()),
    }];
    let editing = Workbench::call();
    let edit = bench.orchestrator.check_change(&changed, LONG, &editing);
    tokio::pin!(edit);
    let asked = Workbench::until("references are asked for", || bench.received_count("fake", REFERENCES) > 0);
    tokio::select! {
        () = asked => {}
        _ = &mut edit => panic!("the server does not answer"),
    }
    let epoch = || bench.orchestrator.epochs().get(Epoch::Text);
    let (path, call) = (bench.path("b.fake"), Workbench::call().beside_changes());
    let question = bench.orchestrator.check(&path, None, &call);
    let answer = tokio::select! {
        answer = question => answer.unwrap(),
        _ = &mut edit => panic!("the server does not answer"),
    };
    assert!(answer.is_complete() && answer.value.len() == 1);
    let before = epoch();
    editing.cancel.cancel();
    edit.await;
    assert!(epoch() > before, "a later question must not share the answer from before the edit");
    bench.orchestrator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rename_loop_does_not_keep_an_edit_waiting() {
    let script =
        pulling(vec![lint(".fake"), json!({ "on": "textDocument/documentSymbol", "do": [{ "reply": [] }] })]);
    let files = Workbench::new().file("a.fake", "text").file("x.fake", "x").server("fake", script);
    let bench = files.patient().open().await;
    bench.check("a.fake").await;
    let (from, to) = (bench.root().join("x.fake"), bench.root().join("y.fake"));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let renaming = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                std::fs::rename(&from, &to).unwrap();
                std::fs::rename(&to, &from).unwrap();
            }
        });
        let edits = async {
            let mut before = "text".to_owned();
            for number in 0..20 {
                let after = format!("bad {number}");
                bench.replace("a.fake", &after);
                let path = bench.path("a.fake");
                let changed = [ChangedText { path, before: Some(before), after: Some(after.clone()) }];
                let check = bench.orchestrator.check_change(&changed, LONG, &Workbench::call()).await;
                assert_eq!(check.changed[0].servers[0].after.as_ref().map(Vec::len), Some(1));
                before = after;
            }
        };
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(edits));
        stop.store(true, Ordering::Relaxed);
        renaming.join().unwrap();
    });
    bench.orchestrator.shutdown().await;
}

#[tokio::test]
async fn unchanged_document_is_not_pulled_again() {
    let bench = Workbench::new().file("a.fake", "bad").file("notes.txt", "1");
    let bench = bench.server("fake", pulling(vec![lint(".fake")])).patient().open().await;
    for _ in 0..3 {
        assert_eq!(bench.check("a.fake").await.value.len(), 1);
    }
    assert_eq!(bench.received_count("fake", PULL), 1);
    // The server may read any file, also one that it does not watch.
    bench.replace("notes.txt", "2");
    assert_eq!(bench.check("a.fake").await.value.len(), 1);
    assert_eq!(bench.received_count("fake", PULL), 2);
    bench.replace("a.fake", "text");
    assert!(bench.check("a.fake").await.value.is_empty());
    bench.orchestrator.shutdown().await;
}
