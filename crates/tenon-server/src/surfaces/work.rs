//! The `tasks` and `memory` surfaces: plans, tasks, notes, branches and graphs in one store.
//!
//! Every answer, failures included, is the envelope of the domain, as structured result and as one text item; `isError` says
//! whether it is one of failure. Only an unknown tool is a JSON-RPC error. The domain checks arguments against the
//! published schemas itself: a fault is an envelope with a code, a recovery and, where there is one, a suggestion.

use std::sync::Arc;
use std::time::Duration;

use tenon_contract::clock::Clock;
use tenon_work::{
    Access, Envelope, Store, StoreError, StoreLocation, StoreLocationError, Work, WorkError, WorkSettings,
    WorkTool, WorkspaceName,
};
use tokio::sync::OnceCell;

use crate::surface::{
    Arguments, CallFailure, CallLimits, Catalog, Surface, SurfaceTool, ToolAnswer, ToolCall, ToolOutcome,
    ToolSpec,
};
use crate::workspace::Workspace;

/// The argument that says how long a call waits for news.
const WAIT: &str = "wait_ms";

/// The longest wait for news is 25 seconds; the rest is for the store.
const DEADLINE: Duration = Duration::from_secs(60);

/// The envelope travels twice, as structure and as text.
const RESPONSE_BYTES: usize = 8 * 1024 * 1024;

impl SurfaceTool for WorkTool {
    fn spec(self) -> ToolSpec {
        ToolSpec {
            name: WorkTool::name(self),
            description: self.description(),
            input: self.schema(),
            output: None,
            read_only: self.access() == Access::Read,
        }
    }
}

fn catalog(surface: tenon_work::WorkSurfaceKind) -> Catalog<WorkTool> {
    let tools: Vec<WorkTool> =
        WorkTool::ALL.iter().copied().filter(|tool| tool.surface() == surface).collect();
    Catalog::unchecked(&tools)
}

/// The store of a workspace, opened by the first call that needs it.
pub struct StoreHandle {
    /// A setting that names no place is told to whoever wants the store.
    location: Result<StoreLocation, StoreLocationError>,
    settings: WorkSettings,
    clock: Clock,
    work: OnceCell<Work>,
}

impl StoreHandle {
    pub fn new(workspace: &Workspace) -> Self {
        let config = workspace.config();
        let location = match &config.work.store {
            Some(store) => StoreLocation::parse(store),
            None => Ok(StoreLocation::Sqlite(workspace.dirs().store().into_std_path_buf())),
        };
        let named = config.workspace.id.as_deref().and_then(|id| WorkspaceName::parse(id).ok());
        let name = named.unwrap_or_else(|| tenon_work::workspace_id(workspace.root().as_std_path()));
        let settings = WorkSettings { workspace: Some(name), strict: config.work.strict };
        Self { location, settings, clock: workspace.clock().clone(), work: OnceCell::new() }
    }

    /// What is behind the surfaces. A store that could not be opened is tried again by the next call.
    pub async fn work(&self) -> Result<&Work, StoreError> {
        self.work
            .get_or_try_init(|| async {
                let store = Store::open(self.location()?).await?;
                Ok(Work::new(store, self.clock.clone(), self.settings.clone()))
            })
            .await
    }

    /// Where the store is.
    pub fn location(&self) -> Result<&StoreLocation, StoreError> {
        Ok(self.location.as_ref().map_err(|misplaced| *misplaced)?)
    }

    /// Calls a tool. Whatever happens, the answer is an envelope.
    pub async fn call(&self, tool: WorkTool, arguments: Arguments) -> Envelope {
        match self.work().await {
            Ok(work) => work.call(tool, arguments).await,
            Err(error) => self.settings.failed(tool, error.into(), &self.clock),
        }
    }

    /// Closes the store, if it was opened.
    pub async fn close(&self) {
        if let Some(work) = self.work.get() {
            work.store().close().await;
        }
    }
}

/// One of the two surfaces.
pub struct WorkSurface {
    name: &'static str,
    catalog: Catalog<WorkTool>,
    store: Arc<StoreHandle>,
}

impl WorkSurface {
    pub fn tasks(store: &Arc<StoreHandle>) -> Self {
        Self { name: "tasks", catalog: catalog(tenon_work::WorkSurfaceKind::Tasks), store: Arc::clone(store) }
    }

    pub fn memory(store: &Arc<StoreHandle>) -> Self {
        Self {
            name: "memory",
            catalog: catalog(tenon_work::WorkSurfaceKind::Memory),
            store: Arc::clone(store),
        }
    }
}

fn answer(envelope: Envelope) -> ToolAnswer {
    let failed = !envelope.success();
    let (value, text) = envelope.into_parts();
    let answer = ToolAnswer::structured(value).with_text(text);
    if failed { answer.failed() } else { answer }
}

impl Surface for WorkSurface {
    type Tool = WorkTool;

    fn name(&self) -> &'static str {
        self.name
    }

    fn catalog(&self) -> &Catalog<WorkTool> {
        &self.catalog
    }

    fn limits(&self) -> CallLimits {
        CallLimits { deadline: DEADLINE, response_bytes: RESPONSE_BYTES }
    }

    async fn call(&self, tool: WorkTool, arguments: Arguments, call: ToolCall) -> ToolOutcome {
        if !arguments.contains_key(WAIT) {
            return Ok(answer(self.store.call(tool, arguments).await));
        }
        let waiting = self.store.call(tool, arguments.clone());
        let finished = call.caller.input_ended.0.run_until_cancelled(waiting).await;
        Ok(answer(match finished {
            Some(envelope) => envelope,
            // The client sends nothing more, so it gets the current state instead of waiting for news.
            None => {
                let mut arguments = arguments;
                arguments.remove(WAIT);
                self.store.call(tool, arguments).await
            }
        }))
    }

    fn classify(&self, tool: WorkTool, failure: CallFailure) -> ToolOutcome {
        let failure = match failure {
            CallFailure::Timeout(_) => WorkError::unfinished("the call took too long"),
            CallFailure::Cancelled => WorkError::unfinished("the call was cancelled"),
            CallFailure::ResponseTooLarge { bytes, limit } => WorkError::too_large(bytes, limit),
            CallFailure::InvalidArguments(_) | CallFailure::Internal => WorkError::internal(),
        };
        Ok(answer(self.store.settings.failed(tool, failure, &self.store.clock)))
    }
}
