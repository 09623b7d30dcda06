//! `tenon trust`: records whether the user trusts a workspace.

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use tenon_server::config;
use tenon_server::trust::{TrustRecord, TrustState};

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Trust a workspace, or revoke that trust
///
/// Until you trust a workspace, nothing in it runs, and its `tenon.toml` can only ignore files, choose severities and lower
/// limits. Trust pins `tenon.toml`, every file in the workspace that its commands use, and the language servers and
/// interpreters that are found in `node_modules/.bin` and virtualenvs. When one of these files changes, appears or
/// disappears, the trust becomes stale: review the change, then run `tenon trust` again.
///
/// The decision applies at once, except to a running daemon with clients: it keeps the decision that it started with, until
/// it is stopped.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Workspace [default: the workspace of the current folder]
    dir: Option<Utf8PathBuf>,
    /// Mark this workspace as not trusted
    #[arg(long, conflicts_with_all = ["revoke", "show"])]
    exclude: bool,
    /// Remove your decision about this workspace
    #[arg(long, conflicts_with = "show")]
    revoke: bool,
    /// Show the trust state without changing it
    #[arg(long)]
    show: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(args.dir.as_deref())?;
    let store = invocation.trust_store()?;
    let settings = config::read_workspace_file(&root)?;
    if args.exclude {
        store.exclude(&root)?;
    } else if args.revoke {
        store.revoke(&root)?;
    } else if !args.show {
        require_one_workspace(&root, &invocation.dirs()?.home)?;
        let user = config::read_user_file(&invocation.dirs()?.config_file)?;
        store.trust(&root, settings.as_ref(), user.as_ref())?;
    }
    let state = store.state(&root, settings.as_ref());
    if !args.show {
        apply_to_daemon(&root, invocation);
    }
    let record = store.record(&root);
    if args.json {
        let pins = record.as_ref().map(|record| record.pinned().into_keys().collect::<Vec<_>>());
        let pins = pins.unwrap_or_default();
        let decided_at = record.as_ref().map(|record| &record.decided_at);
        let changed = changed(&state);
        let answer = json!({
            "root": root, "state": state.name(), "changed": changed, "pins": pins, "decided_at": decided_at,
        });
        invocation.print_data(answer.to_string())?;
    } else {
        invocation.print(format!("{}: {root}", state.name()))?;
        explain(&state, record.as_ref(), &root, invocation);
    }
    Ok(Exit::Success)
}

/// A folder that holds everything is not one workspace: trust in it would be trust in all of them.
fn require_one_workspace(root: &Utf8Path, home: &Utf8Path) -> Result<(), Failure> {
    let home = home.canonicalize_utf8().unwrap_or_else(|_| home.to_owned());
    let what = if root.parent().is_none() {
        "it is the whole file system"
    } else if root == home {
        "it is your home folder"
    } else if home.starts_with(root) {
        "it contains your home folder"
    } else {
        return Ok(());
    };
    Err(Failure::new(Exit::Usage, format!("cannot trust `{root}`: {what}"))
        .hint("run `tenon trust DIR` with the folder of one workspace"))
}

/// Ends an idle daemon with another decision, so that the new one applies at once. Says what to do if clients use it.
fn apply_to_daemon(root: &Utf8Path, invocation: &mut Invocation) {
    let info = daemon_client::status(invocation, root).ok().flatten();
    let Some(info) = info.filter(|info| info.outdated) else {
        return;
    };
    if info.clients == 0 && daemon_client::stop(invocation, root, false).is_ok() {
        invocation.eprint("stopped: the idle daemon; the next client starts one with the new trust");
        return;
    }
    let clients = if info.clients == 1 { "1 client".to_owned() } else { format!("{} clients", info.clients) };
    let warning =
        format!("warning: the running daemon has {clients} and keeps the trust that it started with");
    invocation.eprint(warning);
    invocation.eprint("  hint: run `tenon stop`; the next client starts a daemon with the new trust");
}

fn changed(state: &TrustState) -> &[Utf8PathBuf] {
    match state {
        TrustState::Stale { changed } => changed,
        TrustState::Trusted | TrustState::Untrusted | TrustState::Excluded => &[],
    }
}

fn explain(state: &TrustState, record: Option<&TrustRecord>, root: &Utf8Path, invocation: &mut Invocation) {
    match state {
        TrustState::Trusted => {
            for (path, exists) in record.map(TrustRecord::pinned).into_iter().flatten() {
                let note = if exists { "" } else { " (absent)" };
                invocation.eprint(format!("  pinned: {path}{note}"));
            }
        }
        TrustState::Stale { changed } => {
            for path in changed {
                invocation.eprint(format!("  changed: {path}"));
            }
            invocation.eprint(format!("  hint: review the change, then run `tenon trust {root}`"));
        }
        TrustState::Untrusted | TrustState::Excluded => {}
    }
}
