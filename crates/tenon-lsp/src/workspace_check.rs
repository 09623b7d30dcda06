//! Checks many files with all their servers and reports what was found and whether that is complete.
//!
//! A report has the same bytes for the same state of the workspace, in every format. A partial report never looks complete:
//! if a server did not finish, the verdict is [`Verdict::Incomplete`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tenon_contract::position::LineIndex;
use tenon_contract::root::{ReadError, WorkspacePath};

use crate::call_context::CallContext;
use crate::model::{Diagnostic, GapReason, LspAnswer, Severity};
use crate::orchestrator::{Orchestrator, Timeouts};
use tenon_servers::registry::ServerId;

pub mod files;

/// How many files are checked at once: enough to keep several servers busy without flooding one.
const AT_ONCE: usize = 8;

/// The longest that one server may take for one file.
const PER_FILE: Duration = Duration::from_secs(120);

/// How often one file is checked again while a server is pending.
const MAX_ROUNDS: usize = 4;

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
        } else if self.files.iter().any(|file| !file.missing.is_empty())
            || (self.checked == 0 && !self.files.is_empty())
        {
            Verdict::Incomplete
        } else {
            Verdict::Clean
        }
    }

    /// Whether every server checked every file.
    pub fn is_complete(&self) -> bool {
        self.files.iter().all(|file| file.missing.is_empty())
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
    let mut done = Vec::with_capacity(total);
    // One batch after the other: typescript-language-server forgets files whose check it had begun when another is
    // opened (seen: 7 of 86).
    for batch in files.chunks(AT_ONCE) {
        let mut checks: FuturesUnordered<_> =
            batch.iter().map(|path| check_file(orchestrator, path, severities, call)).collect();
        while let Some(checked) = checks.next().await {
            done.push(checked);
            report(CheckProgress { done: done.len(), total });
        }
    }

    let mut whole = CheckReport::default();
    for One { file, absent, served, looked_at } in done {
        if !served {
            whole.unserved.push(file.file.clone());
        }
        for (server, why) in absent {
            whole.absent.entry(server).or_insert(AbsentServer { why, files: 0 }).files += 1;
        }
        whole.checked += usize::from(looked_at);
        whole.files.push(file);
    }
    whole.files.sort_by(|a, b| a.file.cmp(&b.file));
    whole.unserved.sort_unstable();
    whole
}

struct One {
    file: CheckedFile,
    absent: Vec<(ServerId, String)>,
    served: bool,
    looked_at: bool,
}

async fn check_file(
    orchestrator: &Orchestrator,
    path: &WorkspacePath,
    severities: &BTreeSet<Severity>,
    call: &CallContext,
) -> One {
    let file = orchestrator.gate().display(path);
    let mut one = One {
        file: CheckedFile { file, lines: None, diagnostics: Vec::new(), missing: Vec::new() },
        absent: Vec::new(),
        served: true,
        looked_at: false,
    };
    let (lines, answer) = match settled(orchestrator, path, &call.at_most(PER_FILE)).await {
        Ok(settled) => settled,
        Err(error) => {
            one.file.missing.push(MissingCheck { server: None, why: error.to_string() });
            return one;
        }
    };
    for gap in answer.gaps {
        let why = match gap.why {
            // Diagnostics have no limit, and all known ones are in the answer.
            GapReason::Limit | GapReason::Unproven => continue,
            GapReason::Unavailable(why) => {
                one.absent.push((gap.server, why));
                continue;
            }
            GapReason::Indexing => "still loading the project".to_owned(),
            GapReason::Pending => "did not finish in time".to_owned(),
            GapReason::Broken => "ended unexpectedly".to_owned(),
            GapReason::Refused(why) => why,
        };
        one.file.missing.push(MissingCheck { server: Some(gap.server), why });
    }
    one.served = !answer.servers.is_empty();
    one.looked_at = answer.servers.len() > one.absent.len() + one.file.missing.len();
    one.file.diagnostics =
        answer.value.into_iter().filter(|found| severities.contains(&found.severity())).collect();
    one.file.lines = (!one.file.diagnostics.is_empty()).then_some(lines);
    one
}

/// Checks a file until no server is pending. A daemon's servers have the short timeouts of edits, so one check may not be
/// enough.
async fn settled(
    orchestrator: &Orchestrator,
    path: &WorkspacePath,
    call: &CallContext,
) -> Result<(LineIndex, LspAnswer<Vec<Diagnostic>>), ReadError> {
    for _ in 1..MAX_ROUNDS {
        let (lines, answer) = look(orchestrator, path, call).await?;
        if answer.pending().next().is_none() || call.cancel.is_cancelled() || call.remaining().is_zero() {
            return Ok((lines, answer));
        }
    }
    look(orchestrator, path, call).await
}

async fn look(
    orchestrator: &Orchestrator,
    path: &WorkspacePath,
    call: &CallContext,
) -> Result<(LineIndex, LspAnswer<Vec<Diagnostic>>), ReadError> {
    let lines = orchestrator.read(path).await?;
    let answer = orchestrator.check(path, Some(lines.text().to_string()), call).await?;
    Ok((lines, answer))
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
