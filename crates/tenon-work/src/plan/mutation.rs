//! One change of a plan or task and its steps: revisions, events, rows and search index, all from one place.
//!
//! Tools change the records that they have put into a mutation and then call [`Mutation::log`] for each event and
//! [`Mutation::save`] once. What an event says is computed from the records, so it cannot differ from what is
//! stored. Revisions move by one per mutation: the target's always, a step's or another target's when it changed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::event::{self, Event, EventView, UndoState};
use super::record::{Record, difference};
use super::step::{self, Step, StepRow};
use super::target::{self, Status, Target, TargetRow};
use crate::catalog::WorkTool;
use crate::error::WorkError;
use crate::id::{StepId, TargetId, TargetKind};
use crate::memory::search::{self, SearchKind};
use crate::store::{StoreError, Tx};
use crate::workspace::Workspace;

/// A record before and after the mutation.
struct Change<Row> {
    /// As stored; none for a new record.
    stored: Option<Row>,
    /// As of the last event.
    logged: Option<Row>,
    now: Row,
    bumped: bool,
}

impl<Row: Clone> Change<Row> {
    fn existing(row: Row) -> Self {
        Self { stored: Some(row.clone()), logged: Some(row.clone()), now: row, bumped: false }
    }

    fn new(row: Row) -> Self {
        Self { stored: None, logged: None, now: row, bumped: true }
    }
}

/// Whether a mutation can be undone later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undoable {
    Yes,
    No,
}

pub(crate) struct Mutation {
    /// The target of the mutation.
    id: TargetId,
    tool: WorkTool,
    now: i64,
    undoable: Undoable,
    operation: i64,
    targets: BTreeMap<TargetId, Change<TargetRow>>,
    steps: BTreeMap<StepId, Change<StepRow>>,
    pub events: Vec<Event>,
}

impl Mutation {
    /// A change of an existing target.
    pub(crate) fn of(target: TargetRow, tool: WorkTool, now: i64, undoable: Undoable) -> Self {
        let id = target.id;
        Self {
            id,
            tool,
            now,
            undoable,
            operation: 0,
            targets: BTreeMap::from([(id, Change::existing(target))]),
            steps: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    /// The creation of a target.
    pub(crate) fn making(id: TargetId, fields: Target, tool: WorkTool, now: i64) -> Self {
        let row = TargetRow { id, fields, created_ms: now, updated_ms: now, search_seq: 0, undone: false };
        Self {
            id,
            tool,
            now,
            undoable: Undoable::No,
            operation: 0,
            targets: BTreeMap::from([(id, Change::new(row))]),
            steps: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    pub(crate) fn row(&self) -> &TargetRow {
        &self.targets[&self.id].now
    }

    pub(crate) fn row_mut(&mut self) -> &mut TargetRow {
        &mut self.targets.get_mut(&self.id).expect("put in by every constructor").now
    }

    pub(crate) fn target(&mut self) -> &mut Target {
        &mut self.row_mut().fields
    }

    /// Adds another target to the mutation.
    pub(crate) fn other(&mut self, row: TargetRow) -> &mut Target {
        let change = self.targets.entry(row.id).or_insert_with(|| Change::existing(row));
        &mut change.now.fields
    }

    /// Adds a step to the mutation.
    pub(crate) fn step(&mut self, row: StepRow) -> &mut Step {
        let change = self.steps.entry(row.id).or_insert_with(|| Change::existing(row));
        &mut change.now.fields
    }

    pub(crate) fn step_row(&self, id: StepId) -> &StepRow {
        &self.steps[&id].now
    }

    pub(crate) fn add_step(&mut self, id: StepId, fields: Step) {
        let row = StepRow {
            id,
            target: self.id,
            fields,
            created_ms: self.now,
            updated_ms: self.now,
            search_seq: 0,
        };
        self.steps.insert(id, Change::new(row));
    }

    /// Whether anything differs from what is stored.
    pub(crate) fn is_changed(&self) -> bool {
        let target = |change: &Change<TargetRow>| {
            change.stored.as_ref().is_none_or(|old| old.fields != change.now.fields)
        };
        let step = |change: &Change<StepRow>| {
            change.stored.as_ref().is_none_or(|old| old.fields != change.now.fields)
        };
        self.targets.values().any(target) || self.steps.values().any(step)
    }

    /// Whether a target exists after this mutation.
    pub(crate) fn has_live(&self, id: TargetId) -> bool {
        self.targets.get(&id).is_some_and(|change| !change.now.fields.deleted)
    }

    /// Derives the status of the target from the steps after this mutation.
    ///
    /// `worked` means that a step was written, which makes a planned target active.
    pub(crate) async fn settle_status(
        &mut self,
        tx: &mut Tx,
        ws: i64,
        worked: bool,
    ) -> Result<(), StoreError> {
        let side = |row: &StepRow| (!row.fields.deleted).then_some(row.fields.completed);
        let sides = |change: &Change<StepRow>| (change.stored.as_ref().and_then(side), side(&change.now));
        let moved = self.steps.values().map(sides).any(|(was, is)| was != is);
        if !moved && self.row().fields.status != Status::Done {
            // No step was opened, closed or deleted, so the status cannot follow from the steps.
            if worked {
                self.target().status = Status::Active;
            }
            return Ok(());
        }
        let counts = step::counts(tx, ws, self.id).await?;
        let (mut open, mut completed) = (counts.total - counts.completed, counts.completed);
        for (was, is) in self.steps.values().map(sides) {
            for (side, sign) in [(was, -1), (is, 1)] {
                match side {
                    Some(true) => completed += sign,
                    Some(false) => open += sign,
                    None => {}
                }
            }
        }
        let plan_is_open =
            self.id.kind == TargetKind::Plan && target::has_open_tasks(tx, ws, self.id).await?;
        let target = self.target();
        if moved && open == 0 && completed > 0 && !plan_is_open {
            target.status = Status::Done;
        } else if (open > 0 && target.status == Status::Done) || (worked && target.status == Status::Todo) {
            target.status = Status::Active;
        }
        Ok(())
    }

    /// Whether this mutation closes a target.
    pub(crate) fn closes(&self, id: TargetId) -> bool {
        let done = |row: &TargetRow| !row.fields.deleted && row.fields.status == Status::Done;
        let closed =
            |change: &Change<TargetRow>| done(&change.now) && !change.stored.as_ref().is_some_and(done);
        self.targets.get(&id).is_some_and(closed)
    }

    /// Reopens a target that this mutation would leave done.
    pub(crate) fn keep_open(&mut self, id: TargetId) {
        if let Some(change) = self.targets.get_mut(&id)
            && change.now.fields.status == Status::Done
        {
            change.now.fields.status = Status::Active;
        }
    }

    /// A plan is done only while its tasks are: a task that opens reopens its plan.
    async fn reopen_plans(&mut self, tx: &mut Tx, ws: i64) -> Result<(), StoreError> {
        let open = |row: &TargetRow| !row.fields.deleted && row.fields.status != Status::Done;
        let opened =
            |change: &&Change<TargetRow>| open(&change.now) && !change.stored.as_ref().is_some_and(open);
        let plans: BTreeSet<TargetId> =
            self.targets.values().filter(opened).filter_map(|change| change.now.fields.parent).collect();
        for id in plans {
            if !self.targets.contains_key(&id)
                && let Some(plan) = target::load(tx, ws, id).await?
                && plan.fields.status == Status::Done
            {
                self.targets.insert(id, Change::existing(plan));
            }
            self.keep_open(id);
        }
        Ok(())
    }

    /// Writes an event with everything that changed since the last one.
    pub(crate) async fn log(
        &mut self,
        tx: &mut Tx,
        ws: &mut Workspace,
        kind: &str,
        path: Option<&crate::path::StepPath>,
    ) -> Result<(), WorkError> {
        self.log_with(tx, ws, kind, path, Map::new()).await
    }

    /// The same with additional payload fields.
    pub(crate) async fn log_with(
        &mut self,
        tx: &mut Tx,
        ws: &mut Workspace,
        kind: &str,
        path: Option<&crate::path::StepPath>,
        extra: Map<String, Value>,
    ) -> Result<(), WorkError> {
        self.reopen_plans(tx, ws.id).await?;
        let (mut before, mut after) = (Map::new(), Map::new());
        for (id, change) in &mut self.targets {
            let changed = change.logged.as_ref().is_none_or(|old| old.fields != change.now.fields);
            if (changed || *id == self.id) && !std::mem::replace(&mut change.bumped, true) {
                change.now.fields.revision += 1;
            }
            change.now.updated_ms = if changed || *id == self.id { self.now } else { change.now.updated_ms };
            let old = change.logged.as_ref().map(|row| &row.fields);
            add_change(&mut before, &mut after, id.to_string(), old, &change.now.fields);
            change.logged = Some(change.now.clone());
        }
        for (id, change) in &mut self.steps {
            let changed = change.logged.as_ref().is_none_or(|old| old.fields != change.now.fields);
            if changed && !std::mem::replace(&mut change.bumped, true) {
                change.now.fields.revision += 1;
            }
            change.now.updated_ms = if changed { self.now } else { change.now.updated_ms };
            let old = change.logged.as_ref().map(|row| &row.fields);
            add_change(&mut before, &mut after, id.to_string(), old, &change.now.fields);
            change.logged = Some(change.now.clone());
        }
        let number = super::target::signed(ws.next_event());
        if self.operation == 0 && self.undoable == Undoable::Yes {
            self.operation = number;
            // After a new operation, undone ones cannot be redone.
            if std::mem::take(&mut self.row_mut().undone) {
                event::discard_undone(tx, ws.id, self.id).await?;
            }
        }
        let mut payload = extra;
        payload.insert("before".into(), Value::Object(before));
        payload.insert("after".into(), Value::Object(after));
        let event = Event {
            number,
            ts_ms: self.now,
            target: self.id,
            path: path.cloned(),
            kind: kind.to_owned(),
            tool: self.tool.name().to_owned(),
            operation: self.operation,
            undo_state: UndoState::Done,
            revision: self.row().fields.revision,
            payload: Value::Object(payload),
        };
        event::write(tx, ws, &event).await?;
        self.events.push(event);
        Ok(())
    }

    /// Writes the rows and brings the search index up to date.
    pub(crate) async fn save(&mut self, tx: &mut Tx, ws: &mut Workspace) -> Result<(), StoreError> {
        for change in self.targets.values_mut() {
            let kind = SearchKind::of_target(change.now.id.kind);
            let old = change.stored.as_ref().map(|row| (row.fields.searchable(), row.fields.deleted));
            let new = (change.now.fields.searchable(), change.now.fields.deleted);
            let slot = &mut change.now.search_seq;
            index(tx, ws, old, new, slot, kind, change.now.id.key()).await?;
            target::write(tx, ws.id, &change.now, change.stored.as_ref()).await?;
            let needs = |row: &TargetRow| (row.fields.depends_on.clone(), row.fields.deleted);
            let unchanged = change.stored.as_ref().map(needs).unwrap_or_default() == needs(&change.now);
            if !unchanged {
                target::write_dependencies(tx, ws.id, &change.now).await?;
            }
        }
        for change in self.steps.values_mut() {
            let old = change.stored.as_ref().map(|row| (row.fields.searchable(), row.fields.deleted));
            let new = (change.now.fields.searchable(), change.now.fields.deleted);
            let reference = super::target::signed(change.now.id.0);
            index(tx, ws, old, new, &mut change.now.search_seq, SearchKind::Step, reference).await?;
            step::write(tx, ws.id, &change.now, change.stored.as_ref()).await?;
        }
        if tx.is_optimistic() {
            let step = self.steps.values().next().filter(|_| self.steps.len() == 1);
            ws.wrote(self.row().clone(), step.map(|change| change.now.clone()));
        }
        Ok(())
    }

    /// The newest event as the answer to a write shows it.
    pub(crate) fn event_view(&self, workspace: &str) -> Option<EventView> {
        self.events.last().map(|event| event.view(workspace))
    }
}

/// Adds the changes of one record to an event payload. A created record has no `before`.
fn add_change<R: Record>(
    before: &mut Map<String, Value>,
    after: &mut Map<String, Value>,
    id: String,
    old: Option<&R>,
    new: &R,
) {
    match old {
        Some(old) if old == new => {}
        Some(old) => {
            let (was, is) = difference(old, new);
            before.insert(id.clone(), Value::Object(was));
            after.insert(id, Value::Object(is));
        }
        None => {
            let (_, is) = difference(&R::default(), new);
            before.insert(id.clone(), json!(null));
            after.insert(id, Value::Object(is));
        }
    }
}

/// Updates the words of a record in the index, if they changed. A deleted record has none.
async fn index(
    tx: &mut Tx,
    ws: &mut Workspace,
    old: Option<(String, bool)>,
    new: (String, bool),
    slot: &mut i64,
    kind: SearchKind,
    reference: i64,
) -> Result<(), StoreError> {
    if old.as_ref() == Some(&new) {
        return Ok(());
    }
    if *slot != 0 {
        search::remove(tx, ws.id, *slot).await?;
        *slot = 0;
    }
    if !new.1 {
        *slot = ws.next_seq();
        search::insert(tx, ws.id, *slot, kind, reference, &new.0).await?;
    }
    Ok(())
}
