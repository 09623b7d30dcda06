//! Random paths and URIs over the tree: whatever is admitted is inside, and outside nothing shows.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tenon_contract::root::{GateError, WorkspacePath};

use crate::tree::Tree;

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

/// Ways that lead back to where they started, in `root` at least.
const DETOURS: &[&str] =
    &[".", "", "src/..", "none/..", "link-root", "link-up/root", "../root", "nested/../.", "link-slash/../"];

/// Ways that end somewhere from `root`.
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
struct Soup {
    from_base: bool,
    names: Vec<&'static str>,
    spellings: Vec<Spelling>,
}

impl Soup {
    fn path(&self, base: &str) -> String {
        let soup = self.names.join("/");
        if self.from_base { format!("{base}/{soup}") } else { soup }
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

fn soup() -> impl Strategy<Value = Soup> {
    let spelling = prop_oneof![
        20 => Just(Spelling::Raw),
        4 => Just(Spelling::Encoded),
        1 => Just(Spelling::EncodedTwice),
    ];
    let wild = (prop::bool::weighted(0.7), prop::collection::vec(prop::sample::select(NAMES), 0..7));
    let aimed = (prop::collection::vec(prop::sample::select(DETOURS), 0..4), prop::sample::select(ENDS));
    let way = prop_oneof![
        wild,
        aimed.prop_map(|(detours, end)| {
            let way = [vec!["root"], detours, vec![end]].concat();
            (true, way)
        }),
    ];
    let spellings = prop_oneof![
        3 => Just(vec![Spelling::Raw]),
        1 => prop::collection::vec(spelling, 1..60),
    ];
    (way, spellings).prop_map(|((from_base, names), spellings)| Soup { from_base, names, spellings })
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Dots taken from the text, as the gate does, written the dullest way.
fn without_dots(absolute: &str) -> PathBuf {
    let mut kept: Vec<&str> = Vec::new();
    for name in absolute.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            name => kept.push(name),
        }
    }
    PathBuf::from(format!("/{}", kept.join("/")))
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
fn nothing_outside_ever_passes() {
    let tree = Tree::new();
    let base = tree.base.to_str().unwrap().to_owned();
    let mut admitted = 0;
    let mut denied = 0;
    let mut runner = proptest::test_runner::TestRunner::new(config(6000));
    let counts = std::cell::RefCell::new((&mut admitted, &mut denied));
    runner
        .run(&soup(), |soup| {
            let text = soup.path(&base);
            let absolute = if text.starts_with('/') { text.clone() } else { format!("{base}/root/{text}") };
            let real = fs::canonicalize(without_dots(&absolute)).ok();
            let answers = [tree.gate.admit_path(&text), tree.gate.admit_uri(&soup.uri(&base))];
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
            // What the path side must say of what exists follows from where it really is.
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
            if let Ok(target) = tree.gate.admit_target(&text) {
                let existing = target.as_path().ancestors().find(|prefix| prefix.exists()).unwrap();
                let real = fs::canonicalize(existing).unwrap();
                prop_assert_eq!(real.as_path(), existing.as_std_path());
                prop_assert!(is_inside(&tree, &real), "{:?}", real);
            }
            Ok(())
        })
        .unwrap();
    assert!(admitted > 300 && denied > 300, "the soup is too thin: {admitted} admitted, {denied} denied");
}

#[test]
fn outside_the_answer_does_not_depend_on_what_is_there() {
    let tree = Tree::new();
    let base = tree.base.to_str().unwrap().to_owned();
    let probe = tree.base.join("outside/probe");
    let strategy = (soup(), prop::collection::vec(prop::sample::select(NAMES), 0..3));
    let mut runner = proptest::test_runner::TestRunner::new(config(800));
    runner
        .run(&strategy, |(soup, rest)| {
            // Some way to the probe, and on from there.
            let way = format!("{}/{base}/outside/probe/{}", soup.path(&base), rest.join("/"));
            let direct = format!("{base}/root/link-out-dir/probe/{}", rest.join("/"));
            let mut seen: Vec<Vec<_>> = Vec::new();
            for state in 0..4 {
                match state {
                    1 => fs::write(&probe, "SECRET").unwrap(),
                    2 => fs::create_dir(&probe).unwrap(),
                    3 => std::os::unix::fs::symlink("probe", &probe).unwrap(),
                    _ => {}
                }
                seen.push([&way, &direct].map(|path| tree.gate.admit_path(path)).to_vec());
                match state {
                    1 | 3 => fs::remove_file(&probe).unwrap(),
                    2 => fs::remove_dir(&probe).unwrap(),
                    _ => {}
                }
            }
            for state in &seen[1..] {
                prop_assert_eq!(state, &seen[0], "{} or {}", way, direct);
            }
            Ok(())
        })
        .unwrap();
}
