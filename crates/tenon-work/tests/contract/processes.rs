//! Many processes on one store, killed processes, and a full disk.
//!
//! The other processes run this test binary: [`child`] is a test that does nothing unless a role is set.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tenon_contract::clock::{Clock, Entropy};
use tenon_work::{Store, StoreLocation, Work, WorkSettings, WorkspaceName};

use crate::client::call;
use crate::fixture::step;
use tenon_testkit::postgres;

const ROLE: &str = "TENON_WORK_TEST_ROLE";
const STORE: &str = "TENON_WORK_TEST_STORE";

async fn open(location: &StoreLocation) -> Work {
    let settings = WorkSettings { workspace: Some(WorkspaceName::parse("w").unwrap()), strict: false };
    Work::new(Store::open(location).await.unwrap(), Clock::system(), settings)
}

/// Starts this binary as another process on the store.
fn spawn(role: &str, store: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "processes::child", "--nocapture", "--test-threads=1"]);
    command
        .env(ROLE, role)
        .env(STORE, store)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

/// The output of a child: the lines that begin with `=`.
fn output_of(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines: Lines<BufReader<ChildStdout>> = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter_map(|line| line.strip_prefix('=').map(str::to_owned))
}

/// Prints a value on a separate line, since the test harness may have printed part of a line.
#[expect(clippy::print_stdout, reason = "the parent process reads stdout")]
fn output(value: impl std::fmt::Display) {
    println!("\n={value}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let work = open(&StoreLocation::parse(&std::env::var(STORE).unwrap()).unwrap()).await;
    let (role, number) = role.split_once('-').unwrap();
    match role {
        "mutate" => mutate(&work, number.parse().unwrap()).await,
        "claim" => claim(&work, number).await,
        "race" => race(&work).await,
        "write" => write(&work).await,
        "fill" => fill_the_disk(&work, number).await,
        other => panic!("no role {other}"),
    }
}

/// Writes notes to a shared task and sometimes creates a task. Outputs the event ids.
async fn mutate(work: &Work, count: usize) {
    for number in 0..count {
        let (tool, args) = if number % 10 == 9 {
            ("tasks_create", json!({"title": "mine", "parent": "PLAN-001"}))
        } else {
            ("tasks_note", json!({"task": "TASK-001", "note": format!("note {number}")}))
        };
        let written = call(work, tool, args).await.ok();
        output(written["event"]["event_id"].as_str().unwrap());
    }
}

/// Claims tasks until the queue is empty.
async fn claim(work: &Work, agent: &str) {
    loop {
        let claimed = call(work, "tasks_next", json!({"claim": true, "agent": agent, "limit": 1})).await.ok();
        let Some(task) = claimed["task"]["id"].as_str() else { return };
        output(task);
        call(work, "tasks_edit", json!({"task": task, "status": "done"})).await.ok();
    }
}

/// Edits with the revision it just read, until twenty edits have succeeded.
async fn race(work: &Work) {
    let mut won = 0;
    while won < 20 {
        let found = call(work, "tasks_context", json!({"ids": ["TASK-001"]})).await.ok();
        let revision = found["tasks"][0]["revision"].as_i64().unwrap();
        let title = format!("{} {won}", std::process::id());
        let args = json!({"task": "TASK-001", "title": title, "expected_revision": revision});
        let answer = call(work, "tasks_edit", args).await;
        if answer.envelope["success"] == json!(true) {
            won += 1;
            output(revision + 1);
        } else {
            answer.fails("REVISION_MISMATCH");
        }
    }
}

/// Writes records of many kinds until it is killed. Ends by itself long after that.
async fn write(work: &Work) {
    for number in 0..2000 {
        let (tool, args) = match number % 4 {
            0 => (
                "tasks_note",
                json!({"task": "TASK-001", "path": "s:0", "note": "n".repeat(number * 7 % 5000 + 1)}),
            ),
            1 => ("tasks_decompose", json!({"task": "TASK-001", "steps": [step("more")]})),
            2 => ("tasks_undo", json!({"task": "TASK-001"})),
            _ => ("tasks_block", json!({"task": "TASK-001", "blocked": number % 8 == 3, "reason": "r"})),
        };
        let written = call(work, tool, args).await.ok();
        if let Some(event) = written["event"]["event_id"].as_str() {
            output(event);
        }
    }
}

async fn prepare(location: &StoreLocation) -> Work {
    let work = open(location).await;
    call(&work, "tasks_create", json!({"title": "Plan"})).await.ok();
    call(&work, "tasks_create", json!({"title": "Task", "parent": "PLAN-001", "steps": [step("s")]}))
        .await
        .ok();
    work
}

/// Runs children until they exit and collects the output of each.
fn run(roles: &[String], store: &str) -> Vec<Vec<String>> {
    let mut children: Vec<Child> = roles.iter().map(|role| spawn(role, store)).collect();
    // One thread per pipe, so that no child blocks on a full pipe.
    let readers: Vec<_> = children
        .iter_mut()
        .map(|child| {
            let lines = output_of(child);
            std::thread::spawn(move || lines.collect::<Vec<String>>())
        })
        .collect();
    let outputs = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    for (child, role) in children.iter_mut().zip(roles) {
        assert!(child.wait().unwrap().success(), "{role} failed");
    }
    outputs
}

/// Many processes write concurrently: no write is lost, rejected or counted twice.
async fn concurrent_writes(location: &StoreLocation, store: &str, processes: usize, writes: usize) {
    let work = prepare(location).await;
    let roles = vec![format!("mutate-{writes}"); processes];
    let outputs = run(&roles, store);
    assert!(outputs.iter().all(|events| events.len() == writes));
    for events in &outputs {
        assert!(events.is_sorted_by(|a, b| a < b), "event ids of one process ascend");
    }
    let all: BTreeSet<&String> = outputs.iter().flatten().collect();
    assert_eq!(all.len(), processes * writes, "event ids are unique");
    let report = work.store().check().await.unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(report.events as usize, processes * writes + 2);
    let found = call(&work, "tasks_context", json!({"ids": ["TASK-001"]})).await.ok();
    assert_eq!(found["tasks"][0]["revision"], processes * (writes - writes / 10));
    assert_eq!(found["tasks"][0]["notes"], processes * (writes - writes / 10));
    let found = call(&work, "tasks_context", json!({"limit": 1})).await.ok();
    assert_eq!(found["counts"]["tasks"], processes * (writes / 10) + 1);
    work.store().close().await;
}

/// Every task is claimed by exactly one process.
async fn concurrent_claims(location: &StoreLocation, store: &str, processes: usize, tasks: usize) {
    let work = open(location).await;
    call(&work, "tasks_create", json!({"title": "Plan"})).await.ok();
    for _ in 0..tasks {
        call(&work, "tasks_create", json!({"title": "t", "parent": "PLAN-001"})).await.ok();
    }
    let roles: Vec<String> = (0..processes).map(|number| format!("claim-agent{number}")).collect();
    let claimed: Vec<String> = run(&roles, store).into_iter().flatten().collect();
    assert_eq!(claimed.len(), tasks);
    assert_eq!(claimed.iter().collect::<BTreeSet<_>>().len(), tasks);
    work.store().close().await;
}

/// Of all edits that expect the same revision, exactly one succeeds.
async fn concurrent_edits(location: &StoreLocation, store: &str, processes: usize) {
    let work = prepare(location).await;
    let outputs = run(&vec!["race-0".to_owned(); processes], store);
    let mut revisions: Vec<usize> =
        outputs.iter().flatten().map(|revision| revision.parse().unwrap()).collect();
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=processes * 20).collect::<Vec<_>>());
    assert_eq!(work.store().check().await.unwrap().problems, Vec::<String>::new());
    work.store().close().await;
}

fn sqlite(folder: &TempDir) -> (StoreLocation, String) {
    let path = folder.path().join("store.db");
    (StoreLocation::Sqlite(path.clone()), path.display().to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_processes_write_to_one_sqlite_file() {
    let folder = TempDir::new().unwrap();
    let (location, store) = sqlite(&folder);
    concurrent_writes(&location, &store, 16, 500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn four_daemons_write_to_one_postgres_server() {
    let url = postgres::database();
    concurrent_writes(&StoreLocation::Postgres(url.clone()), &url, 4, 250).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_task_is_claimed_once_on_sqlite() {
    let folder = TempDir::new().unwrap();
    let (location, store) = sqlite(&folder);
    concurrent_claims(&location, &store, 8, 60).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_task_is_claimed_once_on_postgres() {
    let url = postgres::database();
    concurrent_claims(&StoreLocation::Postgres(url.clone()), &url, 4, 40).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_edit_wins_per_revision_on_sqlite() {
    let folder = TempDir::new().unwrap();
    let (location, store) = sqlite(&folder);
    concurrent_edits(&location, &store, 6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_edit_wins_per_revision_on_postgres() {
    let url = postgres::database();
    concurrent_edits(&StoreLocation::Postgres(url.clone()), &url, 4).await;
}

/// Kills writers at random moments: acknowledged writes must survive, and the store must stay consistent.
async fn kill(location: StoreLocation, store: String, seed: u64, rounds: usize) {
    let work = prepare(&location).await;
    let entropy = Entropy::seeded(seed);
    let mut acknowledged = BTreeSet::new();
    for round in 0..rounds {
        let mut child = spawn("write-0", &store);
        let mut lines = output_of(&mut child);
        // Kill at a random moment: after some acknowledged writes and a random delay.
        let [writes, low, high] = entropy.bytes();
        acknowledged.extend(lines.by_ref().take(usize::from(writes % 8) + 1));
        for _ in 0..u16::from_le_bytes([low, high]) {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged.extend(lines);
        if round % 30 == 29 || round + 1 == rounds {
            let report = work.store().check().await.unwrap();
            assert_eq!(report.problems, Vec::<String>::new(), "after round {round}");
            assert!(report.events as usize >= acknowledged.len());
        }
    }
    let mut since = json!(null);
    let mut found = BTreeSet::new();
    loop {
        let args = json!({"since": since, "limit": 200, "max_chars": 100_000});
        let page = call(&work, "tasks_delta", args).await.ok();
        let events: Vec<Value> = page["events"].as_array().unwrap().clone();
        let Some(last) = events.last() else { break };
        since = last["event_id"].clone();
        found.extend(events.iter().map(|event| event["event_id"].as_str().unwrap().to_owned()));
    }
    let lost: Vec<&String> = acknowledged.difference(&found).collect();
    assert!(lost.is_empty(), "acknowledged but lost: {lost:?}");
    assert!(acknowledged.len() >= rounds, "every round has acknowledged writes");
    work.store().close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn acknowledged_writes_survive_kill_9() {
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let [(first, first_store), (second, second_store)] = [sqlite(&folders[0]), sqlite(&folders[1])];
    let url = postgres::database();
    // Three stores in parallel; the server is the slowest.
    let kills = tenon_testkit::processes::kills(300) as usize;
    let (file, server) = (kills * 13 / 30, kills - 2 * (kills * 13 / 30));
    let rounds = [
        tokio::spawn(kill(first, first_store, 1, file)),
        tokio::spawn(kill(second, second_store, 2, file)),
        tokio::spawn(kill(StoreLocation::Postgres(url.clone()), url, 3, server)),
    ];
    for stores in rounds {
        stores.await.unwrap();
    }
}

/// Fills a disk of two megabytes, frees space, and continues.
async fn fill_the_disk(work: &Work, folder: &str) {
    call(work, "tasks_create", json!({"title": "Plan"})).await.ok();
    let ballast = std::path::Path::new(folder).join("ballast");
    std::fs::write(&ballast, vec![1; 300 * 1024]).unwrap();
    let mut written = 0;
    let failure = loop {
        let answer = call(work, "tasks_note", json!({"task": "PLAN-001", "note": "x".repeat(20_000)})).await;
        if answer.envelope["success"] == json!(false) {
            break answer;
        }
        written += 1;
        assert!(written < 500, "the disk does not fill up");
    };
    let failure = failure.fails("STORE_ERROR");
    assert_eq!(
        (failure.error()["message"].as_str(), failure.error()["retryable"].as_bool()),
        (Some("the disk is full"), Some(true))
    );
    assert!(failure.error()["recovery"].is_string());
    // While the disk is full, writes keep failing and reads work.
    call(work, "tasks_note", json!({"task": "PLAN-001", "note": "x".repeat(20_000)}))
        .await
        .fails("STORE_ERROR");
    let notes = async || call(work, "tasks_context", json!({})).await.ok()["plans"][0]["notes"].clone();
    assert_eq!(notes().await, written);
    std::fs::remove_file(&ballast).unwrap();
    call(work, "tasks_note", json!({"task": "PLAN-001", "note": "room again"})).await.ok();
    assert_eq!(notes().await, written + 1);
    assert_eq!(work.store().check().await.unwrap().problems, Vec::<String>::new());
    output("done");
}

#[test]
fn full_disk_is_a_typed_error_and_writes_stay_atomic() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().display().to_string();
    // A tmpfs in a mount namespace that ends with the process; needs no privileges.
    let script = r#"mount -t tmpfs -o size=2m tmpfs "$1" && exec "$2" --exact processes::child --nocapture --test-threads=1"#;
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh", &path])
        .arg(std::env::current_exe().unwrap())
        .env(ROLE, format!("fill-{path}"))
        .env(STORE, format!("{path}/store.db"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("=done"), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}
