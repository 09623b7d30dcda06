//! A table of hostile paths with the expected result and the reason for each.
//!
//! `hostile_paths.json` holds the rows. `{base}` is the tree's folder, `{a*5000}` is `a` repeated 5000 times. `uri` rows
//! test URIs as input and output, `path` rows test paths. `expect` is `admitted <path below base>` or an error name.

use serde::Deserialize;
use tenon_contract::root::{GateError, Malformed, RootGate, WorkspacePath};

use crate::fixture::Tree;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    side: Side,
    input: String,
    expect: String,
    why: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Uri,
    Path,
}

fn rows() -> Vec<Row> {
    serde_json::from_str(include_str!("hostile_paths.json")).unwrap()
}

fn expand(input: &str, base: &str) -> String {
    let mut text = input.replace("{base}", base);
    while let Some((before, rest)) = text.split_once('{') {
        let Some((repeat, after)) = rest.split_once('}') else {
            break;
        };
        let Some((unit, times)) = repeat.split_once('*') else {
            break;
        };
        text = format!("{before}{}{after}", unit.repeat(times.parse().unwrap()));
    }
    text
}

fn describe(answer: &Result<WorkspacePath, GateError>, base: &str) -> String {
    match answer {
        Ok(path) => format!("admitted {}", path.as_str().strip_prefix(base).unwrap().trim_start_matches('/')),
        Err(GateError::Malformed(reason)) => format!("malformed: {}", describe_reason(*reason)),
        Err(GateError::Denied) => "denied".to_owned(),
        Err(GateError::Missing) => "missing".to_owned(),
        Err(GateError::Unresolvable) => "unresolvable".to_owned(),
        Err(GateError::NotAFile) => "not a file".to_owned(),
        Err(GateError::NotAFolder) => "not a folder".to_owned(),
        Err(GateError::RootMissing) => "root missing".to_owned(),
    }
}

fn describe_reason(reason: Malformed) -> &'static str {
    match reason {
        Malformed::Scheme => "scheme",
        Malformed::Host => "host",
        Malformed::QueryOrFragment => "query or fragment",
        Malformed::NotAbsolute => "not absolute",
        Malformed::Escape => "escape",
        Malformed::EncodedSlash => "encoded slash",
        Malformed::Nul => "nul",
        Malformed::RawCharacter => "raw character",
        Malformed::NotUtf8 => "not utf-8",
        Malformed::TooLong => "too long",
    }
}

#[test]
fn every_hostile_path_gets_the_expected_answer() {
    let tree = Tree::new();
    let base = tree.base.to_str().unwrap();
    let rows = rows();
    assert!(rows.len() >= 60, "the table has {} rows", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let input = expand(&row.input, base);
        let answer = match row.side {
            Side::Uri => tree.gate.admit_uri(&input),
            Side::Path => tree.gate.admit_path(&input),
        };
        let got = describe(&answer, base);
        if got != row.expect {
            wrong.push(format!("{}: expected {}, got {got} ({})", row.input, row.expect, row.why));
        }
        if let Side::Uri = row.side {
            assert_eq!(tree.gate.admit_output_uri(&input), answer.clone().ok(), "{}", row.input);
        }
        if let Ok(path) = answer {
            assert_eq!(tree.gate.admit_uri(path.uri().as_str()), Ok(path.clone()), "{}", row.input);
            assert_eq!(tree.gate.admit_path(tree.gate.display(&path)), Ok(path), "{}", row.input);
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows are wrong:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn without_roots_every_answer_is_denied() {
    let tree = Tree::new();
    let base = tree.base.to_str().unwrap();
    let closed = RootGate::new(Vec::<&str>::new()).unwrap();
    for row in rows() {
        let input = expand(&row.input, base);
        assert_eq!(closed.admit_uri(&input), Err(GateError::Denied), "{}", row.input);
        assert_eq!(closed.admit_path(&input), Err(GateError::Denied), "{}", row.input);
        assert_eq!(closed.admit_target(&input), Err(GateError::Denied), "{}", row.input);
        assert_eq!(closed.admit_folder(&input), Err(GateError::Denied), "{}", row.input);
        assert_eq!(closed.admit_output_uri(&input), None, "{}", row.input);
    }
}

#[test]
fn errors_never_name_a_path() {
    let tree = Tree::new();
    let base = tree.base.to_str().unwrap();
    for row in rows() {
        let input = expand(&row.input, base);
        for answer in [tree.gate.admit_uri(&input), tree.gate.admit_path(&input)] {
            if let Err(error) = answer {
                let text = format!("{error} {error:?}");
                assert!(!text.contains(base) && !text.contains("secret"), "{text}");
            }
        }
    }
}
