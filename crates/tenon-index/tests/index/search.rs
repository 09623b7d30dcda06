//! Text, regex and syntax search.

use std::time::Instant;

use tenon_index::{
    PathFilter, SearchError, SearchLimits, SearchMode, SearchRequest, SearchResult, SearchScope,
    SourceLanguage,
};

use crate::workspace::Workspace;

fn request(mode: SearchMode, pattern: &str) -> SearchRequest {
    SearchRequest {
        pattern: pattern.to_owned(),
        mode,
        scope: SearchScope::default(),
        limits: SearchLimits::default(),
    }
}

fn search(workspace: &Workspace, request: &SearchRequest) -> Result<SearchResult, SearchError> {
    let index = workspace.fresh();
    let mut files = workspace.files();
    // The order of the files makes no difference.
    files.reverse();
    index.view().search(request, &files)
}

/// `path:line symbol text` of each hit.
fn lines(workspace: &Workspace, request: &SearchRequest) -> Vec<String> {
    let index = workspace.fresh();
    let view = index.view();
    let result = view.search(request, &workspace.files()).unwrap();
    assert!(result.complete);
    let line = |hit: &tenon_index::SearchHit| {
        let symbol = hit.symbol.and_then(|id| view.symbol(id)).map(|symbol| symbol.name_path());
        format!("{}:{} {} {}", hit.path, hit.line, symbol.unwrap_or_default(), hit.text.trim())
    };
    result.hits.iter().map(line).collect()
}

fn workspace() -> Workspace {
    Workspace::new(&[
        ("b.py", "class A:\n    def run(self):\n        return go(1)  # RUN\n\nrun = go(2)\r\n"),
        ("a/notes.txt", "please run it\n"),
        ("a/data.bin", "run\n\0run\n"),
        ("c.ts", "export const run = () => go(1);\n"),
    ])
}

#[test]
fn text_is_literal_and_case_sensitive_and_hits_have_their_symbol() {
    assert_eq!(
        lines(&workspace(), &request(SearchMode::Text, "run")),
        [
            "a/notes.txt:1  please run it",
            "b.py:2 A.run def run(self):",
            "b.py:5 run run = go(2)",
            "c.ts:1 run export const run = () => go(1);",
        ]
    );
    assert_eq!(lines(&workspace(), &request(SearchMode::Text, "go(")).len(), 3);
    assert_eq!(lines(&workspace(), &request(SearchMode::Text, ".")).len(), 0);
}

#[test]
fn regex_matches_within_lines() {
    assert_eq!(
        lines(&workspace(), &request(SearchMode::Regex, r"^run = go\(\d\)$")),
        ["b.py:5 run run = go(2)"]
    );
    assert_eq!(
        lines(&workspace(), &request(SearchMode::Regex, "(?i)RUN it")),
        ["a/notes.txt:1  please run it"]
    );
}

#[test]
fn scope_restricts_path_and_language() {
    let mut only = request(SearchMode::Text, "run");
    only.scope.language = SourceLanguage::parse("python");
    assert_eq!(search(&workspace(), &only).unwrap().total, 2);
    only.scope = SearchScope { path: Some(PathFilter::parse("a").unwrap()), language: None };
    assert_eq!(search(&workspace(), &only).unwrap().total, 1);
}

#[test]
fn total_is_known_beyond_the_limit() {
    let workspace = Workspace::new(&[]);
    for number in 0..600 {
        workspace.write(&format!("f{number:03}.txt"), "x\nx\n");
    }
    let mut limited = request(SearchMode::Text, "x");
    limited.limits.max_matches = 5;
    let result = search(&workspace, &limited).unwrap();
    assert_eq!((result.hits.len(), result.total, result.files), (5, 1200, 600));
    let places: Vec<String> = result.hits.iter().map(|hit| format!("{}:{}", hit.path, hit.line)).collect();
    assert_eq!(places, ["f000.txt:1", "f000.txt:2", "f001.txt:1", "f001.txt:2", "f002.txt:1"]);
    limited.limits.max_matches = 0;
    assert_eq!(search(&workspace, &limited).unwrap().total, 1200);
}

#[test]
fn million_matching_lines_are_counted() {
    let workspace = Workspace::new(&[]);
    workspace.write("a.txt", "match\n".repeat(1_000_000));
    let result = search(&workspace, &request(SearchMode::Text, "match")).unwrap();
    assert_eq!((result.hits.len(), result.total), (1000, 1_000_000));
}

#[test]
fn passed_deadline_makes_the_result_incomplete() {
    for mode in [SearchMode::Text, SearchMode::Syntax] {
        let mut late = request(mode, "go(1)");
        late.limits.deadline = Some(Instant::now());
        let result = search(&workspace(), &late).unwrap();
        assert!(!result.complete && result.total == 0);
    }
}

#[test]
fn long_line_is_cut_around_the_match() {
    let workspace = Workspace::new(&[]);
    workspace.write("a.txt", format!("{}needle{}\n", "a".repeat(100_000), "b".repeat(100_000)));
    let result = search(&workspace, &request(SearchMode::Text, "needle")).unwrap();
    let text = &result.hits[0].text;
    assert!(text.len() <= 200 && text.contains("needle"), "{text}");
}

#[test]
fn invalid_patterns_are_rejected_with_their_position() {
    let workspace = workspace();
    let error = |mode, pattern: &str| search(&workspace, &request(mode, pattern)).unwrap_err().to_string();
    assert_eq!(error(SearchMode::Text, ""), "pattern is empty");
    assert_eq!(error(SearchMode::Text, "a\nb"), "pattern contains a line break: search for one line");
    assert_eq!(error(SearchMode::Regex, r"a\nb"), "pattern contains a line break: search for one line");
    assert_eq!(error(SearchMode::Regex, "ab(c"), "invalid regular expression at character 3: unclosed group");
    assert_eq!(
        error(SearchMode::Regex, r"(?:\w{1000}){1000}"),
        "regular expression is too large: make its repetitions smaller"
    );
    assert_eq!(error(SearchMode::Text, &"a".repeat(5000)), "pattern exceeds 4096 bytes");
    assert!(
        error(SearchMode::Regex, &"(".repeat(2000)).starts_with("invalid regular expression at character ")
    );
}

#[cfg(unix)]
#[test]
fn pipe_link_and_missing_file_are_skipped() {
    let workspace = workspace();
    nix::unistd::mkfifo(workspace.path("pipe.txt").as_std_path(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", workspace.path("link.txt")).unwrap();
    let mut files = workspace.files();
    files.push(workspace.path("absent.txt"));
    let index = workspace.fresh();
    let result = index.view().search(&request(SearchMode::Text, "root"), &files).unwrap();
    assert_eq!((result.total, result.skipped), (0, 3));
}

/// A pattern for a call, in code of every language.
const CALLS: &[(&str, &str)] = &[
    ("a.sh", "main() {\n  run a b\n}\n"),
    ("a.c", "int main() {\n  return run(1, 2);\n}\n"),
    ("a.cc", "int main() {\n  return run(1, 2);\n}\n"),
    ("a.cs", "class A {\n  int M() { return run(1, 2); }\n}\n"),
    ("a.go", "package a\n\nfunc main() { run(1, 2) }\n"),
    ("a.java", "class A {\n  int m() { return run(1, 2); }\n}\n"),
    ("a.js", "function main() {\n  return run(1, 2);\n}\n"),
    ("a.php", "<?php\nfunction main() { return run(1, 2); }\n"),
    ("a.py", "def main():\n    return run(1, 2)\n"),
    ("a.rb", "def main\n  run(1, 2)\nend\n"),
    ("a.rs", "fn main() {\n    let x = run(1, 2);\n}\n"),
    ("a.tsx", "function main() {\n  return <p>{run(1, 2)}</p>;\n}\n"),
    ("a.ts", "function main() {\n  return run(1, 2);\n}\n"),
];

#[test]
fn call_pattern_matches_in_every_language() {
    let workspace = Workspace::new(CALLS);
    for (path, _) in CALLS {
        let language = SourceLanguage::of_path(path).unwrap();
        let pattern = if language.name() == "bash" { "run $$$" } else { "run($A, $B)" };
        let mut syntax = request(SearchMode::Syntax, pattern);
        syntax.scope.language = Some(language);
        let result = search(&workspace, &syntax).unwrap();
        let places: Vec<(&str, u32)> = result.hits.iter().map(|hit| (hit.path.as_str(), hit.line)).collect();
        let line = if language.name() == "go" { 3 } else { 2 };
        assert_eq!(places, [(*path, line)], "{language}");
    }
}

#[test]
fn syntax_pattern_searches_all_languages_where_it_is_valid() {
    let workspace = Workspace::new(CALLS);
    let result = search(&workspace, &request(SearchMode::Syntax, "run($$$)")).unwrap();
    assert_eq!(result.files, 12);
    assert!(result.complete && result.skipped == 0);
}

#[test]
fn metavariables_match_nodes_and_lists() {
    let workspace = Workspace::new(&[(
        "a.py",
        "getattr(a, 'b', None)\ngetattr(a, 'b')\nsame(x, x)\nsame(x, y)\n# getattr(a, b, None)\nclass A(B):\n    def f(self):\n        return 1\n",
    )]);
    let found = |pattern: &str| -> Vec<u32> {
        let result = search(&workspace, &request(SearchMode::Syntax, pattern)).unwrap();
        result.hits.iter().map(|hit| hit.line).collect()
    };
    assert_eq!(found("getattr($A, $B, None)"), [1]);
    assert_eq!(found("getattr($$$ARGS)"), [1, 2]);
    assert_eq!(found("same($A, $A)"), [3]);
    assert_eq!(found("class $NAME($$$): $$$BODY"), [6]);
    assert_eq!(found("return 1"), [8]);
}

#[test]
fn invalid_syntax_pattern_is_rejected() {
    let workspace = workspace();
    let error = |language: Option<&str>, pattern: &str| {
        let mut syntax = request(SearchMode::Syntax, pattern);
        syntax.scope.language = language.and_then(SourceLanguage::parse);
        search(&workspace, &syntax).unwrap_err().to_string()
    };
    assert_eq!(error(Some("python"), "foo("), "invalid python pattern: `foo(` has a syntax error");
    assert_eq!(
        error(Some("python"), "a; b"),
        "invalid python pattern: pattern is more than one expression or declaration"
    );
    assert_eq!(
        error(None, "foo("),
        "pattern is invalid in all languages of the searched files: name the language"
    );
    assert_eq!(
        error(Some("python"), "$$$"),
        "invalid python pattern: `$$$` alone matches nothing: put it into a list"
    );
    assert_eq!(error(None, &"f(".repeat(1000)), "pattern exceeds 1024 bytes");
}
