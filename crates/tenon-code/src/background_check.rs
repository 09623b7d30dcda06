//! The diagnostics of the whole workspace: checks every covered file in the background and keeps the result per file.
//!
//! Servers report only on open files, but the result must not depend on earlier queries. So the first round checks all files.
//! After a change only the changed files and those that may depend on them are checked again ([`imports`]); an edit during a
//! round adds to it. An answer needs a result for every file in the current state (decision 0401).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use tenon_contract::epoch::{Epoch, EpochSet, EpochTuple};
use tenon_contract::root::WorkspacePath;
use tenon_lsp::model::Diagnostic;
use tenon_lsp::orchestrator::Orchestrator;
use tenon_lsp::workspace_check;
use tenon_lsp::{CallContext, Interrupted};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::completeness::CompleteAnswer;
use crate::error::{CodeError, IndexingProgress};

mod imports;
mod results;

use results::Results;
pub(crate) use results::{Unchecked, UncheckedFile};

/// How long a round may take.
const ROUND: Duration = Duration::from_secs(24 * 60 * 60);

/// What a round found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Findings {
    /// The diagnostics by file, without clean files.
    pub(crate) files: Vec<(WorkspacePath, Vec<Diagnostic>)>,
    /// The files that some server did not check.
    pub(crate) unchecked: Vec<UncheckedFile>,
    /// How many files were checked, clean ones included.
    pub(crate) checked: usize,
}

/// Runs the rounds of one workspace.
pub(crate) struct BackgroundCheck {
    engine: Orchestrator,
    rounds: Mutex<Rounds>,
    /// Locked during a round, so that there is one at a time.
    results: tokio::sync::Mutex<Results>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

#[derive(Default)]
struct Rounds {
    current: Option<watch::Receiver<Stage>>,
    /// The last known state.
    seen: Option<EpochTuple>,
    /// The result of the last finished round.
    found: Option<Arc<CompleteAnswer<Findings>>>,
}

#[derive(Clone)]
enum Stage {
    /// `None` before the files are counted.
    Going(Option<IndexingProgress>),
    /// The result and the state that it belongs to.
    Done(EpochTuple, Result<Arc<CompleteAnswer<Findings>>, CodeError>),
}

impl BackgroundCheck {
    pub(crate) fn new(engine: Orchestrator) -> Arc<Self> {
        Arc::new(Self {
            engine,
            rounds: Mutex::default(),
            results: tokio::sync::Mutex::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        })
    }

    /// Notes the workspace's state. A change makes the diagnostics unknown, so it advances their epoch, too.
    pub(crate) fn notice(&self) {
        let now = self.state();
        let seen = self.rounds().seen.replace(now.clone());
        if seen.is_some_and(|seen| seen != now) {
            self.engine.epochs().advance(Epoch::Diagnostics);
        }
    }

    /// The diagnostics of the current state.
    pub(crate) async fn findings(
        self: &Arc<Self>,
        call: &CallContext,
    ) -> Result<Arc<CompleteAnswer<Findings>>, CodeError> {
        loop {
            let state = self.state();
            let mut stage = self.round(&state);
            let finished = async {
                let done = stage.wait_for(|stage| matches!(stage, Stage::Done(..))).await;
                done.map(|stage| stage.clone())
            };
            let stage = match call.bound(finished).await {
                Ok(Ok(stage)) => stage,
                Ok(Err(_)) | Err(Interrupted::Cancelled) => return Err(CodeError::Cancelled),
                Err(Interrupted::Deadline) => {
                    return Err(self.timeout_error().unwrap_or(CodeError::Timeout));
                }
            };
            match stage {
                Stage::Done(at, outcome) if at == state => return outcome,
                _ => {
                    // A new call, since the given one caught up before the change.
                    self.engine.catch_up(&CallContext::new(call.deadline, call.cancel.clone())).await;
                    self.notice();
                }
            }
        }
    }

    /// The error for a caller whose time is up before the current round is.
    pub(crate) fn timeout_error(&self) -> Option<CodeError> {
        let current = self.rounds().current.clone()?;
        match &*current.borrow() {
            Stage::Going(progress) => {
                Some(CodeError::Indexing { servers: Vec::new(), progress: progress.clone() })
            }
            Stage::Done(..) => None,
        }
    }

    /// Stops the current round.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The round that answers for a state, started if necessary. A running round takes up later changes.
    fn round(self: &Arc<Self>, state: &EpochTuple) -> watch::Receiver<Stage> {
        let mut rounds = self.rounds();
        if let Some(round) = &rounds.current {
            let serves = match &*round.borrow() {
                Stage::Going(_) => true,
                Stage::Done(at, outcome) => at == state && outcome.is_ok(),
            };
            // A round that ended without a result has dropped its sender.
            if serves && (round.has_changed().is_ok() || matches!(&*round.borrow(), Stage::Done(..))) {
                return round.clone();
            }
        }
        let (stage, round) = watch::channel(Stage::Going(None));
        rounds.current = Some(round.clone());
        self.tasks.spawn(Arc::clone(self).run(stage));
        round
    }

    async fn run(self: Arc<Self>, stage: watch::Sender<Stage>) {
        let call = || CallContext::new(tokio::time::Instant::now() + ROUND, self.closing.clone());
        let mut results = self.results.lock().await;
        results.forget_failures();
        let (state, outcome) = loop {
            self.engine.catch_up(&call()).await;
            let state = self.state();
            results.take_up_changes(&self.engine, &call()).await;
            stage.send_replace(Stage::Going(Some(results.progress(self.engine.gate()))));
            if self.closing.is_cancelled() {
                return;
            }
            if !results.is_finished() {
                self.check_stale(&mut results, &state, &stage, &call().caught_up()).await;
            } else if self.state() == state {
                break (state, results.findings().map(Arc::new));
            }
        };
        drop(results);
        if let Ok(found) = &outcome {
            let before = self.rounds().found.replace(Arc::clone(found));
            if before.is_none_or(|before| before.value != found.value) {
                self.engine.epochs().advance(Epoch::Diagnostics);
            }
        }
        stage.send_replace(Stage::Done(state, outcome));
    }

    /// Checks the files without a current result, until all are done or the workspace changes.
    async fn check_stale(
        &self,
        results: &mut Results,
        state: &EpochTuple,
        stage: &watch::Sender<Stage>,
        call: &CallContext,
    ) {
        let stale: Vec<WorkspacePath> = results.stale().cloned().collect();
        let mut outcomes = workspace_check::outcomes(&self.engine, stale, call);
        while let Some(outcome) = outcomes.next().await {
            if self.closing.is_cancelled() {
                return;
            }
            results.store(outcome, self.engine.gate());
            stage.send_replace(Stage::Going(Some(results.progress(self.engine.gate()))));
            if self.state() != *state {
                return;
            }
        }
    }

    /// The state that diagnostics depend on.
    fn state(&self) -> EpochTuple {
        self.engine.epochs().tuple(EpochSet::CODE, self.engine.gate())
    }

    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
