//! Checks that a step names in its tests or criteria: facts that gate `done`.
//!
//! `problems: src/**` means that language servers report no errors there, `cmd: make check` that the command succeeds. This
//! crate only names the checks and stores their results; the caller runs them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::LeanError;
use super::reference::position;
use super::task_text::one_line;
use crate::catalog::WorkTool;
use crate::plan::step::{Checkpoint, Step, StepRow};
use crate::work_call::WorkCall;

/// A check that a step names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// No errors in the files that a glob names; empty for all.
    Problems(String),
    /// A command for the shell.
    Command(String),
}

impl Check {
    /// The check in a test or criterion, if it names one.
    fn parse(text: &str) -> Option<Self> {
        let (key, value) = text.split_once(':')?;
        let value = value.trim();
        match key.trim().to_ascii_lowercase().as_str() {
            "problems" => {
                let glob = value.strip_suffix("clean").unwrap_or(value).trim();
                Some(Self::Problems(glob.to_owned()))
            }
            "cmd" | "command" if !value.is_empty() => Some(Self::Command(value.trim_matches('`').to_owned())),
            _ => None,
        }
    }

    /// The checks of a step, with the checkpoint that each belongs to.
    pub(super) fn of_step(step: &Step) -> Vec<(Checkpoint, Self)> {
        let named = |checkpoint: Checkpoint, texts: &[String]| {
            let checks = texts.iter().filter_map(|text| Self::parse(text));
            checks.map(|check| (checkpoint, check)).collect::<Vec<_>>()
        };
        let mut checks = named(Checkpoint::Criteria, &step.success_criteria);
        checks.extend(named(Checkpoint::Tests, &step.tests));
        checks
    }
}

impl std::fmt::Display for Check {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Problems(glob) => write!(formatter, "problems: {glob}"),
            Self::Command(command) => write!(formatter, "cmd: {command}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    Passed,
    Failed,
    /// It could not run, so nothing is known.
    Unknown,
    /// The user does not allow it to run: the word of the agent counts.
    NotAllowed,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    pub check: Check,
    pub outcome: CheckOutcome,
    /// Findings, or the output of the command.
    pub output: String,
    pub exit_code: Option<i32>,
}

/// Attaches the results for a step as evidence. Returns why the step must stay open, if it must.
pub(super) async fn apply(
    call: &mut WorkCall<'_>,
    step: &StepRow,
    results: &[CheckResult],
) -> Result<Verdict, LeanError> {
    let mut verdict = Verdict::default();
    for (checkpoint, check) in Check::of_step(&step.fields) {
        let result = results.iter().find(|result| result.check == check);
        let outcome = result.map_or(CheckOutcome::Unknown, |result| result.outcome);
        let output = result.map_or("the check did not run", |result| result.output.as_str());
        if let Some(result) = result.filter(|_| outcome != CheckOutcome::NotAllowed) {
            attach(call, step, checkpoint, result).await?;
        }
        let at = position(&step.fields.path);
        match outcome {
            CheckOutcome::Passed => verdict.passed.push(check.to_string()),
            CheckOutcome::Failed => {
                verdict.refused.push(format!("step {at} stays open: `{check}` failed\n{}", findings(output)));
            }
            CheckOutcome::Unknown => {
                let reason = one_line(output, 300);
                verdict
                    .refused
                    .push(format!("step {at} stays open: `{check}` could not be checked: {reason}"));
            }
            CheckOutcome::NotAllowed => verdict.unchecked.push(format!("`{check}` was not run: {output}")),
        }
    }
    Ok(verdict)
}

#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub passed: Vec<String>,
    pub unchecked: Vec<String>,
    /// Why the step stays open.
    pub refused: Vec<String>,
}

/// The findings that an answer shows; the evidence has the rest.
fn findings(output: &str) -> String {
    const LINES: usize = 20;
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    // Of a long output of a command, the end says what failed.
    let shown = &lines[lines.len().saturating_sub(LINES)..];
    shown
        .iter()
        .map(|line| format!("  {}", line.chars().take(200).collect::<String>()))
        .collect::<Vec<_>>()
        .join("\n")
}

async fn attach(
    call: &mut WorkCall<'_>,
    step: &StepRow,
    checkpoint: Checkpoint,
    result: &CheckResult,
) -> Result<(), LeanError> {
    const MAX_OUTPUT: usize = 64 * 1024;
    const MOST: usize = 90;
    // Evidence of a step is bounded. A check that fails again and again keeps its first results.
    if step.fields.evidence.len() >= MOST {
        return Ok(());
    }
    let text = match result.output.as_str() {
        "" => "no problems",
        output => &output[output.floor_char_boundary(output.len().saturating_sub(MAX_OUTPUT))..],
    };
    let item: Value = match &result.check {
        Check::Problems(_) => {
            json!({"kind": "diagnostics", "output": text, "path": result.check.to_string()})
        }
        Check::Command(command) => {
            json!({"kind": "cmd_output", "command": command, "output": text, "exit_code": result.exit_code})
        }
    };
    let arguments = json!({
        "task": step.target, "step_id": step.id, "checkpoint": checkpoint.as_str(), "items": [item],
    });
    call.tool(WorkTool::TasksEvidence, arguments).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_read_from_tests_and_criteria() {
        assert_eq!(Check::parse("problems: src/** clean"), Some(Check::Problems("src/**".into())));
        assert_eq!(Check::parse("Problems:"), Some(Check::Problems(String::new())));
        assert_eq!(Check::parse("cmd: `make check`"), Some(Check::Command("make check".into())));
        for text in ["cargo test", "cmd:", "it works: yes", "the command: works"] {
            assert_eq!(Check::parse(text), None, "{text}");
        }
    }

    #[test]
    fn long_output_shows_its_end() {
        let output = (0..100).map(|line| format!("line {line}\n")).collect::<String>();
        let shown = findings(&output);
        assert!(shown.starts_with("  line 80\n") && shown.ends_with("  line 99"), "{shown}");
    }
}
