//! `tenon hook`: what agents run after an edit, and how they come to run it.
//!
//! An edit that was made stays made: whatever goes wrong here, the agent reads nothing and sees success. A line on stderr is
//! for the person who looks into it.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::mpsc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Subcommand;
use serde_json::{Value, json};
use tenon_server::workspace::{canonical_root, marked_root};

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

mod agent;
mod diff;
mod event;
mod install;
mod settings;

use event::Event;

/// How long an agent may take to say what it did.
const INPUT_PATIENCE: Duration = Duration::from_secs(5);
/// The longest that an agent may say: whole files are in it.
const MAX_INPUT_BYTES: u64 = 64 * 1024 * 1024;
/// How long an agent is kept waiting, the start of a daemon included, besides what the user waits for other files.
const PATIENCE: Duration = Duration::from_secs(18);

/// Show agents what their edits broke
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    PostEdit(PostEdit),
    Install(install::Args),
}

/// Read what an agent edited from stdin, and answer what that broke
///
/// For agents, not for people: reads the JSON that Claude Code, Codex and Gemini CLI send to a hook after a tool ran, checks the
/// files that it touched through the workspace's daemon, and prints what the model should know. It never fails an edit: what
/// cannot be checked is passed over in silence.
#[derive(Debug, clap::Args)]
struct PostEdit {}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    match args.command {
        Command::PostEdit(PostEdit {}) => {
            if let Err(failure) = post_edit(invocation) {
                invocation.eprint(format!("tenon hook: {failure}"));
            }
            Ok(Exit::Success)
        }
        Command::Install(args) => install::run(args, invocation),
    }
}

fn post_edit(invocation: &mut Invocation) -> Result<(), Failure> {
    let input = input()?;
    let event = Event::parse(&input).map_err(|error| Failure::of(Exit::Usage, &error))?;
    let Some(event) = event else {
        return Ok(());
    };
    let mut texts = Vec::new();
    for (root, files) in by_workspace(&event, invocation) {
        texts.push(daemon_client::edit_diagnostics(invocation, &root, files, PATIENCE)?);
    }
    texts.retain(|text| !text.is_empty());
    if !texts.is_empty() {
        invocation.print(answer(event.name, &texts.join("\n")).to_string())?;
    }
    Ok(())
}

/// The form in which words after a tool reach the model: all three agents read this one.
fn answer(event: &str, text: &str) -> Value {
    json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } })
}

/// All of stdin, from an agent that may not close it.
fn input() -> Result<Vec<u8>, Failure> {
    let (sender, read) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let done = std::io::stdin().lock().take(MAX_INPUT_BYTES).read_to_end(&mut bytes);
        let _ = sender.send(done.map(|_| bytes));
    });
    match read.recv_timeout(INPUT_PATIENCE) {
        Ok(done) => Ok(done?),
        Err(_) => Err(Failure::new(Exit::Usage, "nobody says what was edited")),
    }
}

/// The touched files that are there, by the workspace they are in; those in none are left out.
fn by_workspace(event: &Event, invocation: &Invocation) -> BTreeMap<Utf8PathBuf, Vec<Utf8PathBuf>> {
    let here = std::env::current_dir().ok().and_then(|folder| Utf8PathBuf::from_path_buf(folder).ok());
    let folder = event.folder.clone().or(here).unwrap_or_default();
    let named = invocation.named_root();
    let session = match named {
        Some(root) => canonical_root(root).ok(),
        None => folder.canonicalize_utf8().ok().and_then(|folder| marked_root(&folder)),
    };
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for file in &event.files {
        let Ok(file) = folder.join(file).canonicalize_utf8() else {
            continue;
        };
        let elsewhere = || marked_root(file.parent().unwrap_or(Utf8Path::new("/")));
        let root = match &session {
            Some(session) if file.starts_with(session) => Some(session.clone()),
            _ if named.is_some() => None,
            _ => elsewhere(),
        };
        if let Some(root) = root {
            found.entry(root).or_default().push(file);
        }
    }
    found
}
