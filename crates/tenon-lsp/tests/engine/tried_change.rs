//! Changes that are only tried: what they would break is reported, and no other answer is about the tried text.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tenon_fake_lsp::{Builder, Workbench};
use tenon_lsp::CallContext;
use tenon_lsp::orchestrator::{ChangedText, ServerCheck, TriedChange, TryError};

const LONG: Duration = Duration::from_secs(600);
const DISK: &str = "word\nimport b\n";
const TRIED: &str = "tried\nbad\n";

/// A server that reports each `bad`, and tells the word at a position.
fn server(more: &[Value]) -> Value {
    let publish = json!([{ "publish": { "uri": "$uri" } }]);
    let mut rules = vec![
        json!({ "on": "textDocument/didOpen", "do": publish }),
        json!({ "on": "textDocument/didChange", "do": publish }),
        json!({ "on": "textDocument/hover", "do": ["reply_word"] }),
    ];
    rules.extend_from_slice(more);
    json!({ "capabilities": { "textDocumentSync": 2, "hoverProvider": true }, "rules": rules })
}

fn files() -> Builder {
    Workbench::new().file("a.fake", DISK).file("b.fake", "bad\n")
}

fn tried(bench: &Workbench) -> Vec<ChangedText> {
    vec![ChangedText {
        path: bench.path("a.fake"),
        before: Some(DISK.to_owned()),
        after: Some(TRIED.to_owned()),
    }]
}

async fn try_it(bench: &Workbench) -> Result<TriedChange, TryError> {
    bench.orchestrator.try_change(&tried(bench), LONG, &Workbench::call()).await
}

/// The first word that the server sees in `a.fake`.
async fn word(bench: &Workbench) -> String {
    let hover =
        bench.orchestrator.hover(&bench.path("a.fake"), Workbench::at(0, 1), &Workbench::call()).await;
    hover.unwrap().value.map(|hover| hover.parts[0].value.clone()).unwrap_or_default()
}

fn counts(own: &ServerCheck) -> (Option<usize>, Option<usize>) {
    (own.before.as_ref().map(Vec::len), own.after.as_ref().map(Vec::len))
}

#[tokio::test]
async fn try_reports_the_difference_and_leaves_nothing_behind() {
    let bench = files().server("fake", server(&[])).patient().open().await;
    for _ in 0..3 {
        let found = try_it(&bench).await.unwrap();
        assert_eq!(counts(&found.check.changed[0].servers[0]), (Some(0), Some(1)), "{found:?}");
        assert_eq!((found.saved_only, found.disk_readers), (Vec::new(), Vec::new()));
        assert_eq!(word(&bench).await, "word");
        let checked = bench.check("a.fake").await;
        assert!(checked.is_complete() && checked.value.is_empty(), "{checked:?}");
    }
    assert_eq!(std::fs::read_to_string(bench.root().join("a.fake")).unwrap(), DISK);
    assert!(bench.received("fake", "textDocument/didSave").is_empty());
    // A real change to the same text is compared with the text on disk.
    bench.replace("a.fake", TRIED);
    let check = bench.orchestrator.check_change(&tried(&bench), LONG, &Workbench::call()).await;
    assert_eq!(counts(&check.changed[0].servers[0]), (Some(0), Some(1)), "{check:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_question_sees_a_tried_text() {
    let bench = files().server_with("fake", server(&[]), |entry| entry.settle_ms = 5);
    let bench = Arc::new(bench.patient().open().await);
    let done = Arc::new(AtomicBool::new(false));
    let asked = Arc::new(AtomicUsize::new(0));
    let askers: Vec<_> = (0..4)
        .map(|number| {
            let (bench, done, asked) = (Arc::clone(&bench), Arc::clone(&done), Arc::clone(&asked));
            tokio::spawn(async move {
                while !done.load(Ordering::Relaxed) {
                    if number % 2 == 0 {
                        assert_eq!(word(&bench).await, "word");
                    } else {
                        let checked = bench.check("a.fake").await;
                        assert!(checked.value.is_empty(), "{checked:?}");
                        let known = bench.orchestrator.current_diagnostics(&Workbench::call()).await.0;
                        assert!(!known.contains_key(&bench.path("a.fake")), "{known:?}");
                    }
                    asked.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for number in 0..500 {
        let found = try_it(&bench).await.unwrap();
        assert_eq!(counts(&found.check.changed[0].servers[0]), (Some(0), Some(1)), "try {number}: {found:?}");
    }
    done.store(true, Ordering::Relaxed);
    for asker in askers {
        asker.await.unwrap();
    }
    assert!(asked.load(Ordering::Relaxed) > 100, "{asked:?} questions");
    assert_eq!(word(&bench).await, "word");
}

#[tokio::test]
async fn abandoned_try_shows_the_text_on_disk_again() {
    // No diagnostics for the tried text: the try waits until it is dropped or its time is over.
    let silent = json!({ "capabilities": { "textDocumentSync": 2, "hoverProvider": true }, "rules": [
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "text": "word", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/hover", "do": ["reply_word"] },
    ]});
    let bench = files().server("fake", silent).patient().open().await;
    bench.check("a.fake").await;
    let shown = |bench: &Workbench| bench.received_count("fake", "textDocument/didChange");
    // Dropped.
    {
        let trying = try_it(&bench);
        tokio::pin!(trying);
        let seen = Workbench::until("the tried text was shown", || shown(&bench) > 0);
        tokio::select! {
            found = &mut trying => panic!("{found:?}"),
            () = seen => {}
        }
    }
    assert_eq!(word(&bench).await, "word");
    // Cancelled.
    let call = Workbench::call();
    let before = shown(&bench);
    let files = tried(&bench);
    let (found, ()) = tokio::join!(bench.orchestrator.try_change(&files, LONG, &call), async {
        Workbench::until("the tried text was shown", || shown(&bench) > before).await;
        call.cancel.cancel();
    });
    assert_eq!(counts(&found.unwrap().check.changed[0].servers[0]).1, None);
    assert_eq!(word(&bench).await, "word");
    // Out of time.
    let call = CallContext::within(Duration::from_millis(300));
    let found = bench.orchestrator.try_change(&files, LONG, &call).await;
    assert!(found.is_err() || counts(&found.unwrap().check.changed[0].servers[0]).1.is_none());
    assert_eq!(word(&bench).await, "word");
}

#[tokio::test]
async fn file_that_changes_during_a_try_is_shown_with_its_new_text() {
    let bench = files().server("fake", server(&[])).patient().open().await;
    bench.check("a.fake").await;
    let files = tried(&bench);
    let call = Workbench::call();
    let (_, ()) = tokio::join!(bench.orchestrator.try_change(&files, LONG, &call), async {
        bench.replace("a.fake", "newer\n");
    });
    assert_eq!(word(&bench).await, "newer");
    assert!(bench.check("a.fake").await.value.is_empty());
}

#[tokio::test]
async fn long_question_makes_a_try_give_up_and_is_not_disturbed() {
    let mut script = server(&[
        json!({ "on": "textDocument/hover", "nth": 1, "do": ["reply_word"] }),
        json!({ "on": "textDocument/hover", "nth": 2, "do": [{ "wait_ms": 600_000 }] }),
    ]);
    // Instead of the rule that answers always.
    script["rules"].as_array_mut().unwrap().remove(2);
    let bench = files().server("fake", script).patient().open().await;
    assert_eq!(word(&bench).await, "word");
    let path = bench.path("a.fake");
    let call = Workbench::call();
    let question = bench.orchestrator.hover(&path, Workbench::at(0, 1), &call);
    tokio::pin!(question);
    let sent =
        Workbench::until("the question was sent", || bench.received_count("fake", "textDocument/hover") > 1);
    tokio::select! {
        answer = &mut question => panic!("{answer:?}"),
        () = sent => {}
    }
    let busy = tenon_lsp::ServerId::new("fake").unwrap();
    tokio::select! {
        answer = &mut question => panic!("{answer:?}"),
        found = try_it(&bench) => assert_eq!(found.unwrap_err(), TryError::Busy(busy)),
    }
    assert_eq!(bench.received_count("fake", "textDocument/didChange"), 0);
}

#[tokio::test]
async fn what_a_server_finds_only_in_saved_files_is_named() {
    let bench = files().server_with("fake", server(&[]), |entry| {
        entry.on_save = serde_json::from_value(json!({ "sources": ["saved"] })).unwrap();
        entry.rebuilds = true;
    });
    let bench = bench.patient().open().await;
    let found = try_it(&bench).await.unwrap();
    let names = |list: &[tenon_lsp::ServerId]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        (names(&found.saved_only), names(&found.disk_readers)),
        (vec!["fake".to_owned()], vec!["fake".to_owned()])
    );
    assert_eq!(counts(&found.check.changed[0].servers[0]), (Some(0), Some(1)), "{found:?}");
}
