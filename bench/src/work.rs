//! Plans, tasks and memory on SQLite and PostgreSQL: durable writes and paged reads.
//!
//! The baseline of a write is a bare commit of the same bytes by a process behind the same kind of pipe: on SQLite (WAL,
//! `synchronous=FULL`) Python's, on PostgreSQL one `INSERT` by `psql`, which is one round trip. Both are measured in turns with
//! the write. PostgreSQL listens on loopback with `fsync` on. Reads use an imported store of 100,000 notes and three graphs.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};
use tenon_testkit::{Sandbox, postgres};

use crate::error::BenchError;
use crate::json_lines::JsonLines;
use crate::measure::{Times, beside, row, shown, table};
use crate::output::log;

/// Nodes per graph. Each graph has as many edges.
const GRAPHS: [usize; 3] = [1000, 10_000, 100_000];
const NOTES: usize = 100_000;
const NOTE: &str = "The build on the clean machine stops at the linker: libatomic is not among what the image brings. Either the \
    image installs it, or the build stops needing it; the second is three lines in the build script and works for every later image.";

const WRITES: usize = 500;
const READS: usize = 500;
/// Runs of slow reads.
const LONG_READS: usize = 100;

/// Occurs in ten of the notes.
const RARE: &str = "needle";
/// Occurs in every tenth note.
const COMMON: &str = "seldom";

/// Processes that write to one SQLite file at a time, and how often each of them does.
const WRITERS: usize = 16;
const WRITES_OF_EACH: usize = 100;

/// Commits its argument once for each line on stdin.
const BARE: &str = r#"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA synchronous=FULL")
db.execute("CREATE TABLE notes (number INTEGER PRIMARY KEY, content TEXT)")
for line in sys.stdin:
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO notes (content) VALUES (?)", (sys.argv[2],))
    db.execute("COMMIT")
    print("{}", flush=True)
"#;

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Only one of `SQLite` and `PostgreSQL`
    #[arg(long)]
    pub(crate) only: Option<String>,
}

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    let sandbox = Sandbox::new();
    let server = postgres::PostgresServer::new();
    let export = sandbox.root().join("export.jsonl");
    write_export(&export)?;
    table("Plans, tasks and memory");
    for (engine, store) in
        [("SQLite", sandbox.root().join("bench.db").display().to_string()), ("PostgreSQL", server.database())]
    {
        if options.only.as_ref().is_some_and(|only| only != engine) {
            continue;
        }
        let bench = Store { tenon, sandbox: &sandbox, engine, store };
        bench.import(&export)?;
        let mut client = bench.client(&["--no-daemon"])?;
        bench.writes(&mut client)?;
        bench.reads(&mut client)?;
        client.end()?;
        bench.through_the_daemon()?;
        if engine == "SQLite" {
            bench.many_writers()?;
        }
    }
    Ok(())
}

struct Store<'a> {
    tenon: &'a Path,
    sandbox: &'a Sandbox,
    engine: &'static str,
    store: String,
}

impl Store<'_> {
    fn what(&self, what: &str) -> String {
        format!("{}: {what}", self.engine)
    }

    fn tenon(&self, args: &[&str]) -> Command {
        let mut command = self.sandbox.command(self.tenon);
        command.args(args).env("TENON_WORK_STORE", &self.store).env("TENON_WORKSPACE_ID", "bench");
        command.stderr(Stdio::null());
        command
    }

    fn client(&self, args: &[&str]) -> Result<Client, BenchError> {
        let mut lines = JsonLines::start(self.tenon(&["mcp", "--surface", "work,tasks,memory"]).args(args))?;
        lines.initialize()?;
        Ok(Client(lines))
    }

    fn import(&self, export: &Path) -> Result<(), BenchError> {
        log(&self.what("importing"));
        let start = Instant::now();
        let mut command = self.tenon(&["store", "import"]);
        if !command.arg(export).stdout(Stdio::null()).status()?.success() {
            return Err(BenchError::new("the import failed"));
        }
        let rows = NOTES + 2 * GRAPHS.iter().sum::<usize>();
        row(&self.what(&format!("import of {rows} rows")), &shown(start.elapsed()), "", "");
        if !self.is_sqlite() {
            // Otherwise the server does this at any time later, while writes are measured.
            let mut psql = self.sandbox.command("psql");
            psql.args(["--no-psqlrc", "--quiet", "-c", "VACUUM ANALYZE", "-c", "CHECKPOINT", &self.store]);
            psql.stderr(Stdio::null()).status()?;
        }
        Ok(())
    }

    fn writes(&self, client: &mut Client) -> Result<(), BenchError> {
        log(&self.what("writing"));
        let mut baseline = self.baseline("alone")?;
        client.call("tasks_create", &json!({"title": "Plan"}))?;
        let step = |title: &str| json!({"title": title, "success_criteria": ["it is there"]});
        let task = json!({"title": "Build it", "parent": "PLAN-001", "steps": [step("one"), step("two"), step("three")]});
        client.call("tasks_create", &task)?;
        let (notes, commits) = self.notes(client, &mut baseline)?;
        let aim = if self.is_sqlite() { "2× a bare commit" } else { "3× a bare commit" };
        self.row("note", &notes, &beside("a bare commit", &notes, &commits), aim);
        let creates = Times::of(WRITES / 5, || client.call("tasks_create", &task))?;
        self.row(
            "create a task with three steps",
            &creates,
            &beside("a bare commit", &creates, &commits),
            "",
        );
        let mut round = 0;
        let applies = Times::of(WRITES / 10, || {
            round += 1;
            let node = |n| json!({"op": "node_upsert", "id": format!("{round}-{n}"), "type": "fact", "title": "A node", "text": NOTE});
            let ops: Vec<Value> = (0..100).map(node).collect();
            client.call("memory_graph_apply", &json!({"branch": "main", "doc": "applied", "ops": ops}))
        })?;
        self.row("graph apply of 100 nodes", &applies, &beside("a bare commit", &applies, &commits), "");
        Ok(baseline.end()?)
    }

    fn is_sqlite(&self) -> bool {
        self.engine == "SQLite"
    }

    fn baseline(&self, beside: &str) -> Result<JsonLines, BenchError> {
        if !self.is_sqlite() {
            let mut psql = self.sandbox.command("psql");
            psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", &self.store]);
            let mut lines = JsonLines::start(&mut psql)?;
            let table = "CREATE TABLE IF NOT EXISTS bare (number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, content TEXT)";
            lines.ask(&format!("SET client_min_messages = error; {table}; SELECT '{{}}';"))?;
            return Ok(lines);
        }
        let bare = self.sandbox.root().join(format!("bare-{}-{beside}.db", self.engine));
        Ok(JsonLines::start(self.sandbox.command("python3").args(["-c", BARE]).arg(&bare).arg(NOTE))?)
    }

    fn notes(&self, client: &mut Client, baseline: &mut JsonLines) -> Result<(Times, Times), BenchError> {
        let note = json!({"task": "TASK-001", "path": "s:0", "note": NOTE});
        let commit = match self.is_sqlite() {
            true => "commit".to_owned(),
            false => format!("INSERT INTO bare (content) VALUES ('{NOTE}') RETURNING '{{}}';"),
        };
        Times::of_both(WRITES, || client.call("tasks_note", &note), || Ok(baseline.ask(&commit)?))
    }

    /// How long writers wait for each other.
    fn many_writers(&self) -> Result<(), BenchError> {
        log(&self.what("many writers"));
        let mut clients = Vec::new();
        for _ in 0..WRITERS {
            clients.push(self.client(&["--no-daemon"])?);
        }
        let note = json!({"task": "TASK-001", "path": "s:0", "note": NOTE});
        let start = Instant::now();
        let write = &|mut client: Client| {
            let times = Times::of(WRITES_OF_EACH, || client.call("tasks_note", &note))?;
            client.end()?;
            Ok::<Times, BenchError>(times)
        };
        let times = thread::scope(|scope| {
            let threads: Vec<_> =
                clients.into_iter().map(|client| scope.spawn(move || write(client))).collect();
            let mut all = Times::default();
            for thread in threads {
                all.extend(thread.join().map_err(|_| BenchError::new("a writer panicked"))??);
            }
            Ok::<Times, BenchError>(all)
        })?;
        let each = start.elapsed() / u32::try_from(times.len()).unwrap_or(1);
        let spread = format!("{}, longest {}", shown(times.median()), shown(times.within(1.0)));
        let what = format!("note by {WRITERS} processes at once");
        row(&self.what(&what), &spread, &format!("one after the other {}", shown(each)), "none above 5 s");
        Ok(())
    }

    /// The path of an agent: a bridge to a daemon.
    fn through_the_daemon(&self) -> Result<(), BenchError> {
        log(&self.what("writing through the daemon"));
        let mut baseline = self.baseline("daemon")?;
        let mut client = self.client(&[])?;
        let (notes, commits) = self.notes(&mut client, &mut baseline)?;
        self.row("note through the daemon", &notes, &beside("a bare commit", &notes, &commits), "");
        let radar = Times::of(READS, || client.call("tasks_radar", &json!({"task": "TASK-001"})))?;
        self.row("radar through the daemon", &radar, "", "");
        client.end()?;
        baseline.end()?;
        if !self.tenon(&["stop"]).stdout(Stdio::null()).status()?.success() {
            return Err(BenchError::new("the daemon did not stop"));
        }
        Ok(())
    }

    fn reads(&self, client: &mut Client) -> Result<(), BenchError> {
        log(&self.what("reading"));
        // Two are measured in turns.
        let mut client = RefCell::new(client);
        let radar = Times::of(READS, || client.get_mut().call("tasks_radar", &json!({"task": "TASK-001"})))?;
        self.row("radar", &radar, "", "1 ms");
        let page = |size: usize| json!({"branch": "main", "doc": doc(size), "limit": 50});
        for size in GRAPHS {
            let (smallest, this) = (page(GRAPHS[0]), page(size));
            let (times, first) = Times::of_both(
                READS / 2,
                || client.borrow_mut().call("memory_graph_query", &this),
                || client.borrow_mut().call("memory_graph_query", &smallest),
            )?;
            let (beside, aim) = match size == GRAPHS[0] {
                true => (String::new(), ""),
                false => (beside("at 1,000 nodes", &times, &first), "as at 1,000"),
            };
            self.row(&format!("graph query of 50 of {size} nodes"), &times, &beside, aim);
        }
        let client = client.get_mut();
        for size in GRAPHS {
            let validate = json!({"branch": "main", "doc": doc(size)});
            let count = (200_000 / size).clamp(5, LONG_READS);
            let times = Times::of(count, || client.call("memory_graph_validate", &validate))?;
            self.row(&format!("graph validate of {size} nodes"), &times, "", "");
        }
        for (kind, query) in
            [("a word in ten", RARE), ("a word in all", "linker"), ("a word in none", "absentee")]
        {
            let times = Times::of(LONG_READS, || client.call("memory_search", &json!({"query": query})))?;
            self.row(&format!("search of {NOTES} notes, {kind}"), &times, "", "");
        }
        for (kind, query, aim) in [
            ("a word in ten", RARE, "5 ms"),
            ("a word in every tenth", COMMON, "5 ms"),
            ("a question of six words", "why does the seldom clean build need a needle image", ""),
        ] {
            let times = Times::of(LONG_READS, || client.recall(&json!({"query": query})))?;
            self.row(&format!("recall from {NOTES} notes, {kind}"), &times, "", aim);
        }
        Ok(())
    }

    fn row(&self, what: &str, times: &Times, beside: &str, aim: &str) {
        let spread = format!("{} (95 %: {})", shown(times.median()), shown(times.within(0.95)));
        row(&self.what(what), &spread, beside, aim);
    }
}

/// A session with the `work`, `tasks` and `memory` surfaces.
struct Client(JsonLines);

impl Client {
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<(), BenchError> {
        let params = json!({"name": tool, "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        self.0.ask(&call.to_string())?;
        if self.0.answer().contains(r#""success":true"#) {
            return Ok(());
        }
        Err(BenchError::new(format!("`{tool}` answered {}", self.0.answer())))
    }

    /// `recall`, which answers with text.
    fn recall(&mut self, arguments: &Value) -> Result<(), BenchError> {
        let params = json!({"name": "recall", "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        self.0.ask(&call.to_string())?;
        if self.0.answer().contains(" note ") {
            return Ok(());
        }
        Err(BenchError::new(format!("`recall` answered {}", self.0.answer())))
    }

    fn end(self) -> Result<(), BenchError> {
        Ok(self.0.end()?)
    }
}

fn doc(size: usize) -> String {
    format!("graph-{size}")
}

/// Writes a file in the format of `tenon store export` with the notes and graphs.
fn write_export(path: &Path) -> io::Result<()> {
    let mut out = io::BufWriter::new(std::fs::File::create(path)?);
    let rows = NOTES + 2 * GRAPHS.iter().sum::<usize>();
    writeln!(out, r#"{{"format":"tenon-store","schema":3}}"#)?;
    let mut write_row = |table: &str, row: Value| writeln!(out, "{}", json!({"table": table, "row": row}));
    write_row(
        "workspaces",
        json!({"name": "bench", "created_ms": 0, "plans": 0, "tasks": 0, "steps": 0, "events": 0, "seqs": rows,
            "branches": 1, "focus": null, "checkout": 1}),
    )?;
    write_row(
        "branches",
        json!({"branch": 1, "name": "main", "base": null, "base_seq": 0, "created_ms": 0}),
    )?;
    let mut seq = 0;
    for number in 0..NOTES {
        seq += 1;
        let mut content = format!("{number} {NOTE}");
        if number % (NOTES / 10) == 0 {
            let _ = write!(content, " {RARE}");
        }
        if number % 10 == 3 {
            let _ = write!(content, " {COMMON}");
        }
        write_row(
            "entries",
            json!({"seq": seq, "ts_ms": 0, "branch": 1, "doc": "notes", "kind": "note", "title": null, "format": null,
                "meta": null, "content": content, "event": null, "origin": null}),
        )?;
    }
    for size in GRAPHS {
        for number in 0..2 * size {
            seq += 1;
            let (node, goal) = (number / 2, (number / 2 * 7 + 1) % size);
            let mut row = json!({"seq": seq, "branch": 1, "doc": doc(size), "kind": 0, "id": format!("node-{node}"),
                "next": null, "revision": 0, "deleted": 0, "type": "fact", "title": format!("Node {node}"),
                "body": null, "status": null, "tags": "[]", "meta": null, "start": null, "goal": null, "ts_ms": 0,
                "origin": null});
            if number % 2 == 1 {
                row["kind"] = json!(1);
                row["id"] = json!(format!("node-{node}|leads to|node-{goal}"));
                row["type"] = Value::Null;
                row["title"] = Value::Null;
                row["tags"] = Value::Null;
                row["start"] = json!(format!("node-{node}"));
                row["goal"] = json!(format!("node-{goal}"));
            }
            write_row("graph", row)?;
        }
    }
    writeln!(out, "{}", json!({"rows": rows + 2}))?;
    out.flush()
}
