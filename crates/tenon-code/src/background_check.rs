//! The diagnostics of the whole workspace: checks every covered file once per state of the workspace, in the background.
//!
//! Servers report only on open files, but the result must not depend on earlier queries. So a round checks all files, and
//! only a finished round is an answer. A round belongs to one state: an edit may affect any file, so the next query after an
//! edit starts a new round (decision 0401).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use tenon_contract::epoch::{Epoch, EpochSet, EpochTuple};
use tenon_contract::root::WorkspacePath;
use tenon_lsp::model::Diagnostic;
use tenon_lsp::orchestrator::Orchestrator;
use tenon_lsp::{CallContext, Interrupted};
use tenon_lsp::{Capability, ServerId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::completeness::{CompleteAnswer, RequiredServers, require_complete};
use crate::error::CodeError;

/// How many files are checked at once: enough to keep several servers busy, and few enough that all stay open meanwhile.
const AT_ONCE: usize = 8;
/// How long a round may take.
const ROUND: Duration = Duration::from_secs(24 * 60 * 60);
/// The delay before a file is checked again.
const PAUSE: Duration = Duration::from_millis(50);

/// The diagnostics by file, without clean files.
pub(crate) type Files = Vec<(WorkspacePath, Vec<Diagnostic>)>;

/// Runs the rounds of one workspace.
pub(crate) struct BackgroundCheck {
    engine: Orchestrator,
    rounds: Mutex<Rounds>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

#[derive(Default)]
struct Rounds {
    current: Option<Arc<Round>>,
    /// The last known state.
    seen: Option<EpochTuple>,
    /// The result of the last finished round.
    found: Option<Arc<CompleteAnswer<Files>>>,
}

/// One pass over all files.
struct Round {
    state: EpochTuple,
    stage: watch::Sender<Stage>,
    cancel: CancellationToken,
}

#[derive(Clone)]
enum Stage {
    /// Checked files and total; `None` before the files are counted.
    Going(Option<(u64, u64)>),
    Done(Result<Arc<CompleteAnswer<Files>>, CodeError>),
    /// The workspace changed during the round.
    Stale,
}

impl BackgroundCheck {
    pub(crate) fn new(engine: Orchestrator) -> Arc<Self> {
        Arc::new(Self {
            engine,
            rounds: Mutex::default(),
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
    pub(crate) async fn files(
        self: &Arc<Self>,
        call: &CallContext,
    ) -> Result<Arc<CompleteAnswer<Files>>, CodeError> {
        loop {
            let round = self.round();
            let mut stage = round.stage.subscribe();
            let finished = stage.wait_for(|stage| !matches!(stage, Stage::Going(_)));
            let stage = match call.bound(finished).await {
                Ok(Ok(stage)) => stage.clone(),
                Ok(Err(_)) => return Err(CodeError::Cancelled),
                Err(Interrupted::Cancelled) => return Err(CodeError::Cancelled),
                Err(Interrupted::Deadline) => return Err(self.timeout_error().unwrap_or(CodeError::Timeout)),
            };
            match stage {
                Stage::Done(outcome) => return outcome,
                Stage::Stale | Stage::Going(_) => {
                    // A new call, since the given one caught up before the change.
                    self.engine.catch_up(&CallContext::new(call.deadline, call.cancel.clone())).await;
                    self.notice();
                }
            }
        }
    }

    /// The error for a caller whose time is up before the current round is.
    pub(crate) fn timeout_error(&self) -> Option<CodeError> {
        let round = self.rounds().current.clone()?;
        match &*round.stage.borrow() {
            Stage::Going(progress) => Some(CodeError::Indexing { servers: Vec::new(), progress: *progress }),
            _ => None,
        }
    }

    /// Stops the current round.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The round for the current state, started if necessary.
    fn round(self: &Arc<Self>) -> Arc<Round> {
        let state = self.state();
        let mut rounds = self.rounds();
        if let Some(round) = &rounds.current {
            let serves = match &*round.stage.borrow() {
                Stage::Going(_) | Stage::Done(Ok(_)) => round.state == state,
                Stage::Done(Err(_)) | Stage::Stale => false,
            };
            if serves {
                return Arc::clone(round);
            }
            round.cancel.cancel();
        }
        let round = Arc::new(Round {
            state,
            stage: watch::Sender::new(Stage::Going(None)),
            cancel: self.closing.child_token(),
        });
        rounds.current = Some(Arc::clone(&round));
        self.tasks.spawn(Arc::clone(self).run(Arc::clone(&round)));
        round
    }

    async fn run(self: Arc<Self>, round: Arc<Round>) {
        let call = CallContext::new(tokio::time::Instant::now() + ROUND, round.cancel.clone());
        let outcome = self.check_all(&round, &call).await;
        self.engine.catch_up(&call).await;
        if self.state() != round.state {
            round.stage.send_replace(Stage::Stale);
            return;
        }
        let outcome = outcome.map(Arc::new);
        if let Ok(found) = &outcome {
            let before = self.rounds().found.replace(Arc::clone(found));
            if before.is_none_or(|before| before.value != found.value) {
                self.engine.epochs().advance(Epoch::Diagnostics);
            }
        }
        round.stage.send_replace(Stage::Done(outcome));
    }

    async fn check_all(&self, round: &Round, call: &CallContext) -> Result<CompleteAnswer<Files>, CodeError> {
        let coverage = self.engine.covered(Capability::Diagnostics, call).await;
        let total = coverage.files.len() as u64;
        round.stage.send_replace(Stage::Going(Some((0, total))));
        let mut checks = stream::iter(coverage.files)
            .map(|path| self.check_one(path, round, call))
            .buffer_unordered(AT_ONCE);
        let mut files = Vec::new();
        let (mut unproven, mut present) = (BTreeSet::new(), BTreeSet::new());
        let mut done = 0;
        while let Some(checked) = checks.next().await {
            let checked = checked?;
            done += 1;
            round.stage.send_replace(Stage::Going(Some((done, total))));
            unproven.extend(checked.unproven);
            present.extend(checked.present);
            if !checked.value.1.is_empty() {
                files.push(checked.value);
            }
        }
        files.sort_by(|left, right| left.0.cmp(&right.0));
        let list = |set: BTreeSet<ServerId>| set.into_iter().collect();
        let (unproven, present) = (list(unproven), list(present));
        Ok(CompleteAnswer { value: files, unproven, unavailable: coverage.unavailable, present })
    }

    /// The diagnostics of one file; retries while servers are pending.
    async fn check_one(
        &self,
        path: WorkspacePath,
        round: &Round,
        call: &CallContext,
    ) -> Result<CompleteAnswer<(WorkspacePath, Vec<Diagnostic>)>, CodeError> {
        loop {
            if call.cancel.is_cancelled() || self.state() != round.state {
                return Err(CodeError::Cancelled);
            }
            let Ok(answer) = self.engine.check(&path, None, call).await else {
                // A file that is not text has no diagnostics; a removed file shows up as a change.
                let nothing = (path, Vec::new());
                return Ok(CompleteAnswer {
                    value: nothing,
                    unproven: vec![],
                    unavailable: vec![],
                    present: vec![],
                });
            };
            match require_complete(answer, RequiredServers::AnyNumber) {
                Ok(CompleteAnswer { value, unproven, unavailable, present }) => {
                    return Ok(CompleteAnswer { value: (path, value), unproven, unavailable, present });
                }
                Err(CodeError::Indexing { .. } | CodeError::Timeout) => {
                    let _ = call.bound(tokio::time::sleep(PAUSE)).await;
                }
                Err(error) => return Err(error),
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
