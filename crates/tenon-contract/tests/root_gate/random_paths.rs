//! Random paths and URIs: only paths inside are admitted, and answers reveal nothing about the outside.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tenon_contract::root::{GateError, WorkspacePath};

use crate::fixture::Tree;

const NAMES: &[&str] = &[
    "..",
    "..",
    "..",
    ".",
    "",
    "root",
    "second",
    "outside",
    "root-evil",
    "src",
    "nested",
    "a.ts",
    "secret.ts",
    "other.ts",
    "n.ts",
    "none",
    "empty",
    "fifo",
    "socket",
    "hard.ts",
    "back",
    "link-in.ts",
    "link-dir",
    "link-root",
    "link-up",
    "link-slash",
    "link-out.ts",
    "link-out-dir",
    "link-out-and-back",
    "link-sneaky",
    "dangling-in",
    "dangling-out",
    "dangling-climb",
    "loop-a",
    "loop-out",
    "hop-3",
    "hop-44",
    "etc",
    "passwd",
    "tmp",
    "proc",
    "self",
    "%2e%2e",
    "\\",
    "C:",
    "...",
    " ",
    "é",
];

/// Paths that lead back to the folder they start in, at least from `root`.
const DETOURS: &[&str] =
    &[".", "", "src/..", "none/..", "link-root", "link-up/root", "../root", "nested/../.", "link-slash/../"];

/// Paths from `root` to a file.
const ENDS: &[&str] = &[
    "src/a.ts",
    "link-dir/a.ts",
    "link-in.ts",
    "hop-3",
    "hard.ts",
    "nested/n.ts",
    "link-second.ts",
    "../second/other.ts",
    "link-out-and-back",
    "link-out-dir/back/src/a.ts",
    "src/link-sneaky",
    "link-out-dir/secret.ts",
    "../root-evil/a.ts",
    "../outside/src/a.ts",
    "link-slash/etc/passwd",
];

/// How a character of a URI is written.
#[derive(Clone, Copy, Debug)]
enum Spelling {
    Raw,
    Encoded,
    EncodedTwice,
}

#[derive(Clone, Debug)]
struct RandomPath {
    from_base: bool,
    names: Vec<&'static str>,
    spellings: Vec<Spelling>,
}

impl RandomPath {
    fn path(&self, base: &str) -> String {
        let random_path = self.names.join("/");
        if self.from_base { format!("{base}/{random_path}") } else { random_path }
    }

    fn uri(&self, base: &str) -> String {
        let mut spellings = self.spellings.iter().cycle();
        let mut uri = String::from("file://");
        for byte in format!("{base}/{}", self.names.join("/")).bytes() {
            match spellings.next() {
                Some(Spelling::Encoded) if byte != b'/' => uri.push_str(&format!("%{byte:02x}")),
                Some(Spelling::EncodedTwice) if byte != b'/' => uri.push_str(&format!("%25{byte:02X}")),
                _ if byte.is_ascii_graphic() && byte != b'%' => uri.push(char::from(byte)),
                _ => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        uri
    }
}

fn random_path() -> impl Strategy<Value = RandomPath> {
    let spelling = prop_oneof![
        20 => Just(Spelling::Raw),
        4 => Just(Spelling::Encoded),
        1 => Just(Spelling::EncodedTwice),
    ];
    let wild = (prop::bool::weighted(0.7), prop::collection::vec(prop::sample::select(NAMES), 0..7));
    let aimed = (prop::collection::vec(prop::sample::select(DETOURS), 0..4), prop::sample::select(ENDS));
    let names = prop_oneof![
        wild,
        aimed.prop_map(|(detours, end)| {
            let names = [vec!["root"], detours, vec![end]].concat();
            (true, names)
        }),
    ];
    let spellings = prop_oneof![
        3 => Just(vec![Spelling::Raw]),
        1 => prop::collection::vec(spelling, 1..60),
    ];
    (names, spellings).prop_map(|((from_base, names), spellings)| RandomPath { from_base, names, spellings })
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Resolves dots in the text, as the gate does, in the simplest way.
fn without_dots(absolute: &str) -> PathBuf {
    let mut names: Vec<&str> = Vec::new();
    for name in absolute.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    PathBuf::from(format!("/{}", names.join("/")))
}

fn is_inside(tree: &Tree, path: &Path) -> bool {
    ["root", "second"].iter().any(|root| path.starts_with(tree.base.join(root)))
}

fn check_admitted(tree: &Tree, path: &WorkspacePath) -> Result<(), TestCaseError> {
    let real = fs::canonicalize(path).unwrap();
    prop_assert_eq!(real.as_path(), path.as_path().as_std_path());
    prop_assert!(is_inside(tree, &real), "{:?}", real);
    prop_assert!(real.is_file());
    prop_assert!(tree.gate.read_to_string(path, 1000).unwrap() != "SECRET");
    prop_assert_eq!(tree.gate.admit_uri(path.uri().as_str()), Ok(path.clone()));
    prop_assert_eq!(tree.gate.admit_path(tree.gate.display(path)), Ok(path.clone()));
    Ok(())
}

#[test]
fn path_outside_is_never_admitted() {
    let tree = Tree::new();
    let base = tree.base.to_str().unwrap().to_owned();
    let mut admitted = 0;
    let mut denied = 0;
    let mut runner = proptest::test_runner::TestRunner::new(config(6000));
    let counts = std::cell::RefCell::new((&mut admitted, &mut denied));
    runner
        .run(&random_path(), |random_path| {
            let text = random_path.path(&base);
            let absolute = if text.starts_with('/') { text.clone() } else { format!("{base}/root/{text}") };
            let real = fs::canonicalize(without_dots(&absolute)).ok();
            let answers = [tree.gate.admit_path(&text), tree.gate.admit_uri(&random_path.uri(&base))];
            for answer in &answers {
                match answer {
                    Ok(path) => {
                        check_admitted(&tree, path)?;
                        *counts.borrow_mut().0 += 1;
                    }
                    Err(GateError::Denied) => *counts.borrow_mut().1 += 1,
                    Err(_) => {}
                }
            }
            // For an existing path, the expected answer follows from its real path.
            if let Some(real) = real {
                let names_folder = matches!(absolute.rsplit('/').next(), Some("" | "." | ".."));
                let expected = match () {
                    () if !is_inside(&tree, &real) => Some(GateError::Denied),
                    () if names_folder && !real.is_dir() => Some(GateError::Missing),
                    () if real.is_file() => None,
                    () => Some(GateError::NotAFile),
                };
                prop_assert_eq!(answers[0].as_ref().err(), expected.as_ref(), "{}", text);
            } else {
                prop_assert!(answers[0].is_err());
            }
            for target in
                [tree.gate.admit_target(&text), tree.gate.admit_changed(&text)].into_iter().flatten()
            {
                let existing = target.as_path().ancestors().find(|prefix| prefix.exists()).unwrap();
                let real = fs::canonicalize(existing).unwrap();
                prop_assert_eq!(real.as_path(), existing.as_std_path());
                prop_assert!(is_inside(&tree, &real), "{:?}", real);
            }
            Ok(())
        })
        .unwrap();
    assert!(admitted > 300 && denied > 300, "too few useful cases: {admitted} admitted, {denied} denied");
}

#[test]
fn answer_for_outside_does_not_depend_on_what_exists() {
    let tree = Tree::new();
    let base = tree.base.to_str().unwrap().to_owned();
    let probe = tree.base.join("outside/probe");
    let strategy = (random_path(), prop::collection::vec(prop::sample::select(NAMES), 0..3));
    let mut runner = proptest::test_runner::TestRunner::new(config(800));
    runner
        .run(&strategy, |(random_path, rest)| {
            // An indirect path to the probe and below it.
            let indirect = format!("{}/{base}/outside/probe/{}", random_path.path(&base), rest.join("/"));
            let direct = format!("{base}/root/link-out-dir/probe/{}", rest.join("/"));
            let mut seen: Vec<Vec<_>> = Vec::new();
            for state in 0..4 {
                match state {
                    1 => fs::write(&probe, "SECRET").unwrap(),
                    2 => fs::create_dir(&probe).unwrap(),
                    3 => std::os::unix::fs::symlink("probe", &probe).unwrap(),
                    _ => {}
                }
                seen.push([&indirect, &direct].map(|path| tree.gate.admit_path(path)).to_vec());
                match state {
                    1 | 3 => fs::remove_file(&probe).unwrap(),
                    2 => fs::remove_dir(&probe).unwrap(),
                    _ => {}
                }
            }
            for state in &seen[1..] {
                prop_assert_eq!(state, &seen[0], "{} or {}", indirect, direct);
            }
            Ok(())
        })
        .unwrap();
}
