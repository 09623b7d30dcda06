//! Random edits answered by Tenon, compared with the difference of two whole command-line checks.
//!
//! Each edit is made through `edit_file` and reverted through it. For a sample of the edits, the project's command-line
//! checker runs on a second copy of the tree: what it reports after the edit and not before is what the answer must call
//! new. Both sides are compared by file, rule and message, so that shifted lines do not matter.

mod checker;
mod random_edit;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tenon_testkit::direct_server::InstalledServer;
use tenon_testkit::mcp_client::ToolResult;
use tenon_testkit::{McpClient, RealProject, Sandbox};

use crate::error::BenchError;
use crate::measure::{Times, shown};
use crate::output::{log, print};
use crate::source_sample::{self, Random};
use checker::{Checker, Counts, Finding};
use random_edit::RandomEdit;

/// One project with the server that answers and the checker that decides.
struct Case {
    source: RealProject,
    server: InstalledServer,
    extension: &'static str,
}

const CASES: [Case; 4] = [
    Case { source: RealProject::Django, server: InstalledServer::Pyright, extension: "py" },
    Case { source: RealProject::Django, server: InstalledServer::Ty, extension: "py" },
    Case { source: RealProject::Rxjs, server: InstalledServer::TypeScript, extension: "ts" },
    Case { source: RealProject::Rxjs, server: InstalledServer::TypeScriptNative, extension: "ts" },
];

/// The size of a run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Edits per project, each followed by its revert
    #[arg(long, default_value_t = 150)]
    edits: usize,
    /// How many of the edits are compared with the command-line checker
    #[arg(long, default_value_t = 40)]
    sample: usize,
    /// The seed of the edits
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long an edit waits for other files, in milliseconds
    #[arg(long, default_value_t = 2000)]
    wait_ms: u64,
    /// Only servers whose id contains this
    #[arg(long)]
    only: Option<String>,
}

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    print("# Answers to edits, against command-line checkers\n");
    print(
        "| project | edits | complete | answer | compared | new here: real, missing, wrong | new elsewhere: real, missing though complete, missing and said, wrong |",
    );
    print("|---|---|---|---|---|---|---|");
    let chosen = |case: &&Case| options.only.as_ref().is_none_or(|only| case.server.id().contains(only));
    for case in CASES.iter().filter(chosen) {
        let score = measure(tenon, case, options)?;
        print(&score.row(case));
    }
    Ok(())
}

/// What the answers got right.
#[derive(Default)]
struct Score {
    edits: usize,
    complete: usize,
    times: Times,
    compared: usize,
    own: Agreement,
    others: Agreement,
    reverts_with_new: usize,
}

/// Findings of the checker against those of the answers.
#[derive(Default)]
struct Agreement {
    real: usize,
    /// Missing from an answer that called itself complete.
    missing: usize,
    /// Missing from an answer that said that it was not complete.
    missing_said: usize,
    /// Called new, but not new.
    wrong: usize,
}

impl Score {
    fn row(&self, case: &Case) -> String {
        let Self { edits, complete, compared, own, others, .. } = self;
        let median = shown(self.times.median());
        let slow = shown(self.times.within(0.95));
        let reverts = match self.reverts_with_new {
            0 => String::new(),
            some => format!("; {some} reverts called something new"),
        };
        format!(
            "| {:?}, {} | {edits}{reverts} | {complete} | {median} (p95 {slow}) | {compared} | {}, {}, {} | {}, {}, {}, {} |",
            case.source,
            case.server.id(),
            own.real,
            own.missing + own.missing_said,
            own.wrong,
            others.real,
            others.missing,
            others.missing_said,
            others.wrong,
        )
    }
}

fn measure(tenon: &Path, case: &Case, options: &Options) -> Result<Score, BenchError> {
    let name = format!("{:?}, {}", case.source, case.server.id());
    log(&name);
    let ours = Sandbox::with_project(case.source);
    let theirs = Sandbox::with_project(case.source);
    let mut checker = Checker::new(case.server, &theirs);
    let baseline = checker.findings()?;
    log(&format!("{name}: {} findings before", baseline.len()));
    let mut client = session(tenon, case.server, &ours, options.wait_ms)?;
    let mut random = Random::new(options.seed);
    let files = source_sample::files(&ours, case.extension);
    let mut score = Score::default();
    let every = (options.edits / options.sample.max(1)).max(1);
    while score.edits < 2 * options.edits {
        let edit = RandomEdit::choose(&mut random, &ours, &files);
        let answer = score.times.time(|| call(&mut client, &edit.file, &edit.old, &edit.new))?;
        let complete = answer.structured["complete"] == true;
        if (score.edits / 2).is_multiple_of(every) && score.compared < options.sample {
            let original = theirs.tree().read(&edit.file);
            theirs.tree().write(&edit.file, &ours.tree().read(&edit.file));
            let after = checker.findings()?;
            theirs.tree().write(&edit.file, &original);
            score.compared += 1;
            compare(&edit, &answer, ours.root(), &baseline, &after, &mut score);
        }
        score.edits += 1;
        score.complete += usize::from(complete);
        let reverted = score.times.time(|| call(&mut client, &edit.file, &edit.new, &edit.old))?;
        score.edits += 1;
        score.complete += usize::from(reverted.structured["complete"] == true);
        if !new_in(ours.root(), &reverted).is_empty() {
            score.reverts_with_new += 1;
            log(&format!("revert of {edit}: {}", reverted.text.join("\n")));
        }
    }
    Ok(score)
}

/// Compares one answer with the checker's findings and adds it to the score.
fn compare(
    edit: &RandomEdit,
    answer: &ToolResult,
    root: &Path,
    before: &Counts,
    after: &Counts,
    score: &mut Score,
) {
    let complete = answer.structured["complete"] == true;
    let real = after.minus(before);
    let answered = new_in(root, answer).minus(&gone_in(root, answer));
    let mut lines = Vec::new();
    let tell = |lines: &mut Vec<String>, what: &str, findings: &Counts| {
        for (finding, count) in findings.iter() {
            lines.push(format!("  {what} {count}× {finding}"));
        }
    };
    for own in [true, false] {
        let here = |finding: &Finding| (finding.file == edit.file) == own;
        let (real, answered) = (real.only(here), answered.only(here));
        let (missing, wrong) = (real.minus(&answered), answered.minus(&real));
        let agreement = if own { &mut score.own } else { &mut score.others };
        agreement.real += real.len();
        agreement.wrong += wrong.len();
        match complete {
            true => agreement.missing += missing.len(),
            false => agreement.missing_said += missing.len(),
        }
        tell(&mut lines, if own { "missing here" } else { "missing elsewhere" }, &missing);
        tell(&mut lines, if own { "wrong here" } else { "wrong elsewhere" }, &wrong);
    }
    if !lines.is_empty() {
        let state = if complete { "complete" } else { "not complete" };
        log(&format!("{edit} ({state})\n{}", lines.join("\n")));
    }
}

fn call(client: &mut McpClient, file: &str, old: &str, new: &str) -> Result<ToolResult, BenchError> {
    let arguments = json!({ "file": file, "old_text": old, "new_text": new });
    let answer = client.call_tool("edit_file", arguments);
    let answer = answer.map_err(|error| BenchError::new(format!("`edit_file` answered {error:?}")))?;
    match answer.is_error {
        true => Err(BenchError::new(format!("`edit_file` of {file}: {}", answer.text.join("\n")))),
        false => Ok(answer),
    }
}

fn new_in(root: &Path, answer: &ToolResult) -> Counts {
    findings(root, &answer.structured["new"])
}

fn gone_in(root: &Path, answer: &ToolResult) -> Counts {
    findings(root, &answer.structured["gone"])
}

fn findings(root: &Path, list: &Value) -> Counts {
    let list = list.as_array().into_iter().flatten();
    list.map(|one| {
        let text = |key: &str| one[key].as_str().unwrap_or_default();
        Finding::new(root, text("file"), text("code"), text("message"))
    })
    .collect()
}

/// A session with edits allowed and only one server.
fn session(
    tenon: &Path,
    server: InstalledServer,
    sandbox: &Sandbox,
    wait_ms: u64,
) -> Result<McpClient, BenchError> {
    let mut settings = format!("[edit]\nallow = [{:?}]\nwait_ms = {wait_ms}\n", sandbox.root());
    let switches: BTreeMap<&str, bool> =
        ["pyright", "ty", "ruff", "typescript-language-server", "typescript-native"]
            .into_iter()
            .map(|id| (id, id == server.id()))
            .collect();
    for (id, enabled) in switches {
        settings.push_str(&format!("[servers.{id}]\nenabled = {enabled}\n"));
    }
    sandbox.write_user_config(&settings);
    let mut command = sandbox.command(tenon);
    command.args(["mcp", "--no-daemon", "--surface", "edit"]).stderr(Stdio::null());
    Ok(McpClient::connect(&mut command))
}
