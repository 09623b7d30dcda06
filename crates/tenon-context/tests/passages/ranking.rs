//! Which passages are found, in which order, and how they are shown.

use tenon_context::{ExtraText, ExtraTexts, FindError, FindRequest, PassageKind, Tokenizer};

use crate::fixture::Workspace;

const FILES: &[(&str, &str)] = &[
    (
        "docs/guide.md",
        "# Guide\n\nIntroduction to everything.\n\n## Reversing migrations\n\nA migration can be undone.\n\n## Caching\n\nKeep \
         answers in memory.\n",
    ),
    ("docs/ref.rst", "Settings\n========\n\nCache timeout\n-------------\n\nHow long an answer is kept.\n"),
    ("docs/manual.adoc", "= Manual\n\n== Uninstall\n\nRemove the program.\n"),
    (
        "src/text.py",
        "import re\n\n\n# Turns a title into a part of a URL.\ndef slugify(value):\n    return re.sub('x', '', value)\n\n\nclass \
         Parser:\n    \"\"\"Reads dates.\"\"\"\n\n    def parse_http_date(self, date):\n        return date\n",
    ),
    ("tests/test_text.py", "def test_slugify_title_url():\n    assert slugify('title') == 'url'\n"),
    ("settings.toml", "[cache]\ntimeout = 30\n"),
];

#[test]
fn right_section_or_symbol_is_first() {
    let workspace = Workspace::new(FILES);
    let index = workspace.index();
    for (query, place) in [
        ("how do I undo a migration", "docs/guide.md:5-7"),
        ("cache timeout", "docs/ref.rst:4-7"),
        ("how to uninstall", "docs/manual.adoc:3-5"),
        ("delete the program", "docs/manual.adoc:3-5"),
        ("which function makes a title fit for a url", "src/text.py:4-6"),
        ("parseHttpDate", "src/text.py:12-13"),
        ("parse_http_date", "src/text.py:12-13"),
    ] {
        assert_eq!(workspace.places(&index, query).first().map(String::as_str), Some(place), "{query}");
    }
}

#[test]
fn words_that_are_close_to_each_other_come_first() {
    let workspace = Workspace::new(&[
        ("a.md", "# One\n\nThe server is static. It keeps what users send, and all of their files.\n"),
        ("b.md", "# Two\n\nIt keeps what users send. The server has static files, and all of their rest.\n"),
    ]);
    let first = &workspace.ask(&workspace.index(), "static files").passages[0];
    assert_eq!(first.path, "b.md");
}

#[test]
fn answer_names_place_score_and_reason() {
    let workspace = Workspace::new(&FILES[..1]);
    let answer = workspace.ask(&workspace.index(), "reversing a migration");
    let text = answer.text();
    assert!(text.starts_with("docs/guide.md:5-7 Guide > Reversing migrations ["), "{text}");
    assert!(
        text.contains(": name: reversing, migration]\n## Reversing migrations\n\nA migration can be undone."),
        "{text}"
    );
    assert_eq!(answer.tokens, Tokenizer::Estimate.count(&text));
}

#[test]
fn path_and_kinds_restrict_the_answer() {
    let workspace = Workspace::new(FILES);
    let index = workspace.index();
    let request = |path: Option<&str>, kinds: &[PassageKind]| FindRequest {
        query: "cache timeout title".to_owned(),
        path: path.map(str::to_owned),
        kinds: kinds.to_vec(),
        ..FindRequest::default()
    };
    let paths = |request: FindRequest| -> Vec<String> {
        workspace.ask_request(&index, &request).passages.into_iter().map(|passage| passage.path).collect()
    };
    assert!(paths(request(Some("docs"), &[])).iter().all(|path| path.starts_with("docs/")));
    assert!(paths(request(None, &[PassageKind::Code])).iter().all(|path| path.ends_with(".py")));
    assert_eq!(paths(request(Some("*.toml"), &[])), ["settings.toml"]);
    let outside = index.find(&request(Some("../x"), &[]), &ExtraTexts::default(), &workspace.syntax);
    assert!(matches!(outside, Err(FindError::Path(_))), "{outside:?}");
    let nothing = workspace.ask_request(&index, &request(Some("no/such/folder"), &[]));
    assert_eq!(nothing.text(), "note: no text below this path");
}

#[test]
fn tasks_and_notes_are_ranked_with_files() {
    let workspace = Workspace::new(FILES);
    let note = ExtraText {
        kind: PassageKind::Note,
        id: "note 7".to_owned(),
        title: "Decision about slugs".to_owned(),
        text: "We keep umlauts in slugs.".to_owned(),
    };
    let extra = ExtraTexts::new(vec![note]);
    let request = FindRequest { query: "umlauts in slugs".to_owned(), ..FindRequest::default() };
    let answer = workspace.index().find(&request, &extra, &workspace.syntax).unwrap();
    assert!(answer.text().starts_with("note 7 Decision about slugs ["), "{}", answer.text());
}

#[test]
fn budget_holds_with_every_tokenizer() {
    let filler = "Reversing a migration needs care, some patience and 日本語. ".repeat(30);
    let sections: String = (0..40).map(|n| format!("## Migration {n}\n\n{filler}\n\n")).collect();
    let workspace = Workspace::new(&[("a.md", &sections), ("b.md", "# One\n\nmigration\n")]);
    let index = workspace.index();
    for tokenizer in Tokenizer::ALL {
        for budget in [1, 5, 20, 60, 200, 1000, 5000] {
            let request = FindRequest {
                query: "migration".to_owned(),
                budget: Some(budget),
                tokenizer,
                ..FindRequest::default()
            };
            let answer = workspace.ask_request(&index, &request);
            let text = answer.text();
            assert!(tokenizer.count(&text) <= budget, "{tokenizer:?} {budget}: {text}");
            assert!(budget < 200 || !answer.passages.is_empty(), "{tokenizer:?} {budget}");
        }
    }
}

#[test]
fn small_budget_shows_parts_of_several_long_passages() {
    let filler = "Other words that say nothing about it, line after line.\n".repeat(25);
    let files: Vec<(String, String)> = (0..6)
        .map(|n| {
            (format!("{n}.md"), format!("# Part {n}\n\n{filler}Here a migration is undone: {n}.\n{filler}"))
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let workspace = Workspace::new(&files);
    let request = FindRequest {
        query: "undo a migration".to_owned(),
        budget: Some(500),
        tokenizer: Tokenizer::O200kBase,
        ..FindRequest::default()
    };
    let answer = workspace.ask_request(&workspace.index(), &request);
    assert!(answer.passages.len() >= 4, "{}", answer.text());
    for passage in &answer.passages {
        assert!(passage.text.contains("a migration is undone"), "{}", passage.text);
        assert!(passage.text.contains("… ") && passage.text.starts_with("# Part"), "{}", passage.text);
    }
}

#[test]
fn large_budget_shows_long_passages_as_a_whole() {
    let filler = "Other words that say nothing about it, line after line.\n".repeat(30);
    let text = format!("# Undo a migration\n\n{filler}");
    let workspace = Workspace::new(&[("a.md", &text)]);
    let answer = workspace.ask(&workspace.index(), "undo a migration");
    assert_eq!(answer.passages[0].text, text.trim_end());
}

#[test]
fn same_text_is_shown_once() {
    let text = "# Install\n\nRun the installer.\n";
    let workspace =
        Workspace::new(&[("a.md", text), ("copy/a.md", text), ("b.md", "# Other\n\nInstall later.\n")]);
    assert_eq!(workspace.places(&workspace.index(), "install"), ["a.md:1-3", "b.md:1-3"]);
}
