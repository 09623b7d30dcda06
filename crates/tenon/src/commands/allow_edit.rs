//! `tenon allow-edit`: lets agents change files of a workspace through the `edit` surface.

use camino::Utf8PathBuf;
use serde_json::{Value, json};

use crate::config_edit::edited_file::EditedFile;
use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::user_config;

const KEY: &str = "edit.allow";

/// Allow agents to change files of a workspace
///
/// Adds the workspace to `edit.allow` in your own configuration. The `edit` surface then changes files and reports what each
/// change broke. Only you can allow it: a repository or an agent cannot.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Workspace [default: the workspace of the current folder]
    dir: Option<Utf8PathBuf>,
    /// Remove the permission
    #[arg(long)]
    revoke: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(args.dir.as_deref())?;
    let dirs = invocation.dirs()?;
    let file = EditedFile::open(&dirs.config_file, &dirs.state)?;
    let mut allowed = user_config::list(&file, KEY)?;
    let is_root = |path: &String| Utf8PathBuf::from(path).canonicalize_utf8().is_ok_and(|path| path == root);
    if allowed.iter().any(is_root) != args.revoke {
        let state = if args.revoke { "not allowed" } else { "already allowed" };
        invocation.eprint(format!("{state}: {root}"));
        return Ok(Exit::Success);
    }
    match args.revoke {
        true => allowed.retain(|path| !is_root(path)),
        false => allowed.push(root.to_string()),
    }
    let value: Value = json!(allowed);
    user_config::write(file, KEY, &value, invocation)?;
    let state = if args.revoke { "no longer allowed" } else { "allowed" };
    invocation.print(format!("{state}: {root}"))?;
    invocation.eprint(format!("changed: `{KEY}` in {}", dirs.config_file));
    let running = daemon_client::status(invocation, &root).ok().flatten();
    match running {
        Some(info) if info.clients == 0 => {
            daemon_client::stop(invocation, &root, false)?;
        }
        Some(_) => {
            invocation.eprint(
                "warning: the running daemon has clients and keeps the settings that it started with",
            );
            invocation.eprint("  hint: run `tenon restart`, then restart the agents");
        }
        None => {}
    }
    Ok(Exit::Success)
}
