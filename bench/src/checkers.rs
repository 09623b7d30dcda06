//! The four type checkers for Python on Django, each through Tenon: first definition, references, a first check, memory, and
//! what they find.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_testkit::direct_server::FilePosition;
use tenon_testkit::{RealProject, Sandbox};

use crate::error::BenchError;
use crate::mcp_session::McpSession;
use crate::measure::{Times, shown};
use crate::output::{log, print};
use crate::peers::proportional_mib;
use crate::product::Product;

const CHECKERS: [&str; 4] = ["pyright", "basedpyright", "ty", "pyrefly"];
/// The file that is checked, one of the largest.
const CHECKED: &str = "django/db/models/query.py";
const LISTS: usize = 10;
/// How long a server may take to load the project.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Measure one checker
    #[arg(long, value_name = "ID")]
    only: Option<String>,
}

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    print("# Type checkers for Python on Django, through Tenon\n");
    let columns = "| | first definition | references of `cached_property` | first check of `db/models/query.py` | findings in it | memory |";
    print(columns);
    print("|---|---|---|---|---|---|");
    for server in CHECKERS.into_iter().filter(|id| options.only.as_deref().is_none_or(|only| only == *id)) {
        log(server);
        measure(tenon, server)?;
    }
    Ok(())
}

fn measure(tenon: &Path, server: &str) -> Result<(), BenchError> {
    let sandbox = Sandbox::with_project(RealProject::Django);
    let switch = |id: &str| format!("[servers.{id}]\nenabled = {}\n", id == server);
    sandbox.write_user_config(&(CHECKERS.map(switch).concat() + &switch("ruff")));
    // Some of them run code of the workspace.
    let trusted = sandbox.command(tenon).arg("trust").output()?;
    if !trusted.status.success() {
        return Err(BenchError::new(String::from_utf8_lossy(&trusted.stderr)));
    }
    let symbol = RealProject::Django.sample_symbol();
    let declared = FilePosition::find(&sandbox, symbol.file, symbol.line, symbol.name);
    let used = FilePosition::find(&sandbox, symbol.user, symbol.use_line, symbol.name);
    let start = Instant::now();
    let mut session = McpSession::start(sandbox.command(tenon).args(["mcp", "--surface", "nav"]))?;
    let is_declared = |found: &Value| {
        let first = &found["locations"][0];
        first["file"] == declared.file && first["line"] == declared.line + 1
    };
    until(server, &mut session, "lsp_goto_definition", &at(used), is_declared)?;
    let first = start.elapsed();

    let all = |found: &Value| found["locations"].as_array().is_some_and(|list| list.len() > 1);
    until(server, &mut session, "lsp_find_references", &at(declared), all)?;
    let total = count_references(&mut session, declared)?;
    let times = Times::of(LISTS, || session.call("lsp_find_references", &at(declared)).map(drop))?;

    let start = Instant::now();
    let checked = sandbox.command(tenon).args(["check", CHECKED, "--format", "json"]).output()?;
    let check = start.elapsed();
    let report: Value = serde_json::from_slice(&checked.stdout).unwrap_or_default();
    let servers = sandbox.processes().into_iter().filter(|process| {
        let program = process.command.first().map(String::as_str).unwrap_or_default();
        !program.ends_with("/tenon") && !process.command.iter().any(|part| part == "daemon")
    });
    let mib: f64 = servers.map(|process| proportional_mib(&process)).sum();
    let counts = &report["counts"];
    let count = |name: &str| counts[name].as_u64().unwrap_or_default();
    print(&format!(
        "| {server} | {} | {total} in {} | {} | {} errors, {} warnings{} | {mib:.0} MiB |",
        shown(first),
        shown(times.median()),
        shown(check),
        count("error"),
        count("warning"),
        if report["complete"] == true { "" } else { " (incomplete)" },
    ));
    drop(session);
    Product { tenon, sandbox: &sandbox }.stop()
}

/// The number of references on all pages.
fn count_references(session: &mut McpSession, declared: FilePosition<'_>) -> Result<usize, BenchError> {
    let mut total = 0;
    loop {
        let mut arguments = at(declared);
        arguments["offset"] = json!(total);
        let page = session.call("lsp_find_references", &arguments)?;
        match page.structured["locations"].as_array().map_or(0, Vec::len) {
            0 => return Ok(total),
            found => total += found,
        }
    }
}

/// Asks until the answer fits: a server that is loading answers with an error.
fn until(
    server: &str,
    session: &mut McpSession,
    tool: &str,
    arguments: &Value,
    fits: impl Fn(&Value) -> bool,
) -> Result<(), BenchError> {
    let start = Instant::now();
    loop {
        let answer = session.call(tool, arguments)?;
        if !answer.is_error && fits(&answer.structured) {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            return Err(BenchError::new(format!("{server}: {tool}: {}", answer.text)));
        }
    }
}

fn at(place: FilePosition<'_>) -> Value {
    json!({ "file": place.file, "line": place.line + 1, "character": place.character + 1 })
}
