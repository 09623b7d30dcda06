//! The polyglot example has exactly the errors that its README says, by the checkers themselves.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use tenon_testkit::{Sandbox, program};

/// A file and a line, counted from one.
type Place = (String, u64);

/// The rows of the README's table whose third column names `server`.
fn planted(sandbox: &Sandbox, server: &str) -> BTreeSet<Place> {
    let readme = sandbox.tree().read("README.md");
    let rows = readme.lines().filter(|line| line.starts_with("| `"));
    let places: BTreeSet<Place> = rows
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

/// What a checker prints on stdout; that it finds errors is no failure of it.
fn output(command: &mut Command) -> String {
    let output = command.output().expect("an installed checker starts");
    assert!(output.status.code().is_some_and(|code| code <= 1), "{output:?}");
    String::from_utf8(output.stdout).expect("checkers print UTF-8")
}

#[test]
fn typescript_finds_what_is_planted() {
    let sandbox = Sandbox::with_example("polyglot");
    // tsc ends with 2 when it finds errors.
    let found = sandbox.command(program::tool("tsc")).args(["--project", "."]).output().unwrap();
    let text = String::from_utf8(found.stdout).unwrap();
    let places = text.lines().filter_map(|line| {
        let (file, rest) = line.split_once('(')?;
        Some((file.to_owned(), rest.split(',').next()?.parse().ok()?))
    });
    assert_eq!(places.collect::<BTreeSet<Place>>(), planted(&sandbox, "typescript"), "{text}");
}

#[test]
fn pyright_finds_what_is_planted() {
    let sandbox = Sandbox::with_example("polyglot");
    let text = output(sandbox.command(program::tool("pyright")).arg("--outputjson"));
    let found: Value = serde_json::from_str(&text).unwrap();
    let root = format!("{}/", sandbox.root().display());
    let places = found["generalDiagnostics"].as_array().unwrap().iter().map(|diagnostic| {
        let file = diagnostic["file"].as_str().unwrap().replace(&root, "");
        (file, diagnostic["range"]["start"]["line"].as_u64().unwrap() + 1)
    });
    assert_eq!(places.collect::<BTreeSet<Place>>(), planted(&sandbox, "pyright"), "{text}");
}

#[test]
fn ty_finds_what_is_planted() {
    let sandbox = Sandbox::with_example("polyglot");
    let text = output(sandbox.command(program::tool("ty")).args(["check", "--output-format", "concise"]));
    let places = text.lines().filter_map(|line| {
        let mut parts = line.split(':');
        Some((parts.next()?.to_owned(), parts.next()?.parse().ok()?))
    });
    assert_eq!(places.collect::<BTreeSet<Place>>(), planted(&sandbox, "ty"), "{text}");
}

#[test]
fn clangd_finds_what_is_planted() {
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
    assert_eq!(places, planted(&sandbox, "clangd"));
}
