//! `tenon doctor`: checks the installation and the workspace.
//!
//! The checks are independent: a failed one hides none of the others.

mod bundle;

use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use serde_json::json;
use tenon_contract::clock::{Clock, Entropy};
use tenon_lsp::orchestrator::ServerState;
use tenon_server::daemon::protocol::ServerSummary;
use tenon_server::dirs::Dirs;
use tenon_server::token::TokenFile;
use tenon_server::trust::TrustState;
use tenon_server::workspace::Workspace;
use tenon_servers::confinement::KernelSupport;
use tenon_servers::find::Availability;
use tenon_servers::language_count::LanguageCount;
use tenon_servers::registry::ServerEntry;

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::language_servers;
use crate::server_choices;

/// Check the installation and the workspace, and suggest fixes
///
/// Starts the language servers that the workspace's files need, through the daemon, and waits until they have loaded the
/// workspace. A daemon that was not running is stopped again. Exits with 1 if a check fails. Warnings do not count as failures.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Do not start language servers
    #[arg(long)]
    no_start: bool,
    /// Also write an archive (`.tar.gz`) for a bug report, with the checks, the daemon's state and log, and all settings;
    /// secrets, your home folder and your name are replaced
    #[arg(long, value_name = "FILE")]
    bundle: Option<Utf8PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Good,
    /// Neither good nor bad.
    Info,
    Warning,
    Bad,
}

#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Finding {
    fn good(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Good, detail: detail.into(), fix: None }
    }

    fn info(check: &'static str, detail: impl Into<String>, fix: Option<&str>) -> Self {
        Self { check, verdict: Verdict::Info, detail: detail.into(), fix: fix.map(str::to_owned) }
    }

    fn warning(check: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Warning, detail: detail.into(), fix: Some(fix.into()) }
    }

    /// A warning that says itself what to do.
    fn note(check: &'static str, detail: String) -> Self {
        Self { check, verdict: Verdict::Warning, detail, fix: None }
    }

    fn bad(check: &'static str, failure: &Failure) -> Self {
        Self { check, verdict: Verdict::Bad, detail: failure.to_string(), fix: failure.first_hint() }
    }

    /// One line, and one more for the fix.
    fn text(&self) -> String {
        let word = match self.verdict {
            Verdict::Good => "ok",
            Verdict::Info => "info",
            Verdict::Warning => "warning",
            Verdict::Bad => "error",
        };
        let fix = self.fix.as_ref().map(|fix| format!("         hint: {fix}\n")).unwrap_or_default();
        format!("{word:<8} {}: {}\n{fix}", self.check, self.detail)
    }
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    if let Some(path) = &args.bundle {
        bundle::check_path(path)?;
    }
    let mut findings = vec![Finding::good("version", env!("CARGO_PKG_VERSION"))];
    findings.push(sandbox());
    findings.extend(environment(invocation));
    match invocation.dirs() {
        Ok(dirs) => findings.extend([state(&dirs), tokens(&dirs)]),
        Err(failure) => findings.push(Finding::bad("folders", &failure)),
    }
    match invocation.root(None) {
        Ok(root) => findings.extend(workspace(invocation, &root, !args.no_start)),
        Err(failure) => findings.push(Finding::bad("workspace", &failure)),
    }
    let bad = findings.iter().any(|finding| finding.verdict == Verdict::Bad);
    let report: String = findings.iter().map(Finding::text).collect();
    if args.json {
        invocation.print_data(json!({"good": !bad, "findings": findings}).to_string())?;
    } else {
        invocation.print_lines(&report)?;
    }
    if let Some(path) = &args.bundle {
        bundle::write(invocation, path, &report)?;
    }
    Ok(if bad { Exit::No } else { Exit::Success })
}

/// One finding per language server that the workspace's files need, and whether any of them can be started.
fn language_servers(workspace: &Workspace) -> (Vec<Finding>, bool) {
    let (walk, registry) = match (language_servers::walk(workspace), language_servers::registry(workspace)) {
        (Ok(walk), Ok(registry)) => (walk, registry),
        (Err(failure), _) | (_, Err(failure)) => {
            return (vec![Finding::bad("language servers", &failure)], false);
        }
    };
    let languages = LanguageCount::count(&walk, &registry);
    let finder = workspace.finder();
    let finding = |(entry, availability): (&ServerEntry, Availability)| {
        let files = languages.files_of(&entry.id);
        let about = format!("{} (files: {files})", entry.id);
        match availability {
            _ if files == 0 => None,
            Availability::Found(program) => Some(match finder.missing_library(entry) {
                None => Finding::good("language server", format!("{about}: {}", program.path)),
                Some(library) => Finding::warning(
                    "language server",
                    format!(
                        "{about}: {}, without the standard library's source: answers about uses inside its macros are incomplete",
                        program.path
                    ),
                    format!("run `{}`", library.install),
                ),
            }),
            Availability::Unavailable(why) => Some(Finding::warning(
                "language server",
                format!("{about}: {}", why.reason),
                why.fix.to_string(),
            )),
            Availability::Disabled(_) => None,
        }
    };
    let all = finder.find_all(&registry);
    let can_start = all.iter().any(|(entry, availability)| {
        matches!(availability, Availability::Found(_)) && languages.files_of(&entry.id) > 0
    });
    let mut findings: Vec<Finding> = all.into_iter().filter_map(finding).collect();
    match server_choices::of(workspace, &registry) {
        Ok(choices) => findings.extend(choices.iter().flat_map(|choice| {
            let warning = |note: &String| Finding::note("language server", note.clone());
            choice.notes.iter().map(warning)
        })),
        Err(failure) => findings.push(Finding::bad("language servers", &failure)),
    }
    (findings, can_start)
}

/// Starts the servers through the daemon; one finding for each that ran.
fn started_servers(invocation: &Invocation, root: &Utf8Path) -> Vec<Finding> {
    let was_running = daemon_client::status(invocation, root).ok().flatten().is_some();
    let started =
        daemon_client::probe(invocation, root).and_then(|_| daemon_client::warm_up(invocation, root));
    let findings = match started {
        Ok(servers) => servers.iter().filter_map(started_server).collect(),
        Err(failure) => vec![Finding::bad("started server", &failure)],
    };
    if !was_running {
        // The check is over; a daemon that cannot be stopped exits when it is idle.
        let _ = daemon_client::stop(invocation, root, false);
    }
    findings
}

fn started_server(server: &ServerSummary) -> Option<Finding> {
    let about = format!("{} ({})", server.id, server.language);
    let detail = server.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    match server.status {
        // No file needs them, or the finding about the language says what is missing.
        ServerState::Disabled | ServerState::Idle | ServerState::Unavailable => None,
        _ if server.ready => Some(Finding::good("started server", format!("{about}: ready"))),
        state => Some(Finding::warning(
            "started server",
            format!("{about}: {}{detail}", state.as_str()),
            format!("run `tenon servers logs {}` to see why", server.id),
        )),
    }
}

/// Whether the kernel keeps language servers from changing files of the user.
fn sandbox() -> Finding {
    let fix = "use Linux 6.2 or later with Landlock; until then some servers wait for `tenon trust`";
    match KernelSupport::now() {
        KernelSupport::Full => Finding::good("sandbox", "language servers run in a sandbox"),
        KernelSupport::Partial => {
            Finding::warning("sandbox", "this kernel cannot keep servers from truncating files", fix)
        }
        KernelSupport::None => Finding::warning("sandbox", "this kernel has no sandbox for servers", fix),
    }
}

fn environment(invocation: &Invocation) -> Vec<Finding> {
    let unknown = invocation.environment.unknown().into_iter();
    let finding = |(name, nearest): (String, Option<&str>)| {
        let fix = nearest.map_or("unset it".to_owned(), |known| format!("did you mean `{known}`?"));
        Finding::warning("environment", format!("unknown variable `{name}`"), fix)
    };
    unknown.map(finding).collect()
}

/// Checks that logs, tokens and trust decisions can be written.
fn state(dirs: &Dirs) -> Finding {
    let probe = dirs.state.join(format!(".doctor-{}", std::process::id()));
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(&dirs.state)?;
        std::fs::File::create(&probe)?.write_all(b"x")?;
        std::fs::remove_file(&probe)
    };
    match write() {
        Ok(()) => Finding::good("state", dirs.state.as_str()),
        Err(error) => {
            let failure = Failure::new(Exit::Files, format!("cannot write to `{}`", dirs.state));
            Finding::bad(
                "state",
                &failure.caused_by(error.to_string()).hint("set `TENON_STATE_DIR` to another folder"),
            )
        }
    }
}

fn tokens(dirs: &Dirs) -> Finding {
    let file = TokenFile::new(dirs.tokens().into_std_path_buf(), Clock::system(), Entropy::system());
    match file.list() {
        Ok(tokens) => Finding::good("tokens", format!("{} valid", tokens.len())),
        Err(error) => Finding::bad("tokens", &error.into()),
    }
}

fn workspace(invocation: &Invocation, root: &Utf8Path, start: bool) -> Vec<Finding> {
    let mut findings = vec![Finding::good("workspace", root.as_str())];
    match invocation.workspace(root, vec![]) {
        Ok(workspace) => {
            let ignored = workspace.settings().ignored().len();
            findings.push(match ignored {
                0 => Finding::good("settings", "valid"),
                _ => Finding::warning(
                    "settings",
                    format!("{ignored} ignored"),
                    "run `tenon config show` to see why",
                ),
            });
            findings.push(match workspace.trust() {
                TrustState::Stale { changed } => {
                    let detail = format!("stale, changed files: {}", changed.len());
                    Finding::warning(
                        "trust",
                        detail,
                        "run `tenon trust --show` to see the changes, then `tenon trust`",
                    )
                }
                TrustState::Untrusted => Finding::info(
                    "trust",
                    "untrusted: nothing in the workspace runs",
                    Some("run `tenon trust` to allow it"),
                ),
                TrustState::Excluded => {
                    Finding::info("trust", "excluded: nothing in the workspace runs", None)
                }
                TrustState::Trusted => Finding::good("trust", "trusted"),
            });
            let (servers, can_start) = language_servers(&workspace);
            findings.extend(servers);
            if start && can_start {
                findings.extend(started_servers(invocation, root));
            }
        }
        Err(failure) => findings.push(Finding::bad("settings", &failure)),
    }
    findings.push(match daemon_client::status(invocation, root) {
        Ok(Some(info)) if info.outdated => {
            let detail = format!("process {}, with outdated settings", info.pid);
            Finding::warning("daemon", detail, "run `tenon stop`; the next client starts a new daemon")
        }
        Ok(Some(info)) => Finding::good("daemon", format!("process {}", info.pid)),
        Ok(None) => Finding::info("daemon", "not running; the first client starts it", None),
        Err(failure) => Finding::bad("daemon", &failure),
    });
    findings
}
