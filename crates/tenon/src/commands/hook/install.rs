//! `tenon hook install`: adds the hook to an agent's settings file, and removes it again.
//!
//! A record of the insertion lets `--undo` restore the file exactly if it has not changed since. Otherwise only the hook is
//! removed. The record holds the inserted text and a hash, never other settings: these may contain secrets.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tenon_contract::id::sha256_hex;

use super::agent::{self, Agent};
use super::diff;
use super::settings::{self, Insertion, SettingsError};
use crate::commands::up;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Make an agent run `tenon hook post-edit` after every edit
///
/// Shows the change to the agent's settings file, then writes it. The rest of the file stays the same, byte for byte.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Agent to install the hook for
    #[arg(long, value_enum, value_name = "AGENT")]
    client: Agent,
    /// Settings to change
    #[arg(long, value_enum, default_value_t = Scope::Project)]
    scope: Scope,
    /// Show the change without writing it
    #[arg(long)]
    dry_run: bool,
    /// Remove the hook
    #[arg(long)]
    undo: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scope {
    /// The workspace's settings, which a team may share
    Project,
    /// Your own settings, for all workspaces
    User,
}

/// What was inserted into a file.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    at: usize,
    inserted: String,
    /// Hash of the whole file after the insertion.
    sha256: String,
    /// Whether the insertion created the file.
    new_file: bool,
    /// Whether it created the file's folder.
    new_folder: bool,
}

/// A settings file and its record's path.
struct Target {
    file: Utf8PathBuf,
    record: Utf8PathBuf,
    before: Option<String>,
}

pub(super) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let target = Target::open(&args, invocation)?;
    let title = args.client.title();
    let change = match args.undo {
        true => target.removal(args.client)?,
        false => target.insertion(args.client, &agent::command(&up::program(invocation)))?,
    };
    let Some(change) = change else {
        let status = if args.undo { "not installed" } else { "already installed" };
        invocation.eprint(format!("{status}: {}", target.file));
        return Ok(Exit::Success);
    };
    let shown = diff::render(target.file.as_str(), target.before.as_deref(), change.after.as_deref());
    write!(invocation.out, "{shown}")?;
    if args.dry_run {
        invocation.eprint("dry run: nothing was written");
        return Ok(Exit::Success);
    }
    target.write(&change)?;
    if args.undo {
        invocation.eprint(format!("removed: {title} no longer runs Tenon's hook from {}", target.file));
    } else {
        invocation.eprint(format!(
            "installed: {title} now sees the errors that its edits cause; `--undo` removes the hook"
        ));
        if let Some(note) = args.client.note() {
            invocation.eprint(format!("note: {note}"));
        }
    }
    Ok(Exit::Success)
}

/// A change to the settings file and to its record.
struct Change {
    /// The new text, or `None` to remove the file.
    after: Option<String>,
    record: Option<Record>,
    /// Whether to remove the file's folder too, if it is empty.
    remove_folder: bool,
}

impl Target {
    fn open(args: &Args, invocation: &Invocation) -> Result<Self, Failure> {
        let dirs = invocation.dirs()?;
        let base = match args.scope {
            Scope::Project => invocation.root(None)?,
            Scope::User => dirs.home.clone(),
        };
        let named = args.client.file(&base);
        // Changes the target of a symbolic link, not the link.
        let file = named.canonicalize_utf8().unwrap_or(named);
        let before = match std::fs::read_to_string(&file) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let exit =
                    if error.kind() == io::ErrorKind::InvalidData { Exit::Config } else { Exit::Files };
                let what = format!("cannot read `{file}`");
                return Err(Failure::new(exit, what).caused_by(error.to_string()));
            }
        };
        let name = &sha256_hex(file.as_str())[..16];
        Ok(Self { record: dirs.state.join("hooks").join(format!("{name}.json")), file, before })
    }

    fn unsupported(&self, error: &SettingsError) -> Failure {
        let failure = Failure::new(Exit::Config, format!("cannot change `{}`: {error}", self.file));
        match error {
            SettingsError::NotJson(cause) => failure.caused_by(cause.to_string()),
            SettingsError::Shape(_) => failure,
        }
    }

    fn insertion(&self, agent: Agent, command: &str) -> Result<Option<Change>, Failure> {
        let before = self.before.as_deref();
        let insertion =
            settings::insertion(before, agent, command).map_err(|error| self.unsupported(&error))?;
        let Some(insertion) = insertion else {
            return Ok(None);
        };
        let after = insertion.apply(before.unwrap_or_default());
        let Insertion { at, text: inserted } = insertion;
        let record = Record {
            at,
            inserted,
            sha256: sha256_hex(&after),
            new_file: before.is_none(),
            new_folder: self.file.parent().is_some_and(|folder| !folder.exists()),
        };
        Ok(Some(Change { after: Some(after), record: Some(record), remove_folder: false }))
    }

    fn removal(&self, agent: Agent) -> Result<Option<Change>, Failure> {
        let Some(text) = self.before.as_deref() else {
            return Ok(None);
        };
        let record = std::fs::read(&self.record).ok();
        let record: Option<Record> = record.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let without = |start: usize, end: usize| Some(format!("{}{}", text.get(..start)?, text.get(end..)?));
        // The file has not changed since: the inserted text is where we inserted it.
        if let Some(record) = record.filter(|record| record.sha256 == sha256_hex(text)) {
            let end = record.at.saturating_add(record.inserted.len());
            if let Some(before) = without(record.at, end) {
                let after = (!record.new_file).then_some(before);
                return Ok(Some(Change { after, record: None, remove_folder: record.new_folder }));
            }
        }
        let cut = settings::removal(text, agent).map_err(|error| self.unsupported(&error))?;
        let after = cut.and_then(|cut| without(cut.start, cut.end));
        Ok(after.map(|after| Change { after: Some(after), record: None, remove_folder: false }))
    }

    fn write(&self, change: &Change) -> Result<(), Failure> {
        let write_failed = |error: io::Error| {
            Failure::new(Exit::Files, format!("cannot write `{}`", self.file)).caused_by(error.to_string())
        };
        match &change.after {
            Some(text) => replace(&self.file, text).map_err(write_failed)?,
            None => std::fs::remove_file(&self.file).map_err(write_failed)?,
        }
        if let Some(folder) = self.file.parent().filter(|_| change.remove_folder) {
            // Fails, as intended, if the folder has other files.
            let _ = std::fs::remove_dir(folder);
        }
        match &change.record {
            Some(record) => {
                Ok(replace(&self.record, &serde_json::to_string(record).map_err(io::Error::from)?)?)
            }
            None => match std::fs::remove_file(&self.record) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
                _ => Ok(()),
            },
        }
    }
}

/// Replaces a file atomically and keeps its permissions.
fn replace(file: &Utf8Path, text: &str) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Utf8Path::new("/"));
    std::fs::create_dir_all(folder)?;
    let mut next = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut next, text.as_bytes())?;
    if let Ok(metadata) = std::fs::metadata(file) {
        next.as_file().set_permissions(metadata.permissions())?;
    }
    next.as_file().sync_all()?;
    next.persist(file)?;
    Ok(())
}
