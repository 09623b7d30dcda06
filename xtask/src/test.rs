//! `cargo xtask test`: everything that must pass before a change lands.
//!
//! All stages run, even after a failure, so that one run reports everything. The last line on stdout is
//! `N passed, M failed`, summed over all stages; every stage but `tests` counts as one.

mod tally;

use std::process::Command;
use std::thread::available_parallelism;
use std::time::Instant;

use crate::shell::{self, Error, cargo, heading, log, print, run_with_lines, succeeds, tools};
use crate::{deny, non_unix, setup, workflows};
use tally::Tally;

/// A name and what to run. The filter selects tests by name.
type Stage = (&'static str, fn(filter: &str) -> Result<Tally, Error>);

const STAGES: [Stage; 6] = [
    ("format", |_| format()),
    ("lints", |_| lints()),
    ("non-unix", |_| Ok(Tally::one("cargo xtask non-unix", non_unix::check()?))),
    ("deny", |_| Ok(Tally::one("cargo xtask deny", deny::check()?))),
    ("workflows", |_| Ok(Tally::one("cargo xtask workflows", workflows::check()?))),
    ("tests", tests),
];

/// In the names of all tests that run rust-analyzer.
const RUST_ANALYZER: [&str; 2] = ["rust_analyzer", "rust-analyzer"];

/// Runs all stages. A filter that names a stage runs only that stage; any other filter runs only the tests whose names
/// contain it.
pub(crate) fn run(filter: Option<&str>) -> Result<bool, Error> {
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
        log(&format!("failed: {failure}"));
    }
    if !setup::has_rust_analyzer() {
        print("not run: the tests of rust-analyzer, which could not be built (see the log of the setup)");
    }
    print(&format!("{} passed, {} failed", total.passed, total.failed));
    Ok(total.failed == 0)
}

/// Runs one stage and reports how long it took. A stage that cannot run counts as one failure.
fn stage(name: &str, run: impl FnOnce() -> Result<Tally, Error>) -> Tally {
    heading(name);
    let start = Instant::now();
    let tally = run().unwrap_or_else(|error| {
        log(&error.to_string());
        Tally::one(name, false)
    });
    let seconds = start.elapsed().as_secs();
    log(&format!("{name}: {} passed, {} failed in {seconds} s", tally.passed, tally.failed));
    tally
}

fn format() -> Result<Tally, Error> {
    // The fuzz targets are not in the workspace.
    let fuzz = ["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"];
    let formatted = shell::run(cargo().args(["fmt", "--all", "--check"]))? & shell::run(cargo().args(fuzz))?;
    Ok(Tally::one("cargo fmt", formatted))
}

fn lints() -> Result<Tally, Error> {
    let mut command = cargo();
    command.args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]);
    Ok(Tally::one("cargo clippy", shell::run(&mut command)?))
}

/// Runs the tests of all crates: with nextest plus doc tests if nextest is installed, otherwise with `cargo test`.
fn tests(filter: &str) -> Result<Tally, Error> {
    if !succeeds("cargo", &["nextest", "--version"]) {
        let mut command = cargo();
        command.args(["test", "--workspace", "--no-fail-fast", "--"]).arg(filter);
        if !setup::has_rust_analyzer() {
            command.args(RUST_ANALYZER.iter().flat_map(|name| ["--skip", name]));
        }
        return runner(&mut command, "cargo test", tally::libtest);
    }
    let mut command = cargo();
    command.args(["nextest", "run", "--workspace", "--no-fail-fast", "--no-tests=pass"]).arg(filter);
    if !setup::has_rust_analyzer() {
        let named = RUST_ANALYZER.map(|name| format!("test({name})")).join(" | ");
        command.args(["--filterset", &format!("not ({named})")]);
    }
    // Many tests wait for other programs most of the time.
    let threads = available_parallelism().map_or(1, usize::from) * 3 / 2;
    command.args(["--test-threads", &threads.max(1).to_string()]);
    // Print each failure when it happens; they are listed again at the end of the run.
    command.args(["--status-level", "fail", "--final-status-level", "none"]);
    command.env("TENON_WORKSPACE_BUILT", "1");
    let mut total = runner(&mut command, "cargo nextest", tally::nextest)?;
    let mut command = cargo();
    command.args(["test", "--workspace", "--doc", "--no-fail-fast", "--quiet", "--"]).arg(filter);
    total += runner(&mut command, "doc tests", tally::libtest)?;
    Ok(total)
}

/// Runs a test runner and sums up its output. A runner that fails without naming a failed test, for example because the
/// tests do not compile, counts as one failure.
fn runner(command: &mut Command, name: &str, read: fn(&str) -> Option<Tally>) -> Result<Tally, Error> {
    let mut total = Tally::default();
    let succeeded = run_with_lines(with_tools(command), |line| {
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
pub(crate) fn with_tools(command: &mut Command) -> &mut Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(tools().join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).expect("folders of a PATH have no separator");
    command.env("PATH", path)
}
