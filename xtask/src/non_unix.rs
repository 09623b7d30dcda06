//! `cargo xtask non-unix`: checks that the shipped crates compile on systems other than Unix, without such a system.
//!
//! It checks a copy of the crates in which every `cfg` on the system is false and every Unix-only name is undefined. Code
//! that uses Unix outside a `cfg` does not compile there. It cannot find calls that compile everywhere and fail at run time.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::shell::{Error, cargo, log, repository};

/// Crates that are not shipped. Tests run on Unix only.
const TEST_CRATES: [&str; 2] = ["tenon-fake-lsp", "tenon-testkit"];

/// Unix-only names and their undefined replacements.
const NAMES: [(&str, &str); 7] = [
    ("std::os::unix", "std::os::nowhere"),
    ("std::os::linux", "std::os::nowhere"),
    ("std::os::fd", "std::os::nowhere"),
    ("net::unix", "net::nowhere"),
    ("signal::unix", "signal::nowhere"),
    ("UnixStream", "NowhereStream"),
    ("UnixListener", "NowhereListener"),
];

/// Returns whether the copy compiles.
pub(crate) fn check() -> Result<bool, Error> {
    let copy = repository().join("target/non-unix");
    let mut written = BTreeSet::new();
    for entry in fs::read_dir(repository())? {
        let entry = entry?;
        let to = copy.join(entry.file_name());
        match entry.file_name().to_str() {
            Some("crates" | "schemas" | "docs") => copy_folder(&entry.path(), &to, &mut written)?,
            Some("Cargo.toml") => {
                let text = fs::read_to_string(entry.path())?;
                write(&to, shipped_members(&text).as_bytes())?;
            }
            Some("Cargo.lock") => write(&to, &fs::read(entry.path())?)?,
            _ => {}
        }
    }
    for folder in ["crates", "schemas", "docs"] {
        remove_others(&copy.join(folder), &written)?;
    }
    let mut command = cargo();
    command.current_dir(&copy).env("CARGO_TARGET_DIR", repository().join("target"));
    command.args(["check", "--offline", "--quiet", "--workspace"]);
    for test in TEST_CRATES {
        command.args(["--exclude", test]);
    }
    // Items used on Unix alone cause warnings: print them only when the copy does not compile.
    let output = command.output()?;
    if !output.status.success() {
        log(&String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.status.success())
}

fn copy_folder(from: &Path, to: &Path, written: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to, written)?;
            continue;
        }
        let bytes = fs::read(entry.path())?;
        match (to.extension().and_then(|extension| extension.to_str()), str::from_utf8(&bytes)) {
            (Some("rs"), Ok(text)) => write(&to, without_unix(text).as_bytes())?,
            (Some("toml"), Ok(text)) => write(&to, text.replace("cfg(unix)", "cfg(any())").as_bytes())?,
            _ => write(&to, &bytes)?,
        }
        written.insert(to);
    }
    Ok(())
}

/// Leaves unchanged files alone, so that cargo checks only what changed.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, bytes)
}

fn remove_others(folder: &Path, written: &BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, written)?;
        } else if !written.contains(&path) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The workspace manifest with only the crates that the copy has.
fn shipped_members(manifest: &str) -> String {
    let lines = manifest.lines().map(|line| match line.starts_with("members = ") {
        true => "members = [\"crates/*\"]",
        false => line,
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// The text as compiled on a system other than Unix.
fn without_unix(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut line = line.to_owned();
        if ["#[cfg(", "#[cfg_attr(", "#![cfg(", "cfg!("].iter().any(|condition| line.contains(condition)) {
            for (is, seen) in [
                ("(unix", "(any()"),
                (" unix", " any()"),
                ("target_os = \"linux\"", "any()"),
                ("target_os = \"android\"", "any()"),
                ("target_os = \"macos\"", "any()"),
            ] {
                line = line.replace(is, seen);
            }
        }
        for (is, seen) in NAMES {
            line = line.replace(is, seen);
        }
        seen.push_str(&line);
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_conditions_are_false_and_unix_names_are_undefined() {
        for (is, seen) in [
            ("#[cfg(unix)]\n", "#[cfg(any())]\n"),
            ("#[cfg(not(unix))]\n", "#[cfg(not(any()))]\n"),
            ("#[cfg(all(test, unix))]\n", "#[cfg(all(test, any()))]\n"),
            (
                "#[cfg(all(target_os = \"linux\", target_env = \"gnu\"))]",
                "#[cfg(all(any(), target_env = \"gnu\"))]",
            ),
            ("#[path = \"root/unix.rs\"]", "#[path = \"root/unix.rs\"]"),
            ("use std::os::unix::fs::symlink;", "use std::os::nowhere::fs::symlink;"),
        ] {
            assert_eq!(without_unix(is), seen);
        }
    }
}
