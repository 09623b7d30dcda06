//! The official MCP conformance suite against our edge, compared with a baseline of known failures.
//!
//! The suite runs against the server in `fixture_server.rs`, once per revision, with the scenarios that the revision requires.
//! `tests/conformance/<revision>.json` in the repository root gives a reason for each known failure, keyed by scenario or
//! by `scenario:check`. A failure without an entry fails the test, and so does an entry without a failure.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![expect(clippy::print_stdout, reason = "a failed run shows how many checks passed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use tenon_testkit::{program, repository_root};
use tokio::process::Command;

mod fixture_server;

#[tokio::test(flavor = "multi_thread")]
async fn suite_passes_for_2025_11_25() {
    run_suite("2025-11-25").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn suite_passes_for_2026_07_28() {
    run_suite("2026-07-28").await;
}

async fn run_suite(revision: &str) {
    let address = fixture_server::start().await;
    let results = tempfile::tempdir().unwrap();
    let mut command = Command::new(program::tool("conformance"));
    command.args(["server", "--url", &address, "--requirements", revision, "--output-dir"]);
    command.arg(results.path()).env("PATH", program::search_path());
    // The suite's exit code ignores our baseline: only its result files count.
    let output = command.output().await.unwrap();
    let checks = read_results(results.path());
    assert!(!checks.is_empty(), "the suite ran no checks: {}", String::from_utf8_lossy(&output.stderr));
    let verdict = judge(&checks, &read_baseline(revision));
    println!("{revision}: {} checks passed, {} failed as expected", verdict.passed, verdict.excused);
    let failures: Vec<String> = verdict.unexpected.into_iter().chain(verdict.stale).collect();
    assert!(failures.is_empty(), "{revision}:\n{}", failures.join("\n"));
}

/// One check of one scenario, and whether it failed.
#[derive(Debug, PartialEq, Eq)]
struct Check {
    scenario: String,
    id: String,
    failed: bool,
    message: String,
}

/// The suite writes a folder `server-<scenario>-<time>` for each scenario.
fn read_results(folder: &Path) -> Vec<Check> {
    let mut checks = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(scenario) = scenario_of(name) else { continue };
        let text = fs::read_to_string(path.join("checks.json")).unwrap();
        let list: Value = serde_json::from_str(&text).unwrap();
        checks.extend(list.as_array().into_iter().flatten().map(|check| read_check(scenario, check)));
    }
    checks
}

fn scenario_of(folder: &str) -> Option<&str> {
    const TIME: usize = "-2026-07-28T00-00-00-000Z".len();
    let named = folder.strip_prefix("server-")?;
    named.get(..named.len().checked_sub(TIME)?)
}

/// A warning is a violated SHOULD: it needs a reason in the baseline, too.
fn read_check(scenario: &str, check: &Value) -> Check {
    let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let failed = matches!(check["status"].as_str(), Some("FAILURE" | "WARNING"));
    Check { scenario: scenario.to_owned(), id: text("id"), failed, message: text("errorMessage") }
}

/// Reasons by `scenario` or `scenario:check`.
type Baseline = BTreeMap<String, String>;

fn read_baseline(revision: &str) -> Baseline {
    let path = repository_root().join("tests/conformance").join(format!("{revision}.json"));
    let baseline: Baseline = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    for (key, reason) in &baseline {
        assert!(!reason.is_empty(), "{}: `{key}` has no reason", path.display());
    }
    baseline
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    passed: u64,
    /// Failed with an entry in the baseline.
    excused: u64,
    unexpected: Vec<String>,
    /// Entries of the baseline without a failure.
    stale: Vec<String>,
}

fn judge(checks: &[Check], baseline: &Baseline) -> Verdict {
    let mut verdict = Verdict::default();
    let mut used = BTreeSet::new();
    for check in checks {
        let key = format!("{}:{}", check.scenario, check.id);
        let entry = [&key, &check.scenario].into_iter().find(|key| baseline.contains_key(*key)).cloned();
        match (check.failed, entry) {
            (false, _) => verdict.passed += 1,
            (true, Some(entry)) => {
                verdict.excused += 1;
                used.insert(entry);
            }
            (true, None) => verdict.unexpected.push(format!("{key}: {}", check.message)),
        }
    }
    let stale = baseline.keys().filter(|entry| !used.contains(*entry));
    verdict.stale = stale.map(|entry| format!("{entry} passes: remove it from the baseline")).collect();
    verdict
}

fn check(scenario: &str, id: &str, failed: bool) -> Check {
    Check { scenario: scenario.into(), id: id.into(), failed, message: "why".into() }
}

fn baseline(keys: &[&str]) -> Baseline {
    keys.iter().map(|key| ((*key).to_owned(), "reason".to_owned())).collect()
}

#[test]
fn failure_without_entry_is_unexpected() {
    let checks = [check("a", "one", true), check("a", "two", true), check("b", "three", false)];
    let verdict = judge(&checks, &baseline(&["a:one"]));
    assert_eq!((verdict.passed, verdict.excused), (1, 1));
    assert_eq!(verdict.unexpected, ["a:two: why"]);
    assert!(verdict.stale.is_empty());
}

#[test]
fn entry_without_failure_is_stale() {
    let checks = [check("a", "one", false), check("b", "two", true)];
    let verdict = judge(&checks, &baseline(&["a", "b", "c:gone"]));
    assert_eq!(verdict.stale.len(), 2);
    assert_eq!((verdict.passed, verdict.excused), (1, 1));
}

#[test]
fn scenario_is_read_from_folder_name() {
    assert_eq!(scenario_of("server-tools-list-2026-11-15T21-17-37-299Z"), Some("tools-list"));
    assert_eq!(scenario_of("server-x"), None);
    assert_eq!(scenario_of("client-x-2026-11-15T21-17-37-299Z"), None);
}
