//! Time from the call of `edit_file` to its answer with diagnostics, in turns with the bare language server
//! (`didChange` until its final diagnostics for the same text).

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use tenon_testkit::direct_server::DirectServer;
use tenon_testkit::mcp_client::ToolResult;
use tenon_testkit::{McpClient, Sandbox};

use crate::error::BenchError;
use crate::hook;
use crate::measure::{Times, row, shown, table};
use crate::output::log;
use crate::subject::{SUBJECTS, Subject};

const EDITS: usize = 20;
/// How long a server may take to load its project.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(tenon: &Path) -> Result<(), BenchError> {
    table("Edits");
    for subject in SUBJECTS {
        let sandbox = Sandbox::with_project(subject.source);
        measure(tenon, subject, &sandbox)?;
    }
    hook::measured(tenon)
}

fn measure(tenon: &Path, subject: Subject, sandbox: &Sandbox) -> Result<(), BenchError> {
    let name = subject.name();
    log(&name);
    let (_, used) = subject.places(sandbox);
    let sound = format!("{} nothing is wrong here", subject.comment);
    let original = sandbox.tree().read(used.file);
    let text = |wrong: bool| format!("{original}{}\n", if wrong { subject.wrong } else { &sound });
    sandbox.tree().write(used.file, &text(false));
    let mut bare = DirectServer::start(subject.server, sandbox)?;
    bare.open(used.file)?;
    let mut client = session(tenon, subject, sandbox)?;
    let mut edit = |wrong: bool| {
        let (old, new) =
            if wrong { (sound.as_str(), subject.wrong) } else { (subject.wrong, sound.as_str()) };
        let arguments = json!({ "file": used.file, "old_text": old, "new_text": new });
        let answer = client.call_tool("edit_file", arguments);
        answer.map_err(|error| BenchError::new(format!("`edit_file` answered {error:?}")))
    };
    let last = text(false).lines().count() as u64;
    let right = |answer: &ToolResult, wrong: bool| {
        let at_last = |list: &str| {
            let found = answer.structured[list].as_array();
            found.is_some_and(|found| found.iter().any(|one| one["line"] == last && one["file"] == used.file))
        };
        answer.structured["complete"] == true && at_last(if wrong { "new" } else { "gone" })
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let settled = right(&edit(true)?, true) & right(&edit(false)?, false);
        bare.change_and_check(used.file, &text(true), true)?;
        bare.change_and_check(used.file, &text(false), false)?;
        if settled {
            break;
        }
        if Instant::now() > deadline {
            return Err(BenchError::new(format!("{name}: no complete answer to an edit")));
        }
    }
    let (mut ours, mut theirs, mut unfinished) = (Times::default(), Times::default(), 0);
    for round in 0..EDITS {
        let wrong = round % 2 == 0;
        let answer = ours.time(|| edit(wrong))?;
        unfinished += usize::from(!right(&answer, wrong));
        theirs.time(|| bare.change_and_check(used.file, &text(wrong), wrong))?;
    }
    let over = ours.median().as_secs_f64() / theirs.median().as_secs_f64();
    let mut beside = format!("bare {}, {over:.2}×", shown(theirs.median()));
    if unfinished > 0 {
        beside.push_str(&format!("; {unfinished} of {EDITS} were not complete"));
    }
    row(&format!("{name}: an edit with its answer"), &shown(ours.median()), &beside, "1.15× bare");
    Ok(())
}

/// A session with edits allowed.
fn session(tenon: &Path, subject: Subject, sandbox: &Sandbox) -> Result<McpClient, BenchError> {
    let mut settings = format!("[edit]\nallow = [{:?}]\n", sandbox.root());
    for (id, entry) in subject.servers().as_object().into_iter().flatten() {
        settings.push_str(&format!("[servers.{id}]\nenabled = {}\n", entry["enabled"]));
    }
    sandbox.write_user_config(&settings);
    let mut command = sandbox.command(tenon);
    command.args(["mcp", "--no-daemon", "--surface", "edit"]).stderr(Stdio::null());
    Ok(McpClient::connect(&mut command))
}
