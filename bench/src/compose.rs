//! Time and memory of `tenon compose`, against a process that only parses the same JSON.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;
use tenon_testkit::Sandbox;

use crate::error::BenchError;
use crate::measure::{Times, row, shown, table};
use crate::output::log;

/// Numbers of modules. Each module has ten contributions.
const SIZES: [usize; 4] = [10, 100, 1000, 10_000];

pub(crate) fn run(tenon: &Path) -> Result<(), BenchError> {
    table("Composition, modules of ten contributions");
    let sandbox = Sandbox::new();
    let ourselves = std::env::current_exe()?;
    for size in SIZES {
        let what = |what: &str| format!("{size} modules: {what}");
        log(&what("composing"));
        let file = sandbox.root().join(format!("{size}.json"));
        let input = input(size);
        fs::write(&file, &input)?;
        let compose = || {
            let mut command = sandbox.command(tenon);
            command.args(["compose", "--format", "text"]).arg(&file);
            command
        };
        let parse = || {
            let mut command = sandbox.command(&ourselves);
            command.arg("parse").arg(&file);
            command
        };
        let (mut composed, mut parsed) = (Times::default(), Times::default());
        // In turns, so that other load on the machine affects both.
        for _ in 0..(50_000 / size).clamp(11, 51) {
            parsed.add(timed(&mut parse())?);
            composed.add(timed(&mut compose())?);
        }
        let ratio = composed.median().as_secs_f64() / parsed.median().as_secs_f64();
        let beside = format!("parsing alone {}, {ratio:.2}×", shown(parsed.median()));
        let aim = if size == SIZES[3] { "300 ms and 3× parsing alone" } else { "" };
        row(&what("compose"), &shown(composed.median()), &beside, aim);

        let (composed, parsed) = (peak(&mut compose())?, peak(&mut parse())?);
        let beside = format!("parsing alone {}, input {}", mib(parsed), mib(input.len() as u64));
        row(&what("memory at its peak"), &mib(composed), &beside, "");
    }
    Ok(())
}

/// The baseline: reads the file, parses it and exits without freeing the result.
pub(crate) fn parse(file: &Path) -> Result<(), BenchError> {
    let bytes = fs::read(file)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| BenchError::new(error.to_string()))?;
    std::mem::forget(value);
    Ok(())
}

/// Modules with four routes, two sidebar items and four tool renderers each.
fn input(modules: usize) -> String {
    let mut text = "{\"compositionSchemaVersion\":\"0.1\",\"modules\":[".to_owned();
    for module in 0..modules {
        let comma = if module == 0 { "" } else { "," };
        let handle = |kind: &str, n: usize| {
            format!(
                "{{\"renderHandleVersion\":\"0.1\",\"kind\":\"{kind}\",\"id\":\"module-{module}.{kind}-{n}\"}}"
            )
        };
        let routes: Vec<String> = (0..4)
            .map(|n| {
                let handle = handle("route", n);
                format!(
                    "{{\"id\":\"route-{n}\",\"path\":\"/module-{module}/route-{n}\",\"title\":\"Route {n}\",\"renderHandle\":{handle}}}"
                )
            })
            .collect();
        let items: Vec<String> = (0..2)
            .map(|n| {
                format!(
                    "{{\"id\":\"item-{n}\",\"label\":\"Item {n}\",\"order\":{n},\"routeKey\":\"module-{module}:routes/route-{n}\"}}"
                )
            })
            .collect();
        let tools: Vec<String> = (0..4)
            .map(|n| {
                let handle = handle("tool-renderer", n);
                format!("{{\"id\":\"tool-{n}\",\"claim\":\"tool:module_{module}.tool_{n}\",\"renderHandle\":{handle}}}")
            })
            .collect();
        let _ = write!(
            text,
            "{comma}{{\"packageId\":\"@acme/module-{module}\",\"packageVersion\":\"0.1.0\",\"moduleApiVersion\":\"0.1\",\
             \"instanceId\":\"module-{module}\",\"runtime\":{{\"status\":\"ready\"}},\"contributions\":{{\
             \"routes\":[{}],\"sidebarItems\":[{}],\"toolRenderers\":[{}]}}}}",
            routes.join(","),
            items.join(","),
            tools.join(",")
        );
    }
    text.push_str("]}");
    text
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

fn timed(command: &mut Command) -> Result<std::time::Duration, BenchError> {
    let start = Instant::now();
    let status = quiet(command).status()?;
    let time = start.elapsed();
    if status.success() { Ok(time) } else { Err(BenchError::new(format!("{command:?} failed"))) }
}

/// Peak memory of a process in bytes. Polled until it exits; run again if it exits before the first poll.
fn peak(command: &mut Command) -> Result<u64, BenchError> {
    let mut peak = 0;
    for _ in 0..50 {
        let mut child = quiet(command).spawn()?;
        while child.try_wait()?.is_none() {
            peak = high_water(&child).unwrap_or(peak).max(peak);
        }
        if peak > 0 {
            break;
        }
    }
    Ok(peak)
}

fn high_water(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// A process that exits before the first poll has no number.
fn mib(bytes: u64) -> String {
    if bytes == 0 { "–".to_owned() } else { format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0)) }
}
