//! `tenon check`: reports the diagnostics of all language servers for files.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use tenon_code::changed_files;
use tenon_code::git::GitRepository;
use tenon_code::new_findings;
use tenon_code::report_log::ReportedFiles;
use tenon_contract::root::WorkspacePath;
use tenon_contract::visible::visible;
use tenon_lsp::CallContext;
use tenon_lsp::model::Severity;
use tenon_lsp::orchestrator::{Options, Orchestrator};
use tenon_lsp::workspace_check::{self, AbsentServer, CheckReport, CheckedFile, Verdict, files};
use tenon_server::config::{FileKind, SettingOrigin};
use tenon_server::daemon::protocol::DaemonRequest;
use tenon_server::workspace::Workspace;
use tenon_servers::find::{Availability, Finder};
use tenon_servers::registry::{Capability, Registry};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::daemon_client::{self, DaemonCheck};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::{Invocation, block_on};
use crate::language_servers;

#[cfg(test)]
mod example;
mod github;
mod json;
mod sarif;
mod text;

/// The exit code of a check that is incomplete or failed.
pub(crate) const INCOMPLETE: Exit = Exit::Contract(2);

/// How long one git command may take.
const GIT_TIMEOUT: Duration = Duration::from_secs(60);

/// How many files a note lists before it counts the rest.
const MAX_LISTED_FILES: usize = 3;

/// Check files with all language servers
///
/// Checks the given files and folders, the changed files, or the whole workspace. Exits with 0 if there are no findings, 1
/// if there are, and 2 if the check is incomplete: no server checked any file, or a server did not finish. Servers that are
/// not installed, or that need a trusted workspace, are listed on stderr and do not make the check incomplete.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files and folders to check [default: the whole workspace]
    paths: Vec<Utf8PathBuf>,
    /// Check only files that differ from the last commit
    #[arg(long, conflicts_with = "paths")]
    changed: bool,
    /// Report only what the working files introduced since a revision, in changed files and in those that use them
    #[arg(
        long,
        value_name = "REV",
        num_args = 0..=1,
        default_missing_value = "HEAD",
        conflicts_with_all = ["paths", "changed"]
    )]
    new: Option<String>,
    /// Severities to report [default: the setting `check.severities`]
    #[arg(long, value_name = "SEVERITY", value_delimiter = ',')]
    severity: Vec<SeverityArg>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Time limit for the whole check
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    wait: u64,
    /// Start separate language servers instead of using the daemon's
    #[arg(long)]
    no_daemon: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Messages with source lines
    Text,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// GitHub Actions workflow commands, shown at the changed lines
    Github,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SeverityArg {
    Error,
    Warning,
    Info,
    Hint,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    // Any failure means the same to a script: the check is incomplete.
    check(args, invocation).map_err(|failure| failure.with_exit(INCOMPLETE))
}

fn check(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let workspace = invocation.workspace(&root, vec![])?;
    let registry = language_servers::registry(&workspace)?;
    let finder = workspace.finder();
    let severities = severities(&args, &workspace);
    let selection = match &args.new {
        Some(revision) => Selection::New(revision.clone()),
        None => {
            let bar = spinner("looking for files");
            let files = block_on(select_files(&args, &workspace, &registry));
            bar.finish_and_clear();
            Selection::Files(files??)
        }
    };
    if args.changed && matches!(&selection, Selection::Files(files) if files.is_empty()) {
        invocation.eprint("no file that a language server can check changed since the last commit");
    }
    let from_daemon = if args.no_daemon {
        None
    } else {
        check_with_daemon(&selection, &args, &severities, &root, invocation)
    };
    let mut report = match from_daemon {
        Some(report) => report,
        None => {
            let wait = Duration::from_secs(args.wait);
            let checking =
                check_in_process(selection, &workspace, registry.clone(), finder.clone(), &severities, wait);
            block_on(checking)??
        }
    };
    if report.compared.is_some() {
        add_absent(&mut report, &workspace, &registry, &finder);
    }

    match args.format {
        Format::Text => invocation.print_styled(&text::render(&report))?,
        Format::Json => invocation.print_data(json::render(&report))?,
        Format::Sarif => invocation.print_data(sarif::render(&report))?,
        Format::Github => invocation.print_lines(github::render(&report))?,
    }
    print_notes(&report, &registry, &finder, invocation);
    let hiding = hiding_settings(&args, &workspace);
    if !hiding.is_empty() {
        let names = hiding.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
        invocation.eprint(format!("note: `tenon.toml` sets {names}, so the result may not show everything"));
        invocation.eprint("  hint: read `tenon.toml`, then run `tenon trust`");
    }
    Ok(match report.verdict() {
        // A repository does not decide by itself that it is clean.
        Verdict::Clean if !hiding.is_empty() => INCOMPLETE,
        Verdict::Clean => Exit::Success,
        Verdict::Findings => Exit::No,
        Verdict::Incomplete => INCOMPLETE,
    })
}

fn severities(args: &Args, workspace: &Workspace) -> BTreeSet<Severity> {
    if args.severity.is_empty() {
        return workspace.config().check.severities.iter().copied().collect();
    }
    let given = args.severity.iter();
    given
        .map(|one| match one {
            SeverityArg::Error => Severity::Error,
            SeverityArg::Warning => Severity::Warning,
            SeverityArg::Info => Severity::Info,
            SeverityArg::Hint => Severity::Hint,
        })
        .collect()
}

/// The settings of an untrusted repository that hide files or findings.
fn hiding_settings(args: &Args, workspace: &Workspace) -> Vec<&'static str> {
    if workspace.trust().is_trusted() {
        return Vec::new();
    }
    let made_by_repository = |name: &str| {
        let setting = workspace.settings().get(name);
        let is_theirs =
            |origin: &SettingOrigin| matches!(origin, SettingOrigin::File { kind: FileKind::Workspace, .. });
        setting.is_some_and(|setting| setting.origins.iter().any(is_theirs))
    };
    let severities = args.severity.is_empty().then_some("check.severities");
    let names = ["workspace.ignore"].into_iter().chain(severities);
    names.filter(|name| made_by_repository(name)).collect()
}

async fn select_files(
    args: &Args,
    workspace: &Workspace,
    registry: &Registry,
) -> Result<Vec<WorkspacePath>, Failure> {
    let walk = language_servers::walk(workspace)?;
    if args.changed {
        let search = language_servers::search_path(workspace);
        let repository = GitRepository::open(workspace.root(), &search, GIT_TIMEOUT).await?;
        let head = repository.revision("HEAD").await?;
        let changed = changed_files::since(&repository, &head, &walk, workspace.gate(), registry).await?;
        return Ok(changed.into_iter().filter(|file| file.exists).map(|file| file.path).collect());
    }
    let current = std::env::current_dir().map_err(Failure::no_current_folder)?;
    let paths = args.paths.iter().map(|path| {
        Utf8PathBuf::from_path_buf(current.join(path))
            .map_err(|path| Failure::new(INCOMPLETE, format!("the path `{}` is not UTF-8", path.display())))
    });
    let paths = paths.collect::<Result<Vec<_>, _>>()?;
    Ok(files::of_paths(&paths, &walk, workspace.gate(), registry)?)
}

/// What to check.
enum Selection {
    Files(Vec<WorkspacePath>),
    /// What is new since a revision.
    New(String),
}

/// Checks with the running daemon, whose servers have loaded the workspace. `None` if one of them did not finish: a server
/// that is broken there may work after a fresh start.
fn check_with_daemon(
    selection: &Selection,
    args: &Args,
    severities: &BTreeSet<Severity>,
    root: &Utf8Path,
    invocation: &Invocation,
) -> Option<CheckReport> {
    let (severities, wait_seconds) = (severities.clone(), args.wait);
    let (message, request) = match selection {
        Selection::Files(files) => {
            let message = format!("checking {} files with the daemon", files.len());
            let files = files.iter().map(|file| file.as_path().to_owned()).collect();
            (message, DaemonRequest::Check { files, severities, wait_seconds })
        }
        Selection::New(since) => {
            let message = format!("checking the changes since {since} with the daemon");
            (message, DaemonRequest::CheckNew { since: since.clone(), severities, wait_seconds })
        }
    };
    let bar = spinner(&message);
    let checked = daemon_client::check_files(invocation, root, request);
    bar.finish_and_clear();
    let DaemonCheck { report, interrupted } = checked?;
    (interrupted || !report.has_unfinished_servers()).then_some(report)
}

/// Checks with language servers of this process.
async fn check_in_process(
    selection: Selection,
    workspace: &Workspace,
    registry: Registry,
    finder: Finder,
    severities: &BTreeSet<Severity>,
    wait: Duration,
) -> Result<CheckReport, Failure> {
    let options = Options {
        timeouts: workspace_check::timeouts(),
        ..Options::new(workspace.gate().clone(), registry.clone(), finder)
    };
    let bar = match &selection {
        Selection::Files(files) => progress(files.len()),
        Selection::New(since) => spinner(&format!("checking the changes since {since}")),
    };
    let orchestrator = Orchestrator::open(options).await;
    let call = CallContext::new(Instant::now() + wait, CancellationToken::new());
    let mut report = |progress: workspace_check::CheckProgress| bar.set_position(progress.done as u64);
    let checking = async {
        match selection {
            Selection::Files(files) => {
                Ok(workspace_check::run(&orchestrator, &files, severities, &call, &mut report).await)
            }
            Selection::New(revision) => {
                let files = ReportedFiles {
                    gate: workspace.gate().clone(),
                    walk: language_servers::walk(workspace)?,
                    registry,
                    search: language_servers::search_path(workspace),
                };
                let found = new_findings::since(&orchestrator, &files, &revision, severities, &call).await;
                found.map_err(Failure::from)
            }
        }
    };
    tokio::pin!(checking);
    let done = tokio::select! {
        done = &mut checking => done,
        // Reports the findings so far; the rest counts as not checked.
        _ = tokio::signal::ctrl_c() => {
            call.cancel.cancel();
            checking.await
        }
    };
    bar.finish_and_clear();
    orchestrator.shutdown().await;
    done
}

/// Adds the servers of the checked files that are not installed or may not run.
fn add_absent(report: &mut CheckReport, workspace: &Workspace, registry: &Registry, finder: &Finder) {
    for (entry, availability) in finder.find_all(registry) {
        let Availability::Unavailable(unavailable) = availability else {
            continue;
        };
        let serves = |file: &&CheckedFile| {
            let path = workspace.root().join(&file.file);
            registry.for_file(&path).any(|one| one.id == entry.id && one.has(Capability::Diagnostics))
        };
        let files = report.files.iter().filter(serves).count();
        if files > 0 {
            let why = unavailable.reason.to_string();
            report.absent.insert(entry.id.clone(), AbsentServer { why, files });
        }
    }
}

/// How often progress is drawn: also while language servers start and nothing is checked yet.
const TICK: Duration = Duration::from_millis(100);

/// A progress bar, drawn only on a terminal.
fn progress(files: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("checking {pos}/{len} files {wide_bar} {elapsed}")
        .expect("the template is fixed");
    let bar = ProgressBar::new(files as u64).with_style(style);
    bar.enable_steady_tick(TICK);
    bar
}

/// Shows that something of unknown length is going on, on a terminal.
fn spinner(message: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(visible(message).into_owned());
    bar.enable_steady_tick(TICK);
    bar
}

/// Prints what was not checked and why, then the summary.
fn print_notes(report: &CheckReport, registry: &Registry, finder: &Finder, invocation: &mut Invocation) {
    let fixes: BTreeMap<String, String> = finder
        .find_all(registry)
        .into_iter()
        .filter_map(|(entry, availability)| match availability {
            Availability::Unavailable(unavailable) => {
                Some((entry.id.to_string(), unavailable.fix.to_string()))
            }
            Availability::Found(_) | Availability::Disabled(_) => None,
        })
        .collect();
    for (server, absent) in &report.absent {
        let files = if absent.files == 1 { "1 file".to_owned() } else { format!("{} files", absent.files) };
        invocation.eprint(format!("note: `{server}` did not check {files}: {}", absent.why));
        if let Some(fix) = fixes.get(server.as_str()) {
            invocation.eprint(format!("  hint: {fix}"));
        }
    }
    for note in &report.notes {
        invocation.eprint(format!("note: {note}"));
    }
    if !report.unserved.is_empty() {
        invocation.eprint(format!("note: no language server for {}", list_files(&report.unserved)));
    }
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in &report.files {
        for one in &file.missing {
            missing.entry(one.to_string()).or_default().push(file.file.clone());
        }
    }
    for (reason, files) in missing {
        invocation.eprint(format!("not checked: {}: {reason}", list_files(&files)));
    }
    if let Some(unchecked) = report.compared.map(|compared| compared.unchecked).filter(|&count| count > 0) {
        invocation.eprint(format!("not checked: files that may depend on the change: {unchecked}"));
    }
    invocation.eprint(text::summary(report));
}

fn list_files(files: &[String]) -> String {
    let shown =
        files.iter().take(MAX_LISTED_FILES).map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(MAX_LISTED_FILES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
