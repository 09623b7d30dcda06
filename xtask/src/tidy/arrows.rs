//! Which crate may know which: the list of the design, top to bottom.
//!
//! Test crates may be used in tests (`dev-dependencies`) of any crate, and only there: they never ship.

use serde_json::Value;

use super::Offence;
use crate::shell::{Failure, cargo};

/// Our crates with those of our crates that each may depend on.
const ARROWS: [(&str, &[&str]); 12] = [
    ("xtask", &["tenon-testkit", "tenon-contract"]),
    (
        "tenon",
        &[
            "tenon-console",
            "tenon-server",
            "tenon-code",
            "tenon-lsp",
            "tenon-context",
            "tenon-work",
            "tenon-compose",
            "tenon-contract",
        ],
    ),
    ("tenon-console", &["tenon-server", "tenon-compose", "tenon-contract"]),
    (
        "tenon-server",
        &["tenon-code", "tenon-lsp", "tenon-context", "tenon-work", "tenon-compose", "tenon-contract"],
    ),
    ("tenon-code", &["tenon-lsp", "tenon-contract"]),
    ("tenon-lsp", &["tenon-contract"]),
    ("tenon-context", &["tenon-contract"]),
    ("tenon-work", &["tenon-contract"]),
    ("tenon-compose", &["tenon-contract"]),
    ("tenon-contract", &[]),
    ("tenon-testkit", &["tenon-contract"]),
    ("tenon-fake-lsp", &["tenon-lsp", "tenon-contract"]),
];

const TEST_CRATES: [&str; 2] = ["tenon-fake-lsp", "tenon-testkit"];

/// Crates of others that stand for a boundary: only the named crates of ours may ship them.
const BOUNDARIES: [(&str, &[&str]); 7] = [
    ("axum", &["tenon-server", "tenon-console"]),
    ("hyper", &["tenon-server", "xtask"]),
    ("rmcp", &["tenon-server"]),
    ("gen-lsp-types", &["tenon-lsp", "tenon-code"]),
    ("sqlx", &["tenon-work"]),
    ("clap", &["tenon", "tenon-fake-lsp", "xtask"]),
    ("anyhow", &[]),
];

pub(super) fn check() -> Result<Vec<Offence>, Failure> {
    let output = cargo().args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).output()?;
    if !output.status.success() {
        return Err(Failure::new(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::new(format!("cargo metadata: {error}")))?;
    Ok(read(&metadata).iter().filter_map(Dependency::offence).collect())
}

/// One line of a manifest.
#[derive(Debug)]
struct Dependency {
    from: String,
    to: String,
    /// Used by tests alone.
    dev: bool,
}

fn read(metadata: &Value) -> Vec<Dependency> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for package in list(&metadata["packages"]) {
        for dependency in list(&package["dependencies"]) {
            let dev = dependency["kind"] == "dev";
            found.push(Dependency { from: text(&package["name"]), to: text(&dependency["name"]), dev });
        }
    }
    found
}

impl Dependency {
    fn offence(&self) -> Option<Offence> {
        let Self { from, to, dev } = self;
        let offence = |rule: String| Some(Offence { place: format!("{from}/Cargo.toml"), rule });
        let Some((_, below)) = ARROWS.iter().find(|(name, _)| name == from) else {
            return offence(format!("`{from}` has no place in the crate list (xtask/src/tidy/arrows.rs)"));
        };
        let ours = ARROWS.iter().any(|(name, _)| name == to);
        if ours && !below.contains(&to.as_str()) && !(*dev && TEST_CRATES.contains(&to.as_str())) {
            return offence(format!("`{from}` may not know `{to}`: arrows point down the crate list"));
        }
        let boundary = BOUNDARIES.iter().find(|(name, _)| name == to);
        match boundary {
            Some((_, users)) if !dev && !users.contains(&from.as_str()) => {
                offence(format!("`{from}` may not ship `{to}`"))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offends(from: &str, to: &str, dev: bool) -> bool {
        Dependency { from: from.into(), to: to.into(), dev }.offence().is_some()
    }

    #[test]
    fn arrows_point_down() {
        assert!(!offends("tenon-server", "tenon-code", false));
        assert!(!offends("tenon-code", "tenon-lsp", false));
        assert!(offends("tenon-lsp", "tenon-code", false));
        assert!(offends("tenon-work", "tenon-context", false));
        assert!(offends("tenon-work", "tenon-context", true));
        assert!(offends("tenon-contract", "tenon-server", false));
    }

    #[test]
    fn test_crates_never_ship() {
        assert!(!offends("tenon-lsp", "tenon-fake-lsp", true));
        assert!(offends("tenon-lsp", "tenon-fake-lsp", false));
        assert!(!offends("tenon-server", "tenon-testkit", true));
        assert!(offends("tenon-server", "tenon-testkit", false));
    }

    #[test]
    fn domain_crates_know_no_protocol() {
        assert!(!offends("tenon-server", "rmcp", false));
        assert!(offends("tenon-code", "rmcp", false));
        assert!(offends("tenon-context", "axum", false));
        assert!(!offends("tenon-code", "hyper", true));
    }

    #[test]
    fn a_new_crate_needs_a_place() {
        assert!(offends("tenon-extra", "serde", false));
    }
}
