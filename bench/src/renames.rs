//! Random renames by the `rename` tool, with the projects' command-line checkers as the oracle.
//!
//! A rename must not add errors, unless the answer names them. Errors are compared by file, rule and message, with the new name
//! replaced by the old one. Renames are checked in groups, since a whole check of a large project takes a minute, and reverted
//! after each group.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use tenon_contract::clock::Clock;
use tenon_index::{DeclarationKind, IndexOptions, SyntaxIndex};
use tenon_testkit::mcp_client::ToolResult;
use tenon_testkit::{McpClient, RealProject, Sandbox};

use crate::error::BenchError;
use crate::measure::{Times, shown};
use crate::oracle::OracleServer;
use crate::oracle::checker::Checker;
use crate::oracle::finding::{Counts, Finding};
use crate::output::{log, print};
use crate::source_sample::{self, Random};

/// The size of a run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Renames per project
    #[arg(long, default_value_t = 100)]
    renames: usize,
    /// Renames of Django that are checked together; those of rxjs are checked one by one
    #[arg(long, default_value_t = 10)]
    group: usize,
    /// The seed of the choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the server with this id
    #[arg(long)]
    only: Option<String>,
}

const CASES: [(RealProject, OracleServer, &str); 2] = [
    (RealProject::Django, OracleServer::Pyright, "py"),
    (RealProject::Rxjs, OracleServer::TypeScriptNative, "ts"),
];

/// How often a rename is asked for again while the server loads.
const ATTEMPTS: usize = 30;

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    print("# Renames, against command-line checkers\n");
    print(
        "| project | renames | applied: files, places | refused, not answered in time | time | checks | new errors: named by the answer, in files that it calls not checked, neither |",
    );
    print("|---|---|---|---|---|---|---|");
    let is_chosen = |id: &str| options.only.as_ref().is_none_or(|only| only == id);
    for (project, server, extension) in CASES.into_iter().filter(|case| is_chosen(case.1.id())) {
        let score = measure(tenon, project, server, extension, options)?;
        print(&score.row(&format!("{project:?}, {}", server.id())));
        for (reason, count) in &score.refusals {
            print(&format!("\n- refused {count} times: {reason}"));
        }
    }
    Ok(())
}

#[derive(Default)]
struct Score {
    asked: usize,
    applied: usize,
    /// Not answered in time, and said so.
    late: usize,
    files: usize,
    places: usize,
    checks: usize,
    named: usize,
    /// The answer says that files were not checked.
    said: usize,
    silent: usize,
    times: Times,
    refusals: BTreeMap<String, usize>,
}

impl Score {
    fn row(&self, name: &str) -> String {
        let refused: usize = self.refusals.values().sum();
        let (median, slow) = (shown(self.times.median()), shown(self.times.within(0.95)));
        format!(
            "| {name} | {} | {}: {}, {} | {refused}, {} | {median} (p95 {slow}) | {} | {}, {}, {} |",
            self.asked,
            self.applied,
            self.files,
            self.places,
            self.late,
            self.checks,
            self.named,
            self.said,
            self.silent
        )
    }
}

/// A rename that was applied.
struct Applied {
    symbol: String,
    old: String,
    new: String,
    answer: String,
}

fn measure(
    tenon: &Path,
    project: RealProject,
    server: OracleServer,
    extension: &str,
    options: &Options,
) -> Result<Score, BenchError> {
    let (ours, theirs) = (Sandbox::with_project(project), Sandbox::with_project(project));
    let mut checker = Checker::start(server, &theirs)?;
    let baseline = checker.findings(&theirs, None)?.findings;
    log(&format!("{project:?}: {} findings before", baseline.len()));
    let originals = texts(&ours, extension);
    let mut client = session(tenon, server, &ours)?;
    let group = if server == OracleServer::Pyright { options.group } else { 1 };
    let mut random = Random::new(options.seed);
    let mut score = Score::default();
    let mut open: Vec<Applied> = Vec::new();
    let mut used = BTreeSet::new();
    while score.asked < options.renames {
        let Some((symbol, old)) = choose(&mut random, &ours, &originals) else { continue };
        // Two renames of one name in a group could not be told apart.
        if !used.insert(old.clone()) {
            continue;
        }
        let new = renamed(&old);
        score.asked += 1;
        let before = texts(&ours, extension);
        let answer = score.times.time(|| rename(&mut client, &symbol, &new))?;
        let text = answer.text.join("\n");
        let now = texts(&ours, extension);
        let changed = now.iter().filter(|(file, text)| before.get(*file) != Some(*text)).count();
        log(&format!("{project:?} {}: {symbol}: {changed} files: {}", score.asked, first_line(&text)));
        // A call that ends at its deadline says that files may have changed.
        let is_late = answer.is_error && text.contains("may have been changed");
        if answer.is_error && changed > 0 && !is_late {
            return Err(BenchError::new(format!("{symbol}: an error changed {changed} files: {text}")));
        }
        score.late += usize::from(is_late);
        if changed == 0 {
            *score.refusals.entry(reason(&text, &old)).or_default() += 1;
        } else {
            score.applied += 1;
            score.files += changed;
            score.places += now.values().map(|text| count(text, &new)).sum::<usize>();
            open.push(Applied { symbol, old, new, answer: text });
        }
        let is_last = score.asked == options.renames;
        if open.len() >= group || is_last && !open.is_empty() {
            write_changed(&theirs, &originals, &now);
            let after = checker.findings(&theirs, None)?.findings;
            score.checks += 1;
            judge(&theirs, &baseline, &after, &open, &mut score);
            write_changed(&theirs, &now, &originals);
            write_changed(&ours, &now, &originals);
            open.clear();
            used.clear();
        }
    }
    Ok(score)
}

/// Counts the errors that are new.
fn judge(sandbox: &Sandbox, before: &Counts, after: &Counts, group: &[Applied], score: &mut Score) {
    let with_old_names = |finding: &Finding| {
        let message =
            group.iter().fold(finding.message().to_owned(), |text, one| text.replace(&one.new, &one.old));
        Finding::new(sandbox.root(), &finding.file, finding.rule(), &message)
    };
    let after: Counts = after
        .iter()
        .flat_map(|(finding, count)| std::iter::repeat_n(with_old_names(finding), *count))
        .collect();
    for (finding, count) in after.minus(before).iter() {
        // The answer names each new diagnostic with its file.
        let named = |one: &Applied| {
            one.answer.lines().any(|line| line.starts_with("NEW") && line.contains(&finding.file))
        };
        let says = |one: &Applied| one.answer.contains("not checked") || one.answer.contains("unchecked");
        let word = if group.iter().any(named) {
            score.named += count;
            "named"
        } else if group.iter().any(says) {
            score.said += count;
            "not checked, as the answer says"
        } else {
            score.silent += count;
            "SILENT"
        };
        let renames: Vec<String> = group.iter().map(|one| format!("{} -> {}", one.symbol, one.new)).collect();
        log(&format!("  {word}: {count}× {finding}\n    after {}", renames.join(", ")));
    }
}

/// A random declaration and its name.
fn choose(
    random: &mut Random,
    sandbox: &Sandbox,
    files: &BTreeMap<String, String>,
) -> Option<(String, String)> {
    let names: Vec<&String> = files.keys().collect();
    let file = random.choose(&names)?;
    let root = Utf8PathBuf::from_path_buf(sandbox.root().to_owned()).ok()?;
    let index = SyntaxIndex::open(IndexOptions { root, store: None, clock: Clock::system() });
    let parsed = index.parse(Utf8Path::new(file.as_str()), &files[*file])?;
    let symbols: Vec<(String, String)> = parsed
        .symbols()
        .filter(|one| one.name().len() > 2 && !one.name().starts_with('_') && !one.is_test())
        .filter(|one| one.kind() != DeclarationKind::Constructor)
        .filter(|one| one.name().chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
        .map(|one| (format!("{file}#{}", one.name_path()), one.name().to_owned()))
        .collect();
    random.choose(&symbols).cloned()
}

/// A name that no project uses.
fn renamed(old: &str) -> String {
    format!("{old}Qx7")
}

fn rename(client: &mut McpClient, symbol: &str, to: &str) -> Result<ToolResult, BenchError> {
    let arguments = json!({ "symbol": symbol, "to": to, "apply": true });
    for _ in 0..ATTEMPTS {
        let answer = client.call_tool("rename", arguments.clone());
        let answer = answer.map_err(|error| BenchError::new(format!("`rename` answered {error:?}")))?;
        if !answer.is_error || !answer.text.iter().any(|text| text.contains("ask again")) {
            return Ok(answer);
        }
    }
    Err(BenchError::new("the server did not load the project"))
}

/// Why a rename was refused, without names and numbers.
fn reason(text: &str, name: &str) -> String {
    let line = first_line(text).replace(name, "NAME");
    let quoted: Vec<&str> = line.split('`').collect();
    let mut shown = String::new();
    for (index, part) in quoted.iter().enumerate() {
        shown.push_str(if index % 2 == 1 { "…" } else { part });
    }
    shown.chars().filter(|c| !c.is_ascii_digit()).take(120).collect()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn count(text: &str, word: &str) -> usize {
    text.matches(word).count()
}

fn texts(sandbox: &Sandbox, extension: &str) -> BTreeMap<String, String> {
    let files = source_sample::files(sandbox, extension);
    files.into_iter().map(|file| (file.clone(), sandbox.tree().read(&file))).collect()
}

/// Writes the files of `to` that differ from those of `from`.
fn write_changed(sandbox: &Sandbox, from: &BTreeMap<String, String>, to: &BTreeMap<String, String>) {
    for (file, text) in to.iter().filter(|(file, text)| from.get(*file) != Some(*text)) {
        sandbox.tree().write(file, text);
    }
}

/// A session with edits allowed and only one server for each file.
fn session(tenon: &Path, server: OracleServer, sandbox: &Sandbox) -> Result<McpClient, BenchError> {
    let mut settings = format!("[edit]\nallow = [{:?}]\n", sandbox.root());
    for id in ["pyright", "ty", "ruff", "typescript-language-server", "typescript-native"] {
        settings.push_str(&format!("[servers.{id}]\nenabled = {}\n", id == server.id()));
    }
    sandbox.write_user_config(&settings);
    let trusted = sandbox.command(tenon).arg("trust").output()?;
    if !trusted.status.success() {
        return Err(BenchError::new(String::from_utf8_lossy(&trusted.stderr)));
    }
    let mut command = sandbox.command(tenon);
    command.args(["mcp", "--no-daemon", "--surface", "edit"]).stderr(Stdio::null());
    Ok(McpClient::connect(&mut command))
}
