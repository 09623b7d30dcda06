//! `pyright --watch`, kept in step with the tree by a file of our own.
//!
//! Pyright reports the whole tree after each change that it notices, and does not say which changes a report covers. So a
//! step file contains one undefined name, a new one per step: a report with that name began after the name was written.
//! Watchers may deliver two changes in another order, so a second step follows the first, and only its report counts.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde_json::Value;
use tenon_testkit::Sandbox;
use tenon_testkit::program::tool;

use super::finding::{Counts, Finding};
use crate::error::BenchError;

const STEP_FILE: &str = "oracle_step.py";

/// How long to wait for a report before the step is repeated, and how often. A whole check of Django takes over a minute.
const PATIENCE: Duration = Duration::from_secs(5);
const ATTEMPTS: usize = 120;

/// A running `pyright --watch`.
pub(crate) struct PyrightWatch {
    child: Child,
    reports: Receiver<Value>,
    step: u64,
}

impl PyrightWatch {
    pub(super) fn start(sandbox: &Sandbox) -> Result<Self, BenchError> {
        let mut command = sandbox.command(tool("pyright"));
        command.args(["--watch", "--outputjson"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        write_step(sandbox, 0);
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().expect("stdout was piped above");
        // Pyright waits while its reports are not read, so a short queue suffices.
        let (send, reports) = sync_channel(4);
        std::thread::spawn(move || {
            let mut document = String::new();
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(report) = add_line(&mut document, &line)
                    && send.send(report).is_err()
                {
                    return;
                }
            }
        });
        Ok(Self { child, reports, step: 0 })
    }

    /// All errors of the tree as it is now.
    pub(super) fn findings(&mut self, sandbox: &Sandbox) -> Result<Counts, BenchError> {
        self.next_step(sandbox)?;
        let report = self.next_step(sandbox)?;
        let root = sandbox.root();
        let folder = format!("{}/", root.display());
        let findings = errors(&report).map(|one| {
            let text = |key: &str| one[key].as_str().unwrap_or_default();
            Finding::new(root, text("file").trim_start_matches(&folder), text("rule"), text("message"))
        });
        Ok(findings.filter(|finding| finding.file != STEP_FILE).collect())
    }

    /// Writes the next step and waits for a report that contains it. A step that pyright's watcher missed is repeated.
    fn next_step(&mut self, sandbox: &Sandbox) -> Result<Value, BenchError> {
        let first = self.step + 1;
        for _ in 0..ATTEMPTS {
            self.step += 1;
            write_step(sandbox, self.step);
            while let Ok(report) = self.reports.recv_timeout(PATIENCE) {
                if (first..=self.step).any(|step| has_step(&report, step)) {
                    return Ok(report);
                }
            }
        }
        Err(BenchError::new("pyright did not report a change"))
    }
}

impl Drop for PyrightWatch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_step(sandbox: &Sandbox, step: u64) {
    sandbox.tree().write(STEP_FILE, &format!("{}\n", step_name(step)));
}

fn step_name(step: u64) -> String {
    format!("oracle_step_{step}_end")
}

fn errors(report: &Value) -> impl Iterator<Item = &Value> {
    let found = report["generalDiagnostics"].as_array().into_iter().flatten();
    found.filter(|one| one["severity"] == "error")
}

/// Whether a report began after a step was written.
fn has_step(report: &Value, step: u64) -> bool {
    let name = step_name(step);
    errors(report).any(|one| {
        let has = |key: &str, part: &str| one[key].as_str().is_some_and(|text| text.contains(part));
        has("file", STEP_FILE) && has("message", &name)
    })
}

/// Adds a line of output; returns the report that it completes.
fn add_line(document: &mut String, line: &str) -> Option<Value> {
    if line.starts_with('{') {
        document.clear();
    }
    document.push_str(line);
    document.push('\n');
    (line == "}").then(|| serde_json::from_str(document).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(step: u64) -> String {
        let message = format!("\"{}\" is not defined", step_name(step));
        let error =
            serde_json::json!({ "file": format!("/r/{STEP_FILE}"), "severity": "error", "message": message });
        format!("{{\n\"generalDiagnostics\": [{error}]\n}}\n")
    }

    #[test]
    fn report_of_an_earlier_step_is_rejected() {
        let text = format!("No configuration file found.\n{}{}", report(1), report(12));
        let mut document = String::new();
        let reports: Vec<Value> = text.lines().filter_map(|line| add_line(&mut document, line)).collect();
        let steps = |step: u64| -> Vec<bool> { reports.iter().map(|one| has_step(one, step)).collect() };
        assert_eq!(steps(1), [true, false]);
        assert_eq!(steps(12), [false, true]);
        assert_eq!(steps(2), [false, false]);
    }

    #[test]
    fn watched_findings_equal_a_whole_run_after_each_change() {
        let sandbox = Sandbox::with_tree("//- a.py\nvalue: int = 'text'\n//- b.py\nfrom a import value\n");
        let mut watch = PyrightWatch::start(&sandbox).unwrap();
        for (file, text, count) in [
            ("b.py", "from a import value\n", 1),
            ("a.py", "other = 1\n", 1),
            ("b.py", "import a\n", 0),
            ("a.py", "value: int = 'text'\n", 1),
            ("a.py", "missing\n", 1),
        ] {
            sandbox.tree().write(file, text);
            let found = watch.findings(&sandbox).unwrap();
            let output = sandbox.command(tool("pyright")).arg("--outputjson").output().unwrap();
            let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(errors(&whole).count(), count + 1, "{file}: {text} {whole}");
            assert_eq!(found.len(), count, "{file}: {text} {found:?}");
        }
    }
}
