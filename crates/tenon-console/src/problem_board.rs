//! The problems of the workspace as the console last saw them, and which of them the last edit caused.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenon_code::{CodeError, WorkspaceProblems};
use tenon_lsp::model::Severity;
use tenon_server::web::{DaemonAccess, ProblemsError};

/// How long an update may take. Servers that load a large workspace take minutes.
const UPDATE: Duration = Duration::from_secs(600);

/// What identifies a problem across edits that move it.
type ProblemKey = (String, Option<String>, String);

/// The problems at one moment.
#[derive(Debug, Default)]
pub(crate) struct ProblemSnapshot {
    pub(crate) problems: WorkspaceProblems,
    /// The problems that were not in the snapshot before.
    new: BTreeSet<ProblemKey>,
    pub(crate) found_at: String,
    epochs: Option<[u64; 3]>,
}

impl ProblemSnapshot {
    /// Whether the last edit caused a problem.
    pub(crate) fn is_new(&self, path: &str, code: Option<&str>, message: &str) -> bool {
        self.new.contains(&(path.to_owned(), code.map(str::to_owned), message.to_owned()))
    }

    /// How many problems have each severity: errors, warnings, others.
    pub(crate) fn counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for one in self.problems.files.iter().flat_map(|file| &file.diagnostics) {
            counts[match one.severity() {
                Severity::Error => 0,
                Severity::Warning => 1,
                Severity::Info | Severity::Hint => 2,
            }] += 1;
        }
        counts
    }
}

/// What is known about the problems.
pub(crate) struct ProblemView {
    /// The last complete result, if there is one.
    pub(crate) snapshot: Option<Arc<ProblemSnapshot>>,
    /// Why it is not of the current state; `None` if it is.
    pub(crate) pending: Option<String>,
}

#[derive(Default)]
struct State {
    snapshot: Option<Arc<ProblemSnapshot>>,
    failure: Option<String>,
}

/// See the module.
pub(crate) struct ProblemBoard {
    access: DaemonAccess,
    state: Mutex<State>,
    /// One update at a time.
    updating: tokio::sync::Mutex<()>,
}

impl ProblemBoard {
    pub(crate) fn new(access: DaemonAccess) -> Self {
        Self { access, state: Mutex::default(), updating: tokio::sync::Mutex::default() }
    }

    /// The problems of the current state, or the last known ones and why they are older.
    pub(crate) async fn view(&self, wait: Duration) -> ProblemView {
        if let Some(snapshot) = self.current() {
            return ProblemView { snapshot: Some(snapshot), pending: None };
        }
        let pending = match tokio::time::timeout(wait, self.refresh(wait)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(words(&error)),
            Err(_) => Some("language servers are still checking".to_owned()),
        };
        ProblemView { snapshot: self.state().snapshot.clone(), pending }
    }

    /// The last known problems, without waiting.
    pub(crate) fn known(&self) -> ProblemView {
        let current = self.current();
        let state = self.state();
        let pending = match (&current, &state.failure) {
            (Some(_), _) => None,
            (None, Some(why)) => Some(why.clone()),
            (None, None) => Some("not checked yet".to_owned()),
        };
        ProblemView { snapshot: state.snapshot.clone(), pending }
    }

    /// Waits for the problems of the current state. Returns whether anything that pages show changed.
    pub(crate) async fn update(&self) -> bool {
        let before = self.state().snapshot.clone();
        let failed = self.refresh(UPDATE).await.is_err();
        let after = self.state().snapshot.clone();
        failed
            || match (before, after) {
                (Some(before), Some(after)) => !Arc::ptr_eq(&before, &after),
                (before, after) => before.is_some() != after.is_some(),
            }
    }

    fn current(&self) -> Option<Arc<ProblemSnapshot>> {
        let epochs = self.access.code_epochs()?;
        self.state().snapshot.clone().filter(|snapshot| snapshot.epochs == Some(epochs))
    }

    async fn refresh(&self, wait: Duration) -> Result<(), ProblemsError> {
        let _turn = self.updating.lock().await;
        if self.current().is_some() {
            return Ok(());
        }
        let epochs = self.access.code_epochs();
        let found = self.access.problems(wait).await;
        // The round itself advances the epoch of diagnostics.
        let after = self.access.code_epochs();
        let mut state = self.state();
        match found {
            Err(error) => {
                state.failure = Some(words(&error));
                Err(error)
            }
            Ok(problems) => {
                state.failure = None;
                let epochs = if same_text(epochs, after) { after } else { epochs };
                let found_at = self.access.workspace().clock().rfc3339();
                let before = state.snapshot.take();
                let (new, found_at) = match &before {
                    Some(before) if before.problems == problems => (before.new.clone(), found_at),
                    Some(before) => {
                        let old = keys(&before.problems);
                        (keys(&problems).into_iter().filter(|key| !old.contains(key)).collect(), found_at)
                    }
                    None => (BTreeSet::new(), found_at),
                };
                state.snapshot = Some(Arc::new(ProblemSnapshot { problems, new, found_at, epochs }));
                Ok(())
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether no text and no file changed between two moments.
fn same_text(before: Option<[u64; 3]>, after: Option<[u64; 3]>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => before[..2] == after[..2],
        (None, Some(_)) => true,
        _ => false,
    }
}

fn keys(problems: &WorkspaceProblems) -> BTreeSet<ProblemKey> {
    let files = problems.files.iter();
    files
        .flat_map(|file| {
            file.diagnostics.iter().map(|one| (file.path.clone(), one.code.clone(), one.message.clone()))
        })
        .collect()
}

fn words(error: &ProblemsError) -> String {
    match error {
        ProblemsError::Code(CodeError::Indexing { progress: Some(progress), .. }) => {
            format!("still checking, {} of {} files", progress.done, progress.total)
        }
        other => other.to_string(),
    }
}
