//! `cargo xtask portable`: whether the shipped crates compile where there is no Unix, without such a system at hand.
//!
//! A copy of the crates is made in which every condition on the system is false and every name that only Unix has leads
//! nowhere; whatever leans on Unix without saying so no longer compiles. What this cannot see is a call that
//! exists everywhere and fails elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::shell::{Failure, cargo, repository, say};

/// The crates that are not shipped: tests run on Unix.
const TEST_CRATES: [&str; 2] = ["tenon-fake-lsp", "tenon-testkit"];

/// Names that only Unix has, and what they become.
const NAMES: [(&str, &str); 7] = [
    ("std::os::unix", "std::os::nowhere"),
    ("std::os::linux", "std::os::nowhere"),
    ("std::os::fd", "std::os::nowhere"),
    ("net::unix", "net::nowhere"),
    ("signal::unix", "signal::nowhere"),
    ("UnixStream", "NowhereStream"),
    ("UnixListener", "NowhereListener"),
];

/// Checks the copy. Says whether it compiles.
pub(crate) fn check() -> Result<bool, Failure> {
    let copy = repository().join("target/portable");
    let mut written = BTreeSet::new();
    for entry in fs::read_dir(repository())? {
        let entry = entry?;
        let to = copy.join(entry.file_name());
        match entry.file_name().to_str() {
            Some("crates" | "schemas" | "docs") => copy_folder(&entry.path(), &to, &mut written)?,
            Some("Cargo.toml") => {
                let text = fs::read_to_string(entry.path())?.replace(", \"xtask\"", "");
                write(&to, text.as_bytes())?;
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
    // What only Unix uses is unused there, and warned of: what was said matters when it does not compile.
    let output = command.output()?;
    if !output.status.success() {
        say(&String::from_utf8_lossy(&output.stderr));
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

/// Writes what is new, so that cargo checks again only what changed.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
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

/// The text as a system that is not Unix sees it.
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
    fn conditions_are_false_and_names_lead_nowhere() {
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
