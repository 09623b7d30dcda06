//! Names, declarations and places outside the roots: positions beside a name, and references without declarations.

use serde_json::{Value, json};
use tenon_contract::position::Position;
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::{location, range, reply, script, symbol};
use tenon_lsp::model::{AnswerNote, Gap, GapReason, Location};
use tenon_servers::registry::{ReadinessRule, ServerId};

fn starts(bench: &Workbench, locations: &[Location]) -> Vec<String> {
    let gate = bench.orchestrator.gate();
    locations.iter().map(|one| format!("{}:{}", gate.display(&one.path), one.range.start)).collect()
}

fn declared(name: &str, kind: u32, full: [u32; 4], selection: [u32; 4]) -> Value {
    json!({ "name": name, "kind": kind, "range": range(full), "selectionRange": range(selection) })
}

/// Finds nothing the first time, as servers do beside a name.
fn second_time(method: &str, value: Value) -> [Value; 2] {
    [
        json!({ "on": method, "nth": 1, "do": [{ "reply": null }] }),
        json!({ "on": method, "from": 2, "do": [{ "reply": value }] }),
    ]
}

#[tokio::test]
async fn position_beside_a_name_is_asked_again_at_the_name() {
    let here = location("$root/a.fake", [1, 8, 1, 9]);
    let mut rules = vec![reply(
        "textDocument/documentSymbol",
        json!([declared("C", 5, [0, 0, 2, 8], [0, 6, 0, 7]), declared("f", 6, [1, 4, 2, 8], [1, 8, 1, 9])]),
    )];
    rules.extend(second_time("textDocument/definition", json!([here.clone()])));
    rules.extend(second_time("textDocument/references", json!([here])));
    rules.extend(second_time("textDocument/hover", json!({ "contents": "f" })));
    let text = "class C:\n    def f():\n        \n";
    let bench = Workbench::new().file("a.fake", text).server("fake", script(&rules)).open().await;
    let (path, call) = (bench.path("a.fake"), Workbench::call());
    let note = AnswerNote::AskedAtName { name: "f".to_owned(), at: Position::new(1, 8) };
    let at = Workbench::at(1, 4);
    let found = bench.orchestrator.definition(&path, at, &call).await.unwrap();
    assert_eq!(
        (starts(&bench, &found.value), found.notes),
        (vec!["a.fake:1:8".to_owned()], vec![note.clone()])
    );
    let found = bench.orchestrator.references(&path, at, true, &call).await.unwrap();
    assert_eq!(
        (starts(&bench, &found.value), found.notes),
        (vec!["a.fake:1:8".to_owned()], vec![note.clone()])
    );
    let found = bench.orchestrator.hover(&path, at, &call).await.unwrap();
    assert_eq!((found.value.unwrap().parts.len(), found.notes), (1, vec![note]));
}

#[tokio::test]
async fn nothing_at_a_word_of_the_body_stays_nothing() {
    let rules = [
        reply("textDocument/documentSymbol", json!([declared("f", 12, [0, 0, 1, 6], [0, 4, 0, 5])])),
        reply("textDocument/definition", json!(null)),
    ];
    let bench =
        Workbench::new().file("a.fake", "def f(x):\n  pass\n").server("fake", script(&rules)).open().await;
    let path = bench.path("a.fake");
    for (line, character) in [(0, 6), (1, 0), (1, 3)] {
        let at = Workbench::at(line, character);
        let found = bench.orchestrator.definition(&path, at, &Workbench::call()).await.unwrap();
        assert!(found.value.is_empty() && found.notes.is_empty(), "{line}:{character}");
    }
    assert_eq!(bench.received_count("fake", "textDocument/definition"), 3, "asked once each");
}

#[tokio::test]
async fn references_without_declarations_leave_out_definitions_and_overloads() {
    let at = |line: u32| location("$root/a.fake", [line, 0, line, 1]);
    let rules = [
        reply("textDocument/references", json!([at(0), at(1), at(2), at(3), at(4)])),
        // From the use, the first overload; from there, the implementation.
        json!({ "on": "textDocument/definition", "nth": 1, "do": [{ "reply": [at(0)] }] }),
        json!({ "on": "textDocument/definition", "from": 2, "do": [{ "reply": [at(2)] }] }),
        reply(
            "textDocument/documentSymbol",
            json!([0, 1, 2].map(|line| declared("f", 12, [line, 0, line, 2], [line, 0, line, 1]))),
        ),
    ];
    let bench =
        Workbench::new().file("a.fake", "f;\nf;\nf;\nf;\nf;\n").server("fake", script(&rules)).open().await;
    let path = bench.path("a.fake");
    let found =
        bench.orchestrator.references(&path, Workbench::at(4, 0), false, &Workbench::call()).await.unwrap();
    assert_eq!(starts(&bench, &found.value), ["a.fake:3:0", "a.fake:4:0"]);
    let asked = &bench.received("fake", "textDocument/references")[0]["params"]["context"];
    assert_eq!(*asked, json!({ "includeDeclaration": true }), "servers disagree on what to leave out");
}

#[tokio::test]
async fn alias_on_the_way_to_a_declaration_is_a_reference() {
    let (import, class) = (location("$root/a.fake", [0, 0, 0, 1]), location("$root/b.fake", [0, 0, 0, 1]));
    let rules = [
        reply("textDocument/references", json!([class, import, location("$root/a.fake", [1, 0, 1, 1])])),
        json!({ "on": "textDocument/definition", "file": "a.fake", "nth": 1, "do": [{ "reply": [import] }] }),
        json!({ "on": "textDocument/definition", "file": "a.fake", "from": 2, "do": [{ "reply": [class] }] }),
        json!({ "on": "textDocument/definition", "file": "b.fake", "do": [{ "reply": [class] }] }),
        reply("textDocument/documentSymbol", json!([])),
    ];
    let builder = Workbench::new().file("a.fake", "x\nx\n").file("b.fake", "x\n");
    let bench = builder.server("fake", script(&rules)).open().await;
    let path = bench.path("a.fake");
    let found =
        bench.orchestrator.references(&path, Workbench::at(1, 0), false, &Workbench::call()).await.unwrap();
    assert_eq!(starts(&bench, &found.value), ["a.fake:0:0", "a.fake:1:0"]);
}

#[tokio::test]
async fn server_that_refuses_definitions_leaves_out_declarations_itself() {
    let rules = [reply("textDocument/references", json!([location("$root/a.fake", [0, 0, 0, 1])]))];
    let bench = Workbench::new().file("a.fake", "x\n").server("fake", script(&rules)).open().await;
    let path = bench.path("a.fake");
    let found =
        bench.orchestrator.references(&path, Workbench::at(0, 0), false, &Workbench::call()).await.unwrap();
    assert!(found.is_complete() && found.value.len() == 1, "{found:?}");
    let asked = &bench.received("fake", "textDocument/references")[0]["params"]["context"];
    assert_eq!(*asked, json!({ "includeDeclaration": false }));
}

#[tokio::test]
async fn definition_outside_the_roots_is_noted() {
    let outside = |file: &str| location(file, [0, 0, 0, 1]);
    let both = json!([outside("file:///usr/lib/python3.11/json/__init__.py"), outside("$root/gone.fake")]);
    let builder = Workbench::new().file("a.fake", "x\n");
    let bench = builder.server("fake", script(&[reply("textDocument/definition", both)])).open().await;
    let path = bench.path("a.fake");
    let found = bench.orchestrator.definition(&path, Workbench::at(0, 0), &Workbench::call()).await.unwrap();
    assert!(found.value.is_empty());
    let notes: Vec<String> = found
        .notes
        .iter()
        .map(|note| match note {
            AnswerNote::Outside(place) => place.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(notes, ["json/__init__.py in Python's standard library"]);
}

#[tokio::test]
async fn name_of_a_flat_symbol_is_found_in_the_text() {
    let whole = [0, 0, 1, 1];
    let rules = [
        reply("workspace/symbol", json!([symbol("größe", 12, "$root/a.fake", whole)])),
        reply("textDocument/documentSymbol", json!([symbol("größe", 12, "$root/a.fake", whole)])),
    ];
    let text = "'😀' function größe() {\n}\n";
    let bench = Workbench::new().file("a.fake", text).server("fake", script(&rules)).open().await;
    let of_workspace = bench.orchestrator.workspace_symbols("g", &Workbench::call()).await.value;
    let path = bench.path("a.fake");
    let of_document = bench.orchestrator.document_symbols(&path, &Workbench::call()).await.unwrap().value;
    for found in [of_workspace, of_document] {
        assert_eq!(found[0].range.start, Position::new(0, 0));
        assert_eq!(
            (found[0].selection.start, found[0].selection.end),
            (Position::new(0, 14), Position::new(0, 19))
        );
    }
}

#[tokio::test]
async fn workspace_symbols_name_servers_that_are_loading_or_missing() {
    let found =
        || script(&[reply("workspace/symbol", json!([symbol("x", 12, "$root/a.fake", [0, 0, 0, 1])]))]);
    let bench = Workbench::new()
        .file("a.fake", "x\n")
        .server("fine", found())
        .server_with("loading", found(), |entry| {
            entry.ready = Some(ReadinessRule::LogMessage { contains: "never".to_owned() });
        })
        .server_with("missing", found(), |entry| {
            entry.command = "no-such-program".to_owned();
            entry.user_command = false;
        })
        .open()
        .await;
    let call = tenon_lsp::CallContext::within(std::time::Duration::from_secs(2));
    let answer = bench.orchestrator.workspace_symbols("x", &call).await;
    assert_eq!(answer.value.len(), 1);
    let gap = |server: &str, why| Gap { server: ServerId::new(server).unwrap(), why };
    let missing = GapReason::Unavailable("not found".to_owned());
    assert_eq!(answer.gaps, [gap("loading", GapReason::Indexing), gap("missing", missing)]);
}
