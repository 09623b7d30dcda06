//! The web console with 10,000 files, 100,000 tasks and events: pages, updates and idle cost.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_testkit::console::SignedIn;
use tenon_testkit::{PATIENCE, Sandbox, large_store};

use crate::error::BenchError;
use crate::mcp_session::McpSession;
use crate::measure::{Times, beside, idle, row, shown, table};
use crate::output::log;
use crate::product::Product;

const FILES: usize = 10_000;

/// Requests per page.
const PAGE_RUNS: usize = 50;

/// Writes that an open page waits for.
const UPDATE_RUNS: usize = 30;

/// How long the processor time of an idle daemon is counted.
const IDLE: Duration = Duration::from_secs(10);

/// A tool of the store and arguments.
type Question = (&'static str, Value);

/// The pages with their paths, and the question to the store that each one depends on.
fn pages() -> Vec<(&'static str, &'static str, Option<Question>)> {
    let board = json!({"kind": "task", "status": "todo", "limit": 15});
    let graph =
        json!({"branch": "main", "doc": "graph", "limit": 200, "edges_limit": 1000, "max_chars": 1_000_000});
    let task = json!({"task": "TASK-50000", "limit": 100});
    vec![
        ("Overview", "", None),
        ("Problems", "problems", None),
        ("Code, folder", "code", None),
        ("Code, name", "code?q=total_42", None),
        ("Code, file", "code?file=part_0/module_42.py", None),
        ("Tasks, 100,000", "tasks", Some(("tasks_context", board))),
        ("Task", "tasks?task=TASK-50000", Some(("tasks_resume", task))),
        ("Memory, graph of 100,000", "memory", Some(("memory_graph_query", graph))),
        ("Context", "context", None),
        ("Activity", "activity", None),
        ("Workspace", "workspace", None),
        ("Connect", "connect", None),
    ]
}

pub(crate) fn run(tenon: &Path) -> Result<(), BenchError> {
    let sandbox = Sandbox::new();
    // Language servers would be measured too.
    let off =
        ["pyright", "ty", "ruff", "basedpyright", "pyrefly"].iter().fold(String::new(), |mut text, id| {
            let _ = writeln!(text, "[servers.{id}]\nenabled = false");
            text
        });
    sandbox.write_user_config(&off);
    write_files(&sandbox)?;
    let product = Product { tenon, sandbox: &sandbox };
    let mcp = |more: &[&str]| -> Command {
        let mut command = sandbox.command(tenon);
        command.args(["mcp", "--surface", "tasks,memory"]).args(more);
        command
    };
    let mut agent = McpSession::start(&mut mcp(&[]))?;
    for (tool, arguments) in large_store::first_calls() {
        agent.call(tool, &arguments)?;
    }
    log("filling the store");
    large_store::fill(&sandbox.dir("data").join("tenon/work.sqlite3"));
    let user = SignedIn::with(&mut sandbox.command(tenon));
    wait_for_index(&user)?;

    table("The web console: 10,000 files, 100,000 tasks and events, a graph of 100,000 nodes");
    let mut connection = user.connect();
    for (name, path, question) in pages() {
        let request = user.request(&format!("/console/{path}"));
        let mut ask = || match connection.send(&request)?.status {
            200 => Ok(()),
            status => Err(BenchError::new(format!("{path}: status {status}"))),
        };
        let (times, compared) = match question {
            None => (Times::of(PAGE_RUNS, &mut ask)?, String::new()),
            Some((tool, arguments)) => {
                let (page, store) =
                    Times::of_both(PAGE_RUNS, &mut ask, || agent.call(tool, &arguments).map(drop))?;
                let compared = beside(&format!("`{tool}` over stdio"), &page, &store);
                (page, compared)
            }
        };
        row(name, &medians(&times), &compared, "20 ms");
    }

    let mut other = McpSession::start(&mut mcp(&["--no-daemon"]))?;
    for (name, writer) in
        [("update after a write of an agent", &mut agent), ("of another process", &mut other)]
    {
        row(name, &medians(&updates(&user, writer)?), "", "300 ms");
    }
    drop((agent, other));
    idle_rows(&product, &user)?;
    product.stop()
}

fn medians(times: &Times) -> String {
    format!("{}, 95%: {}", shown(times.median()), shown(times.within(0.95)))
}

fn write_files(sandbox: &Sandbox) -> Result<(), BenchError> {
    for number in 0..FILES {
        let folder = sandbox.root().join(format!("part_{}", number / 100));
        std::fs::create_dir_all(&folder)?;
        let text = format!(
            "\"\"\"Module {number}.\"\"\"\n\n\ndef total_{number}(values):\n    return sum(values)\n\n\nclass Order{number}:\n    \
             def price(self):\n        return total_{number}([1, 2])\n"
        );
        std::fs::write(folder.join(format!("module_{number}.py")), text)?;
    }
    Ok(())
}

/// Waits until the syntax index has read all files.
fn wait_for_index(user: &SignedIn) -> Result<(), BenchError> {
    let deadline = Instant::now() + PATIENCE;
    while !user.page("/console/code").contains("in 10,000 files") {
        if Instant::now() > deadline {
            return Err(BenchError::new("the index did not read all files"));
        }
    }
    Ok(())
}

/// From a write until an open page has heard of it and has read itself again.
fn updates(user: &SignedIn, writer: &mut McpSession) -> Result<Times, BenchError> {
    let mut events = user.events();
    events.until("event: hello");
    let mut connection = user.connect();
    let request = user.request("/console/tasks?task=TASK-001").header("x-tenon-live", "1");
    let mut times = Times::default();
    for number in 0..UPDATE_RUNS {
        let note = format!("note {number} of {}", std::process::id());
        let start = Instant::now();
        writer.call("tasks_note", &json!({"task": "TASK-001", "note": note}))?;
        let written = start.elapsed();
        loop {
            events.until("work");
            let page = connection.send(&request)?;
            if String::from_utf8_lossy(&page.body).contains(&note) {
                break;
            }
        }
        times.add(start.elapsed().saturating_sub(written));
    }
    Ok(times)
}

/// The processor time of the daemon without and with an open page.
fn idle_rows(product: &Product<'_>, user: &SignedIn) -> Result<(), BenchError> {
    let status = product.sandbox.command(product.tenon).args(["status", "--json"]).output()?;
    let status: Value =
        serde_json::from_slice(&status.stdout).map_err(|error| BenchError::new(error.to_string()))?;
    let pid = status["pid"].as_u64().ok_or_else(|| BenchError::new("the daemon does not run"))?;
    let counted = || -> Result<String, BenchError> {
        let before = processor_ticks(pid)?;
        idle(IDLE);
        let ticks = processor_ticks(pid)? - before;
        // A tick is 10 ms on Linux.
        Ok(format!("{} ms in {} s", ticks * 10, IDLE.as_secs()))
    };
    // The watching task of the last page ends with its next look.
    idle(Duration::from_secs(1));
    row("processor time, no page open", &counted()?, "", "none");
    let mut events = user.events();
    events.until("event: hello");
    row("processor time, one idle page", &counted()?, "", "");
    Ok(())
}

/// User and system time of a process, in ticks of the clock.
fn processor_ticks(pid: u64) -> Result<i64, BenchError> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<i64> = after_name.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    // The state is a letter, so the fields begin with the parent: user time is the eleventh, system time the twelfth.
    Ok(fields.get(10).copied().unwrap_or_default() + fields.get(11).copied().unwrap_or_default())
}
