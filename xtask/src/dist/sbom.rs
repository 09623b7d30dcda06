//! The software bill of materials: every crate that is compiled into the binary, as CycloneDX 1.6 JSON.
//!
//! `cargo tree` knows which crates and licences those are for a target; `Cargo.lock` has their checksums. There is no
//! serial number and no time, so that equal sources have equal bills.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};
use toml::Table;

use super::{VERSION, output};
use crate::shell::{Error, cargo, repository};

/// A crate as `cargo tree` shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CrateId {
    name: String,
    version: String,
}

impl CrateId {
    fn purl(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

#[derive(Debug, Default, PartialEq)]
struct CrateInfo {
    license: String,
    dependencies: BTreeSet<CrateId>,
}

/// The bill of the binary for a target.
pub(super) fn write(triple: &str) -> Result<String, Error> {
    let mut command = cargo();
    command.args(["tree", "--locked", "--package", "tenon", "--edges", "normal", "--target", triple]);
    // Without `--no-dedupe` a crate's dependencies are listed once, which is enough.
    command.args(["--prefix", "depth", "--format", " {p}|{l}"]);
    let tree = String::from_utf8_lossy(&output(&mut command)?).into_owned();
    let crates = parse(&tree)?;
    let lock: Table = fs::read_to_string(repository().join("Cargo.lock"))?
        .parse()
        .map_err(|error| Error::new(format!("cannot read Cargo.lock: {error}")))?;
    Ok(format!("{:#}\n", bill(&crates, &checksums(&lock))))
}

/// Reads lines such as `2 serde v1.0.1 (proc-macro)|MIT OR Apache-2.0`; the number is the depth in the tree.
fn parse(tree: &str) -> Result<BTreeMap<CrateId, CrateInfo>, Error> {
    let mut crates: BTreeMap<CrateId, CrateInfo> = BTreeMap::new();
    let mut parents: Vec<CrateId> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let unexpected = || Error::new(format!("unexpected line of cargo tree: {line}"));
        let (head, license) = line.split_once('|').ok_or_else(unexpected)?;
        let mut words = head.split(' ');
        let depth: usize = words.next().and_then(|word| word.parse().ok()).ok_or_else(unexpected)?;
        let name = words.next().ok_or_else(unexpected)?.to_owned();
        let version = words.next().and_then(|word| word.strip_prefix('v')).ok_or_else(unexpected)?.to_owned();
        let id = CrateId { name, version };
        parents.truncate(depth);
        if let Some(parent) = parents.last() {
            crates.entry(parent.clone()).or_default().dependencies.insert(id.clone());
        }
        let info = crates.entry(id.clone()).or_default();
        info.license = license.trim_end_matches(" (*)").replace('/', " OR ");
        parents.push(id);
    }
    Ok(crates)
}

/// The SHA-256 of each crate from a registry.
fn checksums(lock: &Table) -> BTreeMap<CrateId, String> {
    let packages = lock.get("package").and_then(|packages| packages.as_array()).into_iter().flatten();
    let checksum = |package: &toml::Value| {
        let text = |key: &str| package.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        Some((CrateId { name: text("name")?, version: text("version")? }, text("checksum")?))
    };
    packages.filter_map(checksum).collect()
}

fn bill(crates: &BTreeMap<CrateId, CrateInfo>, checksums: &BTreeMap<CrateId, String>) -> Value {
    let component = |id: &CrateId, kind: &str| {
        let mut component = json!({
            "type": kind,
            "bom-ref": id.purl(),
            "name": id.name,
            "version": id.version,
            "purl": id.purl(),
        });
        if let Some(info) = crates.get(id).filter(|info| !info.license.is_empty()) {
            component["licenses"] = json!([{"expression": info.license}]);
        }
        if let Some(checksum) = checksums.get(id) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    };
    let root = CrateId { name: "tenon".to_owned(), version: VERSION.to_owned() };
    let components: Vec<Value> =
        crates.keys().filter(|id| **id != root).map(|id| component(id, "library")).collect();
    let dependencies: Vec<Value> = crates
        .iter()
        .map(|(id, info)| {
            let needed: Vec<String> = info.dependencies.iter().map(CrateId::purl).collect();
            json!({"ref": id.purl(), "dependsOn": needed})
        })
        .collect();
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(&root, "application")},
        "components": components,
        "dependencies": dependencies,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_becomes_crates_with_dependencies() {
        let crates = parse(
            "0 a v1.0.0 (/x/a)|MIT\n1 b v2.0.0|MIT/Apache-2.0\n2 c v3.0.0 (proc-macro)|Zlib\n1 c v3.0.0|Zlib (*)\n",
        );
        let crates = crates.unwrap();
        let names = |id: &str| -> Vec<String> {
            let (_, info) = crates.iter().find(|(one, _)| one.name == id).unwrap();
            info.dependencies.iter().map(CrateId::purl).collect()
        };
        assert_eq!(names("a"), ["pkg:cargo/b@2.0.0", "pkg:cargo/c@3.0.0"]);
        assert_eq!(names("b"), ["pkg:cargo/c@3.0.0"]);
        let licenses: Vec<&str> = crates.values().map(|info| info.license.as_str()).collect();
        assert_eq!(licenses, ["MIT", "MIT OR Apache-2.0", "Zlib"]);
        parse("nonsense").unwrap_err();
    }

    /// The oracle is Cargo.lock: every component from a registry is locked with that checksum, and test crates are absent.
    #[test]
    fn bill_lists_locked_crates_without_test_crates() {
        let bill: Value = serde_json::from_str(&write("x86_64-unknown-linux-gnu").unwrap()).unwrap();
        let lock = fs::read_to_string(repository().join("Cargo.lock")).unwrap();
        let components = bill["components"].as_array().unwrap();
        for component in components {
            let (name, version) =
                (component["name"].as_str().unwrap(), component["version"].as_str().unwrap());
            assert!(
                lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n")),
                "{name} {version}"
            );
            assert!(!component["licenses"].is_null(), "{name}");
            match component["hashes"][0]["content"].as_str() {
                Some(checksum) => assert!(lock.contains(&format!("checksum = \"{checksum}\"")), "{name}"),
                None => assert!(name.starts_with("tenon-"), "{name} has no checksum"),
            }
        }
        let names: BTreeSet<&str> = components.iter().filter_map(|one| one["name"].as_str()).collect();
        for expected in ["libsqlite3-sys", "rmcp", "tenon-server", "tokio", "tree-sitter-rust"] {
            assert!(names.contains(expected), "{expected}");
        }
        for absent in ["tenon-testkit", "insta", "xtask"] {
            assert!(!names.contains(absent), "{absent}");
        }
    }
}
