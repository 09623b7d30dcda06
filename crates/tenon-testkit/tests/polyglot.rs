//! The checkers find exactly the errors that the polyglot example's README lists.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use tenon_testkit::{Sandbox, program};

/// A file and a one-based line.
type FileLine = (String, u64);

/// The rows of the README's table whose third column names `server`.
fn listed(sandbox: &Sandbox, server: &str) -> BTreeSet<FileLine> {
    let readme = sandbox.tree().read("README.md");
    let rows = readme.lines().filter(|line| line.starts_with("| `"));
    let places: BTreeSet<FileLine> = rows
        .filter_map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let file = cells[1].trim_matches('`').to_owned();
            cells[3]
                .split(", ")
                .any(|name| name == server)
                .then(|| (file, cells[2].parse().expect("a line number")))
        })
        .collect();
    assert!(!places.is_empty(), "the README names no error for {server}");
    places
}

/// A checker's stdout. Exit code 1 means that it found errors.
fn output(command: &mut Command) -> String {
    let output = command.output().expect("an installed checker starts");
    assert!(output.status.code().is_some_and(|code| code <= 1), "{output:?}");
    String::from_utf8(output.stdout).expect("checkers print UTF-8")
}

#[test]
fn typescript_finds_the_listed_errors() {
    let sandbox = Sandbox::with_example("polyglot");
    // tsc exits with 2 when it finds errors.
    let found = sandbox.command(program::tool("tsc")).args(["--project", "."]).output().unwrap();
    let text = String::from_utf8(found.stdout).unwrap();
    let places = text.lines().filter_map(|line| {
        let (file, rest) = line.split_once('(')?;
        Some((file.to_owned(), rest.split(',').next()?.parse().ok()?))
    });
    assert_eq!(places.collect::<BTreeSet<FileLine>>(), listed(&sandbox, "typescript"), "{text}");
}

#[test]
fn pyright_finds_the_listed_errors() {
    let sandbox = Sandbox::with_example("polyglot");
    let text = output(sandbox.command(program::tool("pyright")).arg("--outputjson"));
    let found: Value = serde_json::from_str(&text).unwrap();
    let root = format!("{}/", sandbox.root().display());
    let places = found["generalDiagnostics"].as_array().unwrap().iter().map(|diagnostic| {
        let file = diagnostic["file"].as_str().unwrap().replace(&root, "");
        (file, diagnostic["range"]["start"]["line"].as_u64().unwrap() + 1)
    });
    assert_eq!(places.collect::<BTreeSet<FileLine>>(), listed(&sandbox, "pyright"), "{text}");
}

#[test]
fn ty_finds_the_listed_errors() {
    let sandbox = Sandbox::with_example("polyglot");
    let text = output(sandbox.command(program::tool("ty")).args(["check", "--output-format", "concise"]));
    let places = text.lines().filter_map(|line| {
        let mut parts = line.split(':');
        Some((parts.next()?.to_owned(), parts.next()?.parse().ok()?))
    });
    assert_eq!(places.collect::<BTreeSet<FileLine>>(), listed(&sandbox, "ty"), "{text}");
}

#[test]
fn clangd_finds_the_listed_errors() {
    let sandbox = Sandbox::with_example("polyglot");
    let mut places = BTreeSet::new();
    for file in ["main", "returns", "sorter", "tariff"] {
        let file = format!("engine/src/{file}.cpp");
        let check = sandbox.command(program::tool("clangd")).arg(format!("--check={file}")).output().unwrap();
        // Its report is its log: `E[12:00:00.000] [code] Line 7: message`.
        let log = String::from_utf8(check.stderr).unwrap();
        let lines = log.lines().filter(|line| line.starts_with("E["));
        let found = lines.filter_map(|line| line.split_once("] Line ")?.1.split(':').next()?.parse().ok());
        places.extend(found.map(|line: u64| (file.clone(), line)));
    }
    assert_eq!(places, listed(&sandbox, "clangd"));
}
