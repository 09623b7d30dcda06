//! `tasks_radar`: now, why, verify, next, blockers.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::call::{Call, Reply};
use crate::catalog::Tool;
use crate::error::{Failure, Priority};
use crate::page::{Page, object};
use crate::plan::digest::{self, Digest};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    pub task: Option<String>,
}

pub(super) async fn run(call: &mut Call<'_>) -> Result<Reply, Failure> {
    let args: Args = call.args()?;
    let Some(digest) = digest(call, args.task.as_deref()).await? else {
        return nothing(
            call,
            json!({"radar": {"now": null, "why": null, "verify": [], "next": [], "blockers": []}}),
        );
    };
    let request = call.paging(&digest.target.fields.revision.to_string())?;
    let mut head = digest.head();
    head.insert("requested".into(), json!(args.task));
    head.insert("focus".into(), json!(call.ws.focus));
    propose_next(call, &digest);
    let page = digest::page(head, Digest::SLOTS.to_vec(), digest.radar(), &request)?;
    Ok(Reply::page(page, request))
}

/// The digest of the task that a call names, or of the focus; nothing if there is neither.
pub(super) async fn digest(call: &mut Call<'_>, given: Option<&str>) -> Result<Option<Digest>, Failure> {
    let Some(id) = call.target_id(given)? else { return Ok(None) };
    let target = call.load(id).await?;
    Ok(Some(Digest::read(call.tx, call.ws.id, target).await?))
}

/// The answer about no task at all.
pub(super) fn nothing(call: &mut Call<'_>, rest: Value) -> Result<Reply, Failure> {
    call.warn("no task given, and no focus is set");
    call.propose(Tool::TasksContext, json!({}), "See what there is", Priority::High);
    let request = call.paging("")?;
    let mut head: Map<String, Value> = object(rest);
    for name in ["target", "reasoning_ref", "requested", "focus"] {
        head.insert(name.into(), Value::Null);
    }
    Ok(Reply::page(Page { head, ..Page::default() }, request))
}

/// What the state of the current step asks for.
pub(super) fn propose_next(call: &mut Call<'_>, digest: &Digest) {
    let Some(step) = &digest.now else { return };
    let (task, step_id) = (digest.target.id, step.id);
    let missing = step.fields.missing();
    if missing.is_empty() {
        let params = json!({"task": task, "step_id": step_id});
        call.propose(Tool::TasksDone, params, "All its checkpoints are confirmed", Priority::High);
    } else {
        let checkpoints = super::checkpoints::confirming(&missing);
        let params = json!({"task": task, "step_id": step_id, "checkpoints": checkpoints});
        call.propose(Tool::TasksVerify, params, "Once you have checked them", Priority::Medium);
    }
}
