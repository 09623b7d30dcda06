//! `tenon hook install`: adds the hooks to an agent's settings file, and removes them again.
//!
//! A record of the insertion lets `--undo` restore the file exactly if it has not changed since. Otherwise only the hooks are
//! removed. The record holds the inserted text and a hash, never other settings: these may contain secrets.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tenon_contract::id::sha256_hex;

use super::agent::Agent;
use super::diff;
use super::settings::{self, Insertion, SettingsError};
use crate::commands::up;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// The plugin for opencode, and how it begins.
const OPENCODE_PLUGIN: &str = include_str!("opencode.js");
const OPENCODE_MARK: &str = "// Written by `tenon hook install";

/// Make an agent report the errors that its edits and commands cause
///
/// Shows the change to the agent's settings file, then writes it. The rest of the file stays the same, byte for byte. Without
/// `--client`, lists the agents and changes nothing.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Agent to install the hooks for
    #[arg(long, value_enum, value_name = "AGENT")]
    client: Option<Agent>,
    /// Settings to change
    #[arg(long, value_enum, default_value_t = Scope::Project)]
    scope: Scope,
    /// Show the change without writing it
    #[arg(long)]
    dry_run: bool,
    /// Remove the hooks
    #[arg(long, requires = "client")]
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
    /// In the order of their insertion.
    pieces: Vec<Insertion>,
    /// Hash of the whole file after the insertion.
    sha256: String,
    /// Whether the insertion created the file.
    new_file: bool,
    /// How many folders above the file it created.
    new_folders: usize,
}

/// A settings file and its record's path.
struct Target {
    agent: Agent,
    file: Utf8PathBuf,
    record: Utf8PathBuf,
    before: Option<String>,
}

pub(super) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let Some(agent) = args.client else {
        return list(args.scope, invocation);
    };
    let target = Target::open(agent, args.scope, invocation)?;
    let title = agent.title();
    let change = match args.undo {
        true => target.removal()?,
        false => target.insertion(&up::program(invocation))?,
    };
    let Some(change) = change else {
        let status = if args.undo { "not installed" } else { "already installed" };
        invocation.eprint(format!("{status}: {}", target.file));
        return Ok(Exit::Success);
    };
    let shown = diff::render(target.file.as_str(), target.before.as_deref(), change.after.as_deref());
    invocation.print_lines(shown)?;
    if args.dry_run {
        invocation.eprint("dry run: nothing was written");
        return Ok(Exit::Success);
    }
    target.write(&change)?;
    if args.undo {
        invocation.eprint(format!("removed: {title} no longer runs Tenon's hooks from {}", target.file));
    } else {
        invocation.eprint(format!(
            "installed: {title} now sees the errors that its edits cause; `--undo` removes the hooks"
        ));
        if let Some(note) = agent.note() {
            invocation.eprint(format!("note: {note}"));
        }
    }
    Ok(Exit::Success)
}

/// Prints the agents and their states.
fn list(scope: Scope, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let home = invocation.dirs()?.home.clone();
    let root = invocation.root(None)?;
    for agent in Agent::value_variants() {
        let state = match Target::open(*agent, scope, invocation) {
            Ok(target) if target.is_installed() => "installed",
            _ if is_found(*agent, &home, &root) => "agent found",
            _ => "not found",
        };
        let line = format!("{:<10}{:<13}{}", agent.id(), agent.title(), state);
        invocation.print(line)?;
    }
    invocation.eprint("install with `tenon hook install --client AGENT`; nothing was changed");
    Ok(Exit::Success)
}

/// Whether the agent's program or settings exist.
fn is_found(agent: Agent, home: &Utf8Path, root: &Utf8Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = |program: &&str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    agent.programs().iter().any(on_path)
        || [home, root].iter().any(|base| base.join(agent.folder()).is_dir())
        || agent.user_file(home).parent().is_some_and(Utf8Path::is_dir)
}

/// A change to the settings file and to its record.
struct Change {
    /// The new text, or `None` to remove the file.
    after: Option<String>,
    record: Option<Record>,
    /// How many folders above the file to remove too, if they are empty.
    remove_folders: usize,
}

impl Target {
    fn open(agent: Agent, scope: Scope, invocation: &Invocation) -> Result<Self, Failure> {
        let dirs = invocation.dirs()?;
        let named = match scope {
            Scope::Project => agent.project_file(&invocation.root(None)?),
            Scope::User => agent.user_file(&dirs.home),
        };
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
        Ok(Self { agent, record: dirs.state.join("hooks").join(format!("{name}.json")), file, before })
    }

    fn is_installed(&self) -> bool {
        self.before.as_deref().is_some_and(|text| match self.agent {
            Agent::Opencode => text.starts_with(OPENCODE_MARK),
            agent => settings::has_hooks(text, agent),
        })
    }

    fn unsupported(&self, error: &SettingsError) -> Failure {
        let failure = Failure::new(Exit::Config, format!("cannot change `{}`: {error}", self.file));
        match error {
            SettingsError::NotJson(cause) => failure.caused_by(cause.to_string()),
            SettingsError::Shape(_) => failure,
        }
    }

    fn insertion(&self, program: &str) -> Result<Option<Change>, Failure> {
        let before = self.before.as_deref();
        let (pieces, after) = match self.agent {
            Agent::Opencode => {
                let plugin = OPENCODE_PLUGIN.replace(r#""@PROGRAM@""#, &json!(program).to_string());
                self.require_own_plugin()?;
                if before == Some(&plugin) {
                    return Ok(None);
                }
                (vec![Insertion { at: 0, text: plugin.clone() }], plugin)
            }
            agent => {
                let pieces =
                    settings::insertions(before, agent, program).map_err(|error| self.unsupported(&error))?;
                if pieces.is_empty() {
                    return Ok(None);
                }
                let text = before.unwrap_or_default().to_owned();
                let after = pieces.iter().fold(text, |text, piece| piece.apply(&text));
                (pieces, after)
            }
        };
        let folders = self.file.ancestors().skip(1);
        let record = Record {
            pieces,
            sha256: sha256_hex(&after),
            new_file: before.is_none(),
            new_folders: folders.take_while(|folder| !folder.exists()).count(),
        };
        Ok(Some(Change { after: Some(after), record: Some(record), remove_folders: 0 }))
    }

    fn removal(&self) -> Result<Option<Change>, Failure> {
        let Some(text) = self.before.as_deref() else {
            return Ok(None);
        };
        let record = std::fs::read(&self.record).ok();
        let record: Option<Record> = record.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let remove_folders =
            record.as_ref().filter(|record| record.new_file).map_or(0, |record| record.new_folders);
        if self.agent == Agent::Opencode {
            self.require_own_plugin()?;
            return Ok(Some(Change { after: None, record: None, remove_folders }));
        }
        // The file has not changed since: the inserted texts are where we inserted them.
        if let Some(record) = record.filter(|record| record.sha256 == sha256_hex(text)) {
            let mut pieces = record.pieces.iter().rev();
            if let Some(before) = pieces.try_fold(text.to_owned(), |text, piece| piece.undo(&text)) {
                let after = (!record.new_file).then_some(before);
                return Ok(Some(Change { after, record: None, remove_folders }));
            }
        }
        let after = settings::without_hooks(text, self.agent).map_err(|error| self.unsupported(&error))?;
        Ok(after.map(|after| Change { after: Some(after), record: None, remove_folders: 0 }))
    }

    /// A plugin of the user with the same name stays as it is.
    fn require_own_plugin(&self) -> Result<(), Failure> {
        match &self.before {
            Some(text) if !text.starts_with(OPENCODE_MARK) => Err(Failure::new(
                Exit::Config,
                format!("cannot change `{}`: Tenon did not write this file", self.file),
            )),
            _ => Ok(()),
        }
    }

    fn write(&self, change: &Change) -> Result<(), Failure> {
        let write_failed = |error: io::Error| {
            Failure::new(Exit::Files, format!("cannot write `{}`", self.file)).caused_by(error.to_string())
        };
        match &change.after {
            Some(text) => replace(&self.file, text).map_err(write_failed)?,
            None => std::fs::remove_file(&self.file).map_err(write_failed)?,
        }
        for folder in self.file.ancestors().skip(1).take(change.remove_folders) {
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
