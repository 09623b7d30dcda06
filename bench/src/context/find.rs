//! Speed of `context.find` over many documents: first answer without and with a stored index, warm answers, an edit, memory.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use serde_json::json;
use tenon_testkit::Sandbox;

use super::{Random, mib};
use crate::error::BenchError;
use crate::mcp_session::McpSession;
use crate::measure::{Times, row, shown, table};
use crate::output::log;
use crate::source_sample::make_old;

const SIZES: [usize; 2] = [10_000, 100_000];
const DOCUMENT_BYTES: usize = 2048;
const WARM_CALLS: usize = 200;
const EDITS: usize = 20;

pub(super) fn run(tenon: &Path) -> Result<(), BenchError> {
    table("`context.find`, documents of 2 KB");
    for size in SIZES {
        let what = |what: &str| format!("{size} documents: {what}");
        log(&what("writing"));
        let sandbox = Sandbox::new();
        let vocabulary = write(&sandbox, size)?;
        let start_session = || -> Result<McpSession, BenchError> {
            let mut command = sandbox.command(tenon);
            McpSession::start(command.args(["mcp", "--surface", "context"]))
        };
        let start = Instant::now();
        let mut session = start_session()?;
        ask(&mut session, "needle")?;
        row(&what("first answer, no stored index"), &shown(start.elapsed()), "", "");
        while !ask(&mut session, "needle")? {}
        row(&what("first answer from all files, no stored index"), &shown(start.elapsed()), "", "");
        let mut stop = sandbox.command(tenon);
        drop(session);
        stop.arg("stop").stdout(Stdio::null()).stderr(Stdio::null()).status()?;

        let start = Instant::now();
        let mut session = start_session()?;
        while !ask(&mut session, "needle")? {}
        row(
            &what("first answer from all files, stored index"),
            &shown(start.elapsed()),
            "start of the daemon included",
            "300 ms",
        );

        let mut random = Random(7);
        let questions: Vec<String> = (0..50)
            .map(|_| {
                (0..5)
                    .map(|_| vocabulary[random.skewed(vocabulary.len())].as_str())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        let mut next = 0;
        let times = Times::of(WARM_CALLS, || {
            next += 1;
            ask(&mut session, &questions[next % questions.len()]).map(drop)
        })?;
        let spread = format!("{} (95 %: {})", shown(times.median()), shown(times.within(0.95)));
        let aim = if size == 10_000 { "5 ms" } else { "20 ms" };
        row(&what("warm answer, five words"), &spread, "", aim);

        let mut times = Times::default();
        for edit in 0..EDITS {
            let word = format!("edited{edit}word");
            fs::write(sandbox.root().join("sources/0/0.md"), format!("# Edited\n\nNow with {word}.\n"))?;
            let text = times.time(|| session.call("context.find", &json!({ "query": word })))?.text;
            if !text.contains("sources/0/0.md") {
                return Err(BenchError::new(format!("an edit is not visible: {text}")));
            }
        }
        row(
            &what("answer after an edit of one file"),
            &shown(times.median()),
            "edit visible in every answer",
            "",
        );

        let daemon: u64 =
            sandbox.processes().iter().map(|process| process.resident_kib()).max().unwrap_or_default();
        let bytes = (size * DOCUMENT_BYTES) as u64;
        let ratio = (daemon * 1024) as f64 / bytes as f64;
        let beside = format!("documents {}, {ratio:.2}×", mib(bytes));
        row(&what("memory of the daemon"), &mib(daemon * 1024), &beside, "");
        drop(session);
        let mut stop = sandbox.command(tenon);
        stop.arg("stop").stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    }
    Ok(())
}

/// Whether all files were read for the answer.
fn ask(session: &mut McpSession, query: &str) -> Result<bool, BenchError> {
    let answer = session.call("context.find", &json!({ "query": query }))?;
    let is_partial = answer.text.contains("ask again");
    if answer.is_error || !is_partial && !answer.text.contains("sources/") {
        return Err(BenchError::new(format!("`context.find` answered {}", answer.text)));
    }
    Ok(!is_partial)
}

/// Documents with headings and skewed words. Returns the words.
fn write(sandbox: &Sandbox, size: usize) -> Result<Vec<String>, BenchError> {
    let mut random = Random(1);
    let vocabulary: Vec<String> = (0..20_000).map(|_| random.word()).collect();
    for n in 0..size {
        let folder = sandbox.root().join("sources").join((n % 100).to_string());
        fs::create_dir_all(&folder)?;
        let mut text =
            format!("# {} {}\n\n", vocabulary[random.below(20_000)], vocabulary[random.below(20_000)]);
        if n == size / 2 {
            text.push_str("needle ");
        }
        while text.len() < DOCUMENT_BYTES - 12 {
            text.push_str(&vocabulary[random.skewed(vocabulary.len())]);
            text.push(if random.below(12) == 0 { '\n' } else { ' ' });
        }
        fs::write(folder.join(format!("{n}.md")), text)?;
    }
    make_old(sandbox.root());
    Ok(vocabulary)
}
