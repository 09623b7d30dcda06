//! Edits by name: what is written, what is refused, and that a refused edit changes nothing.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use futures::FutureExt;
use serde_json::{Value, json};
use tenon_code::edit::{Editor, EditorOptions};
use tenon_code::explore::{ExploreOptions, Explorer};
use tenon_code::symbol_edit::{ListedFix, SymbolEditRequest, SymbolEditor, TryEdit};
use tenon_code::{CodeLimits, CodeTools, Options};
use tenon_contract::clock::Clock;
use tenon_contract::snapshot::SnapshotLimits;
use tenon_fake_lsp::{Builder, ServerEntry, Workbench};
use tenon_lsp::model::Severity;

/// The time for diagnostics of other files.
const WAIT: Duration = Duration::from_secs(2);

/// A workspace of Python files with an editor.
struct Stage {
    bench: Workbench,
    editor: SymbolEditor,
    _state: tempfile::TempDir,
}

impl Stage {
    async fn new(builder: Builder) -> Self {
        let bench = builder.open().await;
        let state = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(bench.root()).unwrap();
        let servers = bench.orchestrator.clone();
        let options = EditorOptions {
            own_paths: Vec::new(),
            journal: Utf8PathBuf::from_path_buf(state.path().to_owned()).unwrap(),
            servers: Box::new(move || std::future::ready(Some(servers.clone())).boxed()),
            baselines: Box::new(|paths| std::future::ready(vec![None; paths.len()]).boxed()),
            severities: BTreeSet::from([Severity::Error]),
        };
        let editor = Arc::new(Editor::new(&root, options).unwrap());
        let code = CodeTools::new(Options {
            engine: bench.orchestrator.clone(),
            limits: CodeLimits::default(),
            snapshots: SnapshotLimits::default(),
            clock: Clock::system(),
        });
        let store = Utf8PathBuf::from_path_buf(state.path().join("index")).unwrap();
        let options = ExploreOptions {
            root,
            store,
            clock: Clock::system(),
            severities: BTreeSet::from([Severity::Error]),
            reported: None,
            since_report: Box::new(|_| std::future::ready(Ok(String::new())).boxed()),
        };
        let explorer = Arc::new(Explorer::new(code, options));
        Self { bench, editor: SymbolEditor::new(editor, explorer, WAIT), _state: state }
    }

    async fn run(&self, request: Value) -> Result<String, String> {
        let request: SymbolEditRequest = serde_json::from_value(request).unwrap();
        self.editor.run(request, &Workbench::call()).await.map_err(|error| error.to_string())
    }

    async fn try_edit(&self, input: Value) -> Result<String, String> {
        let input: TryEdit = serde_json::from_value(input).unwrap();
        self.editor.try_edit(input, &Workbench::call()).await.map_err(|error| error.to_string())
    }

    async fn rename(&self, symbol: &str, to: &str, apply: bool) -> Result<String, String> {
        self.run(json!({ "rename": { "symbol": symbol, "to": to, "apply": apply } })).await
    }

    async fn edit(&self, symbol: &str, op: &str, text: Option<&str>, force: bool) -> Result<String, String> {
        self.run(json!({ "edit_symbol": { "symbol": symbol, "op": op, "text": text, "force": force } })).await
    }

    async fn fix(&self, file: &str, action: &str, line: Option<u32>) -> Result<String, String> {
        self.run(json!({ "fix": { "file": file, "action": action, "line": line } })).await
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.bench.root().join(file)).unwrap()
    }
}

fn python(entry: &mut ServerEntry) {
    entry.extensions = [(".py".to_owned(), "python".to_owned())].into();
}

/// A server that finds and renames words in two files.
fn renamer(rules: &[Value]) -> Value {
    let mut all = vec![
        json!({ "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] }),
        json!({ "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] }),
    ];
    all.extend_from_slice(rules);
    let words = json!(["a.py", "b.py"]);
    let defaults = [
        ("textDocument/rename", json!({ "reply_rename": words })),
        ("textDocument/references", json!({ "reply_mentions": words })),
        ("textDocument/definition", json!("reply_here")),
    ];
    for (method, action) in defaults {
        if !rules.iter().any(|rule| rule["on"] == method) {
            all.push(json!({ "on": method, "do": [action] }));
        }
    }
    let capabilities = json!({
        "textDocumentSync": 2, "renameProvider": true, "referencesProvider": true, "definitionProvider": true,
        "codeActionProvider": { "resolveProvider": true }, "documentFormattingProvider": true,
    });
    json!({ "capabilities": capabilities, "rules": all })
}

const A: &str = "def total(x):\n    return x\n\n\ndef other():\n    return total(1)\n";
const B: &str = "from a import total\n\nprint(total(2))\n";

async fn stage(rules: &[Value]) -> Stage {
    let builder =
        Workbench::new().file("a.py", A).file("b.py", B).server_with("fake", renamer(rules), python);
    Stage::new(builder).await
}

/// A rename that the server answers with these document changes.
async fn answered(changes: Value) -> Stage {
    let reply = json!({ "on": "textDocument/rename", "do": [{ "reply": { "documentChanges": changes } }] });
    stage(&[reply]).await
}

fn range(line: u32, start: u32, end: u32) -> Value {
    json!({ "start": { "line": line, "character": start }, "end": { "line": line, "character": end } })
}

#[tokio::test]
async fn rename_shows_the_places_and_then_changes_all_files() {
    let stage = stage(&[]).await;
    let shown = stage.rename("total", "sum_of", false).await.unwrap();
    insta::assert_snapshot!(shown, @r"
    rename total to sum_of: 4 places in 2 files; nothing was changed, `apply: true` does it
    a.py
      1: def total(x):
      6: return total(1)
    b.py
      1: from a import total
      3: print(total(2))
    ");
    assert_eq!((stage.text("a.py").as_str(), stage.text("b.py").as_str()), (A, B));
    let done = stage.rename("total", "sum_of", true).await.unwrap();
    insta::assert_snapshot!(done, @r"
    renamed total to sum_of: 4 places in 2 files
    edited a.py:1-6
    edited b.py:1-3
    0 new, 0 gone, 0 unchanged
    ");
    assert_eq!(stage.text("a.py"), A.replace("total", "sum_of"));
    assert_eq!(stage.text("b.py"), B.replace("total", "sum_of"));
}

#[tokio::test]
async fn rename_reports_what_it_broke_in_all_files() {
    let stage = stage(&[]).await;
    let done = stage.rename("total", "bad_name", true).await.unwrap();
    let new = done.lines().filter(|line| line.starts_with("NEW error ")).count();
    assert!(done.contains("4 new, 0 gone, 0 unchanged") && new == 4, "{done}");
}

#[tokio::test]
async fn answers_hold_to_the_bytes_that_a_caller_allows() {
    let files: Vec<String> = (0..40).map(|number| format!("pkg/module_{number}.py")).collect();
    let rename = json!({ "on": "textDocument/rename", "do": [{ "reply_rename": files }] });
    let stage = stage(&[rename]).await;
    for file in &files {
        stage.bench.write(file, "from a import total\n\nprint(total(1), total(2))\n");
    }
    stage.bench.write("pkg/module_0.py", "def total_of_all():\n    pass\n");
    for apply in [false, true] {
        let arguments = json!({ "symbol": "module_0.py#total_of_all", "to": "bad_name", "apply": apply, "max_bytes": 500 });
        let text = stage.run(json!({ "rename": arguments })).await.unwrap();
        assert!(text.len() <= 500, "{}: {text}", text.len());
    }
    for number in 1..40 {
        stage.bench.write(&format!("pkg/module_{number}.py"), "bad_name()\n");
    }
    let arguments =
        json!({ "symbol": "module_0.py#bad_name", "to": "very_bad", "apply": true, "max_bytes": 500 });
    let text = stage.run(json!({ "rename": arguments })).await.unwrap();
    assert!(
        text.len() <= 500 && text.starts_with("renamed bad_name to very_bad: 40 places in 40 files\n"),
        "{text}"
    );
}

#[tokio::test]
async fn invalid_or_taken_name_is_refused() {
    let stage = stage(&[]).await;
    for (to, expected) in [
        ("", "`` is not a valid name in python"),
        ("1x", "`1x` is not a valid name in python"),
        ("a b", "`a b` is not a valid name in python"),
        ("class", "`class` is not a valid name in python"),
        ("x.y", "`x.y` is not a valid name in python"),
        ("other", "`other` exists already: function a.py:5"),
        ("total", "`total` has this name already"),
    ] {
        for apply in [false, true] {
            assert_eq!(stage.rename("total", to, apply).await.unwrap_err(), expected, "{to}");
        }
    }
    assert_eq!((stage.text("a.py").as_str(), stage.text("b.py").as_str()), (A, B));
}

#[tokio::test]
async fn unknown_and_ambiguous_symbols_change_nothing() {
    let stage = stage(&[]).await;
    let none = stage.rename("totall", "x", true).await.unwrap_err();
    assert_eq!(none, "no symbol `totall`; nearest: total");
    stage.bench.write("c.py", "def total():\n    pass\n");
    let several = stage.rename("total", "x", true).await.unwrap();
    assert!(several.starts_with("nothing was changed\n`total` means 2 symbols"), "{several}");
    assert!(several.contains("function total c.py:1-2"), "{several}");
    assert_eq!(stage.text("a.py"), A);
}

#[tokio::test]
async fn refused_edits_of_a_server_change_nothing() {
    let edit = |uri: &str, version: Value, edits: Value| json!({ "textDocument": { "uri": uri, "version": version }, "edits": edits });
    let good = json!([{ "range": range(0, 4, 9), "newText": "renamed" }]);
    let cases = [
        (
            json!([edit("$root/a.py", json!(null), good.clone()), { "kind": "rename", "oldUri": "$root/a.py", "newUri": "$root/c.py" }]),
            "the change would rename a file, which this tool does not do",
        ),
        (
            json!([
                edit("$root/a.py", json!(null), good.clone()),
                edit("file:///etc/hosts", json!(null), good.clone())
            ]),
            "the change has a file outside the workspace: /etc/hosts",
        ),
        (
            json!([
                edit("$root/a.py", json!(null), good.clone()),
                edit("$root/gone.py", json!(null), good.clone())
            ]),
            "the change has a file that does not exist: gone.py",
        ),
        (
            json!([edit(
                "$root/a.py",
                json!(null),
                json!([
                    { "range": range(0, 4, 9), "newText": "x" }, { "range": range(0, 6, 9), "newText": "y" },
                ])
            )]),
            "parts of the change overlap in a.py",
        ),
        (
            json!([edit("$root/a.py", json!(null), json!([{ "range": range(0, 4, 99), "newText": "x" }]))]),
            "the change does not fit the text of a.py",
        ),
        (
            json!([edit("$root/a.py", json!(null), json!([{ "range": range(1, 4, 10), "newText": "x" }]))]),
            "the change does not fit the text of a.py",
        ),
        (json!([edit("$root/a.py", json!(17), good.clone())]), "the change is for another version of a.py"),
        (json!([edit("$root/b.py", json!(3), good.clone())]), "the change is for another version of b.py"),
        (
            json!([edit(
                "$root/.mcp.json",
                json!(null),
                json!([{ "range": range(0, 0, 5), "newText": "x" }])
            )]),
            ".mcp.json: agent configuration decides what may run; this tool never edits it; nothing was changed",
        ),
        (
            json!([edit(
                "$root/latin.py",
                json!(null),
                json!([{ "range": range(0, 0, 5), "newText": "x" }])
            )]),
            "cannot read latin.py",
        ),
    ];
    for (changes, expected) in cases {
        let stage = answered(changes).await;
        stage.bench.write(".mcp.json", "total");
        std::fs::write(stage.bench.root().join("latin.py"), b"total \xff").unwrap();
        assert_eq!(stage.rename("total", "renamed", true).await.unwrap_err(), expected);
        assert_eq!((stage.text("a.py").as_str(), stage.text("b.py").as_str()), (A, B), "{expected}");
        assert_eq!(stage.text(".mcp.json"), "total", "{expected}");
    }
}

#[tokio::test]
async fn server_that_does_not_rename_says_why() {
    let refuse = json!({ "on": "textDocument/rename", "do": [{ "refuse": { "code": -32803, "message": "a built-in name" } }] });
    let refused = stage(&[refuse]).await.rename("total", "x", true).await.unwrap_err();
    assert_eq!(refused, "`total` cannot be renamed: a built-in name");
    let nothing = json!({ "on": "textDocument/rename", "do": [{ "reply": null }] });
    assert_eq!(
        stage(&[nothing]).await.rename("total", "x", true).await.unwrap_err(),
        "`total` cannot be renamed"
    );
    let builder = Workbench::new().file("a.py", A);
    let refused = Stage::new(builder).await.rename("total", "x", true).await.unwrap_err();
    assert_eq!(refused, "rename needs a language server: none is known for this file");
}

#[tokio::test]
async fn rename_uses_the_text_that_another_program_wrote_meanwhile() {
    let stage = stage(&[]).await;
    stage.rename("total", "sum_of", false).await.unwrap();
    let changed = format!("# new\n{B}");
    stage.bench.write("b.py", &changed);
    stage.bench.write("a.py", &format!("\n{A}"));
    stage.rename("total", "sum_of", true).await.unwrap();
    assert_eq!(stage.text("b.py"), changed.replace("total", "sum_of"));
    assert_eq!(stage.text("a.py"), format!("\n{A}").replace("total", "sum_of"));
}

#[tokio::test]
async fn server_that_still_loads_does_not_rename() {
    let loading = |entry: &mut ServerEntry| {
        python(entry);
        entry.ready = Some(tenon_fake_lsp::ReadinessRule::LogMessage { contains: "never".to_owned() });
    };
    let builder = Workbench::new().file("a.py", A).server_with("fake", renamer(&[]), loading);
    let stage = Stage::new(builder).await;
    let request =
        serde_json::from_value(json!({ "rename": { "symbol": "total", "to": "x", "apply": true } })).unwrap();
    let call = tenon_lsp::CallContext::within(Duration::from_millis(500));
    let refused = stage.editor.run(request, &call).await.unwrap_err().to_string();
    assert_eq!(refused, "the change may be incomplete: fake is still loading the project; ask again");
    assert_eq!(stage.text("a.py"), A);
}

#[tokio::test]
async fn declaration_is_edited_by_name() {
    let stage = stage(&[]).await;
    let done =
        stage.edit("total", "replace", Some("def total(x, y):\n    return x + y\n"), false).await.unwrap();
    assert_eq!(done, "edited a.py:1-2\n0 new, 0 gone, 0 unchanged");
    let done = stage.edit("other", "before", Some("    bad = 1\n"), false).await.unwrap();
    assert_eq!(done, "edited a.py:5-7\n1 new, 0 gone, 0 unchanged\nNEW error a.py:5:1: this is bad");
    let expected = "def total(x, y):\n    return x + y\n\n\nbad = 1\n\n\ndef other():\n    return total(1)\n";
    assert_eq!(stage.text("a.py"), expected);
}

#[tokio::test]
async fn used_declaration_is_deleted_only_by_force() {
    let stage = stage(&[]).await;
    let refused = stage.edit("total", "delete", None, false).await.unwrap_err();
    assert_eq!(
        refused,
        "`total` is used in 3 places; change them first, or `force`:\na.py:6\nb.py:1\nb.py:3"
    );
    assert_eq!(stage.text("a.py"), A);
    let done = stage.edit("other", "delete", None, false).await.unwrap();
    assert_eq!(done, "edited a.py:2\n0 new, 0 gone, 0 unchanged");
    stage.edit("total", "delete", None, true).await.unwrap();
    assert_eq!(stage.text("a.py"), "");
}

#[tokio::test]
async fn type_is_used_by_its_impl() {
    let text =
        "struct Anyone;\n\nimpl Clone for Anyone {\n    fn clone(&self) -> Self {\n        *self\n    }\n}\n";
    let mentions = json!({ "on": "textDocument/references", "do": [{ "reply_mentions": ["a.rs"] }] });
    let rust = |entry: &mut ServerEntry| entry.extensions = [(".rs".to_owned(), "rust".to_owned())].into();
    let builder = Workbench::new().file("a.rs", text).server_with("fake", renamer(&[mentions]), rust);
    let refused = Stage::new(builder).await.edit("Anyone", "delete", None, false).await.unwrap_err();
    assert_eq!(refused, "`Anyone` is used in 1 place; change them first, or `force`:\na.rs:3");
}

#[tokio::test]
async fn users_are_found_by_name_without_a_server() {
    let stage = Stage::new(Workbench::new().file("a.py", A).file("b.py", B)).await;
    let refused = stage.edit("total", "delete", None, false).await.unwrap_err();
    assert!(
        refused.starts_with("`total` is used in 3 places (by name only, no language server); change"),
        "{refused}"
    );
    let done = stage.edit("other", "delete", None, false).await.unwrap();
    assert!(done.ends_with("note: used nowhere by name; no language server was asked"), "{done}");
}

#[tokio::test]
async fn edit_that_breaks_the_syntax_needs_force() {
    let stage = stage(&[]).await;
    let refused =
        stage.edit("total", "replace", Some("def total(x:\n    return x"), false).await.unwrap_err();
    assert_eq!(refused, "a.py would not parse any more, at line 1; `force` writes it anyway");
    assert_eq!(stage.text("a.py"), A);
    stage.edit("total", "replace", Some("def total(x:\n    return x"), true).await.unwrap();
    assert!(stage.text("a.py").starts_with("def total(x:\n"));
}

#[tokio::test]
async fn invalid_edits_by_name_change_nothing() {
    let stage = stage(&[]).await;
    let text = "class C:\n    def f(self): pass\n\n    def f(self): return 1\n";
    stage.bench.write("c.py", text);
    for (symbol, op, new, expected) in [
        ("total", "replace", None, "`text` is empty; `delete` removes a declaration"),
        ("total", "delete", Some("x"), "`delete` takes no `text`"),
        ("nothing_like_it", "delete", None, "no symbol `nothing_like_it`; `search` finds text"),
        ("C.f", "delete", None, "`C.f` has 2 declarations; name one by its line: c.py:2, c.py:4"),
        ("", "delete", None, "symbol name is empty"),
    ] {
        assert_eq!(stage.edit(symbol, op, new, false).await.unwrap_err(), expected, "{symbol}");
    }
    assert_eq!((stage.text("a.py").as_str(), stage.text("c.py").as_str()), (A, text));
    stage.edit("c.py:4", "replace", Some("def f(self): return 2"), false).await.unwrap();
    assert_eq!(stage.text("c.py"), text.replace("return 1", "return 2"));
    std::fs::remove_file(stage.bench.root().join("c.py")).unwrap();
    let gone = stage.edit("C.f", "delete", None, false).await.unwrap_err();
    assert!(gone.starts_with("no symbol `C.f`"), "{gone}");
}

/// The answer to a request for code actions.
fn actions(list: Value) -> Value {
    json!({ "on": "textDocument/codeAction", "do": [{ "reply": list }] })
}

fn changes(line: u32, start: u32, end: u32, text: &str) -> Value {
    let edits = json!([{ "range": range(line, start, end), "newText": text }]);
    json!({ "documentChanges": [{ "textDocument": { "uri": "$root/a.py", "version": null }, "edits": edits }] })
}

#[tokio::test]
async fn fix_is_applied_by_its_id_and_commands_are_not_offered() {
    let rules = [
        actions(json!([
            { "title": "Make it good", "kind": "quickfix", "edit": changes(0, 0, 3, "good") },
            { "title": "Later", "kind": "quickfix", "data": 7 },
            { "title": "Run", "kind": "quickfix", "command": { "command": "x", "title": "x" }, "edit": changes(0, 0, 3, "x") },
            { "title": "Refactor", "kind": "refactor.extract", "edit": changes(0, 0, 3, "x") },
            { "title": "Off", "kind": "quickfix", "disabled": { "reason": "no" }, "edit": changes(0, 0, 3, "x") },
            { "title": "Bare", "command": "x" },
        ])),
        json!({ "on": "codeAction/resolve", "do": [{ "reply": { "title": "Later", "edit": changes(0, 0, 3, "later") } }] }),
    ];
    let stage = stage(&rules).await;
    stage.bench.write("a.py", "bad = 1\n");
    let path = stage.bench.path("a.py");
    let listed =
        ListedFix::of(&stage.bench.orchestrator, &path, None, &Workbench::call()).await.unwrap().value;
    let titles: Vec<(&str, u32, &str)> =
        listed.iter().map(|fix| (fix.title.as_str(), fix.line, fix.message.as_str())).collect();
    assert_eq!(titles, [("Later", 1, "this is bad"), ("Make it good", 1, "this is bad")]);
    assert_eq!(listed[0].id.len(), 6);
    let done = stage.fix("a.py", &listed[1].id, None).await.unwrap();
    assert_eq!(done, "edited a.py:1\n0 new, 1 gone, 0 unchanged");
    assert_eq!(stage.text("a.py"), "good = 1\n");
    stage.bench.write("a.py", "bad = 1\n");
    stage.fix("a.py", &listed[0].id, Some(1)).await.unwrap();
    assert_eq!(stage.text("a.py"), "later = 1\n");
    assert_eq!(
        stage.fix("a.py", "ffffff", None).await.unwrap_err(),
        "no fix `ffffff` in a.py; `problems` with `fixes` lists them"
    );
}

#[tokio::test]
async fn fix_of_several_lines_asks_for_the_line() {
    let action = json!([{ "title": "Make it good", "edit": changes(1, 0, 3, "good") }]);
    let stage = stage(&[actions(action)]).await;
    stage.bench.write("a.py", "bad = 1\nbad = 2\n");
    let path = stage.bench.path("a.py");
    let listed =
        ListedFix::of(&stage.bench.orchestrator, &path, None, &Workbench::call()).await.unwrap().value;
    let id = &listed[0].id;
    assert_eq!(
        stage.fix("a.py", id, None).await.unwrap_err(),
        format!("fix `{id}` applies to lines 1, 2; choose one with `line`")
    );
    stage.fix("a.py", id, Some(2)).await.unwrap();
    assert_eq!(stage.text("a.py"), "bad = 1\ngood = 2\n");
}

#[tokio::test]
async fn imports_are_organised_and_files_formatted() {
    let rules = [
        actions(json!([
            { "title": "Organise", "kind": "source.organizeImports.fake", "edit": changes(0, 0, 0, "import os\n") },
        ])),
        json!({ "on": "textDocument/formatting", "do": [{ "reply": [{ "range": range(0, 0, 0), "newText": "# formatted\n" }] }] }),
    ];
    let stage = stage(&rules).await;
    assert_eq!(
        stage.fix("a.py", "imports", None).await.unwrap(),
        "edited a.py:1\n0 new, 0 gone, 0 unchanged"
    );
    assert_eq!(stage.fix("a.py", "format", None).await.unwrap(), "edited a.py:1\n0 new, 0 gone, 0 unchanged");
    assert_eq!(stage.text("a.py"), format!("# formatted\nimport os\n{A}"));
    let missing = stage.fix("gone.py", "format", None).await.unwrap_err();
    assert!(missing.starts_with("no file or folder `gone.py` in the workspace"), "{missing}");
    let outside = stage.fix("/etc/hosts", "format", None).await.unwrap_err();
    assert!(outside.starts_with("no file or folder"), "{outside}");
}

#[tokio::test]
async fn nothing_to_format_is_said() {
    let nothing = json!({ "on": "textDocument/formatting", "do": [{ "reply": null }] });
    let stage = stage(&[nothing, actions(json!([]))]).await;
    assert_eq!(stage.fix("a.py", "format", None).await.unwrap_err(), "a.py: nothing to change");
    assert_eq!(stage.fix("a.py", "imports", None).await.unwrap_err(), "a.py: nothing to change");
    let bare = Stage::new(Workbench::new().file("a.py", A)).await;
    assert_eq!(
        bare.fix("a.py", "format", None).await.unwrap_err(),
        "format needs a language server: none is known for this file"
    );
}

#[tokio::test]
async fn tried_edit_tells_what_it_would_break_and_writes_nothing() {
    let stage = stage(&[]).await;
    let tried =
        stage.try_edit(json!({ "file": "a.py", "old_text": "return x", "new_text": "return bad" })).await;
    insta::assert_snapshot!(tried.unwrap(), @r"
    tried a.py:2
    1 new, 0 gone, 0 unchanged
    NEW error a.py:2:12 in total: this is bad
    note: nothing was written
    ");
    let by_name = json!({ "symbol": "other", "text": "def other():\n    return bad(bad)\n" });
    let tried = stage.try_edit(by_name).await.unwrap();
    assert!(tried.starts_with("tried a.py:6\n2 new, 0 gone, 0 unchanged\n"), "{tried}");
    assert_eq!(stage.text("a.py"), A);
    // The servers have the text on disk, and a real edit is compared with it.
    let done = stage.edit("total", "replace", Some("def total(x):\n    return bad"), false).await.unwrap();
    assert_eq!(done, "edited a.py:2\n1 new, 0 gone, 0 unchanged\nNEW error a.py:2:12: this is bad");
}

#[tokio::test]
async fn invalid_tries_are_refused() {
    let stage = stage(&[]).await;
    let arguments = "give `file`, `old_text` and `new_text`, or `symbol` and `text`";
    for (input, expected) in [
        (json!({ "file": "a.py" }), arguments),
        (json!({ "symbol": "total", "text": "x", "file": "a.py" }), arguments),
        (json!({}), arguments),
        (
            json!({ "file": "a.py", "old_text": "absent", "new_text": "" }),
            "`old_text` does not occur in the file",
        ),
        (
            json!({ "file": "a.py", "old_text": "total", "new_text": "" }),
            "`old_text` occurs 2 times in the file",
        ),
        (
            json!({ "file": "a.py", "old_text": "return x", "new_text": "return x" }),
            "a.py: nothing to change",
        ),
        (
            json!({ "symbol": "nothing_like_it", "text": "x" }),
            "no symbol `nothing_like_it`; `search` finds text",
        ),
    ] {
        assert_eq!(stage.try_edit(input).await.unwrap_err(), expected);
    }
    let missing =
        stage.try_edit(json!({ "file": "../a.py", "old_text": "a", "new_text": "b" })).await.unwrap_err();
    assert!(missing.starts_with("no file or folder"), "{missing}");
    std::fs::write(stage.bench.root().join("latin.py"), b"x = 1 # \xff\n").unwrap();
    let latin =
        stage.try_edit(json!({ "file": "latin.py", "old_text": "1", "new_text": "2" })).await.unwrap_err();
    assert!(latin.starts_with("cannot read `latin.py`"), "{latin}");
    let bare = Stage::new(Workbench::new().file("a.py", A)).await;
    let tried =
        bare.try_edit(json!({ "file": "a.py", "old_text": "return x", "new_text": "return y" })).await;
    assert_eq!(
        tried.unwrap(),
        "tried a.py:2\nnot checked: no language server for a.py\nnote: nothing was written"
    );
}

#[tokio::test]
async fn symbol_that_was_deleted_since_it_was_found_is_not_edited() {
    let stage = stage(&[]).await;
    stage.rename("total", "sum_of", false).await.unwrap();
    std::fs::write(stage.bench.root().join("a.py"), "def other():\n    return 1\n").unwrap();
    for op in ["replace", "delete", "before"] {
        let text = (op != "delete").then_some("def total(): pass");
        let error = stage.edit("a.py#total", op, text, false).await.unwrap_err();
        assert!(error.starts_with("no symbol `a.py#total`"), "{op}: {error}");
    }
    let error = stage.rename("a.py#total", "sum_of", true).await.unwrap_err();
    assert!(error.starts_with("no symbol `a.py#total`"), "{error}");
    assert_eq!(stage.text("a.py"), "def other():\n    return 1\n");
}

#[tokio::test]
async fn edit_by_name_is_refused_while_files_are_unread() {
    let stage = stage(&[]).await;
    let request = json!({ "rename": { "symbol": "total", "to": "sum_of", "apply": false } });
    let request: SymbolEditRequest = serde_json::from_value(request).unwrap();
    let mut refused = false;
    // The watcher may be faster than a call that is over at once.
    for _ in 0..200 {
        let cancel = tokio_util::sync::CancellationToken::new();
        cancel.cancel();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(900);
        let call = tenon_lsp::CallContext::new(deadline, cancel);
        let error = stage.editor.run(request.clone(), &call).await.err().map(|error| error.to_string());
        refused |= error.as_deref() == Some("the files of the workspace are still being read; ask again");
        if refused {
            break;
        }
    }
    assert!(refused);
    assert_eq!(stage.text("a.py"), A);
}

#[tokio::test]
async fn constant_is_renamed_to_a_name_in_lower_case() {
    let builder = Workbench::new()
        .file("a.py", "LIMIT = 1\nprint(LIMIT)\n")
        .file("b.py", "x = 1\n")
        .server_with("fake", renamer(&[]), python);
    let stage = Stage::new(builder).await;
    stage.rename("LIMIT", "limit", true).await.unwrap();
    assert_eq!(stage.text("a.py"), "limit = 1\nprint(limit)\n");
}
