//! Overhead of `tenon hook post-edit`: no language server handles the edited file, so only process start, daemon call and
//! exit are measured.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tenon_testkit::Sandbox;

use crate::error::BenchError;
use crate::measure::{Times, row, shown};
use crate::output::log;
use crate::product::Product;

const RUNS: usize = 100;

/// Adds a row to the table of edits.
pub(crate) fn measured(tenon: &Path) -> Result<(), BenchError> {
    log("the hook by itself");
    let sandbox = Sandbox::with_tree("//- tenon.toml\n//- notes.unknown\nwords\n");
    let product = Product { tenon, sandbox: &sandbox };
    let event = json!({
        "hook_event_name": "PostToolUse", "cwd": sandbox.root(), "tool_name": "Write",
        "tool_input": { "file_path": sandbox.root().join("notes.unknown"), "content": "words\n" },
    });
    let input = event.to_string();
    let run = |args: &[&str]| -> Result<(), BenchError> {
        let mut command = sandbox.command(tenon);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        // `--version` does not read stdin.
        let _ = child.stdin.take().expect("stdin was piped above").write_all(input.as_bytes());
        let output = child.wait_with_output()?;
        match output.status.success() && output.stderr.is_empty() {
            true => Ok(()),
            false => Err(BenchError::new(format!("`tenon {}` answered {output:?}", args.join(" ")))),
        }
    };
    // The first run starts the daemon.
    run(&["hook", "post-edit"])?;
    let (bare, hook) = Times::of_both(RUNS, || run(&["--version"]), || run(&["hook", "post-edit"]))?;
    let spread = |times: &Times| format!("{} (p95 {})", shown(times.median()), shown(times.within(0.95)));
    let beside = format!("`tenon --version` takes {}", spread(&bare));
    row("the hook's own cost", &spread(&hook), &beside, &shown(Duration::from_millis(30)));
    product.stop()
}
