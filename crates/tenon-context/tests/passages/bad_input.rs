//! Files and questions of any kind: bounded, useful, no error where an answer is possible.

use tenon_context::{ExtraTexts, FindError, FindRequest};

use crate::fixture::Workspace;

#[test]
fn unusual_files_do_not_hide_the_answer() {
    let workspace = Workspace::new(&[("a.md", "# Needle\n\nfind the needle here\n")]);
    workspace.write("binary.md", b"needle\0\x01\x02");
    workspace.write("latin.txt", b"needle \xe4\xf6\n");
    workspace.write("minified.js", format!("var needle=1;{}", "x=1;".repeat(3000)).as_bytes());
    workspace.write("data.json", format!("[{}]", "\"needle\",".repeat(2000)).as_bytes());
    workspace.write("empty.md", b"");
    workspace.write("broken.ipynb", b"{\"cells\": [");
    workspace.write(
        "notes.ipynb",
        br##"{"cells": [{"cell_type": "markdown", "source": ["# Needle in a notebook"], "metadata": {}}]}"##,
    );
    let log: String = (0..200_000).map(|n| format!("2024-01-01 line {n} needle\n")).collect();
    workspace.write("huge.log", log.as_bytes());
    let index = workspace.index();
    let answer = workspace.ask(&index, "needle");
    let paths: Vec<&str> = answer.passages.iter().map(|passage| passage.path.as_str()).collect();
    assert_eq!(paths[0], "a.md");
    assert!(
        paths.contains(&"notes.ipynb") && !paths.contains(&"binary.md") && !paths.contains(&"minified.js"),
        "{paths:?}"
    );
    assert!(answer.notes.iter().any(|note| note.contains("huge.log")), "{:?}", answer.notes);
    let notebook = answer.passages.iter().find(|passage| passage.path == "notes.ipynb").unwrap();
    assert_eq!((notebook.text.as_str(), notebook.place.as_str()), ("# Needle in a notebook", "cell 1"));
    assert!(index.totals().bytes < 4 * 1024 * 1024, "{:?}", index.totals());
}

#[test]
fn any_question_is_answered_within_its_budget() {
    let workspace = Workspace::new(&[
        ("a.md", "# C\n\nThe language C and 数据库 and größe.\n"),
        ("b.md", "# Not to be\n\nto be or not to be\n"),
    ]);
    let index = workspace.index();
    let long = "C language ".repeat(1000);
    for (query, first) in [
        ("C", Some("a.md")),
        ("\"the language C\"", Some("a.md")),
        (long.as_str(), Some("a.md")),
        ("数据", Some("a.md")),
        ("GRÖSSE größe", Some("a.md")),
        ("to be or not to be", Some("b.md")),
        ("===> ;; !!", None),
        ("", None),
        ("\u{0}\u{1}", None),
        ("absent", None),
    ] {
        let answer = workspace.ask(&index, query);
        let path = answer.passages.first().map(|passage| passage.path.as_str());
        assert_eq!(path, first, "{}", &query[..query.len().min(40)]);
        assert!(first.is_some() || !answer.notes.is_empty(), "{query}");
        assert!(answer.tokens <= FindRequest::DEFAULT_BUDGET);
    }
    let request = FindRequest { query: "x".repeat(70_000), ..FindRequest::default() };
    let rejected = index.find(&request, &ExtraTexts::default(), &workspace.syntax);
    assert!(matches!(rejected, Err(FindError::QueryTooLong { .. })), "{rejected:?}");
    for budget in [0, 1_000_000] {
        let request = FindRequest { query: "C".to_owned(), budget: Some(budget), ..FindRequest::default() };
        let rejected = index.find(&request, &ExtraTexts::default(), &workspace.syntax);
        assert!(matches!(rejected, Err(FindError::Budget { .. })), "{rejected:?}");
    }
}
