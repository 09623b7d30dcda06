//! One scripted agent: random calls in a session, and what it knows must be true afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tenon_testkit::direct_server::uri;
use tenon_testkit::{Sandbox, code_tools};

use super::agent_client::{AgentClient, Reply};
use crate::oracle::random_edit::RandomEdit;
use crate::source_sample::{self, Random};

/// How often an agent tries to connect: the daemon may be killed while it starts.
const CONNECTS: usize = 5;

/// What all agents of a run share.
pub(super) struct Setting<'a> {
    pub(super) tenon: &'a Path,
    pub(super) sandbox: &'a Sandbox,
    /// How often the daemon was killed: only that may end a connection.
    pub(super) daemon_kills: AtomicUsize,
    /// How often a server was killed in this round: only then may one be unavailable.
    pub(super) server_kills: AtomicUsize,
}

/// A file as an agent left it.
#[derive(Debug)]
pub(super) struct EditedFile {
    pub(super) original: String,
    /// What may be on disk: two texts if the answer to an edit was lost.
    pub(super) texts: Vec<String>,
}

/// An agent and its memory.
pub(super) struct Agent {
    number: usize,
    random: Random,
    /// No other agent edits these.
    files: Vec<String>,
    client: Option<AgentClient>,
    /// How often the daemon had been killed when the session began.
    kills_before: usize,
    pub(super) edited: BTreeMap<String, EditedFile>,
    /// Titles of tasks and notes whose creation was acknowledged.
    pub(super) tasks: Vec<String>,
    pub(super) notes: Vec<String>,
    /// Calls by outcome.
    pub(super) counts: BTreeMap<String, usize>,
    pub(super) violations: Vec<String>,
}

impl Agent {
    pub(super) fn new(number: usize, seed: u64, files: Vec<String>) -> Self {
        Self {
            number,
            random: Random::new(seed.wrapping_add(number as u64 * 7919)),
            files,
            client: None,
            kills_before: 0,
            edited: BTreeMap::new(),
            tasks: Vec::new(),
            notes: Vec::new(),
            counts: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    /// One random action. `step` numbers the actions of all agents.
    pub(super) fn act(&mut self, setting: &Setting<'_>, step: usize) {
        if self.client.is_none() {
            self.kills_before = setting.daemon_kills.load(Ordering::SeqCst);
            self.client = (0..CONNECTS).find_map(|_| AgentClient::connect(setting.tenon, setting.sandbox));
            if self.client.is_none() {
                self.violations.push(format!("agent {} cannot connect", self.number));
                return;
            }
        }
        let mark = format!("soak {} {step}", self.number);
        match self.random.below(12) {
            0..=4 => {
                let (tool, arguments) = self.query(setting.sandbox);
                self.call(setting, tool, &arguments);
            }
            5 | 6 => self.edit(setting),
            7 => self.revert(setting),
            8 => {
                if self.call(setting, "tasks_create", &json!({ "kind": "plan", "title": mark })) {
                    self.tasks.push(mark);
                }
            }
            9 => {
                if self.call(setting, "memory_notes_commit", &json!({ "content": mark })) {
                    self.notes.push(mark);
                }
            }
            10 => {
                let (tool, arguments) = self.query(setting.sandbox);
                self.count("cancelled");
                self.client.iter_mut().for_each(|client| client.call_and_cancel(tool, &arguments));
            }
            _ => {
                self.count("disconnected");
                self.client.take().into_iter().for_each(AgentClient::kill);
            }
        }
    }

    /// Ends its session.
    pub(super) fn disconnect(&mut self) {
        self.client = None;
    }

    fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    /// A question about a random name in a random file.
    fn query(&mut self, sandbox: &Sandbox) -> (&'static str, Value) {
        let file = self.random.choose(&self.files).cloned().unwrap_or_default();
        let text = sandbox.tree().read(&file);
        let names: Vec<(usize, usize, &str)> = text
            .lines()
            .enumerate()
            .flat_map(|(number, line)| {
                let names = source_sample::names(line).into_iter();
                names.map(move |(start, end)| (number, start, &line[start..end]))
            })
            .collect();
        let (line, column, name) = self.random.choose(&names).copied().unwrap_or((0, 0, "x"));
        let position = |number: usize| u32::try_from(number).unwrap_or_default();
        let uri = uri(sandbox, &file);
        let place = code_tools::at(&uri, position(line), position(column));
        match self.random.below(6) {
            0 => (code_tools::DEFINITION, place),
            1 => (code_tools::REFERENCES, place),
            2 => (code_tools::HOVER, place),
            3 => (code_tools::DOCUMENT_SYMBOLS, json!({ "uri": uri })),
            4 => (code_tools::WORKSPACE_SYMBOLS, json!({ "query": name })),
            _ => (code_tools::DOCUMENT_DIAGNOSTICS, json!({ "uri": uri })),
        }
    }

    fn edit(&mut self, setting: &Setting<'_>) {
        let RandomEdit { file, old, new, .. } =
            RandomEdit::choose(&mut self.random, setting.sandbox, &self.files);
        let before = setting.sandbox.tree().read(&file);
        let after = before.replacen(&old, &new, 1);
        self.change(
            setting,
            &file,
            &json!({ "file": file, "old_text": old, "new_text": new }),
            before,
            after,
        );
    }

    /// Writes the original text of a file that it edited before.
    fn revert(&mut self, setting: &Setting<'_>) {
        let files: Vec<String> = self.edited.keys().cloned().collect();
        let Some(file) = self.random.choose(&files).cloned() else { return };
        let before = setting.sandbox.tree().read(&file);
        let after = self.edited[&file].original.clone();
        if before != after {
            let whole = json!({ "file": file, "old_text": before, "new_text": after });
            self.change(setting, &file, &whole, before.clone(), after.clone());
        }
    }

    fn change(
        &mut self,
        setting: &Setting<'_>,
        file: &str,
        arguments: &Value,
        before: String,
        after: String,
    ) {
        let original = before.clone();
        let edited = self.edited.entry(file.to_owned()).or_insert(EditedFile { original, texts: Vec::new() });
        edited.texts = vec![before, after];
        if self.call(setting, "edit_file", arguments)
            && let Some(edited) = self.edited.get_mut(file)
        {
            edited.texts.remove(0);
        }
    }

    /// Calls a tool. Returns whether it succeeded.
    fn call(&mut self, setting: &Setting<'_>, tool: &str, arguments: &Value) -> bool {
        let Some(client) = &mut self.client else { return false };
        let reply = client.call(tool, arguments);
        let daemon_was_killed = setting.daemon_kills.load(Ordering::SeqCst) > self.kills_before;
        let server_was_killed = setting.server_kills.load(Ordering::SeqCst) > 0;
        let (what, is_allowed) = match &reply {
            Reply::Result(result) if result["isError"] == true => ("tool error".to_owned(), true),
            Reply::Result(_) => ("answered".to_owned(), true),
            Reply::Error(error) => {
                let code = error["data"]["code"].as_str().unwrap_or("without a code");
                let is_allowed = match code.rsplit('/').next() {
                    Some("PROVIDER_UNAVAILABLE") => server_was_killed,
                    Some("CAP_EXCEEDED" | "NOT_FOUND") => true,
                    _ => false,
                };
                (format!("error {code}"), is_allowed)
            }
            Reply::Closed => {
                self.client = None;
                ("closed".to_owned(), daemon_was_killed)
            }
            Reply::Silent => {
                self.client = None;
                ("silent".to_owned(), false)
            }
        };
        if !is_allowed {
            self.violations.push(format!("agent {}: {tool} {arguments}: {reply:?}", self.number));
        }
        self.count(what.clone());
        what == "answered"
    }
}
