//! `cargo xtask test`: everything that must hold before a change lands.
//!
//! The stages run in order and all of them run, whatever fails before: one run tells all there is to
//! mend. The last line on stdout is `N passed, M failed`, summed over every runner; the format check,
//! the lints and the check without Unix count as one each.

mod clients;
mod conformance;
mod tally;

use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::portable;
use crate::setup;
use crate::shell::{self, Failure, cargo, must, print, say, step, tools, watch, works};
use tally::Tally;

/// A kind of test with its own runner.
type Stage = (&'static str, fn(filter: &str) -> Result<Tally, Failure>);

const STAGES: [Stage; 6] = [
    ("format", |_| format()),
    ("lints", |_| lints()),
    ("portable", |_| Ok(Tally::one("cargo xtask portable", portable::check()?))),
    ("tests", tests),
    ("clients", |_| clients::run_clients()),
    ("conformance", |_| conformance::run_suite()),
];

/// Runs every stage; with a filter that names a stage only that one, with any other filter only the
/// tests of the crates whose names contain it.
pub(crate) fn run(filter: Option<&str>) -> Result<ExitCode, Failure> {
    setup::run()?;
    let named = STAGES.iter().find(|(name, _)| Some(*name) == filter);
    let chosen: Vec<&Stage> = match (named, filter) {
        (Some(stage), _) => vec![stage],
        (None, Some(_)) => STAGES.iter().filter(|(name, _)| *name == "tests").collect(),
        (None, None) => STAGES.iter().collect(),
    };
    let filter = filter.filter(|_| named.is_none()).unwrap_or_default();
    let mut total = Tally::default();
    for (name, run) in chosen {
        total += stage(name, || run(filter));
    }
    for failure in &total.failures {
        say(&format!("failed: {failure}"));
    }
    print(&format!("{} passed, {} failed", total.passed, total.failed));
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs one stage under its heading and says how long it took.
///
/// A stage that cannot run at all is one failure, and the next stage still runs.
fn stage(name: &str, run: impl FnOnce() -> Result<Tally, Failure>) -> Tally {
    step(name);
    let start = Instant::now();
    let tally = run().unwrap_or_else(|failure| {
        say(&failure.to_string());
        Tally::one(name, false)
    });
    let seconds = start.elapsed().as_secs();
    say(&format!("{name}: {} passed, {} failed in {seconds} s", tally.passed, tally.failed));
    tally
}

fn format() -> Result<Tally, Failure> {
    Ok(Tally::one("cargo fmt", shell::run(cargo().args(["fmt", "--all", "--check"]))?))
}

fn lints() -> Result<Tally, Failure> {
    let mut command = cargo();
    command.args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]);
    Ok(Tally::one("cargo clippy", shell::run(&mut command)?))
}

/// The tests of all crates: with nextest where it is installed, which runs test binaries side by
/// side but no doc tests, else with cargo's own runner.
fn tests(filter: &str) -> Result<Tally, Failure> {
    if !works("cargo", &["nextest", "--version"]) {
        let mut command = cargo();
        command.args(["test", "--workspace", "--no-fail-fast", "--"]).arg(filter);
        return runner(&mut command, "cargo test", tally::libtest);
    }
    let mut command = cargo();
    command.args(["nextest", "run", "--workspace", "--no-fail-fast", "--no-tests=pass"]).arg(filter);
    // Each failure once, when it happens: they are listed at the end of the whole run.
    command.args(["--status-level", "fail", "--final-status-level", "none"]);
    let mut total = runner(&mut command, "cargo nextest", tally::nextest)?;
    let mut command = cargo();
    command.args(["test", "--workspace", "--doc", "--no-fail-fast", "--quiet", "--"]).arg(filter);
    total += runner(&mut command, "doc tests", tally::libtest)?;
    Ok(total)
}

/// Builds our own programs with the features that the tests had, so that little is left to build.
fn build_programs() -> Result<(), Failure> {
    must(cargo().args(["build", "--workspace", "--bins", "--examples", "--quiet"]))
}

/// Runs a test runner and sums up what its output says. A runner that fails without naming a failed
/// test (its tests did not compile, or it broke) counts as one failure.
fn runner(command: &mut Command, name: &str, read: fn(&str) -> Option<Tally>) -> Result<Tally, Failure> {
    let mut total = Tally::default();
    let succeeded = watch(with_tools(command), |line| {
        if let Some(tally) = read(line) {
            total += tally;
        }
    })?;
    if !succeeded && total.failed == 0 {
        total += Tally::one(name, false);
    }
    Ok(total)
}

/// Puts the installed tools first in the command's `PATH`.
fn with_tools(command: &mut Command) -> &mut Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(tools().join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).expect("folders of a PATH have no separator");
    command.env("PATH", path)
}
