//! Several daemons on one store, PostgreSQL or SQLite.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_testkit::{McpClient, Sandbox, postgres};

use crate::{call, connect_by};

/// A machine of a team: separate user, folders and daemon, but a shared store.
struct Machine {
    sandbox: Sandbox,
    store: String,
}

impl Machine {
    fn new(store: &str) -> Self {
        Self { sandbox: Sandbox::new(), store: store.to_owned() }
    }

    fn tenon(&self, args: &[&str]) -> Command {
        let mut command = self.sandbox.tenon();
        command.args(args).env("TENON_WORK_STORE", &self.store).env("TENON_WORKSPACE_ID", "team/project");
        command
    }

    /// A client of this machine's daemon.
    fn connect(&self) -> McpClient {
        connect_by(&mut self.tenon(&["mcp", "--surface", "tasks,memory"]))
    }
}

fn team(store: &str, size: usize) -> Vec<Machine> {
    let machines: Vec<Machine> = (0..size).map(|_| Machine::new(store)).collect();
    let mut client = machines[0].connect();
    call(&mut client, "tasks_create", json!({"title": "Plan"}));
    call(&mut client, "tasks_create", json!({"title": "Shared", "parent": "PLAN-001"}));
    client.close();
    machines
}

/// Runs a function with a client on every machine concurrently.
fn on_all_machines<T: Send>(
    machines: &[Machine],
    work: impl Fn(&mut McpClient, usize) -> T + Sync,
) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = machines
            .iter()
            .enumerate()
            .map(|(number, machine)| {
                scope.spawn(move || {
                    let mut client = machine.connect();
                    let outcome = work(&mut client, number);
                    client.close();
                    outcome
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn write_from_four_daemons(store: &str) {
    const WRITES: usize = 60;
    let machines = team(store, 4);
    let events = on_all_machines(&machines, |client, number| {
        let write = |index| {
            let note = json!({"task": "TASK-001", "note": format!("{number}.{index}")});
            let written = call(client, "tasks_note", note);
            assert_eq!(written["success"], true, "{written}");
            written["result"]["event"]["event_id"].as_str().unwrap().to_owned()
        };
        (0..WRITES).map(write).collect::<Vec<String>>()
    });
    assert!(events.iter().all(|events| events.is_sorted_by(|one, next| one < next)));
    let all: BTreeSet<&String> = events.iter().flatten().collect();
    let expected: Vec<String> = (3..3 + 4 * WRITES).map(|number| format!("evt_{number:016}")).collect();
    assert!(all.into_iter().eq(&expected), "event ids are consecutive and unique");
    let mut client = machines[3].connect();
    let found = call(&mut client, "tasks_context", json!({"ids": ["TASK-001"]}));
    assert_eq!(found["result"]["tasks"][0]["revision"], 4 * WRITES);

    // Every task is claimed by exactly one machine.
    for number in 0..40 {
        call(&mut client, "tasks_create", json!({"title": format!("Task {number}"), "parent": "PLAN-001"}));
    }
    client.close();
    let claimed = on_all_machines(&machines, |client, number| {
        let mut mine = Vec::new();
        loop {
            let arguments = json!({"claim": true, "agent": format!("agent {number}"), "limit": 1});
            let answer = call(client, "tasks_next", arguments);
            let Some(id) = answer["result"]["task"]["id"].as_str().map(str::to_owned) else { return mine };
            call(client, "tasks_edit", json!({"task": id, "status": "done"}));
            mine.push(id);
        }
    });
    let all: Vec<String> = claimed.into_iter().flatten().collect();
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (41, 41));

    let checked = machines[0].tenon(&["store", "check", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!((checked.status.code(), &report["problems"]), (Some(0), &json!([])));
}

#[test]
fn four_daemons_write_to_one_postgres_server() {
    write_from_four_daemons(&postgres::database());
}

#[test]
fn four_daemons_write_to_one_sqlite_file() {
    let folder = Sandbox::new();
    write_from_four_daemons(folder.folder().join("team.db").to_str().unwrap());
}

/// One client waits for events while a client on another machine writes.
fn wait_for_event_of_another_daemon(store: &str) {
    const ROUNDS: std::ops::Range<usize> = 3..8;
    let machines = team(store, 1);
    let event = |number: usize| format!("evt_{number:016}");
    let (ready, begun) = mpsc::sync_channel(0);
    thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let mut client = machines[0].connect();
            for round in ROUNDS {
                ready.send(()).unwrap();
                let arguments = json!({"since": event(round - 1), "wait_ms": 25_000});
                let asked = Instant::now();
                let delta = call(&mut client, "tasks_delta", arguments);
                // Without a wake-up the answer comes only after the full wait.
                assert!(asked.elapsed() < Duration::from_secs(20), "the event did not arrive");
                assert_eq!(delta["result"]["events"][0]["event_id"], event(round));
            }
            client.close();
            machines
        });
        let machine = Machine::new(store);
        let mut client = machine.connect();
        for round in ROUNDS {
            begun.recv().unwrap();
            let written = call(&mut client, "tasks_note", json!({"task": "TASK-001", "note": "news"}));
            assert_eq!(written["result"]["event"]["event_id"], event(round));
        }
        client.close();
        waiting.join().unwrap();
    });
}

#[test]
fn events_reach_another_daemon_through_sqlite() {
    let folder = Sandbox::new();
    wait_for_event_of_another_daemon(folder.folder().join("team.db").to_str().unwrap());
}

#[test]
fn events_reach_another_daemon_through_postgres() {
    wait_for_event_of_another_daemon(&postgres::database());
}
