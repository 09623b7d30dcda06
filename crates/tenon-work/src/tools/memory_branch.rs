//! `memory_branch_create`, `memory_branch_list` and `memory_checkout`.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::catalog::WorkTool;
use crate::cursor::SortKey;
use crate::error::{Priority, Proposal, WorkError, WorkErrorCode};
use crate::memory::branch;
use crate::name::BranchName;
use crate::page::{Cut, Item, NoHead, Page};
use crate::plan::target::signed;
use crate::work_call::{WorkCall, WorkReply};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CreateArgs {
    name: String,
    from: Option<String>,
}

/// A branch as clients see it.
#[derive(Debug, Serialize)]
struct BranchView {
    name: String,
    base_branch: Option<String>,
    base_seq: i64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Created {
    branch: BranchView,
}

pub(super) async fn create(call: &mut WorkCall<'_>, args: CreateArgs) -> Result<Created, WorkError> {
    let name = BranchName::parse(&args.name)?;
    if name.is_reserved() {
        return Err(WorkError::new(
            WorkErrorCode::InvalidName,
            format!("`{name}` is the branch of a plan or task"),
        )
        .recovery("choose a name other than plan/PLAN-… or task/TASK-…"));
    }
    let base = call.view(args.from.as_deref()).await?;
    call.check_no_target()?;
    branch::check_depth(&base)?;
    let ws = call.ws.id;
    if branch::by_name(call.tx, ws, name.as_str()).await?.is_some() {
        return Err(WorkError::new(WorkErrorCode::Conflict, format!("branch `{name}` already exists"))
            .recovery("choose another name, or check it out")
            .propose(Proposal::new(
                WorkTool::MemoryCheckout,
                json!({"ref": name.as_str()}),
                "Use the existing branch",
                Priority::Medium,
            )));
    }
    let number = call.ws.next_branch();
    let base_seq = call.ws.last_seq();
    branch::insert(call.tx, ws, number, name.as_str(), Some(base.branch()), base_seq, call.now).await?;
    call.propose(WorkTool::MemoryCheckout, json!({"ref": name.as_str()}), "Use it by default", Priority::Low);
    let (name, base_branch) = (name.as_str().to_owned(), Some(base.name().to_owned()));
    Ok(Created { branch: BranchView { name, base_branch, base_seq } })
}

pub(super) async fn list(call: &mut WorkCall<'_>) -> Result<WorkReply, WorkError> {
    let request = call.paging("")?;
    let first = request.first_above()?.unwrap_or(0);
    let ws = call.ws.id;
    let mut branches = branch::list(call.tx, ws, first, signed(request.limit as u64 + 1)).await?;
    let more = branches.len() > request.limit;
    branches.truncate(request.limit);
    let items = branches.into_iter().map(|found| {
        let value = BranchView { name: found.name, base_branch: found.base_name, base_seq: found.base_seq };
        Item::new("/branches", SortKey::ints(&[found.number]), value, Cut::Json(&["name"]))
    });
    let items = items.collect();
    Ok(WorkReply::page(Page::list(NoHead {}, "/branches", items, more), request))
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CheckoutArgs {
    r#ref: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct CheckedOut {
    previous: String,
    current: String,
}

pub(super) async fn checkout(call: &mut WorkCall<'_>, args: CheckoutArgs) -> Result<CheckedOut, WorkError> {
    let ws = call.ws.id;
    let found = call.view(Some(&args.r#ref)).await?;
    call.check_no_target()?;
    let previous = branch::checked_out(call.tx, ws, call.ws.checkout).await?;
    call.ws.set_checkout(found.branch());
    Ok(CheckedOut { previous: previous.name, current: found.name().to_owned() })
}
