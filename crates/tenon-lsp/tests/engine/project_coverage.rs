//! Which files a server has open for a query about the workspace, whatever was queried before.

use serde_json::{Value, json};
use tenon_fake_lsp::{Builder, Workbench};
use tenon_lsp::model::{Doubt, GapReason};
use tenon_servers::project_files::ProjectKind;
use tenon_servers::registry::ServerEntry;

/// A server that finds nothing.
fn script() -> Value {
    let rule = |on: &str| json!({ "on": on, "do": [{ "reply": [] }] });
    json!({
        "capabilities": { "textDocumentSync": 2, "referencesProvider": true, "workspaceSymbolProvider": true },
        "rules": [
            rule("textDocument/references"), rule("workspace/symbol"), rule("textDocument/selectionRange"),
        ],
    })
}

fn typescript(entry: &mut ServerEntry) {
    entry.extensions = [(".ts".to_owned(), "typescript".to_owned())].into();
    entry.projects = Some(ProjectKind::Tsconfig);
    entry.symbols_per_project = true;
}

/// Two projects, and files outside of them.
fn workspace() -> Builder {
    Workbench::new()
        .file("first.ts", "export {};")
        .file("tsconfig.json", r#"{ "include": ["src"] }"#)
        .file("src/a.ts", "export function total() {}")
        .file("src/b.ts", "total")
        .file("build/total.ts", "export function total() {}")
        .file("tests/c.ts", "import { total } from '../src/a';")
        .file("tests/d.ts", "subtotal()")
        .file("tools/tsconfig.json", "{}")
        .file("tools/e.ts", "total()")
        .server_with("fake", script(), typescript)
}

/// The files of all messages of a kind, in order.
fn files(bench: &Workbench, method: &str) -> Vec<String> {
    let root = format!("file://{}/", bench.root().display());
    let file = |message: &Value| {
        let uri = message["params"]["textDocument"]["uri"].as_str().unwrap();
        uri.strip_prefix(&root).unwrap().to_owned()
    };
    bench.received("fake", method).iter().map(file).collect()
}

#[tokio::test]
async fn references_open_a_file_of_every_project_and_related_outside_files_with_the_name() {
    let bench = workspace().open().await;
    let path = bench.path("src/a.ts");
    let ask = || async {
        bench.orchestrator.references(&path, Workbench::at(0, 17), true, &Workbench::call()).await.unwrap()
    };
    let answer = ask().await;
    assert!(!answer.gaps.iter().any(|gap| gap.why == GapReason::Limit), "{answer:?}");
    assert_eq!(files(&bench, "textDocument/didOpen"), ["tools/e.ts", "src/a.ts", "tests/c.ts"]);
    ask().await;
    assert_eq!(files(&bench, "textDocument/didOpen").len(), 3);
    assert_eq!(files(&bench, "textDocument/didClose"), [""; 0]);
}

#[tokio::test]
async fn symbols_are_asked_for_in_every_project_and_in_outside_files() {
    let bench = workspace().open().await;
    bench.orchestrator.workspace_symbols("total", &Workbench::call()).await;
    let touched = files(&bench, "textDocument/selectionRange");
    assert_eq!(touched, ["tools/e.ts", "src/a.ts", "build/total.ts", "first.ts", "tests/c.ts", "tests/d.ts"]);
    assert_eq!(files(&bench, "textDocument/didOpen"), touched);
    assert_eq!(bench.received_count("fake", "workspace/symbol"), touched.len());
}

#[tokio::test]
async fn file_that_appears_with_the_name_is_opened_for_the_next_question() {
    let bench = workspace().open().await;
    let path = bench.path("src/a.ts");
    let call = Workbench::call;
    bench.orchestrator.references(&path, Workbench::at(0, 17), true, &call()).await.unwrap();
    bench.write("tests/new.ts", "import { total } from './c';");
    bench.orchestrator.references(&path, Workbench::at(0, 17), true, &call()).await.unwrap();
    assert_eq!(files(&bench, "textDocument/didOpen").last().unwrap(), "tests/new.ts");
}

#[tokio::test]
async fn projects_beyond_the_limit_are_reported() {
    let mut bench = Workbench::new();
    for number in 0..65 {
        bench = bench
            .file(&format!("p{number:02}/tsconfig.json"), "{}")
            .file(&format!("p{number:02}/a.ts"), "export {};");
    }
    let bench = bench.server_with("fake", script(), typescript).open().await;
    let answer = bench.orchestrator.workspace_symbols("x", &Workbench::call()).await;
    assert_eq!(answer.gaps.len(), 1);
    assert_eq!(answer.gaps[0].why, GapReason::Limit);
    assert_eq!(files(&bench, "textDocument/didOpen").len(), 64);
}

#[tokio::test]
async fn symbols_of_outside_files_beyond_the_limit_are_left_out_and_the_answer_is_marked() {
    let mut bench =
        Workbench::new().file("tsconfig.json", r#"{ "files": ["main.ts"] }"#).file("main.ts", "export {};");
    for number in 0..101 {
        bench = bench.file(&format!("loose/{number:03}.ts"), "abc");
    }
    let found = |file: &str| {
        let zero = json!({ "line": 0, "character": 0 });
        let location = json!({ "uri": format!("$root/{file}"), "range": { "start": zero, "end": zero } });
        json!({ "name": "abc", "kind": 12, "location": location })
    };
    let mut script = script();
    script["rules"][1]["do"][0]["reply"] = json!([found("loose/000.ts"), found("main.ts")]);
    let bench = bench.server_with("fake", script, typescript).open().await;
    let answer = bench.orchestrator.workspace_symbols("abc", &Workbench::call()).await;
    let gate = bench.orchestrator.gate();
    let shown: Vec<String> = answer.value.iter().map(|symbol| gate.display(&symbol.path)).collect();
    assert_eq!(shown, ["main.ts"]);
    assert_eq!(files(&bench, "textDocument/didOpen"), ["main.ts"]);
    assert_eq!(answer.gaps[0].why, GapReason::Unproven(Doubt::UnreadFiles));
}

#[tokio::test]
async fn file_that_another_opened_file_imports_is_not_opened() {
    let mut bench = Workbench::new().file("main.ts", "import './000';\nexport const abc = 1;");
    for number in 0..120 {
        let text = format!("import './{:03}';\nabc", number + 1);
        bench = bench.file(&format!("{number:03}.ts"), &text);
    }
    let bench = bench.server_with("fake", script(), typescript).open().await;
    let answer = bench.orchestrator.workspace_symbols("abc", &Workbench::call()).await;
    assert_eq!(answer.gaps, []);
    assert_eq!(files(&bench, "textDocument/didOpen"), ["main.ts"]);
}
