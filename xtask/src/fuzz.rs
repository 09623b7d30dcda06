//! `cargo xtask fuzz`: runs the fuzz targets in `fuzz/src/bin` with cargo-fuzz.
//!
//! A target starts from the inputs in `fuzz/corpus/TARGET` and from those that earlier runs kept in `target/fuzz/corpus`. An
//! input that breaks it is written to `target/fuzz/artifacts`; copied to `fuzz/corpus/TARGET` it is a test.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::shell::{
    Error, cargo, heading, log, print, repository, run_checked, run_with_lines, succeeds, tools,
};

/// The version of cargo-fuzz that is installed.
const CARGO_FUZZ: &str = "0.13.2";

/// Seconds for each target without options, and with `--quick`.
const SECONDS: u64 = 600;
const QUICK_SECONDS: u64 = 120;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Targets to run; all by default
    targets: Vec<String>,
    /// Run each target for two minutes instead of ten
    #[arg(long, conflicts_with = "seconds")]
    quick: bool,
    /// Run each target for this many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Run each target with this many inputs, however long it takes
    #[arg(long, conflicts_with_all = ["quick", "seconds"])]
    runs: Option<u64>,
}

/// What a run of one target reports.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    runs: u64,
    runs_per_second: u64,
    /// The input that broke it.
    crash: Option<String>,
}

impl Report {
    /// Adds a line of libFuzzer's output.
    fn read(&mut self, line: &str) {
        let number = |name: &str| line.strip_prefix(name)?.trim().parse().ok();
        if let Some(runs) = number("stat::number_of_executed_units:") {
            self.runs = runs;
        } else if let Some(rate) = number("stat::average_exec_per_sec:") {
            self.runs_per_second = rate;
        } else if let Some((_, file)) = line.split_once("Test unit written to ") {
            self.crash = Some(file.trim().replace(&format!("{}/", repository().display()), ""));
        }
    }
}

/// Runs the targets one after the other. Returns whether none broke.
pub(crate) fn run(options: &Options) -> Result<bool, Error> {
    let known = targets()?;
    if let Some(unknown) = options.targets.iter().find(|name| !known.contains(*name)) {
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        return Err(
            Error::new(format!("unknown target `{unknown}`")).hint(format!("targets: {}", names.join(", ")))
        );
    }
    ensure_tools()?;
    let chosen: Vec<&String> = match options.targets.as_slice() {
        [] => known.iter().collect(),
        named => named.iter().collect(),
    };
    let mut reports = Vec::new();
    for target in chosen {
        heading(target);
        reports.push((target, fuzz(target, &limit(options))?));
    }
    print("| target | runs | runs per second | crash |");
    print("|---|---|---|---|");
    for (target, Report { runs, runs_per_second, crash }) in &reports {
        // libFuzzer counts whole seconds.
        let rate =
            if *runs_per_second == 0 { "under a second".to_owned() } else { runs_per_second.to_string() };
        print(&format!("| {target} | {runs} | {rate} | {} |", crash.as_deref().unwrap_or("none")));
    }
    let total: u64 = reports.iter().map(|(_, report)| report.runs).sum();
    print(&format!("{total} runs of {} targets", reports.len()));
    for (target, Report { crash, .. }) in &reports {
        if let Some(file) = crash {
            log(&format!(
                "{target} broke: copy {file} to fuzz/corpus/{target} under a name that says what it is"
            ));
        }
    }
    Ok(reports.iter().all(|(_, report)| report.crash.is_none()))
}

fn limit(options: &Options) -> String {
    match (options.runs, options.seconds, options.quick) {
        (Some(runs), ..) => format!("-runs={runs}"),
        (None, Some(seconds), _) => format!("-max_total_time={seconds}"),
        (None, None, quick) => format!("-max_total_time={}", if quick { QUICK_SECONDS } else { SECONDS }),
    }
}

/// The names of the files in `fuzz/src/bin`.
fn targets() -> Result<BTreeSet<String>, Error> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(repository().join("fuzz/src/bin"))? {
        names.extend(entry?.path().file_stem().and_then(|name| name.to_str()).map(str::to_owned));
    }
    Ok(names)
}

fn ensure_tools() -> Result<(), Error> {
    if !succeeds("rustup", &["run", "nightly", "cargo", "--version"]) {
        let error = Error::new("fuzzing needs a nightly toolchain, which is missing");
        return Err(error.hint("rustup toolchain install nightly --profile minimal"));
    }
    if !succeeds("c++", &["--version"]) {
        return Err(
            Error::new("libFuzzer needs a C++ compiler, which is missing").hint("apt-get install g++")
        );
    }
    let root = tools().join("cargo-fuzz");
    let installed = Command::new(root.join("bin/cargo-fuzz")).arg("--version").output();
    if installed.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(CARGO_FUZZ)) {
        return Ok(());
    }
    log("installing cargo-fuzz into target/tools");
    run_checked(
        cargo()
            .args(["install", "cargo-fuzz", "--locked", "--force", "--version", CARGO_FUZZ])
            .arg("--root")
            .arg(root),
    )
}

fn fuzz(target: &str, limit: &str) -> Result<Report, Error> {
    let folder = |name: &str| -> Result<PathBuf, Error> {
        let folder = repository().join("target/fuzz").join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    let (corpus, artifacts) = (folder(&format!("corpus/{target}"))?, folder(&format!("artifacts/{target}"))?);
    let mut command = Command::new("rustup");
    // Without a sanitizer, which slows down: our own code is safe Rust (decision 0806).
    command.args(["run", "nightly", "cargo", "fuzz", "run", "--sanitizer", "none", "--codegen-units", "16"]);
    command.arg("--target-dir").arg(repository().join("target/fuzz"));
    command.arg(target).arg(corpus).arg(repository().join("fuzz/corpus").join(target));
    command.args(["--", limit, "-print_final_stats=1", "-verbosity=0", "-timeout=20", "-max_len=8192"]);
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.current_dir(repository()).env("TMPDIR", folder("temporary")?);
    // cargo-fuzz starts the cargo that this variable names: the stable one, if it is inherited.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(tools().join("cargo-fuzz/bin")).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(folders).expect("folders of a PATH have no separator"));
    let mut report = Report::default();
    let succeeded = run_with_lines(&mut command, |line| report.read(line))?;
    match (succeeded, &report.crash) {
        (false, None) => Err(Error::new(format!("`{target}` did not run; its output is above"))),
        _ => Ok(report),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_crashes_are_read() {
        let mut report = Report::default();
        for line in [
            "#2\tINITED cov: 5 ft: 6 corp: 1/1b exec/s: 0 rss: 30Mb",
            "stat::number_of_executed_units: 100000",
            "stat::average_exec_per_sec:     33333",
            "artifact_prefix='x/'; Test unit written to x/crash-da39a3ee",
        ] {
            report.read(line);
        }
        let crash = Some("x/crash-da39a3ee".to_owned());
        assert_eq!(report, Report { runs: 100_000, runs_per_second: 33_333, crash });
    }

    /// So that a target that is added runs as a test too.
    #[test]
    fn every_target_has_a_corpus_and_a_test() {
        let mut bodies = String::new();
        let mut folders = vec![repository().join("crates")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                if path.is_dir() && ["tests", "node_modules"].iter().all(|skipped| *skipped != name) {
                    folders.push(path);
                } else if path.to_str().unwrap().contains("fuzzing") {
                    bodies.push_str(&fs::read_to_string(path).unwrap());
                }
            }
        }
        let targets = targets().unwrap();
        for target in &targets {
            assert!(bodies.contains(&format!("corpus::for_each(\"{target}\"")), "`{target}` has no test");
        }
        let corpora = fs::read_dir(repository().join("fuzz/corpus")).unwrap();
        let corpora: BTreeSet<String> =
            corpora.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(corpora, targets);
    }
}
