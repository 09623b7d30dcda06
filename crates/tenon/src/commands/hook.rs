//! `tenon hook`: reports to agents what their edits and commands broke, and what they were doing when a session starts.
//! `tenon connect` installs the hooks.
//!
//! The hook never fails an edit, which is already made: on any error it prints nothing on stdout and exits with 0. It
//! writes one line to stderr for debugging.

use std::io::{IsTerminal, Read};
use std::sync::mpsc;
use std::time::Duration;

use camino::Utf8PathBuf;
use clap::Subcommand;
use tenon_contract::visible::visible;
use tenon_server::daemon::protocol::EditedFiles;
use tenon_server::workspace::{files_by_root, root_of_folder};

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

mod event;
#[cfg(test)]
mod event_fuzzing;
mod resume;

use event::{Event, EventKind, NamedFile};

/// Time limit for reading the event from stdin.
const INPUT_TIMEOUT: Duration = Duration::from_secs(5);
/// Size limit for the event, which may contain whole files.
const MAX_INPUT_BYTES: u64 = 64 * 1024 * 1024;
/// Time limit for the daemon, including its start. The setting `edit.wait_ms` comes on top.
const DAEMON_TIMEOUT: Duration = Duration::from_secs(18);

/// Report to agents which errors their edits cause, and which task they were working on
///
/// `tenon connect AGENT` installs the hooks that run these commands.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    PostEdit(PostEdit),
    Stop(Stop),
    SessionStart(SessionStart),
    PreCompact(PreCompact),
}

/// Read a tool event from stdin and print the errors that the tool caused
///
/// Agents run this. Reads the JSON that an agent sends to a hook after a tool call, checks the edited files through the
/// workspace's daemon, or after a shell command the files that changed since the last report, and prints what is new for the
/// model. Never fails an edit: if a file cannot be checked, prints nothing and exits with 0.
#[derive(Debug, clap::Args)]
struct PostEdit {}

/// Read the event of a turn's end from stdin and print the errors that are new since the last report
///
/// Agents run this. Covers all files that any program changed since the last report; without an earlier report, since the last
/// commit. Prints nothing if nothing is new, or if the agent continues because of a hook already.
#[derive(Debug, clap::Args)]
struct Stop {}

/// Read the event of a session's start from stdin and print the task that was being worked on
///
/// Agents run this. The text names the task, the open step, the last decision and the next action, in at most 1,200 bytes. On a
/// terminal, where nothing is read, it is printed plainly. Prints nothing if no task is open.
#[derive(Debug, clap::Args)]
struct SessionStart {}

/// Read the event before a compaction from stdin and print the task that is being worked on
///
/// Agents run this. The same text as for `session-start`. Claude Code adds it to the instructions for its summary.
#[derive(Debug, clap::Args)]
struct PreCompact {}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    match args.command {
        Command::SessionStart(SessionStart {}) | Command::PreCompact(PreCompact {})
            if std::io::stdin().is_terminal() =>
        {
            let root = invocation.root(None)?;
            invocation.print_lines(resume::text(&root, invocation)?)?;
            Ok(Exit::Success)
        }
        Command::PostEdit(PostEdit {})
        | Command::Stop(Stop {})
        | Command::SessionStart(SessionStart {})
        | Command::PreCompact(PreCompact {}) => {
            if let Err(failure) = report(invocation) {
                invocation.eprint(format!("tenon hook: {failure}"));
            }
            Ok(Exit::Success)
        }
    }
}

/// Reports what an event says; all commands accept all events.
fn report(invocation: &mut Invocation) -> Result<(), Failure> {
    let input = read_stdin()?;
    let event = Event::parse(&input).map_err(|error| Failure::of(Exit::Usage, &error))?;
    let Some(event) = event else {
        return Ok(());
    };
    let current = std::env::current_dir().ok().and_then(|folder| Utf8PathBuf::from_path_buf(folder).ok());
    let folder = event.folder.clone().or(current).unwrap_or_default();
    let mut texts = Vec::new();
    match &event.kind {
        EventKind::Edit(files) => {
            let paths = |files: Vec<&NamedFile>| -> Vec<Utf8PathBuf> {
                files.into_iter().map(|file| file.path.clone()).collect()
            };
            let created = paths(files.iter().filter(|file| file.is_new).collect());
            let mut created = files_by_root(&created, &folder, invocation.explicit_root());
            let files = paths(files.iter().collect());
            for (root, files) in files_by_root(&files, &folder, invocation.explicit_root()) {
                let edited = EditedFiles { files, created: created.remove(&root).unwrap_or_default() };
                texts.push(daemon_client::edit_diagnostics(invocation, &root, edited, DAEMON_TIMEOUT)?);
            }
        }
        EventKind::Session => {
            let found = root_of_folder(&folder, invocation.explicit_root());
            let root = found.map_or_else(|| invocation.root(Some(&folder)), Ok)?;
            texts.push(resume::text(&root, invocation)?);
        }
        EventKind::Shell | EventKind::Stop => {
            if let Some(root) = root_of_folder(&folder, invocation.explicit_root()) {
                // An agent that stops is kept going only for news.
                let only_new = event.kind == EventKind::Stop;
                texts.push(daemon_client::change_diagnostics(invocation, &root, only_new, DAEMON_TIMEOUT)?);
            }
        }
    }
    texts.retain(|text| !text.is_empty());
    if !texts.is_empty() {
        // Agents show the text to people.
        let lines = texts.iter().flat_map(|text| text.lines()).map(visible);
        let text = lines.collect::<Vec<_>>().join("\n");
        invocation.print_data(event.name.output(&text))?;
    }
    Ok(())
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
