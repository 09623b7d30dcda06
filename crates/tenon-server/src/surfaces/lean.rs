//! The `work` surface: tasks and memory in eight tools, answered with text.
//!
//! [`tenon_work`] reads the arguments in whatever form a model sends them, so the catalog does not check them against the
//! schemas it lists. A failure is one line of text with `isError`. Before a step with a check closes, this surface runs the
//! check: diagnostics through the language servers, commands where the user allows them.

use std::sync::Arc;
use std::time::Duration;

use tenon_contract::clock::Entropy;
use tenon_lsp::CallContext;
use tenon_work::{Access, LeanCaller, LeanError, LeanRequest, LeanTool, VcsHead, WorkErrorCode};

use crate::engine::Engine;
use crate::surface::{
    Arguments, CallFailure, CallLimits, Catalog, Surface, SurfaceTool, ToolAnswer, ToolCall, ToolOutcome,
    ToolSpec,
};
use crate::surfaces::work::StoreHandle;
use crate::workspace::Workspace;

/// Long enough for the command of a check.
const DEADLINE: Duration = Duration::from_secs(600);

const INSTRUCTIONS: &str = "Tasks and memory of this workspace outlive your context. Start with `task_show` to see what was \
    being done. Before work of several steps, `task_add` with steps; after each step, `task_update` with `step` and `done`. \
    `remember` what a later session must know, decisions above all; `recall` before you decide again.";

impl SurfaceTool for LeanTool {
    fn spec(self) -> ToolSpec {
        ToolSpec {
            name: LeanTool::name(self),
            description: self.description(),
            input: self.schema(),
            output: None,
            read_only: self.access() == Access::Read,
        }
    }
}

/// See the module.
pub(crate) struct LeanSurface {
    catalog: Catalog<LeanTool>,
    workspace: Arc<Workspace>,
    store: Arc<StoreHandle>,
    engine: Arc<Engine>,
    daemon_name: String,
}

impl LeanSurface {
    pub(crate) const NAME: &'static str = "work";

    pub(crate) fn new(workspace: &Arc<Workspace>, store: &Arc<StoreHandle>, engine: &Arc<Engine>) -> Self {
        Self {
            catalog: Catalog::natural(LeanTool::ALL),
            workspace: Arc::clone(workspace),
            store: Arc::clone(store),
            engine: Arc::clone(engine),
            daemon_name: daemon_name(&Entropy::system()),
        }
    }

    async fn run(
        &self,
        tool: LeanTool,
        arguments: Arguments,
        call: ToolCall,
    ) -> Result<ToolAnswer, LeanError> {
        let caller = LeanCaller {
            agent: format!("{}.{}", self.daemon_name, call.caller.client.0),
            head: VcsHead::read(self.workspace.root().as_std_path()),
            checks: Vec::new(),
        };
        let request = LeanRequest::read(tool, arguments, caller)?;
        let work = self.store.work_for(tool.access()).await?;
        let request = match tool {
            LeanTool::TaskUpdate => {
                let checks = work.lean_checks(&request).await?;
                let context = CallContext::new(call.deadline, call.caller.cancel.clone());
                let context = context.for_client(call.caller.client.0);
                request.with_checks(self.engine.run_step_checks(&checks, &context).await)
            }
            _ => request,
        };
        let answer = work.lean(&request).await?;
        let is_refused = answer.data["refused"] == true;
        let answer = ToolAnswer::text(answer.text);
        Ok(if is_refused { answer.failed() } else { answer })
    }
}

/// The name of this daemon in claims, such as `laptop-3f9a1c`: unique among all daemons of a shared store.
fn daemon_name(entropy: &Entropy) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.trim().chars().filter(|one| !one.is_control()).take(60).collect();
    let host = if host.is_empty() { "agent" } else { &host };
    let [a, b, c] = entropy.bytes::<3>();
    format!("{host}-{a:02x}{b:02x}{c:02x}")
}

/// One line, with a next step.
fn classify(failure: &CallFailure) -> ToolAnswer {
    let message = match failure {
        CallFailure::InvalidArguments(fault) => format!("{}: {}", fault.location(), fault.message),
        CallFailure::Timeout(limit) => format!("no answer within {} s; ask again", limit.as_secs()),
        CallFailure::Cancelled => "the call was cancelled".to_owned(),
        CallFailure::ResponseTooLarge { bytes, limit } => {
            format!("the answer has {bytes} bytes, {limit} are allowed; lower max_bytes")
        }
        CallFailure::Internal => "the tool failed; run `tenon doctor`".to_owned(),
    };
    ToolAnswer::text(message).failed()
}

impl Surface for LeanSurface {
    type Tool = LeanTool;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn catalog(&self) -> &Catalog<LeanTool> {
        &self.catalog
    }

    fn instructions(&self) -> Option<&'static str> {
        Some(INSTRUCTIONS)
    }

    fn limits(&self) -> CallLimits {
        CallLimits { deadline: DEADLINE, ..CallLimits::default() }
    }

    async fn call(&self, tool: LeanTool, arguments: Arguments, call: ToolCall) -> ToolOutcome {
        let outcome = self.run(tool, arguments, call).await;
        Ok(outcome.unwrap_or_else(|error| {
            let hint = match error.code() {
                WorkErrorCode::StoreError => "; run `tenon doctor`",
                _ => "",
            };
            ToolAnswer::text(format!("{error}{hint}")).failed()
        }))
    }

    fn classify(&self, _tool: LeanTool, failure: CallFailure) -> ToolOutcome {
        Ok(classify(&failure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_short_and_daemons_have_different_names() {
        assert!(INSTRUCTIONS.len() <= 400, "{}", INSTRUCTIONS.len());
        assert!(!INSTRUCTIONS.contains("  "));
        let entropy = Entropy::seeded(1);
        assert_ne!(daemon_name(&entropy), daemon_name(&entropy));
    }
}
