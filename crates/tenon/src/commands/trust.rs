//! `tenon trust`: the user's decision about a workspace.

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use tenon_server::config::{self, FILE_NAME};
use tenon_server::trust::{Record, TrustState};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Trust a workspace, or take that back
///
/// Until a workspace is trusted, nothing in it runs and its `tenon.toml` can only hide files, choose severities and lower
/// limits. Trust pins `tenon.toml` and every file inside the workspace that its commands name; when one of them changes, the
/// workspace is untrusted again until you look at the change and run `tenon trust` once more.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The workspace; otherwise the one you are in
    dir: Option<Utf8PathBuf>,
    /// Settle that this workspace is not trusted, so that nobody asks again
    #[arg(long, conflicts_with_all = ["revoke", "show"])]
    exclude: bool,
    /// Forget the decision
    #[arg(long, conflicts_with = "show")]
    revoke: bool,
    /// Say how things are and change nothing
    #[arg(long)]
    show: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(args.dir.as_deref())?;
    let store = invocation.trust_store()?;
    let settings = config::read_file(&root.join(FILE_NAME))?;
    if args.exclude {
        store.exclude(&root)?;
    } else if args.revoke {
        store.revoke(&root)?;
    } else if !args.show {
        store.trust(&root, settings.as_ref())?;
    }
    let state = store.state(&root, settings.as_ref());
    let record = store.record(&root);
    if args.json {
        let pins = record.as_ref().map(|record| record.pins.keys().collect::<Vec<_>>()).unwrap_or_default();
        let decided_at = record.as_ref().map(|record| &record.decided_at);
        let changed = changed(&state);
        let answer = json!({
            "root": root, "state": state.name(), "changed": changed, "pins": pins, "decided_at": decided_at,
        });
        invocation.print(answer.to_string())?;
    } else {
        invocation.print(format!("{}: {root}", state.name()))?;
        explain(&state, record.as_ref(), &root, invocation);
    }
    Ok(Exit::Success)
}

fn changed(state: &TrustState) -> &[Utf8PathBuf] {
    match state {
        TrustState::Stale { changed } => changed,
        TrustState::Trusted | TrustState::Untrusted | TrustState::Excluded => &[],
    }
}

fn explain(state: &TrustState, record: Option<&Record>, root: &Utf8Path, invocation: &mut Invocation) {
    match state {
        TrustState::Trusted => {
            for (path, hash) in record.map(|record| &record.pins).into_iter().flatten() {
                let note = if hash.is_none() { " (absent)" } else { "" };
                invocation.eprint(format!("  pinned: {path}{note}"));
            }
        }
        TrustState::Stale { changed } => {
            for path in changed {
                invocation.eprint(format!("  changed: {path}"));
            }
            invocation.eprint(format!("  hint: look at the change, then run `tenon trust {root}`"));
        }
        TrustState::Untrusted | TrustState::Excluded => {}
    }
}
