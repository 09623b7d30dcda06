//! Where shipped crates may use Unix-only names: in files marked as Unix, and in items under a `#[cfg(…)]` on the system.
//!
//! A file named `unix.rs`, or whose first line begins with `//! Unix:`, is compiled on Unix only: its `mod` line must be under
//! `#[cfg(unix)]`.
//! Whether the rest compiles elsewhere is checked by `cargo xtask non-unix`.

use super::{Offence, SourceFile};

/// Unix-only names, in two halves so that this file does not contain them.
const NAMES: [&str; 9] = [
    concat!("std::os::", "unix"),
    concat!("std::os::", "linux"),
    concat!("std::os::", "fd"),
    concat!("ni", "x::"),
    concat!("rust", "ix::"),
    concat!("lib", "c::"),
    concat!("net::", "unix"),
    concat!("signal::", "unix"),
    concat!("Unix", "Stream"),
];

/// Words that make a `#[cfg(…)]` depend on the system.
const SYSTEMS: [&str; 3] = ["unix", "target_os", "target_family"];

/// Crates that are never shipped. Tests run on Unix only.
const TEST_CRATES: [&str; 2] = ["crates/tenon-fake-lsp/", "crates/tenon-testkit/"];

pub(super) fn check(files: &[SourceFile], offences: &mut Vec<Offence>) {
    let shipped = |file: &&SourceFile| {
        file.path.starts_with("crates/")
            && file.path.contains("/src/")
            && file.path.ends_with(".rs")
            && !TEST_CRATES.iter().any(|test| file.path.starts_with(test))
    };
    for file in files.iter().filter(shipped) {
        if is_unix(file) {
            if !files.iter().any(|other| declares(other, file)) && !is_inside_unix(files, file) {
                offences.push(file.offence(1, "declare the module under `#[cfg(unix)]`"));
            }
        } else if !is_inside_unix(files, file) {
            names(file, offences);
        }
    }
}

/// Whether a file is marked as Unix.
fn is_unix(file: &SourceFile) -> bool {
    file.name() == "unix.rs" || file.text.starts_with("//! Unix:")
}

/// Whether a file is a submodule of a file marked as Unix.
fn is_inside_unix(files: &[SourceFile], file: &SourceFile) -> bool {
    let above = |other: &&SourceFile| {
        other
            .path
            .strip_suffix(".rs")
            .is_some_and(|folder| file.path.strip_prefix(folder).is_some_and(|below| below.starts_with('/')))
    };
    files.iter().filter(above).any(is_unix)
}

/// Whether `parent` declares the module of `file`, by name or by path, under `#[cfg(unix)]`.
fn declares(parent: &SourceFile, file: &SourceFile) -> bool {
    let Some((folder, name)) = file.path.rsplit_once('/') else { return false };
    let module = name.trim_end_matches(".rs");
    let (parent_folder, parent_name) = parent.path.rsplit_once('/').unwrap_or_default();
    let own = format!("{parent_folder}/{}", parent_name.trim_end_matches(".rs"));
    let is_root = ["lib.rs", "main.rs"].contains(&parent_name);
    let by_path = format!(
        "#[path = \"{}\"]",
        file.path.strip_prefix(&format!("{parent_folder}/")).unwrap_or(&file.path)
    );
    let mut gated = false;
    for line in parent.text.lines().map(str::trim) {
        let here = folder == own || is_root && folder == parent_folder;
        let by_name = line.strip_suffix(';').is_some_and(|line| line.ends_with(&format!("mod {module}")));
        if gated && (line == by_path || here && by_name) {
            return true;
        }
        // Several attributes may precede the item.
        gated = line == "#[cfg(unix)]" || gated && line.starts_with("#[");
    }
    false
}

/// Finds Unix-only names outside of items under a `#[cfg(…)]` on the system.
fn names(file: &SourceFile, offences: &mut Vec<Offence>) {
    // The indentation of the item that is skipped.
    let mut gate: Option<usize> = None;
    for (index, line) in file.text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let depth = line.len() - line.trim_start().len();
        if let Some(gated) = gate {
            let attribute = code.trim_start().starts_with("#[");
            let ends = code.trim_end().ends_with(['}', ';', ',']);
            if depth == gated && ends && !attribute {
                gate = None;
            }
            continue;
        }
        if code.trim_start().starts_with("#[cfg(") && SYSTEMS.iter().any(|system| code.contains(system)) {
            gate = Some(depth);
            continue;
        }
        for name in NAMES.iter().filter(|name| contains_name(code, name)) {
            let rule =
                format!("`{name}` outside of `#[cfg(unix)]` in a file that is not marked with `//! Unix:`");
            offences.push(file.offence(index + 1, rule));
        }
    }
}

/// Whether code contains the name, not as the end of a longer one.
fn contains_name(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
            || name.starts_with("Unix")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offences(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile { path: (*path).into(), text: text.replace('~', "std::os::") })
            .collect();
        let mut found = Vec::new();
        check(&files, &mut found);
        found.iter().map(|offence| offence.location.clone()).collect()
    }

    #[test]
    fn unix_name_in_unmarked_file_is_an_offence() {
        assert_eq!(offences(&[("crates/a/src/b.rs", "//! B.\nuse ~unix::fs;\n")]), ["crates/a/src/b.rs:2"]);
        assert_eq!(offences(&[("crates/a/src/b.rs", "//! B.\n// ~unix is not used\n")]), [""; 0]);
        assert_eq!(offences(&[("crates/tenon-testkit/src/b.rs", "//! B.\nuse ~unix::fs;\n")]), [""; 0]);
        assert_eq!(offences(&[("crates/a/tests/b.rs", "//! B.\nuse ~unix::fs;\n")]), [""; 0]);
    }

    #[test]
    fn marked_file_needs_cfg_unix_on_its_module() {
        let file = ("crates/a/src/b.rs", "//! Unix: b.\nuse ~unix::fs;\n");
        assert_eq!(offences(&[file, ("crates/a/src/lib.rs", "//! A.\nmod b;\n")]), ["crates/a/src/b.rs:1"]);
        assert_eq!(offences(&[file, ("crates/a/src/lib.rs", "//! A.\n#[cfg(unix)]\npub mod b;\n")]), [""; 0]);
        assert_eq!(
            offences(&[file, ("crates/a/src/lib.rs", "//! A.\n#[cfg(unix)]\nmod c;\nmod b;\n")]),
            ["crates/a/src/b.rs:1"]
        );
        let below = ("crates/a/src/b/c.rs", "//! C.\nuse ~unix::fs;\n");
        let lib = ("crates/a/src/lib.rs", "//! A.\n#[cfg(unix)]\nmod b;\n");
        assert_eq!(offences(&[file, below, lib]), [""; 0]);
        let by_path = ("crates/a/src/s.rs", "//! S.\n#[cfg(unix)]\n#[path = \"s/unix.rs\"]\nmod platform;\n");
        assert_eq!(offences(&[("crates/a/src/s/unix.rs", "//! Unix: s.\n"), by_path]), [""; 0]);
    }

    #[test]
    fn unix_name_under_cfg_is_allowed() {
        for fine in [
            "#[cfg(unix)]\nfn f() {\n    ~unix::f();\n}\n#[cfg(not(unix))]\nfn f() {}\n",
            "#[cfg(target_os = \"linux\")]\nmod system {\n    use ~linux;\n\n    fn f() {}\n}\n",
            "fn f() {\n    #[cfg(unix)]\n    ~unix::f();\n    g();\n}\n",
            "#[cfg(all(test, unix))]\nmod tests {\n    fn f() {\n        ~unix::f();\n    }\n}\n",
        ] {
            assert_eq!(offences(&[("crates/a/src/b.rs", &format!("//! B.\n{fine}"))]), [""; 0], "{fine}");
        }
        let after = "//! B.\n#[cfg(unix)]\nfn f() {\n    g();\n}\nfn h() {\n    ~unix::f();\n}\n";
        assert_eq!(offences(&[("crates/a/src/b.rs", after)]), ["crates/a/src/b.rs:7"]);
    }
}
