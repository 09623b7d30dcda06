//! The official MCP conformance suite against our edge, held to a baseline from both sides.
//!
//! The suite runs against `crates/tenon-server/examples/conformance.rs`, once for each revision, with
//! exactly the scenarios that the revision requires. What a server of tools alone cannot pass stands in
//! `tests/conformance/<revision>.json` with a reason each, keyed by scenario, or by `scenario:check`
//! where only some of its checks are meant. A check that fails without an entry is a failure, and so
//! is an entry whose checks all pass: the baseline can only shrink knowingly.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::tally::Tally;
use super::{build_programs, with_tools};
use crate::shell::{Failure, built, repository, run, say, tools};

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Runs the suite for every revision; each check is one test.
pub(super) fn run_suite() -> Result<Tally, Failure> {
    build_programs()?;
    let server = Server::start()?;
    let mut total = Tally::default();
    for revision in REVISIONS {
        let results = tools().join("conformance").join(revision);
        let _ = fs::remove_dir_all(&results);
        let mut command = Command::new(tools().join("bin/conformance"));
        command.args(["server", "--url", &server.address, "--requirements", revision, "--output-dir"]);
        // The suite's own verdict knows no baseline of ours; its results are judged below.
        run(with_tools(command.arg(&results).stdout(Stdio::null())))?;
        let checks = read_results(&results)?;
        let baseline = read_baseline(revision)?;
        let verdict = judge(&checks, &baseline);
        say(&format!(
            "{revision}: {} checks passed, {} failed as the baseline says",
            verdict.passed, verdict.excused
        ));
        total += verdict.tally(revision);
    }
    Ok(total)
}

/// The fixture server, which ends with its stdin.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start() -> Result<Self, Failure> {
        let program = built("examples/conformance")?;
        let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().expect("stdout was piped above")).read_line(&mut address)?;
        Ok(Self { child, address: address.trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
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
fn read_results(folder: &Path) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    let entries = fs::read_dir(folder).map_err(|_| Failure::new("the conformance suite wrote no results"))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(scenario) = scenario_of(name) else { continue };
        let text = fs::read_to_string(path.join("checks.json"))?;
        let list: Value =
            serde_json::from_str(&text).map_err(|error| Failure::new(format!("{name}: {error}")))?;
        checks.extend(list.as_array().into_iter().flatten().map(|check| read_check(scenario, check)));
    }
    if checks.is_empty() {
        return Err(Failure::new("the conformance suite checked nothing"));
    }
    Ok(checks)
}

fn scenario_of(folder: &str) -> Option<&str> {
    const TIME: usize = "-2026-07-28T00-00-00-000Z".len();
    let named = folder.strip_prefix("server-")?;
    named.get(..named.len().checked_sub(TIME)?)
}

/// A warning is a broken SHOULD, which we do not break without a reason either.
fn read_check(scenario: &str, check: &Value) -> Check {
    let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let failed = matches!(check["status"].as_str(), Some("FAILURE" | "WARNING"));
    Check { scenario: scenario.to_owned(), id: text("id"), failed, message: text("errorMessage") }
}

/// Reasons by `scenario` or `scenario:check`.
type Baseline = BTreeMap<String, String>;

fn read_baseline(revision: &str) -> Result<Baseline, Failure> {
    let path = repository().join("tests/conformance").join(format!("{revision}.json"));
    let shown = path.display();
    let fault = |what: String| Failure::new(format!("{shown}: {what}"));
    let text = fs::read_to_string(&path).map_err(|error| fault(error.to_string()))?;
    let parsed: Value = serde_json::from_str(&text).map_err(|error| fault(error.to_string()))?;
    let entries = parsed.as_object().ok_or_else(|| fault("not an object".into()))?;
    let entry = |(key, reason): (&String, &Value)| match reason.as_str() {
        Some(reason) if !reason.is_empty() => Ok((key.clone(), reason.to_owned())),
        _ => Err(fault(format!("`{key}` has no reason"))),
    };
    entries.iter().map(entry).collect()
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    passed: u64,
    /// Failed, as the baseline says.
    excused: u64,
    unexpected: Vec<String>,
    /// Entries of the baseline that excused nothing.
    stale: Vec<String>,
}

impl Verdict {
    /// What the baseline excuses counts neither way.
    fn tally(self, revision: &str) -> Tally {
        let failures: Vec<String> = self.unexpected.into_iter().chain(self.stale).collect();
        Tally {
            passed: self.passed,
            failed: failures.len() as u64,
            failures: failures.iter().map(|failure| format!("conformance {revision}: {failure}")).collect(),
        }
    }
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
    verdict.stale = stale.map(|entry| format!("{entry} passes: take it out of the baseline")).collect();
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(scenario: &str, id: &str, failed: bool) -> Check {
        Check { scenario: scenario.into(), id: id.into(), failed, message: "why".into() }
    }

    fn baseline(keys: &[&str]) -> Baseline {
        keys.iter().map(|key| ((*key).to_owned(), "reason".to_owned())).collect()
    }

    #[test]
    fn a_failure_needs_an_entry() {
        let checks = [check("a", "one", true), check("a", "two", true), check("b", "three", false)];
        let verdict = judge(&checks, &baseline(&["a:one"]));
        assert_eq!((verdict.passed, verdict.excused), (1, 1));
        assert_eq!(verdict.unexpected, ["a:two: why"]);
        assert!(verdict.stale.is_empty());
    }

    #[test]
    fn an_entry_needs_a_failure() {
        let checks = [check("a", "one", false), check("b", "two", true)];
        let verdict = judge(&checks, &baseline(&["a", "b", "c:gone"]));
        assert_eq!(verdict.stale.len(), 2);
        let tally = verdict.tally("2025-11-25");
        assert_eq!((tally.passed, tally.failed), (1, 2));
    }

    #[test]
    fn scenarios_are_read_from_folder_names() {
        assert_eq!(scenario_of("server-tools-list-2026-11-15T21-17-37-299Z"), Some("tools-list"));
        assert_eq!(scenario_of("server-x"), None);
        assert_eq!(scenario_of("client-x-2026-11-15T21-17-37-299Z"), None);
    }

    #[test]
    fn every_entry_of_our_baselines_has_a_reason() {
        for revision in REVISIONS {
            read_baseline(revision).unwrap();
        }
    }
}
