//! `tasks_undo` and `tasks_redo`: the newest operation of a task taken back, or made again.

use serde::Deserialize;
use serde_json::json;

use crate::call::{Call, Reply, parse_target};
use crate::error::Failure;
use crate::plan::history::{self, Direction};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    task: String,
}

pub(super) async fn run(call: &mut Call<'_>, direction: Direction) -> Result<Reply, Failure> {
    let args: Args = call.args()?;
    let id = parse_target(&args.task)?;
    let (op_id, mutation) = history::turn(call, id, direction).await?;
    Ok(Reply::done(json!({
        "op_id": op_id,
        "revision": mutation.row().fields.revision,
        "event": mutation.event_value(call.ws.name.as_str()),
    })))
}
