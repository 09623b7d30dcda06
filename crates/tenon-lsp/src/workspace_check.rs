//! Checks many files with all their servers and reports what was found and whether that is complete.
//!
//! A report has the same bytes for the same state of the workspace, in every format. A partial report never looks complete:
//! if a server did not finish, the verdict is [`Verdict::Incomplete`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use futures::StreamExt;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;

use crate::call_context::CallContext;
use crate::model::{Diagnostic, GapReason, Severity};
use crate::orchestrator::{Orchestrator, Timeouts};
use tenon_servers::registry::ServerId;

mod batches;
pub mod files;

pub use batches::{FileOutcome, outcomes};

/// The longest that one server may take for one check of a file.
const PER_FILE: Duration = Duration::from_secs(120);

/// Longer timeouts than for edits: a slow server is better than a partial report.
pub fn timeouts() -> Timeouts {
    Timeouts { check: PER_FILE, first_check: PER_FILE, ..Timeouts::default() }
}

/// One file with its diagnostics.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CheckedFile {
    /// Relative to the workspace.
    pub file: String,
    /// The checked text, for files with findings.
    #[serde(serialize_with = "write_text", deserialize_with = "read_text")]
    pub lines: Option<LineIndex>,
    /// The diagnostics of the wanted severities, sorted.
    pub diagnostics: Vec<Diagnostic>,
    /// Why the list may be incomplete.
    pub missing: Vec<MissingCheck>,
}

/// Why a server did not check a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingCheck {
    /// `None` if the file could not be read.
    pub server: Option<ServerId>,
    pub why: String,
}

impl fmt::Display for MissingCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Some(server) => write!(f, "{server}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Clean,
    Findings,
    /// Nothing was found, but not everything was checked.
    Incomplete,
}

/// The outcome of a check.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CheckReport {
    /// All requested files, in byte order of their paths.
    pub files: Vec<CheckedFile>,
    /// How many files at least one server checked.
    pub checked: usize,
    /// Files that no server serves.
    pub unserved: Vec<String>,
    /// Servers that are not installed or may not run.
    pub absent: BTreeMap<ServerId, AbsentServer>,
    /// What servers do not support in the configuration of the workspace.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Only new findings are listed; these are the counts of the others.
    #[serde(default)]
    pub compared: Option<Compared>,
}

/// What a comparison with an earlier text found besides new findings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    pub gone: usize,
    pub unchanged: usize,
    /// Files that may depend on the change and were not checked.
    pub unchecked: usize,
}

/// A server that is not available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbsentServer {
    pub why: String,
    pub files: usize,
}

impl CheckReport {
    pub fn verdict(&self) -> Verdict {
        if self.files.iter().any(|file| !file.diagnostics.is_empty()) {
            Verdict::Findings
        } else if !self.is_complete() || (self.checked == 0 && !self.files.is_empty()) {
            Verdict::Incomplete
        } else {
            Verdict::Clean
        }
    }

    /// Whether every server checked every file.
    pub fn is_complete(&self) -> bool {
        self.files.iter().all(|file| file.missing.is_empty())
            && self.compared.is_none_or(|compared| compared.unchecked == 0)
    }

    /// Whether a server did not finish its check of a file.
    pub fn has_unfinished_servers(&self) -> bool {
        self.files.iter().flat_map(|file| &file.missing).any(|missing| missing.server.is_some())
    }

    pub fn count(&self, severity: Severity) -> usize {
        self.findings().filter(|(_, one)| one.severity() == severity).count()
    }

    /// All findings with their files.
    pub fn findings(&self) -> impl Iterator<Item = (&CheckedFile, &Diagnostic)> {
        self.files.iter().flat_map(|file| file.diagnostics.iter().map(move |one| (file, one)))
    }
}

fn write_text<S: Serializer>(lines: &Option<LineIndex>, serializer: S) -> Result<S::Ok, S::Error> {
    lines.as_ref().map(|lines| &**lines.text()).serialize(serializer)
}

fn read_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<LineIndex>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(LineIndex::new))
}

/// The progress of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckProgress {
    pub done: usize,
    pub total: usize,
}

/// Checks files until all are done or the call ends; the rest counts as missing.
pub async fn run(
    orchestrator: &Orchestrator,
    files: &[WorkspacePath],
    severities: &BTreeSet<Severity>,
    call: &CallContext,
    report: &mut (dyn FnMut(CheckProgress) + Send),
) -> CheckReport {
    let total = files.len();
    let mut whole = CheckReport::default();
    let mut outcomes = outcomes(orchestrator, files.iter().cloned(), call);
    while let Some(outcome) = outcomes.next().await {
        whole.add(outcome, orchestrator, severities);
        report(CheckProgress { done: whole.files.len(), total });
    }
    whole.files.sort_by(|a, b| a.file.cmp(&b.file));
    whole.unserved.sort_unstable();
    whole.notes = orchestrator.configuration_notes().await;
    whole
}

impl CheckReport {
    fn add(&mut self, outcome: FileOutcome, orchestrator: &Orchestrator, severities: &BTreeSet<Severity>) {
        let file = orchestrator.gate().display(&outcome.path);
        let missing = outcome.missing();
        let mut absent = 0;
        for gap in outcome.gaps {
            if let GapReason::Unavailable(why) = gap.why {
                absent += 1;
                self.absent.entry(gap.server).or_insert(AbsentServer { why, files: 0 }).files += 1;
            }
        }
        if outcome.servers.is_empty() && outcome.lines.is_ok() {
            self.unserved.push(file.clone());
        }
        self.checked += usize::from(outcome.servers.len() > absent + missing.len());
        let mut diagnostics = outcome.diagnostics;
        diagnostics.retain(|found| severities.contains(&found.severity()));
        let lines = outcome.lines.ok().filter(|_| !diagnostics.is_empty());
        self.files.push(CheckedFile { file, lines, diagnostics, missing });
    }
}

#[cfg(test)]
mod tests {
    use tenon_contract::position::Range;

    use super::*;

    fn file(diagnostics: Vec<Diagnostic>) -> CheckedFile {
        CheckedFile {
            file: "a.py".to_owned(),
            lines: Some(LineIndex::new("")),
            diagnostics,
            missing: Vec::new(),
        }
    }

    fn report(files: Vec<CheckedFile>) -> CheckReport {
        CheckReport { checked: files.len(), files, ..CheckReport::default() }
    }

    fn with_finding() -> CheckReport {
        let found = Diagnostic {
            range: Range::default(),
            severity: Some(1),
            code: None,
            source: None,
            message: "wrong".to_owned(),
            fix_data: crate::model::FixData::default(),
        };
        report(vec![file(vec![found]), file(Vec::new())])
    }

    #[test]
    fn verdict_is_clean_only_when_everything_was_checked() {
        assert_eq!(report(vec![]).verdict(), Verdict::Clean);
        assert_eq!(report(vec![file(Vec::new())]).verdict(), Verdict::Clean);
        assert_eq!(with_finding().verdict(), Verdict::Findings);
        let mut unread = report(vec![file(Vec::new())]);
        unread.files[0].missing.push(MissingCheck { server: None, why: "gone".to_owned() });
        assert_eq!(unread.verdict(), Verdict::Incomplete);
        let unchecked = CheckReport { checked: 0, ..report(vec![file(Vec::new())]) };
        assert_eq!(unchecked.verdict(), Verdict::Incomplete);
        let mut both = with_finding();
        both.files[0].missing.push(MissingCheck { server: None, why: "gone".to_owned() });
        assert_eq!(both.verdict(), Verdict::Findings);
    }
}
