//! `tenon check`: what all language servers say about files.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use tenon_contract::root::WorkspacePath;
use tenon_lsp::call::Call;
use tenon_lsp::model::Severity;
use tenon_lsp::orchestrator::{Options, Orchestrator};
use tenon_lsp::workspace_check::{self, Report, Verdict, files};
use tenon_server::daemon::protocol::DaemonRequest;
use tenon_server::workspace::Workspace;
use tenon_servers::find::{Availability, Finder};
use tenon_servers::registry::Registry;
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

/// The code for a check that came to no verdict.
pub(crate) const COULD_NOT_CHECK: Exit = Exit::Contract(2);

/// How many files are named in a note before it counts the rest.
const NAMED: usize = 3;

/// Report what the language servers find wrong with files
///
/// Checks the given files and folders, the changed files, or the whole workspace. Ends with 0 when nothing was found, 1
/// when something was, and 2 when it could not be told: no server could look, or one did not finish. Servers that
/// are not installed, or may not run before the workspace is trusted, are named on stderr and change nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files and folders; otherwise the whole workspace
    paths: Vec<Utf8PathBuf>,
    /// Only files that differ from the last commit
    #[arg(long, conflicts_with = "paths")]
    changed: bool,
    /// What to report [default: the setting `check.severities`]
    #[arg(long, value_name = "SEVERITY", value_delimiter = ',')]
    severity: Vec<Reported>,
    /// The form of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// How long to wait for all answers together
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    wait: u64,
    /// Start language servers for this check alone, even if the workspace's daemon has some
    #[arg(long)]
    no_daemon: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Messages with their source lines
    Text,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Workflow commands, which GitHub shows at the changed lines
    Github,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reported {
    Error,
    Warning,
    Info,
    Hint,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    // Whatever keeps a check from a verdict is the same to a script.
    check(args, invocation).map_err(|failure| failure.with_exit(COULD_NOT_CHECK))
}

fn check(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let workspace = invocation.workspace(&root, vec![])?;
    let registry = language_servers::registry(&workspace)?;
    let finder = language_servers::finder(&workspace);
    let severities = severities(&args, &workspace);
    let files = block_on(chosen(&args, &workspace, &registry))??;
    let asked = if args.no_daemon { None } else { ask_daemon(&files, &args, &severities, &root, invocation) };
    let report = match asked {
        Some(report) => report,
        None => {
            let wait = Duration::from_secs(args.wait);
            let looking = look(files, &workspace, registry.clone(), finder.clone(), &severities, wait);
            block_on(looking)?
        }
    };

    match args.format {
        Format::Text => write!(invocation.out, "{}", text::render(&report))?,
        Format::Json => invocation.print(json::render(&report))?,
        Format::Sarif => invocation.print(sarif::render(&report))?,
        Format::Github => write!(invocation.out, "{}", github::render(&report))?,
    }
    tell(&report, &registry, &finder, invocation);
    Ok(match report.verdict() {
        Verdict::Clean => Exit::Success,
        Verdict::Findings => Exit::No,
        Verdict::Incomplete => COULD_NOT_CHECK,
    })
}

fn severities(args: &Args, workspace: &Workspace) -> BTreeSet<Severity> {
    if args.severity.is_empty() {
        return workspace.config().check.severities.iter().copied().collect();
    }
    let given = args.severity.iter();
    given
        .map(|one| match one {
            Reported::Error => Severity::Error,
            Reported::Warning => Severity::Warning,
            Reported::Info => Severity::Info,
            Reported::Hint => Severity::Hint,
        })
        .collect()
}

async fn chosen(
    args: &Args,
    workspace: &Workspace,
    registry: &Registry,
) -> Result<Vec<WorkspacePath>, Failure> {
    let walk = language_servers::walk(workspace)?;
    if args.changed {
        let search = language_servers::search_path(workspace);
        return Ok(files::changed(&walk, workspace.gate(), registry, &search).await?);
    }
    let here = std::env::current_dir().map_err(Failure::no_current_folder)?;
    let paths = args.paths.iter().map(|path| {
        Utf8PathBuf::from_path_buf(here.join(path)).map_err(|path| {
            Failure::new(COULD_NOT_CHECK, format!("the path `{}` is not UTF-8", path.display()))
        })
    });
    let paths = paths.collect::<Result<Vec<_>, _>>()?;
    Ok(files::of_paths(&paths, &walk, workspace.gate(), registry)?)
}

/// What the servers of the running daemon say, which have loaded the workspace already. Only their last word counts: one that
/// is broken there may well do in a fresh start.
fn ask_daemon(
    files: &[WorkspacePath],
    args: &Args,
    severities: &BTreeSet<Severity>,
    root: &Utf8Path,
    invocation: &Invocation,
) -> Option<Report> {
    let bar =
        ProgressBar::new_spinner().with_message(format!("asking the daemon about {} files", files.len()));
    bar.enable_steady_tick(Duration::from_millis(100));
    let files = files.iter().map(|file| file.as_path().to_owned()).collect();
    let request = DaemonRequest::Check { files, severities: severities.clone(), wait_seconds: args.wait };
    let asked = daemon_client::check_files(invocation, root, request);
    bar.finish_and_clear();
    let DaemonCheck { report, interrupted } = asked?;
    let owing = report.files.iter().flat_map(|file| &file.missing).any(|missing| missing.server.is_some());
    (interrupted || !owing).then_some(report)
}

async fn look(
    files: Vec<WorkspacePath>,
    workspace: &Workspace,
    registry: Registry,
    finder: Finder,
    severities: &BTreeSet<Severity>,
    wait: Duration,
) -> Report {
    let options = Options {
        timeouts: workspace_check::timeouts(),
        ..Options::new(workspace.gate().clone(), registry, finder)
    };
    let orchestrator = Orchestrator::open(options).await;
    let call = Call::new(Instant::now() + wait, CancellationToken::new());
    let bar = progress(files.len());
    let mut report = |progress: workspace_check::Progress| bar.set_position(progress.done as u64);
    let checking = workspace_check::run(&orchestrator, &files, severities, &call, &mut report);
    tokio::pin!(checking);
    let done = tokio::select! {
        done = &mut checking => done,
        // What was found till then is shown; the rest counts as not checked.
        _ = tokio::signal::ctrl_c() => {
            call.cancel.cancel();
            checking.await
        }
    };
    bar.finish_and_clear();
    orchestrator.shutdown().await;
    done
}

/// Shows itself on a terminal only.
fn progress(files: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("checking {pos}/{len} files {wide_bar} {elapsed}")
        .expect("the template is fixed");
    ProgressBar::new(files as u64).with_style(style)
}

fn tell(report: &Report, registry: &Registry, finder: &Finder, invocation: &mut Invocation) {
    let fixes: BTreeMap<String, String> = finder
        .survey(registry)
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
        invocation.eprint(format!("note: `{server}` did not look at {files}: {}", absent.why));
        if let Some(fix) = fixes.get(server.as_str()) {
            invocation.eprint(format!("  hint: {fix}"));
        }
    }
    if !report.unserved.is_empty() {
        invocation.eprint(format!("note: no language server for {}", named(&report.unserved)));
    }
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in &report.files {
        for one in &file.missing {
            missing.entry(one.to_string()).or_default().push(file.file.clone());
        }
    }
    for (why, files) in missing {
        invocation.eprint(format!("not checked: {}: {why}", named(&files)));
    }
    invocation.eprint(text::summary(report));
}

fn named(files: &[String]) -> String {
    let shown = files.iter().take(NAMED).map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
