//! Agents at work on one daemon for minutes, while language servers and the daemon are killed and files change from outside.
//!
//! A run is a sequence of rounds. First the agents act at the same time, each with its own session, and things are killed.
//! Then all is quiet, and answers are compared with what is known to be true. The daemon is killed in the first half only:
//! its memory, descriptors and threads are judged over the second.

mod agent;
mod agent_client;
mod process_series;
mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tenon_testkit::file_changes::{FileChanges, Language};
use tenon_testkit::processes::{self, ProcessInfo};
use tenon_testkit::{McpClient, PATIENCE, RealProject, Sandbox};

use crate::changes::question::{Outcome, Surface, ask};
use crate::error::BenchError;
use crate::oracle::OracleServer;
use crate::oracle::checker::Checker;
use crate::output::{log, print};
use crate::product::Product;
use crate::source_sample::{self, Random};
use agent::{Agent, Setting};
use process_series::ProcessSeries;
use truth::Verdict;

const AGENTS: usize = 3;
/// Actions of each agent in a round.
const ACTIONS: usize = 6;
/// Disturbances in a round.
const DISTURBANCES: usize = 3;
/// Changes from outside in the quiet part of a round, each followed by a question.
const QUESTIONS: usize = 3;
/// A run ends early after this many violations.
const MAX_VIOLATIONS: usize = 20;

const SERVERS: [&str; 3] = ["pyright", "typescript-language-server", "clangd"];

const LANGUAGES: [Language; 3] = [Language::Python, Language::TypeScript, Language::Cpp];

/// The size of a run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// How long to run
    #[arg(long, default_value_t = 5)]
    minutes: u64,
    /// Decides what agents do and what is killed; random by default
    #[arg(long)]
    seed: Option<u64>,
}

/// What happened from outside in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Disturbance {
    ChangeFile,
    TouchFiles,
    KillServer,
    KillDaemon,
}

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    let seed = options.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    print(&format!("soak of {} minutes with seed {seed}", options.minutes));
    let sandbox = workspace();
    let mut soak = Soak::new(tenon, &sandbox, seed, Duration::from_secs(60 * options.minutes))?;
    soak.run()?;
    soak.finish();
    let violations = soak.report();
    match violations {
        0 => Ok(()),
        count => Err(BenchError::new(format!(
            "{count} violations\n  hint: repeat with `cargo xtask soak --minutes {} --seed {seed}`",
            options.minutes
        ))),
    }
}

/// RxJS, which agents edit, beside small generated projects in three languages, whose truth is known.
fn workspace() -> Sandbox {
    let sandbox = Sandbox::with_project(RealProject::Rxjs);
    let servers = ["ty", "ruff", "typescript-native"].map(|id| format!("[servers.{id}]\nenabled = false\n"));
    let settings = format!("[edit]\nallow = [{:?}]\nwait_ms = 1000\n{}", sandbox.root(), servers.concat());
    sandbox.write_user_config(&settings);
    sandbox
}

struct Soak<'a> {
    setting: Arc<Setting<'a>>,
    random: Random,
    length: Duration,
    start: Instant,
    agents: Vec<Agent>,
    changes: FileChanges,
    checker: Option<Checker>,
    series: ProcessSeries,
    rounds: usize,
    steps: usize,
    disturbances: BTreeMap<Disturbance, usize>,
    verdict: Verdict,
    marked: usize,
}

impl<'a> Soak<'a> {
    fn new(tenon: &'a Path, sandbox: &'a Sandbox, seed: u64, length: Duration) -> Result<Self, BenchError> {
        let files = source_sample::files(sandbox, "ts");
        let share = |number: usize| files.iter().skip(number).step_by(AGENTS).cloned().collect();
        let agents = (0..AGENTS).map(|number| Agent::new(number, seed, share(number))).collect();
        let project = sandbox.tree().read("tsconfig.json");
        let changes = FileChanges::new(sandbox.root(), &LANGUAGES, seed);
        // The generated project has a file of the same name.
        sandbox.tree().write("tsconfig.json", &project.replace("[\"src\"]", "[\"src\",\"lib_ts\"]"));
        Ok(Self {
            setting: Arc::new(Setting {
                tenon,
                sandbox,
                daemon_kills: AtomicUsize::new(0),
                server_kills: AtomicUsize::new(0),
            }),
            random: Random::new(seed),
            length,
            start: Instant::now(),
            agents,
            changes,
            checker: Some(Checker::start(OracleServer::TypeScript, sandbox)?),
            series: ProcessSeries::default(),
            rounds: 0,
            steps: 0,
            disturbances: BTreeMap::new(),
            verdict: Verdict::default(),
            marked: 0,
        })
    }

    fn run(&mut self) -> Result<(), BenchError> {
        while self.start.elapsed() < self.length && self.verdict.violations.len() < MAX_VIOLATIONS {
            let before = self.verdict.violations.len();
            self.act();
            self.check()?;
            self.rounds += 1;
            self.verdict.violations[before..].iter().for_each(|violation| log(violation));
            log(&format!(
                "round {}: {} s, {} compared, {} violations",
                self.rounds,
                self.start.elapsed().as_secs(),
                self.verdict.compared,
                self.verdict.violations.len()
            ));
        }
        Ok(())
    }

    /// All agents act, and things are killed in between.
    fn act(&mut self) {
        let first = self.steps;
        self.steps += ACTIONS;
        let when: BTreeSet<usize> = (0..DISTURBANCES).map(|_| self.random.below(AGENTS * ACTIONS)).collect();
        let mut agents = std::mem::take(&mut self.agents);
        let (sender, done) = mpsc::sync_channel(AGENTS * ACTIONS);
        let setting = Arc::clone(&self.setting);
        thread::scope(|scope| {
            for agent in &mut agents {
                let (sender, setting) = (sender.clone(), &setting);
                scope.spawn(move || {
                    for step in first..first + ACTIONS {
                        agent.act(setting, step);
                        let _ = sender.send(());
                    }
                });
            }
            drop(sender);
            for (action, ()) in done.iter().enumerate() {
                if when.contains(&action) {
                    self.disturb();
                }
            }
        });
        self.agents = agents;
    }

    fn disturb(&mut self) {
        let may_kill_daemon = self.start.elapsed() < self.length / 2;
        let disturbance = match self.random.below(6) {
            0 | 1 => Disturbance::ChangeFile,
            2 => Disturbance::TouchFiles,
            5 if may_kill_daemon => Disturbance::KillDaemon,
            _ => Disturbance::KillServer,
        };
        *self.disturbances.entry(disturbance).or_default() += 1;
        match disturbance {
            Disturbance::ChangeFile => {
                self.changes.step();
            }
            Disturbance::TouchFiles => {
                for file in ["lib_py/hub.py", "lib_ts/hub.ts", "lib_cpp/hub.h"] {
                    let text = self.setting.sandbox.tree().read(file);
                    self.setting.sandbox.tree().write(file, &text);
                }
            }
            Disturbance::KillServer => {
                let running = self.setting.sandbox.processes();
                let servers = daemon(&running).map(|daemon| below(&running, daemon.id)).unwrap_or_default();
                if let Some(server) = self.random.choose(&servers) {
                    self.setting.server_kills.fetch_add(1, Ordering::SeqCst);
                    server.kill();
                }
            }
            Disturbance::KillDaemon => self.kill_daemon(),
        }
    }

    /// Kills the daemon. Its servers must end with it.
    fn kill_daemon(&mut self) {
        let running = self.setting.sandbox.processes();
        let Some(daemon) = daemon(&running) else { return };
        self.setting.daemon_kills.fetch_add(1, Ordering::SeqCst);
        daemon.kill();
        for server in below(&running, daemon.id) {
            if !processes::wait_for_exit(server.id, PATIENCE) {
                self.verdict.violations.push(format!("outlived the killed daemon: {:?}", server.command));
            }
        }
    }

    /// Compares with the truth while nothing else happens.
    fn check(&mut self) -> Result<(), BenchError> {
        for agent in &mut self.agents {
            self.verdict.violations.append(&mut agent.violations);
        }
        // The client panics on any message that breaks the protocol.
        let checked = catch_unwind(AssertUnwindSafe(|| self.compare()));
        match checked {
            Ok(done) => done?,
            Err(panic) => {
                let why = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                self.verdict.violations.push(format!("the quiet client failed: {why}"));
            }
        }
        let running = self.setting.sandbox.processes();
        daemon(&running).into_iter().for_each(|daemon| self.series.add(daemon));
        Ok(())
    }

    fn compare(&mut self) -> Result<(), BenchError> {
        let sandbox = self.setting.sandbox;
        let mut command = sandbox.command(self.setting.tenon);
        command.args(["mcp", "--surface", "code,nav,tasks,memory"]).stderr(Stdio::null());
        // Starts the daemon if that was killed last.
        let mut client = McpClient::connect(&mut command);
        self.restart_servers()?;
        truth::files(sandbox, &mut self.agents, &mut self.verdict);
        truth::plans(&mut client, &self.agents, &mut self.verdict);
        for _ in 0..QUESTIONS {
            let question = self.changes.step();
            let surfaces = [Surface::Code, Surface::CodeWorkspace, Surface::Nav];
            let surface = *self.random.choose(&surfaces).expect("there are three");
            self.verdict.compared += 1;
            match ask(&mut client, sandbox, surface, &question)? {
                Outcome::Right { .. } => {}
                Outcome::Marked(_) => self.marked += 1,
                Outcome::Wrong(found) => {
                    let change = self.changes.last_change();
                    self.verdict
                        .violations
                        .push(format!("after {change}, {surface:?}: {question:?}: {found}"));
                }
            }
        }
        for (file, line, character, folder, extension) in
            [("lib_py/hub.py", 0, 5, "lib_py/", "py"), ("lib_ts/hub.ts", 0, 17, "lib_ts/", "ts")]
        {
            let mut users = source_sample::files(sandbox, extension);
            users.retain(|user| user.starts_with(folder));
            let place = (file, line, character);
            truth::references(&mut client, sandbox, place, "hub", &users, &mut self.verdict);
        }
        self.compare_diagnostics(&mut client)
    }

    /// Does what the answers say about a server that has exited.
    fn restart_servers(&mut self) -> Result<(), BenchError> {
        if self.setting.server_kills.swap(0, Ordering::SeqCst) == 0 {
            return Ok(());
        }
        for id in SERVERS {
            let mut command = self.setting.sandbox.command(self.setting.tenon);
            let restarted = command.args(["servers", "restart", id]).output()?;
            if !restarted.status.success() {
                let why = String::from_utf8_lossy(&restarted.stderr).into_owned();
                self.verdict.violations.push(format!("`tenon servers restart {id}`: {why}"));
            }
        }
        Ok(())
    }

    /// Edited files and some others, against the checkers.
    fn compare_diagnostics(&mut self, client: &mut McpClient) -> Result<(), BenchError> {
        let sandbox = self.setting.sandbox;
        let mut sample = |files: &[String], count: usize| -> BTreeSet<String> {
            (0..count).filter_map(|_| self.random.choose(files).cloned()).collect()
        };
        let python: Vec<String> = source_sample::files(sandbox, "py");
        let typescript: Vec<String> = source_sample::files(sandbox, "ts");
        let (python, mut typescript) = (sample(&python, 3), sample(&typescript, 3));
        for agent in &self.agents {
            let changed =
                agent.edited.iter().filter(|(_, edited)| edited.texts != [edited.original.as_str()]);
            typescript.extend(changed.map(|(file, _)| file.clone()));
        }
        let found = truth::pyright(sandbox, "lib_py")?;
        truth::diagnostics(client, sandbox, &found, &python, &mut self.verdict);
        if let Some(checker) = &mut self.checker {
            let found = truth::typescript(checker, sandbox)?;
            truth::diagnostics(client, sandbox, &found, &typescript, &mut self.verdict);
        }
        Ok(())
    }

    /// Ends all sessions and the daemon; nothing may be left.
    fn finish(&mut self) {
        self.checker = None;
        self.agents.iter_mut().for_each(Agent::disconnect);
        let product = Product { tenon: self.setting.tenon, sandbox: self.setting.sandbox };
        if let Err(error) = product.stop() {
            self.verdict.violations.push(error.to_string());
        }
        match self.series.growth() {
            Some(grown) => self.verdict.violations.extend(grown),
            None => log("too few rounds without a kill of the daemon to judge its growth; run longer"),
        }
    }

    /// Prints the summary. Returns the number of violations.
    fn report(&self) -> usize {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (what, count) in self.agents.iter().flat_map(|agent| &agent.counts) {
            *counts.entry(what).or_default() += count;
        }
        let Verdict { compared, open, violations } = &self.verdict;
        print(&format!("{} rounds, {} actions: {counts:?}", self.rounds, counts.values().sum::<usize>()));
        print(&format!("disturbances: {:?}", self.disturbances));
        print(&format!(
            "{compared} compared with the truth, {} marked as incomplete and not compared",
            open + self.marked
        ));
        print(&self.series.to_string());
        for violation in violations {
            print(&format!("violation: {violation}"));
        }
        violations.len()
    }
}

/// The daemon among the processes of a sandbox.
fn daemon(running: &[ProcessInfo]) -> Option<&ProcessInfo> {
    running.iter().find(|process| process.command.get(1).is_some_and(|word| word == "daemon"))
}

/// The processes that a process started, at any depth.
fn below(running: &[ProcessInfo], id: u32) -> Vec<ProcessInfo> {
    let mut found: Vec<ProcessInfo> = Vec::new();
    let mut parents = vec![id];
    while let Some(parent) = parents.pop() {
        let children = running.iter().filter(|process| process.parent == parent);
        for child in children {
            parents.push(child.id);
            found.push(child.clone());
        }
    }
    found
}
