//! What the last call has written, so that the next one on the same plan, task and step need not read it again.
//!
//! Only calls without a lock use it (decision 0613). Another writer may have changed everything since: the guard of their
//! write compares the row of the workspace, which every change of a plan, task or step changes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::name::WorkspaceName;
use crate::read_ahead::Named;
use crate::workspace::Workspace;

/// How long it is used. The more time has passed, the more likely another process has written.
const LONGEST: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct LastWrite(Mutex<Option<Written>>);

struct Written {
    named: Named,
    workspace: Workspace,
    at: Instant,
}

impl LastWrite {
    /// The workspace with what a call names. A second call cannot use the same one: one of them would fail.
    pub(crate) fn take(&self, workspace: &WorkspaceName, named: &Named) -> Option<Workspace> {
        let written = self.lock().take()?;
        let fits =
            written.workspace.name == *workspace && written.named == *named && written.at.elapsed() < LONGEST;
        fits.then_some(written.workspace)
    }

    /// Keeps the state after a write, if it has everything that the call names.
    pub(crate) fn put(&self, named: Named, workspace: &Workspace) {
        let is_whole = workspace.read_ahead().is_some_and(|read| read.has(&named));
        let written = is_whole.then(|| Written { named, workspace: workspace.clone(), at: Instant::now() });
        *self.lock() = written;
    }

    /// Forgets it, after a write by other means.
    pub(crate) fn clear(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Written>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
