//! `tenon hook install`: puts our hook into an agent's settings, and takes it out again.
//!
//! What was added where is kept in a record of ours, so that undoing restores the file exactly as long as nobody else has
//! changed it. After that, our hook alone is cut out. The record holds our own text and a hash: settings may hold secrets.

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

/// Have an agent run `tenon hook post-edit` after every edit
///
/// Shows what changes in the agent's settings, then writes it. Everything else in the file stays as it is, byte for byte.
/// `--undo` takes it out again.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agent
    #[arg(long, value_enum, value_name = "AGENT")]
    client: Agent,
    /// Whose settings
    #[arg(long, value_enum, default_value_t = Scope::Project)]
    scope: Scope,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take the hook out again
    #[arg(long)]
    undo: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scope {
    /// The workspace's, which a team may share
    Project,
    /// The user's own, for all workspaces
    User,
}

/// What we did to a file.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    at: usize,
    inserted: String,
    /// Of the whole file afterwards.
    sha256: String,
    /// Whether the file, and its folder, are our doing.
    new_file: bool,
    new_folder: bool,
}

/// A file of settings and our record about it.
struct Target {
    file: Utf8PathBuf,
    record: Utf8PathBuf,
    before: Option<String>,
}

pub(super) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let target = Target::open(&args, invocation)?;
    let title = args.client.title();
    let done = match args.undo {
        true => target.undone(args.client)?,
        false => target.done(args.client, &agent::command(&up::program(invocation)))?,
    };
    let Some(change) = done else {
        let how = if args.undo { "no hook of Tenon is in" } else { "there already:" };
        invocation.eprint(format!("{how} {}", target.file));
        return Ok(Exit::Success);
    };
    let shown = diff::render(target.file.as_str(), target.before.as_deref(), change.after.as_deref());
    write!(invocation.out, "{shown}")?;
    if args.dry_run {
        invocation.eprint("nothing was changed: this is a dry run");
        return Ok(Exit::Success);
    }
    target.write(&change)?;
    if args.undo {
        invocation.eprint(format!("{title} runs no hook of Tenon any more from {}", target.file));
    } else {
        invocation.eprint(format!(
            "{title} now learns after each edit what it broke; `--undo` takes this out again"
        ));
        if let Some(note) = args.client.note() {
            invocation.eprint(format!("note: {note}"));
        }
    }
    Ok(Exit::Success)
}

/// What becomes of a file and of the record.
struct Change {
    /// `None` removes the file.
    after: Option<String>,
    record: Option<Record>,
    /// Whether an empty folder goes with the file.
    folder_too: bool,
}

impl Target {
    fn open(args: &Args, invocation: &Invocation) -> Result<Self, Failure> {
        let dirs = invocation.dirs()?;
        let base = match args.scope {
            Scope::Project => invocation.root(None)?,
            Scope::User => dirs.home.clone(),
        };
        let named = args.client.file(&base);
        // Behind a link, the file itself is changed and not the link.
        let file = named.canonicalize_utf8().unwrap_or(named);
        let before = match std::fs::read_to_string(&file) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let exit =
                    if error.kind() == io::ErrorKind::InvalidData { Exit::Config } else { Exit::Files };
                let what = format!("`{file}` cannot be read");
                return Err(Failure::new(exit, what).caused_by(error.to_string()));
            }
        };
        let name = &sha256_hex(file.as_str())[..16];
        Ok(Self { record: dirs.state.join("hooks").join(format!("{name}.json")), file, before })
    }

    fn refused(&self, error: &SettingsError) -> Failure {
        let failure = Failure::new(Exit::Config, format!("`{}` is left alone: {error}", self.file));
        match error {
            SettingsError::NotJson(cause) => failure.caused_by(cause.to_string()),
            SettingsError::Shape(_) => failure,
        }
    }

    fn done(&self, agent: Agent, command: &str) -> Result<Option<Change>, Failure> {
        let before = self.before.as_deref();
        let insertion = settings::insertion(before, agent, command).map_err(|error| self.refused(&error))?;
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
        Ok(Some(Change { after: Some(after), record: Some(record), folder_too: false }))
    }

    fn undone(&self, agent: Agent) -> Result<Option<Change>, Failure> {
        let Some(text) = self.before.as_deref() else {
            return Ok(None);
        };
        let record = std::fs::read(&self.record).ok();
        let record: Option<Record> = record.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let without = |start: usize, end: usize| Some(format!("{}{}", text.get(..start)?, text.get(end..)?));
        // Nobody has been here since: what we added is where we added it.
        if let Some(record) = record.filter(|record| record.sha256 == sha256_hex(text)) {
            let end = record.at.saturating_add(record.inserted.len());
            if let Some(before) = without(record.at, end) {
                let after = (!record.new_file).then_some(before);
                return Ok(Some(Change { after, record: None, folder_too: record.new_folder }));
            }
        }
        let cut = settings::removal(text, agent).map_err(|error| self.refused(&error))?;
        let after = cut.and_then(|cut| without(cut.start, cut.end));
        Ok(after.map(|after| Change { after: Some(after), record: None, folder_too: false }))
    }

    fn write(&self, change: &Change) -> Result<(), Failure> {
        let unable = |error: io::Error| {
            Failure::new(Exit::Files, format!("`{}` cannot be written", self.file))
                .caused_by(error.to_string())
        };
        match &change.after {
            Some(text) => replace(&self.file, text).map_err(unable)?,
            None => std::fs::remove_file(&self.file).map_err(unable)?,
        }
        if let Some(folder) = self.file.parent().filter(|_| change.folder_too) {
            // One with something else in it stays.
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

/// Replaces a file as a whole, or not at all. It keeps its permissions.
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
