//! A workspace: the namespace of all records, its counters, and the lock for writers.

use crate::id::{TargetId, TargetKind};
use crate::memory::branch;
use crate::name::WorkspaceName;
use crate::plan::step::StepRow;
use crate::plan::target::TargetRow;
use crate::read_ahead::{Named, ReadAhead};
use crate::store::{Arg, Row, Sql, StoreError, Tx, args};

/// Counters hold the last number in use. They are read under the lock and written with the commit, so numbers have no
/// gaps and readers see them in order.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    pub id: i64,
    pub name: WorkspaceName,
    plans: i64,
    tasks: i64,
    steps: i64,
    events: i64,
    seqs: i64,
    branches: i64,
    pub focus: Option<TargetId>,
    /// The branch of memory tools that do not name one.
    pub checkout: i64,
    /// Whether this call created it.
    pub created: bool,
    /// The columns in the store.
    stored: [Option<i64>; COLUMNS],
    read_ahead: Option<ReadAhead>,
}

/// Selects a workspace `w`, with more columns after its own.
macro_rules! select {
    ($($more:literal),*) => {
        concat!(
            "SELECT w.ws, w.plans, w.tasks, w.steps, w.events, w.seqs, w.branches, w.focus, w.checkout",
            $($more,)*
            " FROM workspaces w"
        )
    };
}
pub(crate) use select;

/// The number of columns of a workspace.
const COLUMNS: usize = 9;

pub(crate) const READ: &str = concat!(select!(), " WHERE w.name = $1");

/// On PostgreSQL writers queue here; on SQLite they hold the lock of the file already.
const LOCK: Sql = Sql { sqlite: READ, postgres: concat!(select!(), " WHERE w.name = $1 FOR UPDATE") };

const INSERT: &str = "INSERT INTO workspaces
    (name, created_ms, plans, tasks, steps, events, seqs, branches, focus, checkout)
    VALUES ($1, $2, 0, 0, 0, 0, 0, 1, NULL, 1) ON CONFLICT (name) DO NOTHING";

macro_rules! save {
    ($($condition:literal)?) => {
        concat!(
            "UPDATE workspaces SET plans = $2, tasks = $3, steps = $4, events = $5, seqs = $6, branches = $7,
            focus = $8, checkout = $9 WHERE ws = $1",
            $($condition)?
        )
    };
}

const SAVE: &str = save!();

/// For a write without a lock: does nothing if another writer has changed the row.
const SAVE_IF_UNCHANGED: &str = save!(
    " AND plans = $10 AND tasks = $11 AND steps = $12 AND events = $13 AND seqs = $14 AND branches = $15
    AND focus IS NOT DISTINCT FROM $16 AND checkout = $17 RETURNING ws"
);

impl Workspace {
    pub(crate) async fn read(tx: &mut Tx, name: &WorkspaceName) -> Result<Option<Self>, StoreError> {
        let row = tx.row(READ, args![name.as_str()]).await?;
        row.map(|row| Self::from_row(&row, name)).transpose()
    }

    /// Reads the workspace and locks out other writers until the transaction ends.
    pub(crate) async fn lock(tx: &mut Tx, name: &WorkspaceName) -> Result<Option<Self>, StoreError> {
        let row = tx.row(LOCK, args![name.as_str()]).await?;
        row.map(|row| Self::from_row(&row, name)).transpose()
    }

    /// The same; may also read what the call names.
    pub(crate) async fn lock_and_read(
        tx: &mut Tx,
        name: &WorkspaceName,
        named: &Named,
    ) -> Result<Option<Self>, StoreError> {
        let (sql, args) = named.lock(name.as_str());
        let row = tx.row(sql, &args).await?;
        row.map(|row| Self::with_read_ahead(row, name)).transpose()
    }

    /// From a row with what the call names.
    pub(crate) fn with_read_ahead(mut row: Row, name: &WorkspaceName) -> Result<Self, StoreError> {
        let read_ahead = ReadAhead::from_row(row.split_off(COLUMNS));
        Ok(Self { read_ahead, ..Self::from_row(&row, name)? })
    }

    /// What was read with the workspace, unless it may have changed since.
    pub(crate) fn read_ahead(&self) -> Option<&ReadAhead> {
        self.read_ahead.as_ref().filter(|read| read.event == self.events)
    }

    /// What a call without a lock has written replaces what it read: the next call can do without reading.
    pub(crate) fn wrote(&mut self, target: TargetRow, step: Option<StepRow>) {
        self.read_ahead = Some(ReadAhead::of_written(self.events, target, step));
    }

    /// Whether the store has the same counters, focus and checkout in both.
    pub(crate) fn is_stored_as(&self, other: &Self) -> bool {
        self.stored == other.stored
    }

    /// Creates the workspace with its first branch, or locks it if another process has just created it.
    pub(crate) async fn create(tx: &mut Tx, name: &WorkspaceName, now: i64) -> Result<Self, StoreError> {
        let created = tx.execute(INSERT, args![name.as_str(), now]).await? == 1;
        let workspace = Self::lock(tx, name).await?;
        let mut workspace =
            workspace.ok_or_else(|| StoreError::Damaged("a new workspace is missing".into()))?;
        workspace.created = created;
        if created {
            branch::insert(tx, workspace.id, branch::MAIN_NUMBER, branch::MAIN, None, 0, now).await?;
        }
        Ok(workspace)
    }

    /// A workspace that does not exist: every read is empty.
    pub(crate) fn missing(name: &WorkspaceName) -> Self {
        Self {
            id: 0,
            name: name.clone(),
            plans: 0,
            tasks: 0,
            steps: 0,
            events: 0,
            seqs: 0,
            branches: 0,
            focus: None,
            checkout: branch::MAIN_NUMBER,
            created: false,
            stored: [None; COLUMNS],
            read_ahead: None,
        }
    }

    pub(crate) fn exists(&self) -> bool {
        self.id != 0
    }

    fn from_row(row: &Row, name: &WorkspaceName) -> Result<Self, StoreError> {
        let mut workspace = Self {
            id: row.int(0)?,
            name: name.clone(),
            plans: row.int(1)?,
            tasks: row.int(2)?,
            steps: row.int(3)?,
            events: row.int(4)?,
            seqs: row.int(5)?,
            branches: row.int(6)?,
            focus: row.opt_int(7)?.map(TargetId::from_key),
            checkout: row.int(8)?,
            created: false,
            stored: [None; COLUMNS],
            read_ahead: None,
        };
        workspace.stored = workspace.columns();
        Ok(workspace)
    }

    fn columns(&self) -> [Option<i64>; COLUMNS] {
        [
            Some(self.id),
            Some(self.plans),
            Some(self.tasks),
            Some(self.steps),
            Some(self.events),
            Some(self.seqs),
            Some(self.branches),
            self.focus.map(TargetId::key),
            Some(self.checkout),
        ]
    }

    /// Writes the counters, if any changed. Without a lock, the write is the guard of the call and always needed.
    pub(crate) async fn save(&mut self, tx: &mut Tx) -> Result<(), StoreError> {
        let columns = self.columns();
        let stored = std::mem::replace(&mut self.stored, columns);
        if tx.is_optimistic() {
            let args: Vec<Arg<'_>> =
                columns.iter().chain(&stored[1..]).map(|column| (*column).into()).collect();
            tx.guard(SAVE_IF_UNCHANGED, &args);
            return Ok(());
        }
        if columns == stored { Ok(()) } else { tx.write(SAVE, &columns.map(Arg::from)).await }
    }

    fn next(&mut self, counter: impl FnOnce(&mut Self) -> &mut i64) -> i64 {
        let counter = counter(self);
        *counter += 1;
        *counter
    }

    pub(crate) fn next_target(&mut self, kind: TargetKind) -> TargetId {
        let number = self.next(|this| match kind {
            TargetKind::Plan => &mut this.plans,
            TargetKind::Task => &mut this.tasks,
        });
        TargetId::new(kind, number.unsigned_abs())
    }

    /// Whether an id was ever in use.
    pub(crate) fn has_issued(&self, id: TargetId) -> bool {
        let last = match id.kind {
            TargetKind::Plan => self.plans,
            TargetKind::Task => self.tasks,
        };
        id <= TargetId::new(id.kind, last.unsigned_abs())
    }

    pub(crate) fn next_step(&mut self) -> u64 {
        self.next(|this| &mut this.steps).unsigned_abs()
    }

    pub(crate) fn next_event(&mut self) -> u64 {
        self.next(|this| &mut this.events).unsigned_abs()
    }

    pub(crate) fn next_seq(&mut self) -> i64 {
        self.next(|this| &mut this.seqs)
    }

    pub(crate) fn next_branch(&mut self) -> i64 {
        self.next(|this| &mut this.branches)
    }

    pub(crate) fn set_focus(&mut self, focus: Option<TargetId>) {
        self.focus = focus;
    }

    pub(crate) fn set_checkout(&mut self, branch: i64) {
        self.checkout = branch;
    }

    pub(crate) fn last_event(&self) -> u64 {
        self.events.unsigned_abs()
    }

    pub(crate) fn last_seq(&self) -> i64 {
        self.seqs
    }
}
