//! The `tasks` and `memory` surfaces: plans, tasks, notes, branches and graphs in one store.
//!
//! Every answer is the envelope of the domain, as structured result and as one text item; `isError` marks failures. Only
//! an unknown tool is a JSON-RPC error.

mod classify;
mod store_handle;
mod workspace_links;

use std::sync::Arc;
use std::time::Duration;

use tenon_work::{Access, Envelope, WorkSurfaceKind, WorkTool};

pub use store_handle::{LinkError, StoreHandle};

use crate::surface::{
    Arguments, CallFailure, CallLimits, Catalog, SchemaFault, Surface, SurfaceTool, ToolAnswer, ToolCall,
    ToolOutcome, ToolSpec,
};
use classify::classify;

/// A call waits at most 25 seconds for events; the rest is for the store.
const DEADLINE: Duration = Duration::from_secs(60);

/// The envelope is sent twice, as structure and as text.
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

/// One of the two surfaces.
pub(crate) struct WorkSurface {
    name: &'static str,
    catalog: Catalog<WorkTool>,
    store: Arc<StoreHandle>,
}

impl WorkSurface {
    pub(crate) fn tasks(store: &Arc<StoreHandle>) -> Self {
        Self::new("tasks", WorkSurfaceKind::Tasks, store)
    }

    pub(crate) fn memory(store: &Arc<StoreHandle>) -> Self {
        Self::new("memory", WorkSurfaceKind::Memory, store)
    }

    fn new(name: &'static str, kind: WorkSurfaceKind, store: &Arc<StoreHandle>) -> Self {
        let tools: Vec<WorkTool> =
            WorkTool::ALL.iter().copied().filter(|tool| tool.surface() == kind).collect();
        Self { name, catalog: Catalog::lenient(&tools), store: Arc::clone(store) }
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
        let request = match self.store.parse(tool, arguments) {
            Ok(request) => request,
            Err(rejected) => return Ok(answer(*rejected)),
        };
        if request.wait().is_zero() {
            return Ok(answer(self.store.call(&request).await));
        }
        let waiting = self.store.call(&request);
        let finished = call.caller.input_ended.0.run_until_cancelled(waiting).await;
        Ok(answer(match finished {
            Some(envelope) => envelope,
            // The client sends nothing more, so it gets the current state instead of waiting for events.
            None => self.store.call(&request.without_wait()).await,
        }))
    }

    fn classify(&self, tool: WorkTool, failure: CallFailure) -> ToolOutcome {
        Ok(answer(self.store.failed(tool, classify(tool, &failure))))
    }

    fn classify_arguments(&self, tool: WorkTool, arguments: &Arguments, fault: SchemaFault) -> ToolOutcome {
        let error = classify(tool, &CallFailure::InvalidArguments(fault));
        Ok(answer(self.store.rejected(tool, arguments, error)))
    }
}
