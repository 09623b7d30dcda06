//! Runs requests: transaction, tool, envelope, commit. A suggestion leaves only after a dry run of it succeeded.

use serde_json::{Map, Value, json};
use tenon_contract::clock::Clock;
use tenon_contract::json::canonical_value;
use tokio::time::Instant;

use crate::catalog::{Access, WorkTool};
use crate::envelope::{self, Envelope, Frame};
use crate::error::{Priority, Proposal, WorkError, WorkErrorCode};
use crate::last_write::LastWrite;
use crate::lean::{self, Check, ImportedTasks, LeanAnswer, LeanCaller, LeanError, LeanRequest};
use crate::name::WorkspaceName;
use crate::request::WorkRequest;
use crate::store::{OptimisticWriter, Row, Store, Tx, Unread};
use crate::tools;
use crate::work_call::{WorkCall, WorkReply};
use crate::workspace::Workspace;

/// Answers to writes stay below this; tasks_delta returns event payloads that are left out.
const MAX_WRITE_BYTES: usize = 64 * 1024;

/// How this instance behaves.
#[derive(Debug, Clone, Default)]
pub struct WorkSettings {
    /// The workspace of calls that do not name one.
    pub workspace: Option<WorkspaceName>,
    /// Whether `memory_init` must create a workspace before it is used.
    pub strict: bool,
}

impl WorkSettings {
    /// Parses the arguments of a call.
    ///
    /// # Errors
    /// The envelope that reports why they were rejected.
    pub fn parse(
        &self,
        tool: WorkTool,
        arguments: Map<String, Value>,
        clock: &Clock,
    ) -> Result<WorkRequest, Box<Envelope>> {
        let workspace = self.workspace_in(&arguments);
        WorkRequest::from_json(tool, arguments, self.workspace.as_ref()).map_err(|error| {
            let frame = Frame { workspace, ..self.frame(tool, clock) };
            Box::new(Envelope::new(frame.failed(error)))
        })
    }

    /// The envelope of a call whose arguments were rejected before they were parsed.
    #[must_use]
    pub fn rejected(
        &self,
        tool: WorkTool,
        arguments: &Map<String, Value>,
        error: WorkError,
        clock: &Clock,
    ) -> Envelope {
        let frame = Frame { workspace: self.workspace_in(arguments), ..self.frame(tool, clock) };
        Envelope::new(frame.failed(error))
    }

    /// The envelope of a call that did not complete: no store, a timeout, a cancellation, or a response too large.
    #[must_use]
    pub fn failed(&self, tool: WorkTool, error: WorkError, clock: &Clock) -> Envelope {
        Envelope::new(self.frame(tool, clock).failed(error))
    }

    /// The workspace that unparsed arguments are about, if they name a valid one or none.
    fn workspace_in(&self, arguments: &Map<String, Value>) -> Option<WorkspaceName> {
        let named = arguments.get("workspace").and_then(Value::as_str).map(WorkspaceName::parse);
        named.map_or(self.workspace.clone(), Result::ok)
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

/// What a transaction led to.
struct Executed {
    envelope: Envelope,
    /// The workspace as the store has it after a write.
    workspace: Workspace,
    /// Whether the answer is a list without items.
    is_empty: bool,
}

/// Plans, tasks and memory of all workspaces in a store.
pub struct Work {
    store: Store,
    clock: Clock,
    settings: WorkSettings,
    last_write: LastWrite,
}

impl Work {
    pub fn new(store: Store, clock: Clock, settings: WorkSettings) -> Self {
        Self { store, clock, settings, last_write: LastWrite::default() }
    }

    /// The same store with another default workspace.
    #[must_use]
    pub fn in_workspace(&self, workspace: WorkspaceName) -> Self {
        let settings = WorkSettings { workspace: Some(workspace), ..self.settings.clone() };
        Self::new(self.store.clone(), self.clock.clone(), settings)
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Parses the arguments of a call.
    ///
    /// # Errors
    /// The envelope that reports why they were rejected.
    pub fn parse(&self, tool: WorkTool, arguments: Map<String, Value>) -> Result<WorkRequest, Box<Envelope>> {
        self.settings.parse(tool, arguments, &self.clock)
    }

    /// Whether the store has a workspace.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn has_workspace(&self, name: &WorkspaceName) -> Result<bool, WorkError> {
        let permit = self.store.acquire(Access::Read).await?;
        let transaction = async {
            let mut tx = permit.begin().await?;
            let found = Workspace::read(&mut tx, name).await;
            tx.rollback().await;
            Ok(found?.is_some())
        };
        self.store.allow_blocking(transaction).await
    }

    /// Runs one request. Failures are envelopes too.
    pub async fn call(&self, request: &WorkRequest) -> Envelope {
        let mut frame = self.frame(request.tool);
        frame.workspace = Some(request.workspace.clone());
        frame.warnings.clone_from(&request.warnings);
        let outcome = if request.wait().is_zero() {
            self.run(&frame, request).await.map(|executed| executed.envelope)
        } else {
            self.wait_for_events(&frame, request).await
        };
        match outcome {
            Ok(envelope) => envelope,
            Err(failure) => {
                frame.suggestions = self.suggestions(&request.workspace, failure.proposals()).await;
                Envelope::new(frame.failed(failure))
            }
        }
    }

    fn frame(&self, tool: WorkTool) -> Frame {
        self.settings.frame(tool, &self.clock)
    }

    /// Runs the request again after every commit until it finds events or the time is up.
    async fn wait_for_events(&self, frame: &Frame, request: &WorkRequest) -> Result<Envelope, WorkError> {
        let deadline = Instant::now() + request.wait();
        let mut commits = self.store.changes().subscribe().await?;
        loop {
            let executed = self.run(frame, request).await?;
            if !executed.is_empty {
                return Ok(executed.envelope);
            }
            if tokio::time::timeout_at(deadline, commits.next()).await.is_err() {
                return Ok(self.run(frame, request).await?.envelope);
            }
        }
    }

    /// Runs a request: without a lock if it may be enough, or else in one transaction.
    async fn run(&self, frame: &Frame, request: &WorkRequest) -> Result<Executed, WorkError> {
        let access = tools::access(request);
        let writer = self.store.optimistic().filter(|_| tools::reads_only_named(request.tool));
        // Boxed, as it is large.
        let executed = match writer {
            Some(writer) => Box::pin(self.run_optimistically(writer, frame, request)).await,
            None => None,
        };
        let executed = match executed {
            Some(executed) => executed?,
            None => {
                if access == Access::Write {
                    self.last_write.clear();
                }
                self.run_in_transaction(frame, request, access).await?
            }
        };
        if access == Access::Write {
            self.store.changes().publish();
        }
        Ok(executed)
    }

    /// Runs a small write without a transaction. None if the request needs one; then nothing is stored.
    async fn run_optimistically(
        &self,
        writer: &OptimisticWriter,
        frame: &Frame,
        request: &WorkRequest,
    ) -> Option<Result<Executed, WorkError>> {
        let named = request.named()?;
        let name = &request.workspace;
        let executed = match self.last_write.take(name, &named) {
            Some(known) => self.run_unread(writer, frame, request, known).await,
            None => None,
        };
        let executed = match executed {
            Some(executed) => executed,
            None => {
                let (sql, args) = named.read(name.as_str());
                let inside = async |tx: &mut Tx, row: Row| {
                    let ws = Workspace::with_read_ahead(row, name)?;
                    self.run_tool(tx, frame, request, ws, Vec::new()).await
                };
                writer.run(sql, &args, inside).await?
            }
        };
        if let Ok(executed) = &executed {
            self.last_write.put(named, &executed.workspace);
        }
        Some(executed)
    }

    /// The same for a call that knows what the last one has written. None if it must read.
    async fn run_unread(
        &self,
        writer: &OptimisticWriter,
        frame: &Frame,
        request: &WorkRequest,
        known: Workspace,
    ) -> Option<Result<Executed, WorkError>> {
        let inside = async |tx: &mut Tx| self.run_tool(tx, frame, request, known.clone(), Vec::new()).await;
        match writer.run_unread(inside).await {
            Unread::Done(executed) => Some(Ok(executed)),
            Unread::Nothing => None,
            Unread::Unknown(error) => {
                let again = self.run_if_not_written(frame, request, &known).await;
                Some(again.ok_or_else(|| error.into()))
            }
        }
    }

    /// Runs a write whose connection broke once more, unless it may have been stored. The server may still be running the
    /// first one: this one changes the row that is the guard of the first one, so the first one fails then.
    async fn run_if_not_written(
        &self,
        frame: &Frame,
        request: &WorkRequest,
        known: &Workspace,
    ) -> Option<Executed> {
        let permit = self.store.acquire(Access::Write).await.ok()?;
        let transaction = async {
            let mut tx = permit.begin().await.ok()?;
            let (ws, warnings) = self.open_workspace(&mut tx, request, Access::Write).await.ok()?;
            if !ws.is_stored_as(known) {
                tx.rollback().await;
                return None;
            }
            let executed = self.run_tool(&mut tx, frame, request, ws, warnings).await.ok()?;
            tx.commit().await.ok()?;
            Some(executed)
        };
        self.store.allow_blocking(transaction).await
    }

    async fn run_in_transaction(
        &self,
        frame: &Frame,
        request: &WorkRequest,
        access: Access,
    ) -> Result<Executed, WorkError> {
        let permit = self.store.acquire(access).await?;
        let transaction = async {
            let mut tx = permit.begin().await?;
            // Boxed, as it is large.
            match Box::pin(self.execute(&mut tx, frame, request, access)).await {
                Ok(executed) => {
                    if access == Access::Write {
                        tx.commit().await?;
                    }
                    Ok(executed)
                }
                Err(failure) => {
                    tx.rollback().await;
                    Err(failure)
                }
            }
        };
        self.store.allow_blocking(transaction).await
    }

    /// Everything between the beginning of a transaction and its end.
    async fn execute(
        &self,
        tx: &mut Tx,
        frame: &Frame,
        request: &WorkRequest,
        access: Access,
    ) -> Result<Executed, WorkError> {
        let (ws, warnings) = self.open_workspace(tx, request, access).await?;
        self.run_tool(tx, frame, request, ws, warnings).await
    }

    /// Runs the tool, renders its answer, and writes the workspace.
    async fn run_tool(
        &self,
        tx: &mut Tx,
        frame: &Frame,
        request: &WorkRequest,
        ws: Workspace,
        warnings: Vec<String>,
    ) -> Result<Executed, WorkError> {
        let mut call =
            WorkCall { tx, ws, request: request.clone(), now: self.now(), warnings, proposals: Vec::new() };
        let reply = tools::run(&mut call, request.args.clone()).await?;
        let WorkCall { tx, mut ws, warnings, proposals, .. } = call;
        let is_empty = reply.is_empty();
        // Rendered before the commit: an answer that exceeds its budget must not leave a change behind.
        let envelope = render(frame, request, reply, warnings, &proposals)?;
        if tools::access(request) == Access::Write {
            ws.save(tx).await?;
            tx.notify(request.workspace.as_str()).await?;
        }
        Ok(Executed { envelope, workspace: ws, is_empty })
    }

    /// Finds the workspace of a call, or creates it for a write.
    async fn open_workspace(
        &self,
        tx: &mut Tx,
        request: &WorkRequest,
        access: Access,
    ) -> Result<(Workspace, Vec<String>), WorkError> {
        let name = &request.workspace;
        let found = match (access, request.named()) {
            (Access::Write, Some(named)) => Workspace::lock_and_read(tx, name, &named).await?,
            (Access::Write, None) => Workspace::lock(tx, name).await?,
            (Access::Read, _) => Workspace::read(tx, name).await?,
        };
        if let Some(workspace) = found {
            return Ok((workspace, Vec::new()));
        }
        let init = || Proposal::new(WorkTool::MemoryInit, json!({}), "Create the workspace", Priority::High);
        if access == Access::Read {
            if self.settings.strict && request.tool != WorkTool::MemoryStatus {
                return Err(WorkError::new(
                    WorkErrorCode::UnknownWorkspace,
                    format!("there is no workspace `{name}`"),
                )
                .recovery("check the name, or create it with memory_init")
                .propose(init()));
            }
            return Ok((Workspace::missing(name), vec![format!("workspace `{name}` does not exist yet")]));
        }
        if self.settings.strict && request.tool != WorkTool::MemoryInit {
            return Err(WorkError::new(
                WorkErrorCode::NotInitialized,
                format!("workspace `{name}` is not initialised"),
            )
            .recovery("call memory_init first")
            .propose(init()));
        }
        let workspace = Workspace::create(tx, name, self.now()).await?;
        Ok((workspace, vec![format!("workspace `{name}` was created")]))
    }

    /// Runs a call of the surface `work`.
    ///
    /// # Errors
    /// When a rule rejects it, or the store fails.
    pub async fn lean(&self, request: &LeanRequest) -> Result<LeanAnswer, LeanError> {
        let access = request.tool().access();
        // Boxed, as it is large.
        Box::pin(self.lean_call(access, async |call: &mut WorkCall<'_>| request.run(call).await)).await
    }

    /// The checks that must run before a call of the surface `work`.
    ///
    /// # Errors
    /// As [`Work::lean`].
    pub async fn lean_checks(&self, request: &LeanRequest) -> Result<Vec<Check>, LeanError> {
        self.lean_call(Access::Read, async |call: &mut WorkCall<'_>| request.checks(call).await).await
    }

    /// The summary for a session that starts without context; empty if no task is open.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn resume_text(&self, caller: &LeanCaller) -> Result<LeanAnswer, LeanError> {
        self.lean_call(Access::Read, async |call: &mut WorkCall<'_>| lean::resume_text(call, caller).await)
            .await
    }

    /// Adds the tasks of a Markdown text.
    ///
    /// # Errors
    /// When a rule rejects a task, or the store fails. Nothing is added then.
    pub async fn import_tasks(&self, markdown: &str) -> Result<ImportedTasks, LeanError> {
        self.lean_call(Access::Write, async |call: &mut WorkCall<'_>| {
            lean::import_tasks(call, markdown).await
        })
        .await
    }

    /// All plans with their tasks as Markdown.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn export_tasks(&self) -> Result<String, LeanError> {
        self.lean_call(Access::Read, async |call: &mut WorkCall<'_>| lean::export_tasks(call).await).await
    }

    /// Runs something in one transaction on the workspace of this instance.
    async fn lean_call<T>(
        &self,
        access: Access,
        inside: impl AsyncFnOnce(&mut WorkCall<'_>) -> Result<T, LeanError>,
    ) -> Result<T, LeanError> {
        let Some(workspace) = &self.settings.workspace else {
            return Err(WorkError::invalid("there is no workspace").into());
        };
        if access == Access::Write {
            self.last_write.clear();
        }
        let permit = self.store.acquire(access).await?;
        let transaction = async {
            let mut tx = permit.begin().await?;
            match Box::pin(self.execute_lean(&mut tx, workspace, access, inside)).await {
                Ok(answer) => {
                    if access == Access::Write {
                        tx.commit().await?;
                    }
                    Ok(answer)
                }
                Err(failure) => {
                    tx.rollback().await;
                    Err(failure)
                }
            }
        };
        let answer = self.store.allow_blocking(transaction).await?;
        if access == Access::Write {
            self.store.changes().publish();
        }
        Ok(answer)
    }

    async fn execute_lean<T>(
        &self,
        tx: &mut Tx,
        workspace: &WorkspaceName,
        access: Access,
        inside: impl AsyncFnOnce(&mut WorkCall<'_>) -> Result<T, LeanError>,
    ) -> Result<T, LeanError> {
        let request = lean::outer_request(workspace);
        let (ws, _) = self.open_workspace(tx, &request, access).await?;
        let mut call =
            WorkCall { tx, ws, request, now: self.now(), warnings: Vec::new(), proposals: Vec::new() };
        let answer = inside(&mut call).await?;
        let WorkCall { tx, mut ws, .. } = call;
        if access == Access::Write {
            ws.save(tx).await?;
            tx.notify(workspace.as_str()).await?;
        }
        Ok(answer)
    }

    fn now(&self) -> i64 {
        self.clock.now().as_millisecond()
    }

    /// The proposals that succeed in a dry run on the current state.
    async fn suggestions(&self, workspace: &WorkspaceName, proposals: &[Proposal]) -> Vec<Value> {
        let mut suggestions = Vec::new();
        for proposal in proposals {
            let params = envelope::params(proposal, workspace);
            if let Ok(request) = WorkRequest::from_json(proposal.tool, params, None)
                && self.dry_run(&request).await.is_ok()
            {
                suggestions.push(envelope::suggestion(proposal, workspace));
            }
        }
        suggestions
    }

    /// Runs a request without committing it.
    async fn dry_run(&self, request: &WorkRequest) -> Result<(), WorkError> {
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
fn render(
    frame: &Frame,
    request: &WorkRequest,
    reply: WorkReply,
    warnings: Vec<String>,
    proposals: &[Proposal],
) -> Result<Envelope, WorkError> {
    let mut frame = frame.clone();
    frame.workspace = Some(request.workspace.clone());
    frame.warnings.extend(warnings);
    for proposal in proposals {
        let params = envelope::params(proposal, &request.workspace);
        let valid = WorkRequest::from_json(proposal.tool, params, None).is_ok();
        debug_assert!(valid, "proposal has invalid arguments: {proposal:?}");
        if valid {
            frame.suggestions.push(envelope::suggestion(proposal, &request.workspace));
        }
    }
    match reply {
        WorkReply::Page(page) => {
            let (page, paging) = *page;
            page.render(frame, &paging).map_err(|failure| suggest_minimum(failure, request))
        }
        WorkReply::Done(result) => {
            let envelope = Envelope::new(frame.around(result));
            if envelope.text().len() <= MAX_WRITE_BYTES {
                return Ok(envelope);
            }
            let (mut value, _) = envelope.into_parts();
            if canonical_value(&value["result"]).len() > MAX_WRITE_BYTES
                && drop_payloads(&mut value["result"])
                && let Some(warnings) = value["warnings"].as_array_mut()
            {
                warnings.push("event payloads were left out; tasks_delta returns them".into());
            }
            Ok(Envelope::new(value))
        }
    }
}

/// Adds the call with the smallest budget that suffices, if the budget was too small.
fn suggest_minimum(failure: WorkError, request: &WorkRequest) -> WorkError {
    let Some(minimum) = failure.extra("minimum").cloned() else { return failure };
    let again = request.repeated_with(json!({"max_chars": minimum}));
    failure.propose(Proposal::new(
        request.tool,
        again,
        "Repeat with the smallest budget that fits",
        Priority::High,
    ))
}

/// Removes the payloads of the events in an answer; true if there were any.
fn drop_payloads(value: &mut Value) -> bool {
    match value {
        Value::Object(map) if map.contains_key("event_id") => map.remove("payload").is_some(),
        Value::Object(map) => map.values_mut().map(drop_payloads).fold(false, |any, one| any | one),
        Value::Array(items) => items.iter_mut().map(drop_payloads).fold(false, |any, one| any | one),
        _ => false,
    }
}
