//! Encodings, line ends, byte order marks and file names.

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;

fn script(encoding: &str) -> Value {
    json!({
        "capabilities": { "positionEncoding": encoding, "textDocumentSync": 2, "hoverProvider": true,
            "definitionProvider": true, "referencesProvider": true, "diagnosticProvider": {} },
        "rules": [
            { "on": "textDocument/hover", "do": ["reply_word"] },
            { "on": "textDocument/definition", "do": ["reply_here"] },
            { "on": "textDocument/diagnostic", "do": ["reply_lint"] },
        ],
    })
}

const ENCODINGS: [&str; 3] = ["utf-8", "utf-16", "utf-32"];

/// The UTF-16 column of a word on its line.
fn column(line: &str, word: &str) -> u32 {
    let before = &line[..line.find(word).unwrap()];
    u32::try_from(before.encode_utf16().count()).unwrap()
}

#[tokio::test]
async fn positions_are_converted_for_every_encoding() {
    let lines =
        ["plain target", "é target bad", "😀😀 target bad", "e\u{301}👩‍👩‍👧 target bad", "日本語 target bad"];
    let text = lines.join("\n");
    for encoding in ENCODINGS {
        let bench =
            Workbench::new().file("a.fake", &text).server("fake", script(encoding)).patient().open().await;
        let path = bench.path("a.fake");
        for (number, line) in (0..).zip(lines) {
            let at = Workbench::at(number, column(line, "target"));
            let hover = bench.orchestrator.hover(&path, at, &Workbench::call()).await.unwrap();
            assert_eq!(hover.value.unwrap().parts[0].value, "target", "{encoding} {line}");
            let definition = bench.orchestrator.definition(&path, at, &Workbench::call()).await.unwrap();
            assert_eq!(definition.value[0].range.start, at, "{encoding} {line}");
        }
        let found: Vec<_> = bench.check("a.fake").await.value.iter().map(|one| one.range.start).collect();
        let expected: Vec<_> =
            (1..).zip(&lines[1..]).map(|(number, line)| Workbench::at(number, column(line, "bad"))).collect();
        assert_eq!(found, expected, "{encoding}");
    }
}

#[tokio::test]
async fn edits_reach_the_server_in_every_encoding() {
    let texts = [
        "one\r\ntwo bad\r\nthree",
        "one\r\n😀 two bad\r\nthree",
        "one\n😀😁 two bad\nbad",
        "",
        "bad",
        "\r\n\r\n\rbad\r\n",
        "\r\n\r\nbad\r\n",
        "e\u{301}bad",
        "\u{301}bad\u{301}",
    ];
    for encoding in ENCODINGS {
        let bench =
            Workbench::new().file("a.fake", "").server("fake", script(encoding)).patient().open().await;
        for text in texts.iter().chain(texts.iter().rev()) {
            let answer = bench.check_text("a.fake", Some(text)).await;
            let lines = tenon_contract::position::LineIndex::new(*text);
            let expected: Vec<_> = text
                .match_indices("bad")
                .map(|(at, _)| lines.position(at, tenon_contract::position::Encoding::Utf16).unwrap())
                .collect();
            let found: Vec<_> = answer.value.iter().map(|one| one.range.start).collect();
            assert_eq!(found, expected, "{encoding} {text:?}");
        }
    }
}

#[tokio::test]
async fn byte_order_mark_does_not_count_as_a_character() {
    for encoding in ENCODINGS {
        let bench = Workbench::new()
            .file("a.fake", "\u{feff}target bad")
            .server("fake", script(encoding))
            .open()
            .await;
        let path = bench.path("a.fake");
        let hover = bench.orchestrator.hover(&path, Workbench::at(0, 0), &Workbench::call()).await.unwrap();
        assert_eq!(hover.value.unwrap().parts[0].value, "target");
        assert_eq!(bench.check("a.fake").await.value[0].range.start, Workbench::at(0, 7));
        assert_eq!(
            bench.received("fake", "textDocument/didOpen")[0]["params"]["textDocument"]["text"],
            "target bad"
        );
    }
}

#[tokio::test]
async fn files_may_have_any_name() {
    for name in
        ["with space.fake", "a#b.fake", "50%25.fake", "übung/日本.fake", "[id]+(x)'&,;=.fake", "q?.fake"]
    {
        let bench =
            Workbench::new().file(name, "target bad").server("fake", script("utf-16")).patient().open().await;
        let path = bench.path(name);
        assert_eq!(bench.check(name).await.value.len(), 1, "{name}");
        let definition =
            bench.orchestrator.definition(&path, Workbench::at(0, 2), &Workbench::call()).await.unwrap();
        assert_eq!(definition.value[0].path, path, "{name}");
        let known = bench.orchestrator.diagnostics().await;
        assert_eq!(known.keys().collect::<Vec<_>>(), [&path], "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn texts_of_concurrent_checks_are_applied_in_the_order_of_the_calls() {
    for round in 0..30 {
        let bench = Workbench::new()
            .file("a.fake", "on disk")
            .server("fake", tenon_fake_lsp::scripts::linter())
            .patient()
            .open()
            .await;
        let path = bench.path("a.fake");
        let checks: Vec<_> = (0..10)
            .map(|number| {
                let call = Workbench::call().in_order();
                let (orchestrator, path) = (bench.orchestrator.clone(), path.clone());
                let text = if number == 9 { "bad".to_owned() } else { format!("text {number}") };
                tokio::spawn(async move { orchestrator.check(&path, Some(text), &call).await.unwrap() })
            })
            .collect();
        let answers = futures::future::join_all(checks).await;
        let last = answers.last().unwrap().as_ref().unwrap();
        assert!(last.is_complete(), "round {round}: {last:?}");
        assert_eq!(Workbench::shown(&last.value), ["0:0 this is bad"], "round {round}");
        assert_eq!(bench.orchestrator.diagnostics().await.len(), 1, "round {round}");
    }
}
