//! Graphs compared with a simple model: after random operations on random branches, every view equals a plain map.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::client::{Client, On};

/// A node by number, or an edge between two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Node(u8),
    Edge(u8, u8),
}

impl Key {
    fn name(self) -> String {
        match self {
            Self::Node(n) => format!("n{n}"),
            Self::Edge(a, b) => format!("n{a}|to|n{b}"),
        }
    }
}

#[derive(Debug, Clone)]
enum Op {
    Upsert(usize, Key, u8),
    Delete(usize, Key),
    Branch(usize),
    Merge(usize),
    Resolve(usize, bool),
}

/// The content of a key and its revision.
#[derive(Debug, Clone, PartialEq, Default)]
struct Version {
    content: Option<u8>,
    revision: i64,
}

#[derive(Debug, Clone, Default)]
struct Branch {
    base: Option<usize>,
    view: BTreeMap<Key, Version>,
    /// The content at the last merge or at the fork.
    merge_base: BTreeMap<Key, Option<u8>>,
    /// Keys written since the last merge.
    written: BTreeSet<Key>,
}

impl Branch {
    fn content(&self, key: Key) -> Option<u8> {
        self.view.get(&key).and_then(|version| version.content)
    }

    fn write(&mut self, key: Key, content: Option<u8>) {
        let revision = self.view.get(&key).map_or(0, |version| version.revision + 1);
        self.view.insert(key, Version { content, revision });
        self.written.insert(key);
    }
}

/// An open conflict: the target branch, the key, and both versions.
#[derive(Debug, Clone)]
struct Conflict {
    id: String,
    into: usize,
    key: Key,
    theirs: Option<u8>,
    ours: Option<Version>,
}

fn name(branch: usize) -> String {
    if branch == 0 { "main".into() } else { format!("b{branch}") }
}

fn operation(key: Key, content: Option<u8>) -> Value {
    match (key, content) {
        (Key::Node(_), Some(content)) => {
            json!({"op": "node_upsert", "id": key.name(), "type": "t", "title": format!("v{content}")})
        }
        (Key::Node(_), None) => json!({"op": "node_delete", "id": key.name()}),
        (Key::Edge(a, b), Some(content)) => {
            json!({"op": "edge_upsert", "from": format!("n{a}"), "rel": "to", "to": format!("n{b}"), "meta": {"v": content}})
        }
        (Key::Edge(a, b), None) => {
            json!({"op": "edge_delete", "from": format!("n{a}"), "rel": "to", "to": format!("n{b}")})
        }
    }
}

struct Model<'a> {
    client: &'a Client,
    branches: Vec<Branch>,
    conflicts: Vec<Conflict>,
}

impl Model<'_> {
    async fn step(&mut self, op: &Op) {
        match *op {
            Op::Upsert(branch, key, content) => {
                let branch = branch % self.branches.len();
                self.apply(branch, key, Some(content)).await;
            }
            Op::Delete(branch, key) => {
                let branch = branch % self.branches.len();
                self.apply(branch, key, None).await;
            }
            Op::Branch(base) => {
                let base = base % self.branches.len();
                let new = self.branches.len();
                let args = json!({"name": name(new), "from": name(base)});
                self.client.call_quietly("memory_branch_create", args).await.ok();
                let view = self.branches[base].view.clone();
                let merge_base = view.iter().map(|(key, version)| (*key, version.content)).collect();
                self.branches.push(Branch { base: Some(base), view, merge_base, written: BTreeSet::new() });
            }
            Op::Merge(from) => self.merge(from % self.branches.len()).await,
            Op::Resolve(which, use_from) => {
                if !self.conflicts.is_empty() {
                    let conflict = self.conflicts.remove(which % self.conflicts.len());
                    self.resolve(conflict, use_from).await;
                }
            }
        }
    }

    async fn apply(&mut self, branch: usize, key: Key, content: Option<u8>) {
        let args = json!({"branch": name(branch), "doc": "g", "ops": [operation(key, content)]});
        let answer = self.client.call_quietly("memory_graph_apply", args).await;
        let before = self.branches[branch].content(key);
        if content.is_none() && before.is_none() {
            answer.fails("UNKNOWN_ID");
        } else {
            assert_eq!(
                answer.ok()["last_seq"].is_null(),
                before == content,
                "equal content creates no version"
            );
            if before != content {
                self.branches[branch].write(key, content);
            }
        }
    }

    async fn merge(&mut self, from: usize) {
        let into = self.branches[from].base;
        let args = json!({"from": name(from), "into": name(into.unwrap_or(0)), "doc": "g"});
        let answer = self.client.call_quietly("memory_graph_merge", args.clone()).await;
        let Some(into) = into else {
            answer.fails("MERGE_NOT_SUPPORTED");
            return;
        };
        let result = answer.ok();
        let (mut merged, mut conflicts) = (0, Vec::new());
        for key in std::mem::take(&mut self.branches[from].written) {
            let theirs = self.branches[from].content(key);
            let ours = self.branches[into].content(key);
            let base = self.branches[from].merge_base.get(&key).copied().flatten();
            self.branches[from].merge_base.insert(key, theirs);
            if theirs == ours || theirs == base {
                continue;
            }
            if ours == base {
                self.branches[into].write(key, theirs);
                merged += 1;
            } else {
                conflicts.push((key, theirs));
            }
        }
        assert_eq!(
            (result["merged"].clone(), result["conflicts_created"].clone()),
            (json!(merged), json!(conflicts.len()))
        );
        let ids: Vec<String> = serde_json::from_value(result["conflict_ids"].clone()).unwrap();
        for ((key, theirs), id) in conflicts.into_iter().zip(ids) {
            let ours = self.branches[into].view.get(&key).cloned();
            self.conflicts.push(Conflict { id, into, key, theirs, ours });
        }
        let again = self.client.call_quietly("memory_graph_merge", args).await.ok();
        assert_eq!(
            (again["merged"].clone(), again["conflicts_created"].clone()),
            (json!(0), json!(0)),
            "a second merge changes nothing"
        );
    }

    async fn resolve(&mut self, conflict: Conflict, use_from: bool) {
        let resolution = if use_from { "use_from" } else { "use_into" };
        let args = json!({"conflict_id": conflict.id, "resolution": resolution});
        let answer = self.client.call_quietly("memory_graph_conflict_resolve", args).await;
        let moved = self.branches[conflict.into].view.get(&conflict.key).cloned() != conflict.ours;
        if use_from && moved {
            answer.fails("CONFLICT");
            self.conflicts.push(conflict);
            return;
        }
        assert_eq!(answer.ok()["applied"], json!(use_from));
        if use_from {
            self.branches[conflict.into].write(conflict.key, conflict.theirs);
        }
    }

    async fn compare(&self) {
        for branch in 0..self.branches.len() {
            assert_eq!(self.found(branch).await, self.expected(branch), "view of {}", name(branch));
            self.compare_faults(branch).await;
        }
        for from in 0..self.branches.len() {
            for to in 0..self.branches.len() {
                self.compare_diff(from, to).await;
            }
        }
        for into in 0..self.branches.len() {
            let listed = self
                .walk(
                    "memory_graph_conflicts",
                    json!({"into": name(into), "doc": "g", "limit": 2}),
                    &["conflicts"],
                )
                .await;
            let listed: BTreeSet<String> =
                listed.iter().map(|item| item["conflict_id"].as_str().unwrap().to_owned()).collect();
            let expected = self
                .conflicts
                .iter()
                .filter(|conflict| conflict.into == into)
                .map(|conflict| conflict.id.clone());
            assert_eq!(listed, expected.collect(), "open conflicts of {}", name(into));
        }
    }

    /// The items of all pages of an answer.
    async fn walk(&self, tool: &str, mut args: Value, lists: &[&str]) -> Vec<Value> {
        let mut items = Vec::new();
        loop {
            let page = self.client.call_quietly(tool, args.clone()).await.ok();
            items.extend(lists.iter().flat_map(|list| page[*list].as_array().unwrap().clone()));
            args["cursor"] = page["pagination"]["next_cursor"].clone();
            if args["cursor"].is_null() {
                return items;
            }
        }
    }

    /// The view in the store: nodes and their edges, with content and revision.
    async fn found(&self, branch: usize) -> BTreeMap<String, (u8, i64)> {
        let args = json!({"branch": name(branch), "doc": "g", "limit": 3, "edges_limit": 4});
        let items = self.walk("memory_graph_query", args, &["nodes", "edges"]).await;
        let content = |item: &Value| match item["meta"]["v"].as_u64() {
            Some(content) => content as u8,
            None => item["title"].as_str().unwrap()[1..].parse().unwrap(),
        };
        let key = |item: &Value| item["key"].as_str().or(item["id"].as_str()).unwrap().to_owned();
        items.iter().map(|item| (key(item), (content(item), item["revision"].as_i64().unwrap()))).collect()
    }

    /// The view in the model. Queries return edges with their nodes, so an edge without any node is left out.
    fn expected(&self, branch: usize) -> BTreeMap<String, (u8, i64)> {
        let branch = &self.branches[branch];
        let live =
            branch.view.iter().filter_map(|(key, version)| Some((*key, version.content?, version.revision)));
        live.filter(|(key, ..)| match *key {
            Key::Node(_) => true,
            Key::Edge(a, b) => {
                branch.content(Key::Node(a)).is_some() || branch.content(Key::Node(b)).is_some()
            }
        })
        .map(|(key, content, revision)| (key.name(), (content, revision)))
        .collect()
    }

    async fn compare_faults(&self, branch: usize) {
        let model = &self.branches[branch];
        let args = json!({"branch": name(branch), "doc": "g", "limit": 2});
        let faults = self.walk("memory_graph_validate", args.clone(), &["errors"]).await;
        let faults: Vec<(String, String)> = faults
            .iter()
            .map(|fault| {
                (fault["key"].as_str().unwrap().to_owned(), fault["code"].as_str().unwrap().to_owned())
            })
            .collect();
        let mut expected = Vec::new();
        for key in model.view.keys().filter(|key| model.content(**key).is_some()) {
            if let Key::Edge(a, b) = *key {
                for (end, code) in [(a, "EDGE_FROM_MISSING"), (b, "EDGE_TO_MISSING")] {
                    if model.content(Key::Node(end)).is_none() {
                        expected.push((key.name(), code.to_owned()));
                    }
                }
            }
        }
        expected.sort();
        assert_eq!(faults, expected, "faults of {}", name(branch));
        let checked = self.client.call_quietly("memory_graph_validate", args).await.ok();
        let count = |edges: bool| {
            let keys = model.view.keys().filter(|key| model.content(**key).is_some());
            keys.filter(|key| matches!(key, Key::Edge(..)) == edges).count()
        };
        assert_eq!(checked["stats"], json!({"nodes": count(false), "edges": count(true)}));
    }

    async fn compare_diff(&self, from: usize, to: usize) {
        let args = json!({"from": name(from), "to": name(to), "doc": "g", "limit": 3});
        let changes = self.walk("memory_graph_diff", args, &["changes"]).await;
        let changed: BTreeSet<String> = changes
            .iter()
            .map(|change| change["id"].as_str().or(change["key"].as_str()).unwrap().to_owned())
            .collect();
        assert_eq!(changed.len(), changes.len(), "each key occurs once");
        let keys = self.branches[from].view.keys().chain(self.branches[to].view.keys());
        let expected =
            keys.filter(|key| self.branches[from].content(**key) != self.branches[to].content(**key));
        assert_eq!(changed, expected.map(|key| key.name()).collect(), "{} against {}", name(from), name(to));
    }
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        3 => (0_u8..6).prop_map(Key::Node),
        2 => (0_u8..6, 0_u8..6).prop_map(|(a, b)| Key::Edge(a, b)),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => (0_usize..8, key(), 0_u8..4).prop_map(|(branch, key, content)| Op::Upsert(branch, key, content)),
        4 => (0_usize..8, key()).prop_map(|(branch, key)| Op::Delete(branch, key)),
        2 => (0_usize..8).prop_map(Op::Branch),
        3 => (0_usize..8).prop_map(Op::Merge),
        2 => (0_usize..8, any::<bool>()).prop_map(|(which, use_from)| Op::Resolve(which, use_from)),
    ]
}

fn check(on: On, cases: u32) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let ops = prop::collection::vec(op(), 1..50);
    let outcome = TestRunner::new(config).run(&ops, |ops| {
        runtime.block_on(async {
            let client = Client::new(on).await;
            client.ok("memory_init", json!({})).await;
            let mut model =
                Model { client: &client, branches: vec![Branch::default()], conflicts: Vec::new() };
            for op in &ops {
                model.step(op).await;
            }
            model.compare().await;
            assert_eq!(client.work.store().check().await.unwrap().problems, Vec::<String>::new());
            client.work.store().close().await;
        });
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

#[test]
fn graph_views_match_the_model_on_sqlite() {
    check(On::Sqlite, 40);
}

#[test]
fn graph_views_match_the_model_on_postgres() {
    check(On::Postgres, 10);
}
