//! Random edits answered by Tenon, compared with the difference of two whole command-line checks.
//!
//! Each edit is made through `edit_file` and reverted through it. For a sample of the edits, the project's command-line
//! checker runs on a second copy of the tree: what it reports after the edit and not before is what the answer must call
//! new. Both sides are compared by file, rule and message, so that shifted lines do not matter.

mod cargo_check;
pub(crate) mod checker;
mod clang_tidy;
pub(crate) mod finding;
mod pyright_watch;
pub(crate) mod random_edit;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;
use tenon_testkit::mcp_client::ToolResult;
use tenon_testkit::{McpClient, RealProject, Sandbox, program};

use crate::compile_commands;
use crate::error::BenchError;
use crate::measure::{Times, shown};
use crate::output::{log, print};
use crate::source_sample::{self, Random};
use checker::{Checked, Checker};
use finding::{Counts, Finding};
use random_edit::RandomEdit;

/// A server with a command-line checker that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OracleServer {
    Pyright,
    Ty,
    TypeScript,
    /// TypeScript 7.
    TypeScriptNative,
    RustAnalyzer,
    Clangd,
}

const SERVERS: [OracleServer; 6] = [
    OracleServer::Pyright,
    OracleServer::Ty,
    OracleServer::TypeScript,
    OracleServer::TypeScriptNative,
    OracleServer::RustAnalyzer,
    OracleServer::Clangd,
];

impl OracleServer {
    /// The id in Tenon's server registry.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Pyright => "pyright",
            Self::Ty => "ty",
            Self::TypeScript => "typescript-language-server",
            Self::TypeScriptNative => "typescript-native",
            Self::RustAnalyzer => "rust-analyzer",
            Self::Clangd => "clangd",
        }
    }

    /// The files that are edited.
    fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Pyright | Self::Ty => &["py"],
            Self::TypeScript | Self::TypeScriptNative => &["ts"],
            Self::RustAnalyzer => &["rs"],
            Self::Clangd => &["cc", "cpp", "h", "hpp"],
        }
    }

    /// The source of the diagnostics that the checker knows. rust-analyzer adds its own ones.
    fn compared_source(self) -> Option<&'static str> {
        (self == Self::RustAnalyzer).then_some("rustc")
    }

    /// The program that is not installed by `cargo xtask setup` and is missing.
    fn missing_program(self) -> Option<&'static str> {
        match self {
            Self::RustAnalyzer if program::rust_analyzer().is_none() => Some("rust-analyzer"),
            Self::Clangd if clang_tidy::program().is_none() => Some("clang-tidy"),
            _ => None,
        }
    }
}

/// Where the code of a case comes from.
enum CaseSource {
    Installed(RealProject),
    /// A folder, which is copied.
    Folder(PathBuf),
}

impl CaseSource {
    fn name(&self) -> String {
        match self {
            Self::Installed(project) => format!("{project:?}"),
            Self::Folder(folder) => folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }

    fn copy(&self, server: OracleServer) -> Sandbox {
        let sandbox = match self {
            Self::Installed(project) => Sandbox::with_project(*project),
            Self::Folder(folder) => {
                let sandbox = Sandbox::new();
                sandbox.tree().copy_from(folder);
                sandbox
            }
        };
        if server == OracleServer::Clangd {
            compile_commands::write(&sandbox);
        }
        sandbox
    }
}

/// One project with the server that answers and the checker that decides.
struct Case {
    source: CaseSource,
    server: OracleServer,
}

const CASES: [Case; 5] = [
    Case { source: CaseSource::Installed(RealProject::Django), server: OracleServer::Pyright },
    Case { source: CaseSource::Installed(RealProject::Django), server: OracleServer::Ty },
    Case { source: CaseSource::Installed(RealProject::Rxjs), server: OracleServer::TypeScript },
    Case { source: CaseSource::Installed(RealProject::Rxjs), server: OracleServer::TypeScriptNative },
    Case { source: CaseSource::Installed(RealProject::RegexSyntax), server: OracleServer::RustAnalyzer },
];

/// How many edits may precede the counted ones.
const WARM_UPS: usize = 20;

/// Generated tables: an edit in them changes a number.
const TABLES: &str = "unicode_tables/";

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
    /// Another project: a folder, which is copied
    #[arg(long, requires = "server")]
    tree: Option<PathBuf>,
    /// The server for `--tree`
    #[arg(long)]
    server: Option<String>,
}

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    print("# Answers to edits, against command-line checkers\n");
    print(
        "| project | edits | complete | answer | compared | new here: real, missing, wrong | new elsewhere: real, missing though complete, missing and said, wrong |",
    );
    print("|---|---|---|---|---|---|---|");
    if let (Some(tree), Some(id)) = (&options.tree, &options.server) {
        let server = SERVERS.into_iter().find(|server| server.id() == id);
        let server = server.ok_or_else(|| BenchError::new(format!("no checker is known for `{id}`")))?;
        return report(tenon, &Case { source: CaseSource::Folder(tree.clone()), server }, options);
    }
    let chosen = |case: &&Case| options.only.as_ref().is_none_or(|only| case.server.id().contains(only));
    CASES.iter().filter(chosen).try_for_each(|case| report(tenon, case, options))
}

/// Prints the row of one case.
fn report(tenon: &Path, case: &Case, options: &Options) -> Result<(), BenchError> {
    let name = format!("{}, {}", case.source.name(), case.server.id());
    match case.server.missing_program() {
        Some(program) => print(&format!("| {name} | skipped: {program} is not in `PATH` | | | | | |")),
        None => print(&measure(tenon, &name, case, options)?.row(&name)),
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
    /// New diagnostics in answers that the checker does not know, by source.
    not_compared: BTreeMap<String, usize>,
    /// Correct errors of an included file, reported at the line that includes it.
    repeated: usize,
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
    fn row(&self, name: &str) -> String {
        let Self { edits, complete, compared, own, others, .. } = self;
        let median = shown(self.times.median());
        let slow = shown(self.times.within(0.95));
        let reverts = match self.reverts_with_new {
            0 => String::new(),
            some => format!("; {some} reverts called something new"),
        };
        format!(
            "| {name} | {edits}{reverts} | {complete} | {median} (p95 {slow}) | {compared} | {}, {}, {} | {}, {}, {}, {} |",
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

fn measure(tenon: &Path, name: &str, case: &Case, options: &Options) -> Result<Score, BenchError> {
    log(name);
    let ours = case.source.copy(case.server);
    let theirs = case.source.copy(case.server);
    let mut checker = Checker::start(case.server, &theirs)?;
    let baseline = checker.findings(&theirs, None)?.findings;
    log(&format!("{name}: {} findings before", baseline.len()));
    let mut client = session(tenon, case.server, &ours, options.wait_ms)?;
    let mut random = Random::new(options.seed);
    let of = |extension: &&str| source_sample::files(&ours, extension);
    let mut files: Vec<String> = case.server.extensions().iter().flat_map(of).collect();
    files.retain(|file| !file.contains(TABLES));
    warm_up(&mut client, &ours, &files)?;
    let mut score = Score::default();
    let mut original: Option<(String, String)> = None;
    let every = (options.edits / options.sample.max(1)).max(1);
    while score.edits < 2 * options.edits {
        let edit = RandomEdit::choose(&mut random, &ours, &files);
        let answer = score.times.time(|| call(&mut client, &edit.file, &edit.old, &edit.new))?;
        let complete = answer.structured["complete"] == true;
        if (score.edits / 2).is_multiple_of(every) && score.compared < options.sample {
            // A checker that watches works after each change: it gets the revert together with the next edit, so that it is
            // idle while Tenon answers.
            if let Some((file, text)) = original.take() {
                theirs.tree().write(file, &text);
            }
            original = Some((edit.file.clone(), theirs.tree().read(&edit.file)));
            theirs.tree().write(&edit.file, &ours.tree().read(&edit.file));
            let after = checker.findings(&theirs, Some(&edit.file))?;
            score.compared += 1;
            let answer = EditAnswer::new(case.server, ours.root(), &answer);
            answer.compare(&edit, &baseline, &after, &mut score);
            log(&format!(
                "{name}: {} compared, {} real here, {} elsewhere",
                score.compared, score.own.real, score.others.real
            ));
        }
        score.edits += 1;
        score.complete += usize::from(complete);
        let answer = score.times.time(|| call(&mut client, &edit.file, &edit.new, &edit.old))?;
        score.edits += 1;
        score.complete += usize::from(answer.structured["complete"] == true);
        if !EditAnswer::new(case.server, ours.root(), &answer).new.is_empty() {
            score.reverts_with_new += 1;
            log(&format!("revert of {edit}: {}", answer.text.join("\n")));
        }
    }
    log(&format!("{name}: not compared, by source: {:?}", score.not_compared));
    log(&format!("{name}: errors of included files, repeated: {}", score.repeated));
    Ok(score)
}

/// Edits and reverts until an answer is complete, so that the server has loaded its project before the first counted edit.
fn warm_up(client: &mut McpClient, sandbox: &Sandbox, files: &[String]) -> Result<(), BenchError> {
    let edit = RandomEdit::choose(&mut Random::new(0), sandbox, files);
    for _ in 0..WARM_UPS {
        let answer = call(client, &edit.file, &edit.old, &edit.new)?;
        call(client, &edit.file, &edit.new, &edit.old)?;
        if answer.structured["complete"] == true {
            return Ok(());
        }
    }
    log("the server has not completed an answer; the run starts anyway");
    Ok(())
}

/// The errors in an answer.
struct EditAnswer {
    complete: bool,
    /// Why it is not complete.
    why: String,
    new: Counts,
    gone: Counts,
    /// New ones from sources that the checker does not know.
    others: Vec<(String, Finding)>,
}

impl EditAnswer {
    fn new(server: OracleServer, root: &Path, answer: &ToolResult) -> Self {
        let list = |key: &str| -> Vec<(String, Finding)> {
            let all = answer.structured[key].as_array().into_iter().flatten();
            all.filter(|one| one["severity"] == "error")
                .map(|one| {
                    let text = |key: &str| one[key].as_str().unwrap_or_default();
                    let finding = match server {
                        OracleServer::Clangd => Finding::of_clang(root, text("file"), text("message")),
                        _ => Finding::new(root, text("file"), text("code"), text("message")),
                    };
                    (text("source").to_owned(), finding)
                })
                .collect()
        };
        let is_compared =
            |one: &(String, Finding)| server.compared_source().is_none_or(|compared| one.0 == compared);
        let counts = |list: Vec<(String, Finding)>| list.into_iter().map(|(_, finding)| finding).collect();
        let (new, others) = list("new").into_iter().partition(is_compared);
        let (gone, _): (Vec<_>, Vec<_>) = list("gone").into_iter().partition(is_compared);
        let complete = answer.structured["complete"] == true;
        let field = |key: &str| &answer.structured[key];
        let why = format!("pending {}, unchecked {}", field("pending"), field("unchecked"));
        Self { complete, why, new: counts(new), gone: counts(gone), others }
    }

    /// Compares the answer with the checker's findings and adds it to the score.
    fn compare(&self, edit: &RandomEdit, before: &Counts, after: &Checked, score: &mut Score) {
        let real = after.findings.minus(before);
        let answered = self.new.minus(&self.gone);
        let mut lines = Vec::new();
        let tell = |lines: &mut Vec<String>, what: &str, findings: &Counts| {
            for (finding, count) in findings.iter() {
                lines.push(format!("  {what} {count}× {finding}"));
            }
        };
        for own in [true, false] {
            let here = |finding: &Finding| (finding.file == edit.file) == own;
            let (real, answered) = (real.only(here), answered.only(here));
            let (missing, more) = (real.minus(&answered), answered.minus(&real));
            let wrong = more.only(|finding| !after.repeated.contains(finding));
            score.repeated += more.len() - wrong.len();
            let agreement = if own { &mut score.own } else { &mut score.others };
            agreement.real += real.len();
            agreement.wrong += wrong.len();
            match self.complete {
                true => agreement.missing += missing.len(),
                false => agreement.missing_said += missing.len(),
            }
            tell(&mut lines, if own { "missing here" } else { "missing elsewhere" }, &missing);
            tell(&mut lines, if own { "wrong here" } else { "wrong elsewhere" }, &wrong);
        }
        for (source, finding) in &self.others {
            *score.not_compared.entry(source.clone()).or_default() += 1;
            lines.push(format!("  not compared, {source}: {finding}"));
        }
        if !lines.is_empty() {
            let state = if self.complete { "complete" } else { &self.why };
            log(&format!("{edit} ({state})\n{}", lines.join("\n")));
        }
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

/// A session with edits allowed and only one server for each file.
fn session(
    tenon: &Path,
    server: OracleServer,
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
    // rust-analyzer runs code of the workspace.
    let trusted = sandbox.command(tenon).arg("trust").output()?;
    if !trusted.status.success() {
        return Err(BenchError::new(String::from_utf8_lossy(&trusted.stderr)));
    }
    let mut command = sandbox.command(tenon);
    command.args(["mcp", "--no-daemon", "--surface", "edit"]).stderr(Stdio::null());
    if let Some(program) = program::rust_analyzer().filter(|_| server == OracleServer::RustAnalyzer) {
        command.env("PATH", cargo_check::search_path(&program)?);
    }
    Ok(McpClient::connect(&mut command))
}
