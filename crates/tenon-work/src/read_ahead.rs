//! Reading ahead: on PostgreSQL, the statement that locks a workspace also reads the plan or task and the step that the
//! call names, which saves a round trip for each. An optimistic write reads the same without a lock.
//!
//! A statement that locks sees the rows from before it waits for the lock, so they may be outdated when it has the lock.
//! Every change of a plan, task or step is an event (`plan::mutation`), so the rows are current exactly as long as the
//! counter of events is the one that the statement saw.

use crate::id::{StepId, TargetId};
use crate::path::StepPath;
use crate::plan::step::{self, StepRow};
use crate::plan::target::{self, TargetRow, signed};
use crate::store::{Arg, Row, Sql};
use crate::workspace;

/// What the arguments of a call name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub target: TargetId,
    pub step: Option<NamedStep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NamedStep {
    Id(StepId),
    Path(StepPath),
}

/// Reads the same rows with and without the lock.
struct Statements {
    lock: Sql,
    read: &'static str,
}

/// Locks the workspace only. The sub-select of the events and the joined rows keep the state from before the wait.
macro_rules! statements {
    ($columns:literal, $($joins:expr),+) => {
        Statements {
            lock: Sql {
                sqlite: workspace::READ,
                postgres: concat!(statements!(@read $columns, $($joins),+), " FOR UPDATE OF w"),
            },
            read: statements!(@read $columns, $($joins),+),
        }
    };
    (@read $columns:literal, $($joins:expr),+) => {
        concat!(
            workspace::select!(", (SELECT events FROM workspaces WHERE name = $1), t.*", $columns),
            " LEFT JOIN LATERAL (",
            target::select!("WHERE ws = w.ws AND target = $2"),
            ") t ON true",
            $($joins,)+
            " WHERE w.name = $1"
        )
    };
}

const WITH_TARGET: Statements = statements!("", "");

const WITH_STEP_ID: Statements = statements!(
    ", s.*",
    " LEFT JOIN LATERAL (",
    step::select!("WHERE ws = w.ws AND step = $3"),
    ") s ON true"
);

const WITH_STEP_PATH: Statements = statements!(
    ", s.*",
    " LEFT JOIN LATERAL (",
    step::select!("WHERE ws = w.ws AND target = $2 AND place = $3"),
    ") s ON true"
);

impl Named {
    /// The statement that locks a workspace and reads this, and its arguments.
    pub(crate) fn lock<'a>(&self, workspace: &'a str) -> (Sql, Vec<Arg<'a>>) {
        let (statements, args) = self.statements(workspace);
        (statements.lock, args)
    }

    /// The same without the lock, for PostgreSQL.
    pub(crate) fn read<'a>(&self, workspace: &'a str) -> (&'static str, Vec<Arg<'a>>) {
        let (statements, args) = self.statements(workspace);
        (statements.read, args)
    }

    fn statements<'a>(&self, workspace: &'a str) -> (Statements, Vec<Arg<'a>>) {
        let mut args = vec![workspace.into(), self.target.key().into()];
        let statements = match &self.step {
            None => WITH_TARGET,
            Some(NamedStep::Id(id)) => {
                args.push(signed(id.0).into());
                WITH_STEP_ID
            }
            Some(NamedStep::Path(path)) => {
                args.push(path.sort_key().into());
                WITH_STEP_PATH
            }
        };
        (statements, args)
    }
}

/// What was read with the workspace. A row that is missing or damaged is read again, and reported, where it is needed.
#[derive(Debug, Clone)]
pub(crate) struct ReadAhead {
    /// The last event that the statement saw.
    pub event: i64,
    target: Option<TargetRow>,
    step: Option<StepRow>,
}

impl ReadAhead {
    /// Reads the columns that follow those of the workspace; SQLite has none.
    pub(crate) fn from_row(mut row: Row) -> Option<Self> {
        let mut target = row.split_off(1);
        let step = target.split_off(target::COLUMNS);
        let event = row.int(0).ok()?;
        Some(Self { event, target: TargetRow::from_row(&target).ok(), step: StepRow::from_row(&step).ok() })
    }

    /// What a call has written, instead of what it read.
    pub(crate) fn of_written(event: i64, target: TargetRow, step: Option<StepRow>) -> Self {
        Self { event, target: Some(target), step }
    }

    /// Whether it has everything that a call names.
    pub(crate) fn has(&self, named: &Named) -> bool {
        self.target(named.target).is_some()
            && match &named.step {
                None => true,
                Some(NamedStep::Id(id)) => self.step_by_id(*id).is_some(),
                Some(NamedStep::Path(path)) => self.step_by_path(named.target, path).is_some(),
            }
    }

    pub(crate) fn target(&self, id: TargetId) -> Option<TargetRow> {
        self.target.clone().filter(|row| row.id == id)
    }

    pub(crate) fn step_by_id(&self, id: StepId) -> Option<StepRow> {
        self.step.clone().filter(|row| row.id == id)
    }

    pub(crate) fn step_by_path(&self, target: TargetId, path: &StepPath) -> Option<StepRow> {
        self.step.clone().filter(|row| row.target == target && row.fields.path == *path)
    }
}
