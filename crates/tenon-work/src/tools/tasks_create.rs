//! `tasks_create`: a plan, or a task under a plan, with its steps, in one transaction.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::catalog::WorkTool;
use crate::error::{Priority, WorkError};
use crate::id::{TargetId, TargetKind};
use crate::memory::branch;
use crate::name::Tag;
use crate::plan::event::EventView;
use crate::plan::mutation::Mutation;
use crate::plan::step_tree::{self, NewStep, StepInput};
use crate::plan::target::{Target, TaskPriority};
use crate::work_call::{WorkCall, parse_plan};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    kind: Option<TargetKind>,
    title: String,
    parent: Option<String>,
    description: Option<String>,
    contract: Option<String>,
    contract_data: Option<Map<String, Value>>,
    #[serde(default)]
    priority: TaskPriority,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    depends_on: Vec<String>,
    #[serde(default)]
    steps: Vec<StepInput>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    id: TargetId,
    kind: TargetKind,
    revision: u64,
    steps: Vec<NewStep>,
    event: Option<EventView>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<Answer, WorkError> {
    step_tree::check(&args.steps)?;
    let kind = args.kind.unwrap_or(if args.parent.is_some() { TargetKind::Task } else { TargetKind::Plan });
    let parent = parent(call, kind, args.parent.as_deref()).await?;
    let depends_on = super::dependencies::parse(&args.depends_on)?;
    if kind == TargetKind::Plan && !depends_on.is_empty() {
        return Err(WorkError::invalid("plans have no dependencies").recovery("give depends_on for tasks"));
    }
    let mut fields = Target {
        parent,
        title: args.title,
        description: args.description,
        contract: args.contract,
        contract_data: args.contract_data.map(Value::Object),
        priority: args.priority,
        tags: Tag::list(&args.tags)?,
        depends_on,
        ..Target::default()
    };
    fields.settle()?;
    super::dependencies::check(call, None, &fields.depends_on).await?;

    let id = call.ws.next_target(kind);
    let ws = call.ws.id;
    branch::insert(call.tx, ws, branch::number_of(id), &id.branch(), None, call.ws.last_seq(), call.now)
        .await?;
    let mut mutation = Mutation::making(id, fields, call.request.tool, call.now);
    let made = step_tree::add(&mut mutation, &mut call.ws, None, 0, args.steps)?;
    let event = match kind {
        TargetKind::Plan => "plan_created",
        TargetKind::Task => "task_created",
    };
    mutation.log(call.tx, &mut call.ws, event, None).await?;
    mutation.save(call.tx, &mut call.ws).await?;

    call.propose(WorkTool::TasksRadar, json!({"task": id}), "See its state", Priority::Medium);
    Ok(Answer { id, kind, revision: 0, steps: made, event: mutation.event_view(call.ws.name.as_str()) })
}

/// The plan of a new task. Expectations of the call apply to that plan.
async fn parent(
    call: &mut WorkCall<'_>,
    kind: TargetKind,
    given: Option<&str>,
) -> Result<Option<TargetId>, WorkError> {
    match (kind, given) {
        (TargetKind::Plan, None) => {
            call.check_target(None)?;
            Ok(None)
        }
        (TargetKind::Plan, Some(_)) => {
            Err(WorkError::invalid("a plan has no parent").recovery("omit `parent`"))
        }
        (TargetKind::Task, None) => {
            Err(WorkError::invalid("a task needs the plan it belongs to").recovery("give `parent`"))
        }
        (TargetKind::Task, Some(text)) => {
            let plan = call.load(parse_plan(text)?).await?;
            call.check_guard(&plan)?;
            Ok(Some(plan.id))
        }
    }
}
