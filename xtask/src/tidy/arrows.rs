//! Which crate may depend on which: the crate list of ARCHITECTURE.md, top to bottom.
//!
//! Any crate may use the test crates in `dev-dependencies`, but only there, because they are never shipped.

use serde_json::Value;

use super::Offence;
use crate::shell::{Error, cargo};

/// Each of our crates with the crates of ours that it may depend on.
const ARROWS: [(&str, &[&str]); 15] = [
    ("xtask", &[]),
    ("tenon-bench", &["tenon-testkit", "tenon-index", "tenon-contract"]),
    (
        "tenon",
        &[
            "tenon-console",
            "tenon-server",
            "tenon-code",
            "tenon-lsp",
            "tenon-servers",
            "tenon-context",
            "tenon-work",
            "tenon-compose",
            "tenon-contract",
        ],
    ),
    ("tenon-console", &["tenon-server", "tenon-code", "tenon-lsp", "tenon-compose", "tenon-contract"]),
    (
        "tenon-server",
        &[
            "tenon-code",
            "tenon-lsp",
            "tenon-servers",
            "tenon-context",
            "tenon-work",
            "tenon-compose",
            "tenon-contract",
        ],
    ),
    ("tenon-code", &["tenon-index", "tenon-lsp", "tenon-servers", "tenon-contract"]),
    ("tenon-index", &["tenon-contract"]),
    ("tenon-lsp", &["tenon-servers", "tenon-contract"]),
    ("tenon-servers", &["tenon-contract"]),
    ("tenon-context", &["tenon-index", "tenon-contract"]),
    ("tenon-work", &["tenon-contract"]),
    ("tenon-compose", &["tenon-contract"]),
    ("tenon-contract", &[]),
    ("tenon-testkit", &[]),
    ("tenon-fake-lsp", &["tenon-lsp", "tenon-servers", "tenon-contract"]),
];

const TEST_CRATES: [&str; 2] = ["tenon-fake-lsp", "tenon-testkit"];

/// External crates that mark a boundary: only the listed crates of ours may depend on them outside of tests.
const BOUNDARIES: [(&str, &[&str]); 8] = [
    ("axum", &["tenon-server", "tenon-console"]),
    ("hyper", &["tenon-server", "tenon-bench"]),
    ("rmcp", &["tenon-server"]),
    ("gen-lsp-types", &["tenon-lsp"]),
    ("rusqlite", &["tenon-work", "tenon-testkit"]),
    ("sqlx", &["tenon-work"]),
    ("clap", &["tenon", "tenon-bench", "tenon-fake-lsp", "xtask"]),
    ("anyhow", &[]),
];

pub(super) fn check() -> Result<Vec<Offence>, Error> {
    let output = cargo().args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).output()?;
    if !output.status.success() {
        return Err(Error::new(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| Error::new(format!("cargo metadata: {error}")))?;
    let dependencies = read(&metadata);
    let mut offences: Vec<Offence> = dependencies.iter().filter_map(Dependency::offence).collect();
    offences.extend(unused(&dependencies));
    Ok(offences)
}

/// Permissions that no crate uses: the lists above must describe the tree.
fn unused(dependencies: &[Dependency]) -> Vec<Offence> {
    let arrows = ARROWS.iter().flat_map(|(from, below)| below.iter().map(move |to| (*from, *to)));
    let boundaries = BOUNDARIES.iter().flat_map(|(to, users)| users.iter().map(move |from| (*from, *to)));
    let missing = arrows.chain(boundaries).filter(|(from, to)| {
        !dependencies.iter().any(|dependency| dependency.from == *from && dependency.to == *to)
    });
    let offence = |(from, to)| Offence {
        location: "xtask/src/tidy/arrows.rs".into(),
        rule: format!("`{from}` does not depend on `{to}`: remove the permission"),
    };
    missing.map(offence).collect()
}

/// One line of a manifest.
#[derive(Debug)]
struct Dependency {
    from: String,
    to: String,
    /// In `dev-dependencies`.
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
        let offence = |rule: String| Some(Offence { location: format!("{from}/Cargo.toml"), rule });
        let Some((_, below)) = ARROWS.iter().find(|(name, _)| name == from) else {
            return offence(format!("add `{from}` to the crate list in xtask/src/tidy/arrows.rs"));
        };
        let ours = ARROWS.iter().any(|(name, _)| name == to);
        if ours && !below.contains(&to.as_str()) && !(*dev && TEST_CRATES.contains(&to.as_str())) {
            return offence(format!(
                "`{from}` may not depend on `{to}`: dependencies point down the crate list"
            ));
        }
        let boundary = BOUNDARIES.iter().find(|(name, _)| name == to);
        match boundary {
            Some((_, users)) if !dev && !users.contains(&from.as_str()) => {
                offence(format!("`{from}` may use `{to}` only in tests"))
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
    fn dependencies_point_down() {
        assert!(!offends("tenon-server", "tenon-code", false));
        assert!(!offends("tenon-code", "tenon-lsp", false));
        assert!(!offends("tenon-code", "tenon-index", false));
        assert!(offends("tenon-index", "tenon-lsp", false));
        assert!(offends("tenon-lsp", "tenon-index", false));
        assert!(offends("tenon-lsp", "tenon-code", false));
        assert!(offends("tenon-work", "tenon-context", false));
        assert!(offends("tenon-work", "tenon-context", true));
        assert!(offends("tenon-contract", "tenon-server", false));
    }

    #[test]
    fn test_crates_are_never_shipped() {
        assert!(!offends("tenon-lsp", "tenon-fake-lsp", true));
        assert!(offends("tenon-lsp", "tenon-fake-lsp", false));
        assert!(!offends("tenon-server", "tenon-testkit", true));
        assert!(offends("tenon-server", "tenon-testkit", false));
    }

    #[test]
    fn domain_crates_do_not_depend_on_protocols() {
        assert!(!offends("tenon-server", "rmcp", false));
        assert!(offends("tenon-code", "rmcp", false));
        assert!(offends("tenon-context", "axum", false));
        assert!(!offends("tenon-code", "hyper", true));
    }

    #[test]
    fn permission_without_dependency_is_an_offence() {
        let all = unused(&[]).len();
        let used = Dependency { from: "tenon-code".into(), to: "tenon-lsp".into(), dev: false };
        assert_eq!(unused(&[used]).len(), all - 1);
    }

    #[test]
    fn unlisted_crate_is_an_offence() {
        assert!(offends("tenon-extra", "serde", false));
    }
}
