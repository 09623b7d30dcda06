//! `tasks_focus_get`, `tasks_focus_set` and `tasks_focus_clear`: the task that calls without `task` mean.
//!
//! The focus belongs to the workspace. It is no state of a task: changing it moves no revision and is no event.

use serde::Deserialize;
use serde_json::json;

use crate::call::{Call, Reply};
use crate::error::Failure;
use crate::page::Page;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArgs {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    task: String,
}

pub(super) async fn get(call: &mut Call<'_>) -> Result<Reply, Failure> {
    let NoArgs {} = call.args()?;
    let request = call.paging("")?;
    Ok(Reply::page(Page::head(json!({"focus": call.ws.focus})), request))
}

pub(super) async fn set(call: &mut Call<'_>) -> Result<Reply, Failure> {
    let args: Args = call.args()?;
    let target = call.target(Some(&args.task)).await?;
    let previous = call.ws.focus;
    call.ws.set_focus(Some(target.id));
    Ok(Reply::done(json!({"focus": target.id, "previous": previous})))
}

pub(super) async fn clear(call: &mut Call<'_>) -> Result<Reply, Failure> {
    let NoArgs {} = call.args()?;
    let previous = call.ws.focus;
    call.check_target(previous)?;
    call.ws.set_focus(None);
    Ok(Reply::done(json!({"focus": null, "previous": previous, "cleared": previous.is_some()})))
}
