//! `tenon hook`: reports to agents what their edits broke, and installs the hook that does so.
//!
//! The hook never fails an edit, which is already made: on any error it prints nothing on stdout and exits with 0. It
//! writes one line to stderr for debugging.

use std::io::Read;
use std::sync::mpsc;
use std::time::Duration;

use camino::Utf8PathBuf;
use clap::Subcommand;
use serde_json::{Value, json};
use tenon_server::workspace::files_by_root;

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

/// Time limit for reading the event from stdin.
const INPUT_TIMEOUT: Duration = Duration::from_secs(5);
/// Size limit for the event, which may contain whole files.
const MAX_INPUT_BYTES: u64 = 64 * 1024 * 1024;
/// Time limit for the daemon, including its start. The setting `edit.wait_ms` comes on top.
const DAEMON_TIMEOUT: Duration = Duration::from_secs(18);

/// Report to agents which errors their edits cause
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

/// Read an edit event from stdin and print the errors that the edit caused
///
/// Agents run this. Reads the JSON that Claude Code, Codex and Gemini CLI send to a hook after a tool call, checks the edited
/// files through the workspace's daemon, and prints the diagnostics for the model. Never fails an edit: if a file cannot be
/// checked, prints nothing and exits with 0.
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
    let input = read_stdin()?;
    let event = Event::parse(&input).map_err(|error| Failure::of(Exit::Usage, &error))?;
    let Some(event) = event else {
        return Ok(());
    };
    let mut texts = Vec::new();
    let current = std::env::current_dir().ok().and_then(|folder| Utf8PathBuf::from_path_buf(folder).ok());
    let folder = event.folder.clone().or(current).unwrap_or_default();
    for (root, files) in files_by_root(&event.files, &folder, invocation.explicit_root()) {
        texts.push(daemon_client::edit_diagnostics(invocation, &root, files, DAEMON_TIMEOUT)?);
    }
    texts.retain(|text| !text.is_empty());
    if !texts.is_empty() {
        invocation.print(hook_output(event.name, &texts.join("\n")).to_string())?;
    }
    Ok(())
}

/// The output that passes text to the model. All three agents accept this format.
fn hook_output(event: &str, text: &str) -> Value {
    json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } })
}

/// Reads stdin to its end, with a time limit because an agent may keep it open.
fn read_stdin() -> Result<Vec<u8>, Failure> {
    let (sender, read) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let done = std::io::stdin().lock().take(MAX_INPUT_BYTES).read_to_end(&mut bytes);
        let _ = sender.send(done.map(|_| bytes));
    });
    match read.recv_timeout(INPUT_TIMEOUT) {
        Ok(done) => Ok(done?),
        Err(_) => {
            let seconds = INPUT_TIMEOUT.as_secs();
            Err(Failure::new(Exit::Usage, format!("no complete event on stdin within {seconds} s")))
        }
    }
}
