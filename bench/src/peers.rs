//! Tenon against Serena, cclsp and the bare language servers: the same questions in turns, each with a known answer.
//!
//! A wrong answer is a failure, whatever its time. Each round starts every peer on a new copy of the project.

pub(crate) mod agent;
mod chart;
pub(crate) mod install;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use tenon_testkit::Sandbox;
use tenon_testkit::processes::ProcessInfo;

use crate::error::BenchError;
use crate::mcp_session::McpSession;
use crate::measure::{Times, shown};
use crate::output::{log, print};
use crate::product::Product;
use crate::source_sample;
use agent::{Agent, CASES, Case, PATIENCE, PEERS, Peer, Places, Programs, Verdict};
use chart::{Bar, Group};

/// The size of a run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Cold starts of each peer and project
    #[arg(long, default_value_t = 2)]
    rounds: usize,
    /// Warm definitions per round
    #[arg(long, default_value_t = 20)]
    definitions: usize,
    /// Edits per round
    #[arg(long, default_value_t = 5)]
    edits: usize,
    /// Agents at once; 0 leaves them out
    #[arg(long, default_value_t = 10)]
    agents: usize,
    /// Only servers whose id contains this
    #[arg(long)]
    only: Option<String>,
    /// Where to write the chart
    #[arg(long)]
    chart: Option<PathBuf>,
}

/// Times of right answers, and how many were not.
#[derive(Debug, Default)]
struct Measured {
    times: Times,
    wrong: usize,
    refused: usize,
}

impl Measured {
    fn add(&mut self, time: Duration, is_right: bool) {
        self.judge(time, if is_right { Verdict::Right } else { Verdict::Wrong });
    }

    fn judge(&mut self, time: Duration, verdict: Verdict) {
        match verdict {
            Verdict::Right => self.times.add(time),
            Verdict::Wrong => self.wrong += 1,
            Verdict::Refused => self.refused += 1,
        }
    }

    /// `12.0 ms (p95 14.0 ms); 1 wrong`.
    fn cell(&self) -> String {
        let mut cell = match self.times.len() {
            0 if self.wrong + self.refused == 0 => return "–".to_owned(),
            0 => "no right answer".to_owned(),
            1 | 2 => shown(self.times.median()),
            _ => format!("{} (p95 {})", shown(self.times.median()), shown(self.times.within(0.95))),
        };
        if self.wrong > 0 {
            cell.push_str(&format!("; {} wrong", self.wrong));
        }
        if self.refused > 0 {
            cell.push_str(&format!("; {} error{}", self.refused, if self.refused == 1 { "" } else { "s" }));
        }
        cell
    }

    fn bar(&self) -> Bar {
        let median = self.times.median();
        match self.times.len() {
            0 if self.wrong + self.refused == 0 => Bar::absent(),
            0 => Bar { length: None, label: "no right answer".to_owned() },
            _ => Bar { length: Some(median.as_secs_f64()), label: shown(median) },
        }
    }
}

/// What one peer did on one project.
#[derive(Debug, Default)]
struct Results {
    list_bytes: usize,
    start: Measured,
    first_definition: Measured,
    definition: Measured,
    first_name: Measured,
    name: Measured,
    restarted_name: Measured,
    references: Measured,
    found: Vec<usize>,
    edit: Measured,
    crowd: Measured,
    /// Memory, and the number of processes.
    crowd_mib: Option<(f64, usize)>,
    /// Why a round ended early.
    failure: Option<String>,
}

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    let programs = Programs::installed(tenon)?;
    print("# Tenon and its peers\n");
    let is_chosen =
        |case: &Case| options.only.as_ref().is_none_or(|only| case.server.id().contains(only.as_str()));
    for case in CASES.into_iter().filter(is_chosen) {
        let results = measure(case, &programs, options)?;
        report(case, &results, options);
        if let (Some(path), "py") = (&options.chart, case.extension) {
            fs::write(path, drawn(&results, options))?;
        }
    }
    Ok(())
}

fn measure(case: Case, programs: &Programs, options: &Options) -> Result<Vec<Results>, BenchError> {
    let expected = expected_references(case, programs)?;
    let mut results: Vec<Results> = PEERS.iter().map(|_| Results::default()).collect();
    for round in 0..options.rounds {
        for (peer, results) in PEERS.into_iter().zip(&mut results) {
            log(&format!("{:?}, round {round}: {}", case.project, peer.name()));
            if let Err(error) = measure_alone(peer, case, programs, options, &expected, results) {
                log(&error.to_string());
                results.failure = Some(error.to_string());
            }
        }
    }
    if options.agents > 0 {
        for (peer, results) in PEERS.into_iter().zip(&mut results) {
            log(&format!("{:?}, {} agents: {}", case.project, options.agents, peer.name()));
            if let Err(error) = measure_crowd(peer, case, programs, options, results) {
                log(&error.to_string());
                results.failure = Some(error.to_string());
            }
        }
    }
    Ok(results)
}

/// What the bare server finds when it has read the project; each place must also contain the word.
fn expected_references(case: Case, programs: &Programs) -> Result<Places, BenchError> {
    let sandbox = Sandbox::with_project(case.project);
    agent::prepare(Peer::Bare, case, &sandbox)?;
    let (mut bare, _) = Agent::start(Peer::Bare, case, &sandbox, programs)?;
    let mut words = Places::new();
    for file in source_sample::files(&sandbox, case.extension) {
        let text = sandbox.tree().read(&file);
        let lines = text.lines().enumerate().filter(|(_, line)| line.contains(case.symbol));
        words.extend(lines.map(|(number, _)| (file.clone(), number as u64 + 1)));
    }
    let deadline = Instant::now() + PATIENCE;
    let mut last = Places::new();
    // A server that is still loading finds too few.
    loop {
        let found = bare.references()?;
        if !found.is_empty() && found == last {
            break;
        }
        last = found;
        if Instant::now() > deadline {
            return Err(BenchError::new("the bare server found no references"));
        }
    }
    if let Some((file, line)) = last.iter().find(|place| !words.contains(place)) {
        return Err(BenchError::new(format!("{file}:{line} does not contain `{}`", case.symbol)));
    }
    let lines = words.len();
    log(&format!("`{}`: {} lines with references, {lines} with the word", case.symbol, last.len()));
    Ok(last)
}

fn measure_alone(
    peer: Peer,
    case: Case,
    programs: &Programs,
    options: &Options,
    expected: &Places,
    results: &mut Results,
) -> Result<(), BenchError> {
    let sandbox = Sandbox::with_project(case.project);
    agent::prepare(peer, case, &sandbox)?;
    let start = Instant::now();
    let (mut agent, bytes) = Agent::start(peer, case, &sandbox, programs)?;
    results.start.add(start.elapsed(), true);
    results.list_bytes = bytes;
    let is_right = until_right(&mut results.first_definition, || agent.definition())?;
    if is_right {
        results.first_definition.times.add(start.elapsed());
    }
    // A peer that has not answered rightly by now would only cost time.
    let definitions = if is_right { options.definitions } else { 0 };
    for _ in 0..definitions {
        let asked = Instant::now();
        let verdict = agent.definition()?;
        results.definition.judge(asked.elapsed(), verdict);
    }
    for index in 0..6 {
        let asked = Instant::now();
        if let Some(is_right) = agent.by_name()? {
            let measured = if index == 0 { &mut results.first_name } else { &mut results.name };
            measured.add(asked.elapsed(), is_right);
        }
    }
    for _ in 0..3 {
        let asked = Instant::now();
        let found = agent.references()?;
        results.references.add(asked.elapsed(), found == *expected);
        results.found.push(found.len());
    }
    for _ in 0..options.edits {
        let edited = agent.edit(true)?;
        results.edit.wrong += edited.wrong_answers;
        if edited.is_right {
            results.edit.times.add(edited.time);
        }
        agent.edit(false)?;
    }
    drop(agent);
    if peer == Peer::Bare {
        return Ok(());
    }
    stop(peer, &sandbox, programs)?;
    let (mut agent, _) = Agent::start(peer, case, &sandbox, programs)?;
    let asked = Instant::now();
    if let Some(is_right) = agent.by_name()? {
        results.restarted_name.add(asked.elapsed(), is_right);
    }
    drop(agent);
    stop(peer, &sandbox, programs)?;
    if peer == Peer::Tenon {
        // Position tools are not in the default list.
        let mut command = sandbox.command(&programs.tenon);
        results.list_bytes = McpSession::start(command.arg("mcp"))?.list_tools()?.to_string().len();
        stop(peer, &sandbox, programs)?;
    }
    Ok(())
}

/// Stops Tenon's daemon; the others end with their connection.
fn stop(peer: Peer, sandbox: &Sandbox, programs: &Programs) -> Result<(), BenchError> {
    match peer {
        Peer::Tenon => Product { tenon: &programs.tenon, sandbox }.stop(),
        _ => {
            for process in sandbox.processes() {
                process.kill();
            }
            Ok(())
        }
    }
}

/// Asks until an answer is right, and counts those before it.
fn until_right(
    measured: &mut Measured,
    mut ask: impl FnMut() -> Result<Verdict, BenchError>,
) -> Result<bool, BenchError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match ask()? {
            Verdict::Right => return Ok(true),
            other => measured.judge(Duration::ZERO, other),
        }
        if Instant::now() > deadline {
            return Ok(false);
        }
    }
}

/// All agents work on one copy of the project, each with its own connection.
fn measure_crowd(
    peer: Peer,
    case: Case,
    programs: &Programs,
    options: &Options,
    results: &mut Results,
) -> Result<(), BenchError> {
    let sandbox = Sandbox::with_project(case.project);
    agent::prepare(peer, case, &sandbox)?;
    // The agents, and the thread that reads their memory.
    let (ready, read) = (Barrier::new(options.agents), Barrier::new(options.agents + 1));
    let (outcomes, mib) = thread::scope(|scope| {
        let sandbox = &sandbox;
        let (ready, read) = (&ready, &read);
        let one = move || -> Result<Measured, BenchError> {
            let mut measured = Measured::default();
            let agent = Agent::start(peer, case, sandbox, programs).and_then(|(mut agent, _)| {
                match until_right(&mut Measured::default(), || agent.definition())? {
                    true => Ok(agent),
                    false => Err(BenchError::new("no right definition")),
                }
            });
            ready.wait();
            let asked = agent.and_then(|mut agent| {
                for _ in 0..options.definitions {
                    let asked = Instant::now();
                    let verdict = agent.definition()?;
                    measured.judge(asked.elapsed(), verdict);
                }
                Ok(agent)
            });
            read.wait();
            read.wait();
            asked.map(|_| measured)
        };
        let running: Vec<_> = (0..options.agents).map(|_| scope.spawn(one)).collect();
        read.wait();
        let processes = sandbox.processes();
        let mib = (processes.iter().map(proportional_mib).sum::<f64>(), processes.len());
        read.wait();
        let outcomes: Vec<_> = running.into_iter().map(thread::ScopedJoinHandle::join).collect();
        (outcomes, mib)
    });
    for outcome in outcomes {
        let measured = outcome.map_err(|_| BenchError::new("an agent panicked"))??;
        results.crowd.times.extend(measured.times);
        results.crowd.wrong += measured.wrong;
        results.crowd.refused += measured.refused;
    }
    results.crowd_mib = Some(mib);
    if peer == Peer::Tenon {
        stop(peer, &sandbox, programs)?;
    }
    Ok(())
}

/// Memory of a process, with shared pages divided among those that share them.
pub(crate) fn proportional_mib(process: &ProcessInfo) -> f64 {
    memory_mib(process, "Pss:")
}

/// Memory of a process without pages of files, which depend on what else runs.
pub(crate) fn anonymous_mib(process: &ProcessInfo) -> f64 {
    memory_mib(process, "Anonymous:")
}

fn memory_mib(process: &ProcessInfo, kind: &str) -> f64 {
    let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.id)).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix(kind));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

fn report(case: Case, results: &[Results], options: &Options) {
    print(&format!("## {:?}, {}\n", case.project, case.server.id()));
    let names = PEERS.map(Peer::name).join(" | ");
    print(&format!("| | {names} |\n|---|---|---|---|---|"));
    let row = |what: &str, cell: &dyn Fn(&Results) -> String| {
        let cells: Vec<String> = results.iter().map(cell).collect();
        print(&format!("| {what} | {} |", cells.join(" | ")));
    };
    row("start until the tools are listed", &|one| one.start.cell());
    row("bytes of the tool list", &|one| match one.list_bytes {
        0 => "–".to_owned(),
        bytes => bytes.to_string(),
    });
    row("start until the first right definition", &|one| one.first_definition.cell());
    row("definition of a use, warm", &|one| one.definition.cell());
    row("declaration by name, first", &|one| one.first_name.cell());
    row("declaration by name, warm", &|one| one.name.cell());
    row("declaration by name, first after a restart", &|one| one.restarted_name.cell());
    row("references", &|one| one.references.cell());
    row("lines with references, each time", &|one| format!("{:?}", one.found));
    row("edit until the right diagnostics", &|one| one.edit.cell());
    let agents = options.agents;
    row(&format!("definition, {agents} agents at once"), &|one| one.crowd.cell());
    row(&format!("memory of all processes, {agents} agents"), &|one| match one.crowd_mib {
        Some((mib, processes)) => format!("{mib:.0} MiB in {processes} processes"),
        None => "–".to_owned(),
    });
    for (peer, one) in PEERS.into_iter().zip(results) {
        if let Some(failure) = &one.failure {
            print(&format!("\n{}: {failure}", peer.name()));
        }
    }
    print("");
}

fn drawn(results: &[Results], options: &Options) -> String {
    let group = |title: &str, bar: &dyn Fn(&Results) -> Bar| Group {
        title: title.to_owned(),
        bars: results.iter().map(bar).collect(),
    };
    let groups = [
        group("start until the first right definition", &|one| one.first_definition.bar()),
        group("declaration by name, warm", &|one| one.name.bar()),
        group("references", &|one| one.references.bar()),
        group("edit until the right diagnostics", &|one| one.edit.bar()),
        group(&format!("memory, {} agents", options.agents), &|one| {
            let bar = |(mib, _)| Bar { length: Some(mib), label: format!("{mib:.0} MiB") };
            one.crowd_mib.map_or_else(Bar::absent, bar)
        }),
    ];
    chart::svg("Django with pyright: less is better, logarithmic", &PEERS.map(Peer::name), &groups)
}
