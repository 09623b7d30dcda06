//! Everyday tasks with Tenon and with Serena, in turns: calls, bytes of answers, time, right or wrong.
//!
//! Both know the names in a task, and get the fewest calls that an expert needs. What is right is computed from the tree.

mod django;
mod explore_aims;
mod oracle;
mod rust;
mod rxjs;
mod task;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_testkit::{RealProject, Sandbox, program};

use crate::error::BenchError;
use crate::mcp_session::McpSession;
use crate::output::{log, print};
use crate::peers::agent::{serena_command, tenon_settings, write_serena_settings};
use crate::peers::install;
use crate::product::Product;
use oracle::Sources;
use task::{Outcome, Task, perform};

/// What to run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Leave out the tasks
    #[arg(long)]
    aims_only: bool,
    /// Leave out the aims of `explore`
    #[arg(long)]
    tasks_only: bool,
    /// Only the tasks on one project: `Django`, `Rxjs` or `RegexSyntax`
    #[arg(long)]
    project: Option<String>,
}

pub(crate) fn run(tenon: &Path, options: &Options) -> Result<(), BenchError> {
    print("# Everyday tasks\n");
    if !options.aims_only {
        let serena = install::serena()?;
        let is_wanted = |project: RealProject| {
            options.project.as_ref().is_none_or(|name| *name == format!("{project:?}"))
        };
        if is_wanted(RealProject::Django) {
            let warm = ("slugify", "django/utils/text.py");
            measure(tenon, &serena, RealProject::Django, "py", warm, django::prepare, django::tasks)?;
        }
        if is_wanted(RealProject::Rxjs) {
            let warm = ("identity", "src/internal/util/identity.ts");
            measure(tenon, &serena, RealProject::Rxjs, "ts", warm, |_| {}, rxjs::tasks)?;
        }
        match program::rust_analyzer() {
            _ if !is_wanted(RealProject::RegexSyntax) => {}
            None => log("rust-analyzer is not installed; run `cargo xtask setup`"),
            Some(_) => {
                let warm = ("ClassUnicode", "src/hir/mod.rs");
                measure(tenon, &serena, RealProject::RegexSyntax, "rs", warm, |_| {}, rust::tasks)?;
            }
        }
    }
    if !options.tasks_only {
        explore_aims::measure(tenon)?;
    }
    Ok(())
}

/// All tasks on one project, in a copy for each product.
fn measure(
    tenon: &Path,
    serena: &Path,
    project: RealProject,
    extension: &str,
    (warm, warm_file): (&str, &str),
    prepare: impl Fn(&Sandbox),
    tasks: impl Fn(&Sources) -> Vec<Task>,
) -> Result<(), BenchError> {
    log(&format!("{project:?}"));
    let sandbox = || Sandbox::with_project(project).with_rust();
    let (ours, theirs) = (sandbox(), sandbox());
    prepare(&ours);
    prepare(&theirs);
    ours.write_user_config(&tenon_settings(&ours));
    write_serena_settings(&theirs)?;
    let sources = Sources::read(&ours, extension);
    let tasks = tasks(&sources);
    // Language servers may run code of the project.
    let trusted = ours.command(tenon).arg("trust").output()?;
    if !trusted.status.success() {
        return Err(BenchError::new(String::from_utf8_lossy(&trusted.stderr)));
    }
    let (mut tenon_session, tenon_warm) = warmed(
        || McpSession::start(ours.command(tenon).args(["mcp", "--surface", "explore,edit"])),
        &[("find", json!({ "name": warm })), ("references", json!({ "symbol": warm }))],
    )?;
    let (mut serena_session, serena_warm) = warmed(
        || McpSession::start(&mut serena_command(serena, &theirs)),
        &[
            ("find_symbol", json!({ "name_path_pattern": warm })),
            ("find_referencing_symbols", json!({ "name_path": warm, "relative_path": warm_file })),
        ],
    )?;
    print(&format!(
        "\n## {project:?}\n\nStart and two questions that are not counted: Tenon {:.1} s, Serena {:.1} s.\n",
        tenon_warm.as_secs_f64(),
        serena_warm.as_secs_f64()
    ));
    print("| task | Tenon: calls | bytes | time | right | Serena: calls | bytes | time | right |");
    print("|---|---|---|---|---|---|---|---|---|");
    let (mut our_sum, mut their_sum) = (Sum::default(), Sum::default());
    for task in &tasks {
        log(task.name);
        let one = perform(task, &task.tenon, &mut tenon_session, &ours, &sources)?;
        our_sum.add(&one);
        let other = perform(task, &task.serena, &mut serena_session, &theirs, &sources)?;
        their_sum.add(&other);
        print(&format!("| {} | {} | {} |", task.name, cells(&one), cells(&other)));
    }
    print(&format!("| **together** | {} | {} |", our_sum.cells(), their_sum.cells()));
    drop(tenon_session);
    Product { tenon, sandbox: &ours }.stop()
}

/// Starts a session and asks questions that load the language server.
fn warmed(
    start: impl FnOnce() -> Result<McpSession, BenchError>,
    questions: &[(&str, Value)],
) -> Result<(McpSession, Duration), BenchError> {
    let begun = Instant::now();
    let mut session = start()?;
    for (tool, arguments) in questions {
        let answer = session.call(tool, arguments)?;
        if answer.is_error {
            return Err(BenchError::new(format!("`{tool}`: {}", answer.text)));
        }
    }
    Ok((session, begun.elapsed()))
}

fn cells(outcome: &Outcome) -> String {
    let right = match &outcome.fault {
        None => "yes".to_owned(),
        Some(fault) => format!("no: {}", fault.replace('|', "\\|")),
    };
    format!("{} | {} | {:.2} s | {right}", outcome.calls, outcome.bytes, outcome.time.as_secs_f64())
}

/// All outcomes of one product.
#[derive(Debug, Default)]
struct Sum {
    tasks: usize,
    calls: usize,
    bytes: usize,
    time: Duration,
    right: usize,
}

impl Sum {
    fn add(&mut self, outcome: &Outcome) {
        self.tasks += 1;
        self.calls += outcome.calls;
        self.bytes += outcome.bytes;
        self.time += outcome.time;
        self.right += usize::from(outcome.fault.is_none());
    }

    fn cells(&self) -> String {
        let Self { tasks, calls, bytes, right, .. } = self;
        format!("{calls} | {bytes} | {:.2} s | {right} of {tasks}", self.time.as_secs_f64())
    }
}
