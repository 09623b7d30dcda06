//! The aims of the `explore` surface on Django, beside one run of ripgrep over the same tree.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_testkit::{RealProject, Sandbox};

use crate::error::BenchError;
use crate::mcp_session::McpSession;
use crate::measure::{Times, beside, shown};
use crate::output::{log, print};
use crate::peers::agent::tenon_settings;
use crate::peers::anonymous_mib;
use crate::peers::install;
use crate::product::Product;
use crate::source_sample;

const STARTS: usize = 5;
const CALLS: usize = 100;
const SETTLED_AFTER: Duration = Duration::from_secs(5);
const PATTERN: &str = "raise Http404(";

pub(super) fn measure(tenon: &Path) -> Result<(), BenchError> {
    log("aims of explore");
    let rg = install::ripgrep()?;
    let sandbox = django();
    print("\n## Aims of `explore` on Django\n\n| what | measured | beside it | aim |\n|---|---|---|---|");
    let row = |what: &str, measured: &str, beside: &str, aim: &str| {
        print(&format!("| {what} | {measured} | {beside} | {aim} |"));
    };
    let mut searched = Times::default();
    let mut search = || -> Result<(), BenchError> {
        let mut command = sandbox.command(&rg);
        let status = searched.time(|| {
            command.args(["-n", "-F", PATTERN, "."]).stdin(Stdio::null()).stdout(Stdio::null()).status()
        })?;
        if status.success() { Ok(()) } else { Err(BenchError::new("`rg` found nothing")) }
    };
    search()?;
    let (mut cold, mut stored) = (Times::default(), Times::default());
    for _ in 0..STARTS {
        let sandbox = django();
        let product = Product { tenon, sandbox: &sandbox };
        for times in [&mut cold, &mut stored] {
            times.time(|| first_find(&product))?;
            product.stop()?;
        }
        search()?;
    }
    let product = Product { tenon, sandbox: &sandbox };
    let after_parsing = daemon_with_all_files(&product)?;
    let with_index = daemon_with_all_files(&product)?;
    let mut session = McpSession::start(sandbox.command(tenon).args(["mcp", "--surface", "explore,edit"]))?;
    let listed = session.list_tools()?.to_string().len();
    let mut timed = |tool: &str, arguments: Value, part: &str| -> Result<Times, BenchError> {
        Times::of(CALLS, || {
            let answer = session.call(tool, &arguments)?;
            if answer.text.contains(part) {
                Ok(())
            } else {
                Err(BenchError::new(format!("`{tool}`: {}", answer.text)))
            }
        })
    };
    let found = timed("find", json!({ "name": "QuerySet.filter" }), "query.py:")?;
    let outlined = timed("outline", json!({ "path": "django/urls/resolvers.py" }), "URLResolver")?;
    let matched = timed("search", json!({ "pattern": PATTERN }), "django/shortcuts.py")?;
    for _ in 0..20 {
        search()?;
    }
    drop(session);
    product.stop()?;
    let files = source_sample::files(&sandbox, "py").len();
    let empty = empty_daemon(tenon)?;
    row(
        "start of the daemon until the first `find`, no stored index",
        &shown(cold.median()),
        &beside("rg", &cold, &searched),
        "700 ms",
    );
    row("the same, stored index", &shown(stored.median()), &beside("rg", &stored, &searched), "150 ms");
    row("`find`, warm", &p50_p95(&found), "", "1 ms");
    row("`outline` of a file, warm", &p50_p95(&outlined), "", "1 ms");
    row("`search`, warm", &p50_p95(&matched), &beside("rg", &matched, &searched), "1.5× rg");
    for (what, mib) in [("stored index", with_index), ("all files parsed just now", after_parsing)] {
        let index = mib - empty;
        let megabytes = index * 1024.0 * 1024.0 / 1e6 / files as f64 * 1000.0;
        row(
            &format!("memory of the daemon per 1,000 files, {what}"),
            &format!("{megabytes:.1} MB"),
            &format!("{index:.1} MiB for {files} files, with what watches the tree"),
            "8 MB",
        );
    }
    row("bytes of the tool list of `explore` and `edit`", &listed.to_string(), "", "8,000");
    Ok(())
}

fn django() -> Sandbox {
    let sandbox = Sandbox::with_project(RealProject::Django);
    source_sample::make_old(sandbox.root());
    sandbox.write_user_config(&tenon_settings(&sandbox));
    sandbox
}

fn p50_p95(times: &Times) -> String {
    format!("{} (p95 {})", shown(times.median()), shown(times.within(0.95)))
}

/// Starts a bridge, which starts the daemon, and asks once.
fn first_find(product: &Product<'_>) -> Result<(), BenchError> {
    let start = Instant::now();
    let mut session =
        McpSession::start(product.sandbox.command(product.tenon).args(["mcp", "--surface", "explore"]))?;
    let answer = session.call("find", &json!({ "name": "QuerySet.filter" }))?;
    if answer.text.contains("django/db/models/query.py:") {
        return Ok(());
    }
    Err(BenchError::new(format!("first `find` after {}: {}", shown(start.elapsed()), answer.text)))
}

/// Memory of a new daemon that knows all files, before the first search, which needs buffers.
fn daemon_with_all_files(product: &Product<'_>) -> Result<f64, BenchError> {
    let sandbox = product.sandbox;
    let mut session =
        McpSession::start(sandbox.command(product.tenon).args(["mcp", "--surface", "explore,edit"]))?;
    // All files are read, then the index is written, and freed memory is returned.
    let start = Instant::now();
    while start.elapsed() < SETTLED_AFTER {
        session.call("find", &json!({ "name": "QuerySet.filter" }))?;
    }
    let mib = daemon_mib(sandbox);
    drop(session);
    product.stop()?;
    Ok(mib)
}

/// Memory of a daemon whose index has one file.
fn empty_daemon(tenon: &Path) -> Result<f64, BenchError> {
    let sandbox = Sandbox::with_tree("//- one.py\ndef one():\n    pass\n");
    sandbox.write_user_config(&tenon_settings(&sandbox));
    let product = Product { tenon, sandbox: &sandbox };
    let mut session = McpSession::start(sandbox.command(tenon).args(["mcp", "--surface", "explore,edit"]))?;
    session.call("find", &json!({ "name": "one" }))?;
    let mib = daemon_mib(&sandbox);
    drop(session);
    product.stop()?;
    Ok(mib)
}

/// Memory of the daemon alone, without the pages of the program: a language server may run beside it.
fn daemon_mib(sandbox: &Sandbox) -> f64 {
    let processes = sandbox.processes();
    processes
        .iter()
        .filter(|process| process.command.iter().any(|part| part == "daemon"))
        .map(anonymous_mib)
        .sum()
}
