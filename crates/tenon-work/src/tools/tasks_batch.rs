//! `tasks_batch`: several calls in one transaction. If one fails, all are rolled back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tenon_contract::json::canonical_value;

use crate::arguments::NonEmpty;

use crate::catalog::{Access, WorkSurfaceKind, WorkTool};
use crate::envelope::Frame;
use crate::error::{Proposal, WorkError, WorkErrorCode};
use crate::id::TargetId;
use crate::limits;
use crate::name::quoted;
use crate::request::WorkRequest;
use crate::work_call::{WorkCall, WorkReply};
use crate::workspace::Workspace;

/// Limit of all results together; a larger batch is rolled back.
const MAX_RESULT_BYTES: usize = 512 * 1024;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    operations: NonEmpty<Operation>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Operation {
    tool: String,
    #[serde(default)]
    args: Map<String, Value>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    results: Vec<Value>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<Answer, WorkError> {
    limits::count("operations", args.operations.0.len(), limits::PER_CALL)?;
    let outer = call.request.clone();
    let before = call.ws.clone();
    let mut wrote = false;
    let mut results = Vec::new();
    let mut bytes = 0;
    for (index, operation) in args.operations.0.into_iter().enumerate() {
        let earlier_warnings = call.warnings.len();
        let outcome = one(call, &outer, index, operation).await;
        let request = std::mem::replace(&mut call.request, outer.clone());
        let result = outcome.map_err(|failure| {
            let failure = failure.with("index", index);
            if wrote { failure.rolled_back(|proposal| names_existing(proposal, &before)) } else { failure }
        })?;
        wrote |= super::access(&request) == Access::Write;
        bytes += canonical_value(&result).len();
        results.push(result);
        if bytes > MAX_RESULT_BYTES {
            return Err(WorkError::invalid("the results of the batch are too large")
                .recovery("split it into several batches")
                .with("index", index));
        }
        for warning in &mut call.warnings[earlier_warnings..] {
            *warning = format!("operation {index}: {warning}");
        }
    }
    // The proposals of an operation may be outdated after those that followed it.
    call.proposals.clear();
    Ok(Answer { results })
}

/// Whether all plans and tasks that a proposal names existed before the batch.
fn names_existing(proposal: &Proposal, before: &Workspace) -> bool {
    fn names(value: &Value, unknown: &dyn Fn(&str) -> bool) -> bool {
        match value {
            Value::String(text) => unknown(text),
            Value::Array(items) => items.iter().any(|item| names(item, unknown)),
            Value::Object(map) => map.values().any(|item| names(item, unknown)),
            _ => false,
        }
    }
    let unknown = |text: &str| text.parse::<TargetId>().is_ok_and(|id| !before.has_issued(id));
    !proposal.params.values().any(|value| names(value, &unknown))
}

async fn one(
    call: &mut WorkCall<'_>,
    outer: &WorkRequest,
    index: usize,
    operation: Operation,
) -> Result<Value, WorkError> {
    let tool = WorkTool::by_name(&operation.tool).filter(|tool| tool.surface() == WorkSurfaceKind::Tasks);
    let tool = tool.ok_or_else(|| {
        WorkError::new(
            WorkErrorCode::UnknownTool,
            format!("{} cannot be called in a batch", quoted(&operation.tool)),
        )
        .recovery("call tools whose names begin with tasks_")
    })?;
    if tool == WorkTool::TasksBatch {
        return Err(
            WorkError::invalid("a batch cannot contain a batch").recovery("list its operations instead")
        );
    }
    let mut request = WorkRequest::from_json(tool, operation.args, Some(&outer.workspace))?;
    if request.workspace != outer.workspace {
        return Err(WorkError::invalid("a batch has one workspace").recovery("leave `workspace` out"));
    }
    // Expectations of the batch apply to the first operation, strict targeting to all.
    request.guard.strict |= outer.guard.strict;
    if index == 0 {
        request.guard.revision = request.guard.revision.or(outer.guard.revision);
        request.guard.target = request.guard.target.or_else(|| outer.guard.target.clone());
    }
    call.warnings.append(&mut request.warnings);
    let args = request.args.clone();
    call.request = request;
    match super::run(call, args).await? {
        WorkReply::Done(mut result) => {
            result.insert("workspace".into(), json!(call.ws.name.as_str()));
            Ok(Value::Object(result))
        }
        WorkReply::Page(page) => {
            let (page, request) = *page;
            let frame = Frame {
                intent: tool.intent(),
                timestamp: crate::plan::target::time(call.now),
                workspace: Some(outer.workspace.clone()),
                warnings: Vec::new(),
                suggestions: Vec::new(),
            };
            let (mut envelope, _) = page.render(frame, &request)?.into_parts();
            Ok(envelope["result"].take())
        }
    }
}
