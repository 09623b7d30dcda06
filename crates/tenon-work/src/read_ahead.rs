//! Reading ahead: on PostgreSQL, the statement that locks a workspace also reads the plan or task and the step that the
//! call names, which saves a round trip for each.
//!
//! The statement sees the rows from before it waits for the lock, so they may be outdated when it has the lock. Every
//! change of a plan, task or step is an event (`plan::mutation`), so the rows are current exactly as long as the counter
//! of events is the one that the statement saw.

use crate::id::{StepId, TargetId};
use crate::path::StepPath;
use crate::plan::step::{self, StepRow};
use crate::plan::target::{self, TargetRow, signed};
use crate::store::{Arg, Row, Sql};
use crate::workspace;

/// What the arguments of a call name.
pub(crate) struct Named {
    pub target: TargetId,
    pub step: Option<NamedStep>,
}

pub(crate) enum NamedStep {
    Id(StepId),
    Path(StepPath),
}

/// Locks the workspace only. The sub-select of the events and the joined rows keep the state from before the wait.
macro_rules! lock {
    ($columns:literal, $($joins:expr),+) => {
        Sql {
            sqlite: workspace::READ,
            postgres: concat!(
                workspace::select!(", (SELECT events FROM workspaces WHERE name = $1), t.*", $columns),
                " LEFT JOIN LATERAL (",
                target::select!("WHERE ws = w.ws AND target = $2"),
                ") t ON true",
                $($joins,)+
                " WHERE w.name = $1 FOR UPDATE OF w"
            ),
        }
    };
}

const LOCK_WITH_TARGET: Sql = lock!("", "");

const LOCK_WITH_STEP_ID: Sql =
    lock!(", s.*", " LEFT JOIN LATERAL (", step::select!("WHERE ws = w.ws AND step = $3"), ") s ON true");

const LOCK_WITH_STEP_PATH: Sql = lock!(
    ", s.*",
    " LEFT JOIN LATERAL (",
    step::select!("WHERE ws = w.ws AND target = $2 AND place = $3"),
    ") s ON true"
);

impl Named {
    /// The statement that locks a workspace and reads this, and its arguments.
    pub(crate) fn lock<'a>(&self, workspace: &'a str) -> (Sql, Vec<Arg<'a>>) {
        let mut args = vec![workspace.into(), self.target.key().into()];
        let sql = match &self.step {
            None => LOCK_WITH_TARGET,
            Some(NamedStep::Id(id)) => {
                args.push(signed(id.0).into());
                LOCK_WITH_STEP_ID
            }
            Some(NamedStep::Path(path)) => {
                args.push(path.sort_key().into());
                LOCK_WITH_STEP_PATH
            }
        };
        (sql, args)
    }
}

/// What was read with the lock. A row that is missing or damaged is read again, and reported, where it is needed.
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
