//! Runs a query: gate, cursor, then a computation that is shared, cached for a retry and delivered in pages.
//!
//! An answer belongs to one state of the workspace. If the state changed during the computation, it is repeated, as long as
//! there is time, unless the query depends on the text of one document alone: [`Consistency`].

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use tenon_contract::clock::Clock;
use tenon_contract::cursor::{Cursor, RequestKey, SnapshotKey};
use tenon_contract::epoch::EpochSet;
use tenon_contract::root::{RootGate, WorkspacePath};
use tenon_contract::snapshot::SnapshotLimits;
use tenon_lsp::CallContext;
use tenon_lsp::ServerId;
use tenon_lsp::orchestrator::Orchestrator;

use crate::background_check::{BackgroundCheck, Findings};
use crate::code_reply::CodeReply;
use crate::completeness::CompleteAnswer;
use crate::error::CodeError;
use crate::in_flight_cache::{ByteSized, Computed, CurrentKey, InFlightCache};
use crate::limits::CodeLimits;
use crate::page::{Delivery, PageRequest, PageSize, PagedList};

/// The cache of unpaged answers, for a retry.
const KEPT_REPLIES: SnapshotLimits = SnapshotLimits {
    entry_bytes: CodeLimits::MAXIMA.response_bytes,
    total_bytes: 8 * 1024 * 1024,
    entries: 64,
    age: std::time::Duration::from_secs(60),
};

/// What the tools need.
pub struct Options {
    pub engine: Orchestrator,
    /// Clamped to the contract's.
    pub limits: CodeLimits,
    pub snapshots: SnapshotLimits,
    pub clock: Clock,
}

/// The seven tools of one workspace. Clones share their work.
#[derive(Clone)]
pub struct CodeTools {
    pub(crate) state: Arc<State>,
    replies: Arc<InFlightCache<CodeReply>>,
    lists: Arc<InFlightCache<PagedList>>,
    /// State and replies of the form with a listing. The replies differ, because the listing counts into their size.
    listed: (Arc<State>, Arc<InFlightCache<CodeReply>>),
}

/// What a computation needs.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) engine: Orchestrator,
    pub(crate) background_check: Arc<BackgroundCheck>,
    pub(crate) limits: CodeLimits,
    /// Whether answers have a listing.
    pub(crate) listing: bool,
}

/// A query, and what its answer depends on.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) request: RequestKey,
    pub(crate) epochs: EpochSet,
    /// The document; `None` for queries about the workspace.
    pub(crate) path: Option<WorkspacePath>,
    pub(crate) consistency: Consistency,
}

/// Which computations answer a query while the workspace changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consistency {
    /// Those that began after the call. Its positions belong to the document's text when it began, so a later change of
    /// another file does not matter.
    BegunAfterCall,
    /// Those during which nothing changed: its positions belong to several files, or it is delivered in pages.
    Unchanged,
}

impl CodeTools {
    pub fn new(options: Options) -> Self {
        let Options { engine, limits, snapshots, clock } = options;
        let state = State {
            background_check: BackgroundCheck::new(engine.clone()),
            engine,
            limits: limits.clamped(),
            listing: false,
        };
        let replies = || InFlightCache::new(KEPT_REPLIES, clock.clone());
        Self {
            listed: (Arc::new(State { listing: true, ..state.clone() }), replies()),
            state: Arc::new(state),
            replies: replies(),
            lists: InFlightCache::new(snapshots, clock.clone()),
        }
    }

    /// These tools, answering with a listing, too.
    pub fn with_listing(&self) -> Self {
        let (state, replies) = self.listed.clone();
        Self { state, replies, ..self.clone() }
    }

    pub fn limits(&self) -> CodeLimits {
        self.state.limits
    }

    /// Stops all computations.
    pub async fn close(&self) {
        futures::join!(
            self.replies.close(),
            self.listed.1.close(),
            self.lists.close(),
            self.state.background_check.close()
        );
    }

    /// The diagnostics of the whole workspace in its current state.
    pub(crate) async fn workspace_findings(
        &self,
        call: &CallContext,
    ) -> Result<Arc<CompleteAnswer<Findings>>, CodeError> {
        self.state.catch_up(call).await;
        self.state.background_check.findings(call).await
    }

    /// Admits a document.
    pub(crate) async fn admit(&self, uri: String) -> Result<WorkspacePath, CodeError> {
        let gate = self.state.gate().clone();
        let admitted = tokio::task::spawn_blocking(move || gate.admit_uri(&uri)).await;
        Ok(admitted.map_err(|_| CodeError::Internal)??)
    }

    /// Admits a query about the workspace, which needs a root.
    pub(crate) fn admit_workspace(&self) -> Result<(), CodeError> {
        Ok(self.state.gate().admit_workspace()?)
    }

    /// Answers an unpaged query.
    pub(crate) async fn reply<F>(
        &self,
        question: Question,
        call: &CallContext,
        compute: impl Fn(Arc<State>, CallContext) -> F,
    ) -> Result<CodeReply, CodeError>
    where
        F: Future<Output = Result<CodeReply, CodeError>> + Send + 'static,
    {
        let (_, reply) = self.settled(&self.replies, &question, call, compute).await?;
        Ok(CodeReply::clone(&reply))
    }

    /// Answers a query page by page.
    pub(crate) async fn page<F>(
        &self,
        question: Question,
        paging: PageRequest,
        call: &CallContext,
        compute: impl Fn(Arc<State>, CallContext) -> F,
    ) -> Result<CodeReply, CodeError>
    where
        F: Future<Output = Result<PagedList, CodeError>> + Send + 'static,
    {
        let state = &self.state;
        let size = PageSize::effective(paging.size, state.limits.page_size);
        if let Some(text) = &paging.cursor {
            let decoded = Cursor::decode(text, &question.request)?;
            state.catch_up(call).await;
            let cursor = decoded.bind(&state.key(&question))?;
            let full = self.lists.kept(cursor.snapshot()).ok_or(CodeError::CursorExpired)?;
            return full.page(&cursor, size, state.delivery());
        }
        let (snapshot, full) = self.settled(&self.lists, &question, call, compute).await?;
        let cursor = Cursor::start(question.request, snapshot);
        let is_whole = full.len() <= size;
        if !is_whole && self.lists.kept(cursor.snapshot()).is_none() {
            self.lists.keep(cursor.snapshot(), &full)?;
        }
        full.page(&cursor, size, state.delivery())
    }

    /// The result of a query, and the state that it belongs to.
    async fn settled<T: ByteSized, F>(
        &self,
        cache: &Arc<InFlightCache<T>>,
        question: &Question,
        call: &CallContext,
        compute: impl Fn(Arc<State>, CallContext) -> F,
    ) -> Result<(SnapshotKey, Arc<T>), CodeError>
    where
        F: Future<Output = Result<T, CodeError>> + Send + 'static,
    {
        let current: CurrentKey = {
            let (state, question) = (Arc::clone(&self.state), question.clone());
            Arc::new(move || state.key(&question))
        };
        loop {
            // A query after a change must not get a computation that began before it.
            self.state.catch_up(call).await;
            let work = |call| compute(Arc::clone(&self.state), call);
            let (state, asked) = (Arc::clone(&self.state), question.clone());
            let unchanged = move |key| state.unchanged(asked, key);
            let Computed { begun, outcome } =
                cache.ask(&question.request, &current, call, work, unchanged).await;
            let is_unchanged = current() == begun;
            match outcome {
                Ok(result) if is_unchanged || question.consistency == Consistency::BegunAfterCall => {
                    return Ok((begun, result));
                }
                Ok(_) => {}
                // A newer text of the document has ended the check.
                Err(CodeError::Timeout) if !is_unchanged => {}
                Err(CodeError::Timeout) => return Err(self.why_late(question).await),
                Err(error) => return Err(error),
            }
            if call.remaining().is_zero() {
                return Err(self.why_late(question).await);
            }
        }
    }

    /// The error for a caller whose time is up.
    async fn why_late(&self, question: &Question) -> CodeError {
        if question.epochs == EpochSet::DIAGNOSTICS
            && let Some(lateness) = self.state.background_check.timeout_error()
        {
            return lateness;
        }
        let servers = self.state.engine.unready(question.path.as_ref()).await;
        if servers.is_empty() { CodeError::Timeout } else { CodeError::Indexing { servers, progress: None } }
    }
}

impl State {
    pub(crate) fn gate(&self) -> &RootGate {
        self.engine.gate()
    }

    pub(crate) fn delivery(&self) -> Delivery<'_> {
        Delivery { gate: self.gate(), limit: self.limits.payload_bytes(), listing: self.listing }
    }

    /// Languages with files here whose servers are all not installed or may not run.
    pub(crate) fn uncovered<T>(&self, found: &CompleteAnswer<T>) -> Vec<String> {
        if found.unavailable.is_empty() {
            return Vec::new();
        }
        let status = self.engine.status();
        let languages = |servers: &[ServerId]| -> BTreeSet<String> {
            let named = status.iter().filter(|line| servers.contains(&line.id));
            named.map(|line| line.language.clone()).collect()
        };
        languages(&found.unavailable).difference(&languages(&found.present)).cloned().collect()
    }

    /// Waits until all earlier changes on disk are known.
    async fn catch_up(&self, call: &CallContext) -> bool {
        let caught_up = self.engine.catch_up(call).await;
        self.background_check.notice();
        caught_up
    }

    /// The key of a query in the current state of the workspace.
    fn key(&self, question: &Question) -> SnapshotKey {
        SnapshotKey::new(&question.request, &self.engine.epochs().tuple(question.epochs, self.gate()))
    }

    async fn unchanged(self: Arc<Self>, question: Question, key: SnapshotKey) -> bool {
        self.catch_up(&CallContext::within(self.limits.timeout)).await && self.key(&question) == key
    }
}
