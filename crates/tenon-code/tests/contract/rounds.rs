//! §7.7: rounds over all files. A round after a change equals a round of a new process; no single file blocks a round.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tenon_code::{CodeError, ProviderFailure};
use tenon_fake_lsp::{Builder, Workbench};
use tenon_testkit::code_tools::{DOCUMENT_DIAGNOSTICS, WORKSPACE_DIAGNOSTICS};

use crate::stage::{Stage, server_id};

const PULL: &str = "textDocument/diagnostic";

/// A server whose diagnostics of a file depend on the files that it imports.
fn importing() -> Value {
    let watchers = json!({ "registrations": [{ "id": "w", "method": "workspace/didChangeWatchedFiles",
        "registerOptions": { "watchers": [{ "globPattern": "**/*" }] } }] });
    json!({
        "capabilities": {
            "textDocumentSync": 1,
            "diagnosticProvider": { "interFileDependencies": true, "workspaceDiagnostics": false },
        },
        "rules": [
            { "on": "initialized", "do": [{ "request": { "method": "client/registerCapability", "params": watchers } }] },
            { "on": PULL, "do": ["reply_imports"] },
        ],
    })
}

fn with_extension(builder: Builder, script: Value, extension: &str) -> Builder {
    let extensions = [(extension.to_owned(), "fake".to_owned())];
    builder.server_with("fake", script, move |entry| entry.extensions = extensions.into())
}

fn workspace(files: &BTreeMap<String, String>) -> Stage {
    let builder = files.iter().fold(Workbench::new(), |builder, (name, text)| builder.file(name, text));
    Stage::open(with_extension(builder, importing(), ".py"))
}

/// File names, lines and messages.
fn findings(stage: &Stage) -> Vec<String> {
    let payload = stage.payload(WORKSPACE_DIAGNOSTICS, json!({ "pageSize": 200 }));
    let mut found = Vec::new();
    for file in payload["items"].as_array().unwrap() {
        let name = file["uri"].as_str().unwrap().rsplit('/').next().unwrap();
        for one in file["diagnostics"].as_array().unwrap() {
            found.push(format!("{name}:{} {}", one["range"]["start"]["line"], one["message"]));
        }
    }
    found
}

#[test]
fn edit_checks_only_the_file_and_its_importers_again() {
    let files = [("a.py", "x = 1\n"), ("b.py", "import a\n"), ("c.py", "import b\n"), ("d.py", "x = 2\n")];
    let stage = workspace(&files.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
    assert_eq!(findings(&stage), Vec::<String>::new());
    let pulled = |stage: &Stage| stage.bench.received_count("fake", PULL);
    assert_eq!(pulled(&stage), 4);
    stage.bench.replace("d.py", "bad\n");
    assert_eq!(findings(&stage).len(), 1);
    assert_eq!(pulled(&stage), 5);
    stage.bench.replace("a.py", "bad\n");
    let expected =
        ["a.py:0 \"this is bad\"", "b.py:0 \"a is bad\"", "c.py:0 \"a is bad\"", "d.py:0 \"this is bad\""];
    assert_eq!(findings(&stage), expected);
    assert_eq!(pulled(&stage), 8);
    assert_eq!(findings(&stage), expected);
    assert_eq!(pulled(&stage), 8, "nothing changed");
    stage.bench.replace("b.py", "import new\n");
    assert_eq!(findings(&stage)[1..3], ["b.py:0 \"new is missing\"", "c.py:0 \"new is missing\""]);
    stage.bench.write("new.py", "x = 3\n");
    assert_eq!(findings(&stage), ["a.py:0 \"this is bad\"", "d.py:0 \"this is bad\""]);
    std::fs::remove_file(stage.bench.root().join("new.py")).unwrap();
    assert_eq!(findings(&stage)[1..3], ["b.py:0 \"new is missing\"", "c.py:0 \"new is missing\""]);
}

/// A text of a small language: imports of other files, and `bad`.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        (0..6_u8).prop_map(|number| format!("import m{number}\n")),
        Just("x = 1\n".to_owned()),
        Just("bad\n".to_owned()),
    ];
    prop::collection::vec(line, 0..3).prop_map(|lines| lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn round_after_random_edits_equals_the_first_round_of_a_new_process(
        first in prop::collection::vec(text(), 6),
        edits in prop::collection::vec(prop::collection::vec((0..6_usize, prop::option::of(text())), 1..3), 1..6),
    ) {
        let name = |number: usize| format!("m{number}.py");
        let mut files: BTreeMap<String, String> =
            first.into_iter().enumerate().map(|(number, text)| (name(number), text)).collect();
        let stage = workspace(&files);
        findings(&stage);
        for batch in edits {
            for (number, text) in batch {
                match text {
                    Some(text) => {
                        stage.bench.replace(&name(number), &text);
                        files.insert(name(number), text);
                    }
                    None if files.remove(&name(number)).is_some() => {
                        std::fs::remove_file(stage.bench.root().join(name(number))).unwrap();
                    }
                    None => {}
                }
            }
            prop_assert_eq!(findings(&stage), findings(&workspace(&files)));
        }
    }
}

#[test]
fn edit_during_a_round_does_not_start_it_over() {
    let mut script = importing();
    script["rules"][1]["do"] = json!([{ "wait_ms": 150 }, "reply_imports"]);
    let names: Vec<String> = (0..70).map(|number| format!("f{number:02}.py")).collect();
    let builder = names.iter().fold(Workbench::new(), |builder, name| builder.file(name, "x = 1\n"));
    let stage = Stage::with(with_extension(builder, script, ".py"), |settings| {
        settings.limits.timeout = Duration::from_millis(100);
    });
    while stage.bench.received_count("fake", PULL) < 40 {
        let _ = stage.ask(WORKSPACE_DIAGNOSTICS, json!({}));
    }
    stage.bench.replace("f69.py", "bad\n");
    assert_eq!(findings(&stage), ["f69.py:0 \"this is bad\""]);
    // The files of the batch in progress and the edited one at most are requested twice.
    assert!(stage.bench.received_count("fake", PULL) <= 70 + 32 + 1);
}

#[test]
fn file_that_ends_a_server_is_named_and_the_others_are_checked() {
    let mut script = importing();
    script["rules"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "on": "textDocument/didOpen", "text": "poison", "do": [{ "exit": 1 }] }));
    let builder = Workbench::new().file("a.py", "bad\n").file("b.py", "poison\n").file("c.py", "bad\n");
    let stage = Stage::open(with_extension(builder, script, ".py"));
    let payload = stage.payload(WORKSPACE_DIAGNOSTICS, json!({}));
    assert_eq!(payload["summary"], "Returned diagnostics for 2 files. Not checked: b.py (fake ended).");
    // It is not shown to the server again, so the server keeps running.
    let failure = stage.error(DOCUMENT_DIAGNOSTICS, json!({ "uri": stage.uri("b.py") }));
    let refused = CodeError::Provider { server: server_id("fake"), failure: ProviderFailure::Refused };
    assert_eq!(failure, refused);
    stage.bench.replace("a.py", "x = 1\n");
    let payload = stage.payload(WORKSPACE_DIAGNOSTICS, json!({}));
    assert_eq!(payload["summary"], "Returned diagnostics for 1 file. Not checked: b.py (fake ended).");
    stage.bench.replace("b.py", "bad\n");
    let payload = stage.payload(WORKSPACE_DIAGNOSTICS, json!({}));
    assert_eq!(payload["summary"], "Returned diagnostics for 2 files.");
}

#[test]
fn file_without_an_answer_is_named_and_the_others_are_checked() {
    let script = json!({
        "capabilities": { "textDocumentSync": 1 },
        "rules": [
            { "on": "textDocument/didOpen", "file": "a.fake", "do": [{ "publish": { "uri": "$uri" } }] },
            { "on": "textDocument/didOpen", "file": "c.fake", "do": [{ "publish": { "uri": "$uri" } }] },
        ],
    });
    let builder = Workbench::new().file("a.fake", "bad").file("b.fake", "bad").file("c.fake", "bad");
    let builder = builder.server("fake", script).option(|options| {
        options.timeouts.check = Duration::from_millis(200);
        options.timeouts.stalled = Duration::from_millis(600);
        options.timeouts.alone = Duration::from_secs(1);
    });
    let stage = Stage::open(builder);
    let payload = stage.payload(WORKSPACE_DIAGNOSTICS, json!({}));
    assert_eq!(
        payload["summary"],
        "Returned diagnostics for 2 files. Not checked: b.fake (fake did not finish)."
    );
}

#[test]
fn server_that_rejects_every_file_is_counted_beside_one_that_answers() {
    let error = json!({ "code": 1, "message": "/etc/passwd" });
    let rejecting = json!({
        "capabilities": {
            "textDocumentSync": 1, "documentSymbolProvider": true,
            "diagnosticProvider": { "interFileDependencies": true, "workspaceDiagnostics": false },
        },
        "rules": [
            { "on": PULL, "do": [{ "refuse": error }] },
            { "on": "textDocument/documentSymbol", "file": "deep.py", "do": [{ "refuse": error }] },
            { "on": "textDocument/documentSymbol", "do": [{ "reply": [] }] },
        ],
    });
    let names = ["a.py", "b.py", "c.py", "d.py", "deep.py"];
    let builder = names.iter().fold(Workbench::new(), |builder, name| builder.file(name, "x = 1\n"));
    let alone = Stage::open(with_extension(builder, rejecting.clone(), ".py"));
    let failure = ProviderFailure::Rejected("deep.py".to_owned());
    let expected = CodeError::Provider { server: server_id("fake"), failure };
    assert_eq!(alone.error(WORKSPACE_DIAGNOSTICS, json!({})), expected);

    let builder = names.iter().fold(Workbench::new(), |builder, name| builder.file(name, "x = 1\n"));
    let builder = builder.file("a.fake", "bad").server("other", tenon_fake_lsp::scripts::script(&[]));
    let stage = Stage::open(with_extension(builder, rejecting, ".py"));
    let payload = stage.payload(WORKSPACE_DIAGNOSTICS, json!({}));
    let expected =
        "Returned diagnostics for 1 file. Not checked: deep.py (fake cannot read it), 4 files (fake failed).";
    assert_eq!(payload["summary"], expected);
}

#[test]
fn unreadable_files_are_named() {
    let builder = Workbench::new().file("a.fake", "bad").server("fake", tenon_fake_lsp::scripts::script(&[]));
    let stage = Stage::open(builder);
    std::fs::write(stage.bench.root().join("binary.fake"), [0xff, 0xfe, 0x00]).unwrap();
    std::fs::write(stage.bench.root().join("large.fake"), vec![b'x'; 9 << 20]).unwrap();
    let payload = stage.payload(WORKSPACE_DIAGNOSTICS, json!({}));
    let expected = "Returned diagnostics for 1 file. Not checked: binary.fake (it is not UTF-8 text), large.fake (it is \
                    larger than 8388608 bytes).";
    assert_eq!(payload["summary"], expected);
}
