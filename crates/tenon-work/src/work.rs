//! The life of a call: request, transaction, tool, envelope, commit, and the proof of every suggestion.

use serde_json::{Map, Value, json};
use tenon_contract::clock::Clock;
use tenon_contract::json::canonical_value;
use tokio::time::Instant;

use crate::catalog::{Access, WorkTool};
use crate::envelope::{self, Envelope, Frame};
use crate::error::{Priority, Proposal, WorkError, WorkErrorCode};
use crate::name::WorkspaceName;
use crate::request::Request;
use crate::store::{Backend, NOTIFY, Store, Tx, args};
use crate::tools;
use crate::work_call::{WorkCall, WorkReply};
use crate::workspace::Workspace;

/// Answers to writes stay below this; what an event says beyond can be read with tasks_delta.
const MAX_WRITE_BYTES: usize = 64 * 1024;

/// How this instance behaves.
#[derive(Debug, Clone, Default)]
pub struct WorkSettings {
    /// The workspace of calls that do not name one.
    pub workspace: Option<WorkspaceName>,
    /// Whether workspaces must be made with `memory_init` before they are used.
    pub strict: bool,
}

impl WorkSettings {
    /// The envelope of a call that never reached its tool: there is no store, it was cut off, or it answered too much.
    #[must_use]
    pub fn failed(&self, tool: WorkTool, failure: WorkError, clock: &Clock) -> Envelope {
        Envelope::new(self.frame(tool, clock).failed(failure))
    }

    fn frame(&self, tool: WorkTool, clock: &Clock) -> Frame {
        Frame {
            intent: tool.intent(),
            timestamp: clock.rfc3339(),
            workspace: self.workspace.clone(),
            warnings: Vec::new(),
            suggestions: Vec::new(),
        }
    }
}

/// Plans, tasks and memory of all workspaces in a store.
pub struct Work {
    store: Store,
    clock: Clock,
    settings: WorkSettings,
}

impl Work {
    pub fn new(store: Store, clock: Clock, settings: WorkSettings) -> Self {
        Self { store, clock, settings }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Runs one tool. Whatever happens, the answer is an envelope.
    pub async fn call(&self, tool: WorkTool, args: Map<String, Value>) -> Envelope {
        let mut frame = self.frame(tool);
        let named = args.get("workspace").and_then(Value::as_str).map(WorkspaceName::parse);
        frame.workspace = named.map_or(self.settings.workspace.clone(), Result::ok);
        let request = match Request::parse(tool, args, self.settings.workspace.as_ref()) {
            Ok(request) => request,
            Err(failure) => return Envelope::new(frame.failed(failure)),
        };
        frame.warnings.clone_from(&request.warnings);
        let outcome = if request.wait.is_zero() {
            self.run(&frame, &request).await
        } else {
            self.wait_for_events(&frame, &request).await
        };
        match outcome {
            Ok(envelope) => envelope,
            Err(failure) => {
                frame.suggestions = self.validated(&request.workspace, failure.proposals()).await;
                Envelope::new(frame.failed(failure))
            }
        }
    }

    fn frame(&self, tool: WorkTool) -> Frame {
        self.settings.frame(tool, &self.clock)
    }

    /// Looks again after every piece of news until there is something to tell or the time is up.
    async fn wait_for_events(&self, frame: &Frame, request: &Request) -> Result<Envelope, WorkError> {
        let deadline = Instant::now() + request.wait;
        let mut waiting = self.store.changes().subscribe().await?;
        loop {
            let envelope = self.run(frame, request).await?;
            let nothing = envelope.value()["result"]["events"].as_array().is_some_and(Vec::is_empty);
            if !nothing || tokio::time::timeout_at(deadline, waiting.news()).await.is_err() {
                return if nothing { self.run(frame, request).await } else { Ok(envelope) };
            }
        }
    }

    /// One transaction from its beginning to its commit.
    async fn run(&self, frame: &Frame, request: &Request) -> Result<Envelope, WorkError> {
        let access = tools::access(request);
        let permit = self.store.acquire(access).await?;
        let transaction = async {
            let mut tx = permit.begin().await?;
            match self.execute(&mut tx, frame, request, access).await {
                Ok((envelope, news)) => {
                    if access == Access::Write {
                        tx.commit().await?;
                    }
                    Ok((envelope, news))
                }
                Err(failure) => {
                    tx.rollback().await;
                    Err(failure)
                }
            }
        };
        let (envelope, news) = self.store.allow_blocking(transaction).await?;
        if news {
            self.store.changes().publish();
        }
        Ok(envelope)
    }

    /// All that happens between the beginning of a transaction and its end, and whether it is news.
    async fn execute(
        &self,
        tx: &mut Tx,
        frame: &Frame,
        request: &Request,
        access: Access,
    ) -> Result<(Envelope, bool), WorkError> {
        let (ws, warnings) = self.open_workspace(tx, request, access).await?;
        let events_before = ws.last_event();
        let mut call =
            WorkCall { tx, ws, request: request.clone(), now: self.now(), warnings, proposals: Vec::new() };
        let reply = tools::run(&mut call).await?;
        let WorkCall { tx, mut ws, warnings, proposals, .. } = call;
        // Before the commit: an answer that does not fit must not leave anything behind.
        let envelope = finish(frame, request, reply, warnings, &proposals)?;
        let news = ws.last_event() > events_before;
        if access == Access::Write {
            ws.save(tx).await?;
            if news && tx.backend() == Backend::Postgres {
                tx.write(NOTIFY, args![request.workspace.as_str()]).await?;
            }
        }
        Ok((envelope, news))
    }

    /// Finds the workspace of a call, or makes it for a write.
    async fn open_workspace(
        &self,
        tx: &mut Tx,
        request: &Request,
        access: Access,
    ) -> Result<(Workspace, Vec<String>), WorkError> {
        let name = &request.workspace;
        let found = match access {
            Access::Write => Workspace::lock(tx, name).await?,
            Access::Read => Workspace::read(tx, name).await?,
        };
        if let Some(workspace) = found {
            return Ok((workspace, Vec::new()));
        }
        let init = || Proposal::new(WorkTool::MemoryInit, json!({}), "Make the workspace", Priority::High);
        if access == Access::Read {
            if self.settings.strict && request.tool != WorkTool::MemoryStatus {
                return Err(WorkError::new(
                    WorkErrorCode::UnknownWorkspace,
                    format!("there is no workspace `{name}`"),
                )
                .recovery("check the name, or make it with memory_init")
                .propose(init()));
            }
            return Ok((Workspace::missing(name), vec![format!("workspace `{name}` does not exist yet")]));
        }
        if self.settings.strict && request.tool != WorkTool::MemoryInit {
            return Err(WorkError::new(
                WorkErrorCode::NotInitialized,
                format!("workspace `{name}` was never initialised"),
            )
            .recovery("call memory_init first")
            .propose(init()));
        }
        let workspace = Workspace::create(tx, name, self.now()).await?;
        Ok((workspace, vec![format!("workspace `{name}` was created")]))
    }

    fn now(&self) -> i64 {
        self.clock.now().as_millisecond()
    }

    /// Runs each proposed call on the current state, takes it back, and keeps those that worked.
    async fn validated(&self, workspace: &WorkspaceName, proposals: &[Proposal]) -> Vec<Value> {
        let mut proven = Vec::new();
        for proposal in proposals {
            let params = envelope::params(proposal, workspace);
            if let Ok(request) = Request::parse(proposal.tool, params, None)
                && self.dry_run(&request).await.is_ok()
            {
                proven.push(envelope::suggestion(proposal, workspace));
            }
        }
        proven
    }

    /// A call whose transaction is never committed.
    async fn dry_run(&self, request: &Request) -> Result<(), WorkError> {
        let access = tools::access(request);
        let permit = self.store.acquire(access).await?;
        let transaction = async {
            let mut tx = permit.begin().await?;
            let inside = self.execute(&mut tx, &self.frame(request.tool), request, access).await;
            let flushed = tx.flush().await;
            tx.rollback().await;
            inside?;
            Ok(flushed?)
        };
        self.store.allow_blocking(transaction).await
    }
}

/// The envelope of a tool that succeeded.
fn finish(
    frame: &Frame,
    request: &Request,
    reply: WorkReply,
    warnings: Vec<String>,
    proposals: &[Proposal],
) -> Result<Envelope, WorkError> {
    let mut frame = frame.clone();
    frame.workspace = Some(request.workspace.clone());
    frame.warnings.extend(warnings);
    for proposal in proposals {
        let valid = envelope::is_valid(proposal.tool, &envelope::params(proposal, &request.workspace));
        debug_assert!(valid, "proposed a call that breaks its schema: {proposal:?}");
        if valid {
            frame.suggestions.push(envelope::suggestion(proposal, &request.workspace));
        }
    }
    match reply {
        WorkReply::Page(page) => {
            let (page, request) = *page;
            page.render(frame, &request)
        }
        WorkReply::Done(result) => {
            let mut result = Value::Object(result);
            if canonical_value(&result).len() > MAX_WRITE_BYTES && drop_payloads(&mut result) {
                frame.warnings.push("payloads of events were left out; tasks_delta has them".into());
            }
            let Value::Object(result) = result else { unreachable!("built from a map above") };
            Ok(Envelope::new(frame.around(result)))
        }
    }
}

/// Takes the payloads out of the events in an answer; true if there were any.
fn drop_payloads(value: &mut Value) -> bool {
    match value {
        Value::Object(map) if map.contains_key("event_id") => map.remove("payload").is_some(),
        Value::Object(map) => map.values_mut().map(drop_payloads).fold(false, |any, one| any | one),
        Value::Array(items) => items.iter_mut().map(drop_payloads).fold(false, |any, one| any | one),
        _ => false,
    }
}
