//! Questions by name: what they say when files are not read, and bad input.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use futures::FutureExt;
use serde_json::{Value, json};
use tenon_code::explore::{ExploreOptions, ExploreRequest, Explorer};
use tenon_code::{CodeLimits, CodeTools, Options};
use tenon_contract::clock::Clock;
use tenon_contract::snapshot::SnapshotLimits;
use tenon_fake_lsp::{Builder, Workbench};
use tenon_lsp::CallContext;
use tenon_lsp::model::Severity;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A workspace without language servers.
struct Stage {
    bench: Workbench,
    explorer: Arc<Explorer>,
    _state: tempfile::TempDir,
}

impl Stage {
    async fn new(builder: Builder) -> Self {
        let bench = builder.open().await;
        let state = tempfile::tempdir().unwrap();
        let code = CodeTools::new(Options {
            engine: bench.orchestrator.clone(),
            limits: CodeLimits::default(),
            snapshots: SnapshotLimits::default(),
            clock: Clock::system(),
        });
        let options = ExploreOptions {
            root: Utf8PathBuf::from_path_buf(bench.root()).unwrap(),
            store: Utf8PathBuf::from_path_buf(state.path().join("index")).unwrap(),
            clock: Clock::system(),
            severities: BTreeSet::from([Severity::Error]),
            reported: None,
            since_report: Box::new(|_| std::future::ready(Ok(String::new())).boxed()),
        };
        Self { bench, explorer: Arc::new(Explorer::new(code, options)), _state: state }
    }

    async fn ask_within(&self, question: Value, call: &CallContext) -> Result<String, String> {
        let request: ExploreRequest = serde_json::from_value(question).unwrap();
        self.explorer.answer(request, call).await.map_err(|error| error.to_string())
    }

    async fn ask(&self, question: Value) -> Result<String, String> {
        self.ask_within(question, &Workbench::call()).await
    }
}

fn find(name: &str) -> Value {
    json!({ "find": { "name": name } })
}

/// A call that waits for nothing.
fn cancelled() -> CallContext {
    let cancel = CancellationToken::new();
    cancel.cancel();
    CallContext::new(Instant::now() + Duration::from_secs(900), cancel)
}

const UNREAD: &str = "the files of the workspace are still being read; ask again";

#[tokio::test]
async fn missing_symbol_of_unread_files_is_said_to_be_of_unread_files() {
    let stage = Stage::new(Workbench::new().file("a.py", "def total():\n    pass\n")).await;
    let questions = [
        find("absent"),
        json!({ "find": { "name": "total", "kind": "class" } }),
        json!({ "outline": { "path": "absent/folder" } }),
        json!({ "references": { "symbol": "absent" } }),
        json!({ "hierarchy": { "symbol": "absent", "direction": "callers" } }),
        json!({ "search": { "pattern": "x", "path": "absent.py" } }),
        json!({ "problems": { "scope": "absent" } }),
    ];
    for question in questions {
        let error = stage.ask_within(question.clone(), &cancelled()).await.unwrap_err();
        assert!(error.ends_with(UNREAD), "{question}: {error}");
        let error = stage.ask(question.clone()).await.unwrap_err();
        assert!(!error.contains(UNREAD), "{question}: {error}");
    }
}

#[tokio::test]
async fn several_symbols_of_unread_files_are_said_to_be_of_unread_files() {
    let builder = Workbench::new().file("a.py", "def total(): pass\n").file("b.py", "def total(): pass\n");
    let stage = Stage::new(builder).await;
    stage.ask(find("total")).await.unwrap();
    for tool in ["references", "hierarchy"] {
        let mut question = json!({ tool: { "symbol": "total" } });
        if tool == "hierarchy" {
            question[tool]["direction"] = json!("callers");
        }
        let listed = stage.ask_within(question.clone(), &cancelled()).await.unwrap();
        assert!(listed.ends_with(&format!("note: {UNREAD}")), "{listed}");
        let listed = stage.ask(question).await.unwrap();
        assert!(listed.contains("means 2 symbols") && !listed.contains(UNREAD), "{listed}");
    }
}

#[tokio::test]
async fn path_of_the_first_question_may_be_the_end_of_a_path() {
    let stage = Stage::new(Workbench::new().file("deep/inside/a.py", "def total(): pass\n")).await;
    let found = stage.ask(json!({ "find": { "name": "total", "path": "inside/a.py" } })).await.unwrap();
    assert!(found.contains("deep/inside/a.py:1"), "{found}");
}

#[tokio::test]
async fn odd_names_and_patterns_have_answers() {
    let stage = Stage::new(Workbench::new().file("a.py", "def total(): pass\n")).await;
    for name in
        ["two words", " total ", "", " ", "a.b.c.d.e.f", "#", "a#", ":1", "a.py:99999999999", "\u{0}", "名前"]
    {
        let answer = stage.ask(find(name)).await;
        let text = answer.unwrap_or_else(|error| error);
        assert!(!text.is_empty() && text.len() < 500, "{name:?}: {text}");
        assert_eq!(text.lines().count(), if text.contains("def total") { text.lines().count() } else { 1 });
    }
    // Patterns that take exponential time or memory in other engines.
    let exploding =
        ["(x+x+)+y", "((((a{999}){999}){999}){999})", &"(a?){30}a{30}".repeat(20), "[", "(?R)", "(?=a)"];
    for pattern in exploding {
        let question = json!({ "search": { "pattern": pattern, "mode": "regex" } });
        let text = stage.ask(question).await.unwrap_or_else(|error| error);
        assert!(text.len() < 1_000, "{pattern}: {text}");
    }
}

#[tokio::test]
async fn files_of_50_mb_and_of_one_line_have_answers_within_the_limit() {
    let large = "def big(): pass\n".repeat(50 * 1024 * 1024 / 16);
    let minified = format!("function tiny(){{}}{}", "var a=1;".repeat(200_000));
    let builder =
        Workbench::new().file("big.py", &large).file("min.js", &minified).file("a.py", "def total(): pass\n");
    let stage = Stage::new(builder).await;
    assert!(stage.ask(find("total")).await.unwrap().contains("a.py:1"));
    let outline = stage.ask(json!({ "outline": { "path": "big.py" } })).await.unwrap();
    assert!(outline.contains("too large: declarations are not known"), "{outline}");
    let outline = stage.ask(json!({ "outline": { "path": "min.js" } })).await.unwrap();
    assert!(outline.contains("minified: declarations are not known"), "{outline}");
    let found = stage.ask(json!({ "search": { "pattern": "tiny" } })).await.unwrap();
    assert!(found.contains("min.js") && found.len() < 1_000, "{found}");
    let found = stage.ask(json!({ "search": { "pattern": "big" } })).await.unwrap();
    assert!(found.contains("big.py") || found.contains("were not searched"), "{found}");
}

#[tokio::test]
async fn generated_folders_come_after_source() {
    let text = "def total(): pass\n";
    let builder = Workbench::new().file("z.py", text).file("generated/a.py", text).file("vendor/a.py", text);
    let stage = Stage::new(builder).await;
    let found = stage.ask(json!({ "find": { "name": "total", "body": "no" } })).await.unwrap();
    let at = |path: &str| found.find(path).unwrap_or(usize::MAX);
    assert!(at("z.py") < at("generated/a.py") && at("z.py") < at("vendor/a.py"), "{found}");
}

#[tokio::test]
async fn invalid_utf8_is_searched_and_found() {
    let stage = Stage::new(Workbench::new().file("a.py", "x = 1\n")).await;
    std::fs::write(stage.bench.root().join("b.py"), b"# \xff\xfe\ndef caf\xe9(): pass\ndef total(): pass\n")
        .unwrap();
    let found = stage.ask(find("total")).await;
    let text = found.unwrap_or_else(|error| error);
    assert!(text.contains("b.py"), "{text}");
}

#[tokio::test]
async fn first_find_answers_as_the_whole_index_does() {
    let builder = Workbench::new()
        .file("a.py", "def total(): pass\n")
        .file("b.py", "class Sum:\n    def total(self): pass\n")
        .file("c.py", "def other(): pass\n");
    let stage = Stage::new(builder).await;
    let first = stage.ask(find("total")).await.unwrap();
    assert!(first.contains("2 matches") && first.contains("method Sum.total b.py:2"), "{first}");
    // All files are parsed by now, or by this question.
    let other = stage.ask(find("other")).await.unwrap();
    assert!(other.contains("function other c.py:1"), "{other}");
    assert_eq!(stage.ask(find("total")).await.unwrap(), first);
    let error = stage.ask(find("absent")).await.unwrap_err();
    assert!(error.contains("no symbol"), "{error}");
}
