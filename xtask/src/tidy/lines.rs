//! Rules on the text of one file.

use super::{Offence, SourceFile};

const MAX_LINES: usize = 700;

/// The one file that may contain `unsafe`: it sets the parent-death signal of child processes.
const UNSAFE_FILE: &str = "crates/tenon-lsp/src/process.rs";

/// Marks of unfinished code, in two halves so that this file does not contain them.
const UNDONE: [&str; 6] = [
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("#[ig", "nore"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("not imple", "mented"),
];

/// Attributes that house style forbids, with what to write instead.
const ATTRIBUTES: [(&str, &str); 3] = [
    (concat!("#[all", "ow("), "use `#[expect(…, reason = \"…\")]`, which warns when it is no longer needed"),
    (concat!("serde(unta", "gged"), "give the enum a tag: errors of untagged input are useless"),
    (concat!("serde(flat", "ten"), "write the fields out: flattening breaks `deny_unknown_fields`"),
];

/// File names that do not describe the content.
const VAGUE_NAMES: [&str; 5] = ["mod.rs", "utils.rs", "util.rs", "common.rs", "helpers.rs"];

/// Sleeping in a test hides a missing event.
const SLEEPS: [&str; 4] = [
    concat!("time::sl", "eep("),
    concat!("thread::sl", "eep("),
    concat!("time.sl", "eep("),
    concat!("setTime", "out("),
];

pub(super) fn check(file: &SourceFile, offences: &mut Vec<Offence>) {
    machine_paths(file, offences);
    if file.name() == "package-lock.json" {
        registry_addresses(file, offences);
    }
    let code = [".rs", ".ts", ".mjs", ".py"].iter().any(|ending| file.path.ends_with(ending));
    if code {
        length(file, offences);
        sleeps(file, offences);
    }
    if file.path.ends_with(".rs") {
        rust(file, offences);
    }
    if file.name() == "Cargo.toml"
        && !file.text.contains("[workspace]")
        && !file.text.contains("[lints]\nworkspace = true")
    {
        offences.push(file.offence(1, "take the workspace's lints: `[lints] workspace = true`"));
    }
}

fn length(file: &SourceFile, offences: &mut Vec<Offence>) {
    let lines = file.text.lines().count();
    if lines > MAX_LINES {
        let rule = format!("{lines} lines, {MAX_LINES} at most: split the file");
        offences.push(file.offence(MAX_LINES, rule));
    }
}

fn rust(file: &SourceFile, offences: &mut Vec<Offence>) {
    if !file.text.starts_with("//! ") {
        offences.push(file.offence(1, "start with a `//!` line that describes the file"));
    }
    if VAGUE_NAMES.contains(&file.name()) {
        offences.push(file.offence(1, "name the file after its content"));
    }
    for (index, line) in file.text.lines().enumerate() {
        let number = index + 1;
        for word in UNDONE.iter().filter(|word| line.contains(**word)) {
            offences.push(file.offence(number, format!("`{word}`: finish it or remove it")));
        }
        for (attribute, instead) in ATTRIBUTES.iter().filter(|(attribute, _)| line.contains(attribute)) {
            offences.push(file.offence(number, format!("`{attribute}`: {instead}")));
        }
        if file.path != UNSAFE_FILE && has_unsafe(line) {
            offences.push(file.offence(number, format!("unsafe code belongs in {UNSAFE_FILE}")));
        }
    }
}

/// Whether a line of code, outside of comments, starts an unsafe item.
fn has_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let mut words = code.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let opens = |next: &&str| ["{", "fn", "impl", "extern", "trait"].contains(next);
        if word == concat!("un", "safe") && words.peek().is_some_and(opens) {
            return true;
        }
    }
    false
}

/// Tests must not sleep. This covers files in `tests` folders and the test modules of other files. tokio's sleep is allowed
/// under its paused clock.
fn sleeps(file: &SourceFile, offences: &mut Vec<Offence>) {
    let mut in_tests = file.path.split('/').any(|folder| folder == "tests");
    let paused = file.text.contains("start_paused = true");
    for (index, line) in file.text.lines().enumerate() {
        in_tests |= line.starts_with("mod tests {");
        let sleeps = SLEEPS.iter().any(|sleep| line.contains(sleep));
        if in_tests && sleeps && !(paused && line.contains("tokio::time::")) {
            offences.push(file.offence(index + 1, "wait for an event with a deadline, not for time to pass"));
        }
    }
}

/// The tree must work wherever it is cloned.
fn machine_paths(file: &SourceFile, offences: &mut Vec<Offence>) {
    for (index, line) in file.text.lines().enumerate() {
        if has_machine_path(line) {
            offences.push(file.offence(index + 1, "a path of one machine"));
        }
    }
}

fn has_machine_path(line: &str) -> bool {
    const FOLDERS: [&str; 3] = [concat!("/ro", "ot/"), concat!("/wo", "rk/main"), concat!("/ho", "me/")];
    let starts = FOLDERS.iter().flat_map(|folder| line.match_indices(folder));
    starts.into_iter().any(|(at, folder)| {
        // `{base}/root/a` and `../root/a` are relative to another folder.
        let absolute = !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-}>)%".contains(c));
        let rest = &line[at + folder.len()..];
        absolute && (!folder.ends_with("me/") || is_home(rest))
    })
}

/// Whether a user's home follows. `ada` is the user name for examples.
fn is_home(rest: &str) -> bool {
    let user = rest.split('/').next().unwrap_or_default();
    rest.len() > user.len()
        && user != "ada"
        && !user.is_empty()
        && user.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Lock files must work with any registry.
fn registry_addresses(file: &SourceFile, offences: &mut Vec<Offence>) {
    for (index, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("\"resolved\": \"http") {
            offences.push(
                file.offence(index + 1, "remove the registry address (`omit-lockfile-registry-resolved`)"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offences(path: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check(&SourceFile { path: path.into(), text: text.into() }, &mut found);
        found.iter().map(Offence::to_string).collect()
    }

    #[test]
    fn rust_file_needs_module_comment() {
        assert_eq!(offences("crates/a/src/b.rs", "//! Does b.\n"), [""; 0]);
        assert_eq!(offences("crates/a/src/b.rs", "fn b() {}\n").len(), 1);
    }

    #[test]
    fn unfinished_code_is_an_offence() {
        for word in UNDONE {
            let text = format!("//! B.\n// {word}\n");
            assert!(offences("crates/a/src/b.rs", &text)[0].starts_with("crates/a/src/b.rs:2"), "{word}");
        }
    }

    #[test]
    fn unsafe_is_allowed_in_one_file() {
        let text = concat!("//! B.\nfn f() { un", "safe { g() } }\n");
        assert_eq!(offences("crates/a/src/b.rs", text).len(), 1);
        assert_eq!(offences(UNSAFE_FILE, text), [""; 0]);
        assert_eq!(offences("crates/a/src/b.rs", "//! B.\n// nothing is unsafe { here }\n"), [""; 0]);
    }

    #[test]
    fn machine_paths_are_found() {
        assert!(has_machine_path(concat!("see /ho", "me/grace/src")));
        assert!(has_machine_path(concat!("file:///ho", "me/grace/src")));
        assert!(has_machine_path(concat!("cd /ro", "ot/x")));
        for fine in ["/ho|me/$USER and ~/src", "/ho|me/ada/src", "{base}/ro|ot/x", "../ro|ot/x", "/ho|me/"] {
            assert!(!has_machine_path(&fine.replace('|', "")), "{fine}");
        }
    }

    #[test]
    fn tests_do_not_sleep() {
        let nap = concat!("tokio::time::sl", "eep(second).await;");
        assert_eq!(offences("crates/a/tests/b.rs", &format!("//! B.\n{nap}\n")).len(), 1);
        assert_eq!(offences("crates/a/src/b.rs", &format!("//! B.\n{nap}\n")), [""; 0]);
        assert_eq!(offences("crates/a/src/b.rs", &format!("//! B.\nmod tests {{\n{nap}\n}}\n")).len(), 1);
        let paused = format!("//! B.\n#[tokio::test(start_paused = true)]\n{nap}\n");
        assert_eq!(offences("crates/a/tests/b.rs", &paused), [""; 0]);
    }

    #[test]
    fn long_files_are_found() {
        assert_eq!(offences("web/a.ts", &"x\n".repeat(700)), [""; 0]);
        assert_eq!(offences("web/a.ts", &"x\n".repeat(701)).len(), 1);
    }
}
