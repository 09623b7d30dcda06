//! `cargo xtask deny`: checks licences, duplicate versions and sources of dependencies against `deny.toml`.
//!
//! It reads the format of cargo-deny and gives the same verdict for these three checks. cargo-deny itself takes minutes to
//! compile and runs in CI (decision 0804).

mod license;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde::Deserialize;

use crate::shell::{Error, cargo, log, print, repository};

/// The part of `deny.toml` that is checked here.
#[derive(Deserialize)]
struct Rules {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

/// A version that may exist beside another one.
#[derive(Deserialize)]
struct Skip {
    /// `name@version`.
    #[serde(rename = "crate")]
    package: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

/// A dependency outside of tests.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    license: String,
}

/// Prints every violation. Returns whether there is none.
pub(crate) fn check() -> Result<bool, Error> {
    let text = fs::read_to_string(repository().join("deny.toml"))?;
    let rules: Rules = toml::from_str(&text).map_err(|error| Error::new(format!("deny.toml: {error}")))?;
    let packages = packages(&rules.graph.targets)?;
    let lock = fs::read_to_string(repository().join("Cargo.lock"))?;
    let mut violations = licenses(&packages, &rules.licenses.allow);
    violations.extend(duplicates(&packages, &rules.bans.skip));
    violations.extend(sources(&lock, &rules.sources.allow_registry));
    for violation in &violations {
        print(violation);
    }
    if violations.is_empty() {
        log(&format!("{} dependencies follow deny.toml", packages.len()));
    }
    Ok(violations.is_empty())
}

fn packages(targets: &[String]) -> Result<BTreeSet<Package>, Error> {
    let mut command = cargo();
    command.args(["tree", "--locked", "--workspace", "--edges", "normal,build", "--prefix", "none"]);
    command.args(["--format", "{p}|{l}"]);
    command.args(targets.iter().flat_map(|target| ["--target", target]));
    let output = command.output()?;
    if !output.status.success() {
        return Err(Error::new(String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(read_package).collect())
}

/// Reads `name vVERSION (source)|license (*)`.
fn read_package(line: &str) -> Option<Package> {
    let (package, license) = line.split_once('|')?;
    let mut words = package.split(' ');
    let name = words.next()?.to_owned();
    let version = words.next()?.strip_prefix('v')?.to_owned();
    Some(Package { name, version, license: license.trim_end_matches("(*)").trim().to_owned() })
}

fn licenses(packages: &BTreeSet<Package>, allowed: &BTreeSet<String>) -> Vec<String> {
    let mut violations = Vec::new();
    let mut used = BTreeSet::new();
    for package in packages {
        let Package { name, version, license } = package;
        match license::allowed(license, allowed) {
            Some(licenses) => used.extend(licenses),
            None => violations.push(format!("{name} {version}: licence `{license}` is not allowed")),
        }
    }
    let unused = allowed.iter().filter(|license| !used.contains(*license));
    violations
        .extend(unused.map(|license| format!("deny.toml: no dependency needs the licence `{license}`")));
    violations
}

fn duplicates(packages: &BTreeSet<Package>, skips: &[Skip]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    let mut violations = Vec::new();
    for (name, versions) in &versions {
        let skipped = |version: &&&str| skips.iter().any(|skip| skip.package == format!("{name}@{version}"));
        let counted: Vec<&&str> = versions.iter().filter(|version| !skipped(version)).collect();
        if counted.len() > 1 {
            violations
                .push(format!("{name}: {counted:?} are all used; unify them or explain one in deny.toml"));
        }
    }
    for Skip { package, reason } in skips {
        let (name, version) = package.split_once('@').unwrap_or((package, ""));
        if !versions.get(name).is_some_and(|all| all.len() > 1 && all.contains(&version)) {
            violations.push(format!("deny.toml: `{package}` is not a duplicate; remove it from `skip`"));
        }
        if reason.is_empty() {
            violations.push(format!("deny.toml: `{package}` needs a reason"));
        }
    }
    violations
}

fn sources(lock: &str, registries: &[String]) -> Vec<String> {
    let sources: BTreeSet<&str> = lock.lines().filter_map(|line| line.strip_prefix("source = ")).collect();
    let allowed = |source: &&&str| registries.iter().any(|url| **source == format!("\"registry+{url}\""));
    sources
        .iter()
        .filter(|source| !allowed(source))
        .map(|source| format!("Cargo.lock: source {source} is not allowed"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(lines: &[&str]) -> BTreeSet<Package> {
        lines.iter().filter_map(|line| read_package(line)).collect()
    }

    fn skip(package: &str) -> Skip {
        Skip { package: package.into(), reason: "why".into() }
    }

    #[test]
    fn package_line_is_read() {
        let expected = Package { name: "a".into(), version: "1.0.0".into(), license: "MIT".into() };
        assert_eq!(read_package("a v1.0.0 (proc-macro)|MIT (*)"), Some(expected));
        assert_eq!(read_package(""), None);
    }

    #[test]
    fn disallowed_and_unused_licences_are_violations() {
        let packages = set(&["a v1.0.0|MIT", "b v1.0.0|GPL-3.0", "c v1.0.0|"]);
        let found = licenses(&packages, &["ISC", "MIT"].map(str::to_owned).into());
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn unexplained_duplicate_is_a_violation() {
        let packages = set(&["a v1.0.0|MIT", "a v2.0.0|MIT", "b v1.0.0|MIT"]);
        assert_eq!(duplicates(&packages, &[]).len(), 1);
        assert_eq!(duplicates(&packages, &[skip("a@1.0.0")]), [""; 0]);
        assert_eq!(duplicates(&packages, &[skip("a@1.0.0"), skip("b@1.0.0")]).len(), 1);
    }

    #[test]
    fn source_outside_of_registry_is_a_violation() {
        let registries = ["https://example.org/index".to_owned()];
        assert_eq!(sources("source = \"registry+https://example.org/index\"\n", &registries), [""; 0]);
        assert_eq!(sources("source = \"git+https://example.org/a\"\n", &registries).len(), 1);
    }
}
