//! A cache of query results, finished and in flight: identical queries share one computation, and a slow one outlives its
//! caller.
//!
//! A caller gets a computation that began after the caller's changes: one that has not begun, or one that began in the same
//! state. So there are at most two computations of a request, one that runs and one that waits for its end, however many
//! callers there are and however often the state changes.
//!
//! Each computation is a task. If a caller times out, the computation continues for a while and its result is cached for the
//! retry, unless the state changed meanwhile. If every caller has cancelled, the computation stops.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tenon_contract::clock::Clock;
use tenon_contract::cursor::{RequestKey, SnapshotKey};
use tenon_contract::snapshot::{SnapshotLimits, SnapshotStore};
use tenon_lsp::{CallContext, Interrupted};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::CodeError;
use crate::limits::DETACHED_TIMEOUT;

/// A result with a size.
pub(crate) trait ByteSized: Send + Sync + 'static {
    fn bytes(&self) -> usize;
}

type Outcome<T> = Result<Arc<T>, CodeError>;

/// An outcome, and the state in which its computation began.
#[derive(Debug)]
pub(crate) struct Computed<T> {
    pub(crate) begun: SnapshotKey,
    pub(crate) outcome: Outcome<T>,
}

impl<T> Clone for Computed<T> {
    fn clone(&self) -> Self {
        Self { begun: self.begun.clone(), outcome: self.outcome.clone() }
    }
}

type SharedOutcome<T> = Shared<BoxFuture<'static, Computed<T>>>;

/// The key of a query in the current state.
pub(crate) type CurrentKey = Arc<dyn Fn() -> SnapshotKey + Send + Sync>;

/// A computation in flight.
struct Flight<T> {
    /// Distinguishes it from a later flight of the same query.
    number: u64,
    /// The state in which it began; `None` while it waits for the one before it.
    begun: Option<SnapshotKey>,
    outcome: SharedOutcome<T>,
    callers: usize,
    /// Whether a caller that timed out is expected to retry.
    awaited_later: bool,
    cancel: CancellationToken,
}

/// The results of all queries, in flight and cached.
pub(crate) struct InFlightCache<T> {
    kept: SnapshotStore<T>,
    flights: Mutex<Flights<T>>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

struct Flights<T> {
    last: u64,
    by_request: BTreeMap<RequestKey, VecDeque<Flight<T>>>,
}

impl<T> Flights<T> {
    fn get_mut(&mut self, request: &RequestKey, number: u64) -> Option<&mut Flight<T>> {
        self.by_request.get_mut(request)?.iter_mut().find(|flight| flight.number == number)
    }

    fn remove(&mut self, request: &RequestKey, number: u64) {
        if let Some(flights) = self.by_request.get_mut(request) {
            flights.retain(|flight| flight.number != number);
            if flights.is_empty() {
                self.by_request.remove(request);
            }
        }
    }
}

impl<T: ByteSized> InFlightCache<T> {
    pub(crate) fn new(limits: SnapshotLimits, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            kept: SnapshotStore::new(limits, clock),
            flights: Mutex::new(Flights { last: 0, by_request: BTreeMap::new() }),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        })
    }

    /// The cached result for `key`.
    pub(crate) fn kept(&self, key: &SnapshotKey) -> Option<Arc<T>> {
        self.kept.get(key)
    }

    /// Caches a result for paging.
    pub(crate) fn keep(&self, key: &SnapshotKey, result: &Arc<T>) -> Result<(), CodeError> {
        Ok(self.kept.insert(key.clone(), Arc::clone(result), result.bytes())?)
    }

    /// Answers a query from the cache, from a computation in flight, or by starting `compute`.
    ///
    /// `unchanged` is awaited if the computation outlived its callers: whether a key is still the key of the query.
    pub(crate) async fn ask<F, U>(
        self: &Arc<Self>,
        request: &RequestKey,
        current: &CurrentKey,
        call: &CallContext,
        compute: impl FnOnce(CallContext) -> F,
        unchanged: impl FnOnce(SnapshotKey) -> U + Send + 'static,
    ) -> Computed<T>
    where
        F: Future<Output = Result<T, CodeError>> + Send + 'static,
        U: Future<Output = bool> + Send + 'static,
    {
        let key = current();
        if let Some(kept) = self.kept(&key) {
            return Computed { begun: key, outcome: Ok(kept) };
        }
        let (outcome, mut guard) = self.join(request, key.clone(), current, call, compute, unchanged);
        match call.bound(outcome).await {
            Ok(computed) => computed,
            Err(Interrupted::Deadline) => {
                guard.back_later = true;
                Computed { begun: key, outcome: Err(CodeError::Timeout) }
            }
            Err(Interrupted::Cancelled) => Computed { begun: key, outcome: Err(CodeError::Cancelled) },
        }
    }

    /// Stops all computations and waits for their end.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn join<F, U>(
        self: &Arc<Self>,
        request: &RequestKey,
        key: SnapshotKey,
        current: &CurrentKey,
        call: &CallContext,
        compute: impl FnOnce(CallContext) -> F,
        unchanged: impl FnOnce(SnapshotKey) -> U + Send + 'static,
    ) -> (SharedOutcome<T>, CallerGuard<T>)
    where
        F: Future<Output = Result<T, CodeError>> + Send + 'static,
        U: Future<Output = bool> + Send + 'static,
    {
        let mut flights = self.flights();
        let of_request = flights.by_request.entry(request.clone()).or_default();
        let fits = |flight: &&mut Flight<T>| flight.begun.as_ref().is_none_or(|begun| *begun == key);
        if let Some(flight) = of_request.iter_mut().find(fits) {
            flight.callers += 1;
            return (flight.outcome.clone(), self.guard(request, flight.number));
        }
        let before = of_request.back().map(|flight| flight.outcome.clone());
        flights.last += 1;
        let number = flights.last;
        let cancel = self.closing.child_token();
        // The one before it may take as long.
        let timeout = if before.is_some() { 2 * DETACHED_TIMEOUT } else { DETACHED_TIMEOUT };
        // The caller has caught up with the disk before it made the key.
        let detached =
            CallContext::new(tokio::time::Instant::now() + timeout, cancel.clone()).for_client_of(call);
        let work = compute(detached.caught_up());
        let begun = before.is_none().then(|| key.clone());
        let task = self.tasks.spawn({
            let (cache, request, current) = (Arc::clone(self), request.clone(), Arc::clone(current));
            async move {
                let begun = match before {
                    None => key,
                    Some(before) => {
                        before.await;
                        let now = current();
                        if let Some(flight) = cache.flights().get_mut(&request, number) {
                            flight.begun = Some(now.clone());
                        }
                        now
                    }
                };
                let outcome = AssertUnwindSafe(work).catch_unwind().await;
                let outcome = outcome.unwrap_or(Err(CodeError::Internal)).map(Arc::new);
                if let Ok(result) = &outcome
                    && cache.is_awaited_later(&request, number)
                    && unchanged(begun.clone()).await
                {
                    // If it is too large to cache, the retry computes it again.
                    let _ = cache.keep(&begun, result);
                }
                cache.flights().remove(&request, number);
                Computed { begun, outcome }
            }
        });
        let fallback = begun.clone().unwrap_or_else(|| current());
        let outcome = async move {
            let aborted = Computed { begun: fallback, outcome: Err(CodeError::Internal) };
            task.await.unwrap_or(aborted)
        };
        let outcome = outcome.boxed().shared();
        let flight =
            Flight { number, begun, outcome: outcome.clone(), callers: 1, awaited_later: false, cancel };
        flights.by_request.entry(request.clone()).or_default().push_back(flight);
        (outcome, self.guard(request, number))
    }

    fn guard(self: &Arc<Self>, request: &RequestKey, number: u64) -> CallerGuard<T> {
        CallerGuard { cache: Arc::clone(self), request: request.clone(), number, back_later: false }
    }

    fn is_awaited_later(&self, request: &RequestKey, number: u64) -> bool {
        self.flights().get_mut(request, number).is_some_and(|flight| flight.awaited_later)
    }
}

impl<T> InFlightCache<T> {
    fn flights(&self) -> MutexGuard<'_, Flights<T>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, request: &RequestKey, number: u64, back_later: bool) {
        let mut flights = self.flights();
        let Some(flight) = flights.get_mut(request, number) else {
            return;
        };
        flight.callers -= 1;
        flight.awaited_later |= back_later;
        if flight.callers == 0 && !flight.awaited_later {
            flight.cancel.cancel();
            // A new caller must not join the cancelled computation.
            flights.remove(request, number);
        }
    }
}

/// Counts a caller of a flight until it is dropped.
struct CallerGuard<T> {
    cache: Arc<InFlightCache<T>>,
    request: RequestKey,
    number: u64,
    back_later: bool,
}

impl<T> Drop for CallerGuard<T> {
    fn drop(&mut self) {
        self.cache.leave(&self.request, self.number, self.back_later);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures::StreamExt;
    use futures::stream::FuturesUnordered;
    use tenon_contract::epoch::{Epoch, EpochSet, Epochs};
    use tenon_contract::root::RootGate;
    use tokio::sync::Notify;

    use super::*;

    impl ByteSized for String {
        fn bytes(&self) -> usize {
            self.len()
        }
    }

    struct Setting {
        cache: Arc<InFlightCache<String>>,
        request: RequestKey,
        epochs: Arc<Epochs>,
        current: CurrentKey,
        /// Lets a computation finish.
        go: Arc<Notify>,
        started: Arc<AtomicUsize>,
        finished: Arc<AtomicUsize>,
    }

    fn setting() -> Setting {
        let gate = RootGate::new(Vec::<&str>::new()).unwrap();
        let request = RequestKey::new("t", &[]);
        let epochs = Arc::new(Epochs::starting_now(&Clock::system()));
        let current: CurrentKey = {
            let (request, epochs) = (request.clone(), Arc::clone(&epochs));
            Arc::new(move || SnapshotKey::new(&request, &epochs.tuple(EpochSet::CODE, &gate)))
        };
        Setting {
            cache: InFlightCache::new(SnapshotLimits::default(), Clock::system()),
            request,
            epochs,
            current,
            go: Arc::default(),
            started: Arc::default(),
            finished: Arc::default(),
        }
    }

    impl Setting {
        async fn ask(&self, call: CallContext, unchanged: bool) -> Outcome<String> {
            let (go, started, finished) =
                (Arc::clone(&self.go), Arc::clone(&self.started), Arc::clone(&self.finished));
            let compute = |call: CallContext| async move {
                started.fetch_add(1, Ordering::SeqCst);
                call.bound(go.notified()).await.map_err(|_| CodeError::Cancelled)?;
                finished.fetch_add(1, Ordering::SeqCst);
                Ok("answer".to_owned())
            };
            let unchanged = move |_| std::future::ready(unchanged);
            self.cache.ask(&self.request, &self.current, &call, compute, unchanged).await.outcome
        }

        /// Whether the answer is in flight or cached.
        fn is_known(&self) -> bool {
            let key = (self.current)();
            self.cache.flights().by_request.contains_key(&self.request) || self.cache.kept(&key).is_some()
        }

        fn change_state(&self) {
            self.epochs.advance(Epoch::Text);
        }

        fn counts(&self) -> (usize, usize) {
            (self.started.load(Ordering::SeqCst), self.finished.load(Ordering::SeqCst))
        }
    }

    fn patient() -> CallContext {
        CallContext::within(Duration::from_secs(20))
    }

    fn hasty() -> CallContext {
        CallContext::within(Duration::from_secs(2))
    }

    #[tokio::test(start_paused = true)]
    async fn identical_queries_share_one_computation() {
        let setting = setting();
        let let_go = async {
            tokio::task::yield_now().await;
            setting.go.notify_one();
        };
        let (first, second, third, ()) = tokio::join!(
            setting.ask(patient(), true),
            setting.ask(patient(), true),
            setting.ask(patient(), true),
            let_go
        );
        assert_eq!(setting.counts(), (1, 1));
        let first = first.unwrap();
        assert!(Arc::ptr_eq(&first, &second.unwrap()) && Arc::ptr_eq(&first, &third.unwrap()));
        assert!(!setting.is_known(), "a result that all callers got is not cached");
    }

    #[tokio::test(start_paused = true)]
    async fn queries_during_changes_share_one_computation_that_began_after_them() {
        let setting = setting();
        let mut asking: FuturesUnordered<_> = FuturesUnordered::new();
        for _ in 0..64 {
            asking.push(setting.ask(patient(), true));
            assert!(futures::poll!(asking.next()).is_pending());
            setting.change_state();
        }
        tokio::task::yield_now().await;
        assert_eq!(setting.counts(), (1, 0), "the second computation waits for the first");
        setting.go.notify_one();
        assert_eq!(asking.next().await.unwrap().unwrap().as_str(), "answer");
        assert!(futures::poll!(asking.next()).is_pending(), "the others asked after a change");
        setting.go.notify_one();
        let rest: Vec<Outcome<String>> = asking.collect().await;
        assert!(rest.len() == 63 && rest.iter().all(Result::is_ok));
        assert_eq!(setting.counts(), (2, 2));
        assert!(!setting.is_known());
    }

    #[tokio::test(start_paused = true)]
    async fn query_after_a_change_does_not_get_a_computation_from_before() {
        let setting = setting();
        let first = setting.ask(patient(), true);
        tokio::pin!(first);
        assert!(futures::poll!(&mut first).is_pending());
        setting.change_state();
        let second = setting.ask(patient(), true);
        tokio::pin!(second);
        assert!(futures::poll!(&mut second).is_pending());
        setting.go.notify_one();
        let first = first.await.unwrap();
        setting.go.notify_one();
        assert!(!Arc::ptr_eq(&first, &second.await.unwrap()));
    }

    #[tokio::test(start_paused = true)]
    async fn result_is_cached_for_the_retry_after_a_timeout() {
        let setting = setting();
        assert_eq!(setting.ask(hasty(), true).await, Err(CodeError::Timeout));
        setting.go.notify_one();
        setting.cache.tasks.close();
        setting.cache.tasks.wait().await;
        assert_eq!(setting.ask(hasty(), true).await.unwrap().as_str(), "answer");
        assert_eq!(setting.counts(), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn retry_joins_the_computation_in_flight() {
        let setting = setting();
        assert_eq!(setting.ask(hasty(), true).await, Err(CodeError::Timeout));
        setting.go.notify_one();
        assert_eq!(setting.ask(hasty(), true).await.unwrap().as_str(), "answer");
        assert_eq!(setting.counts(), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn result_of_a_changed_state_is_not_cached() {
        let setting = setting();
        assert_eq!(setting.ask(hasty(), false).await, Err(CodeError::Timeout));
        setting.go.notify_one();
        setting.cache.tasks.close();
        setting.cache.tasks.wait().await;
        assert_eq!(setting.counts(), (1, 1));
        assert!(!setting.is_known());
    }

    #[tokio::test(start_paused = true)]
    async fn detached_computation_has_a_timeout() {
        let setting = setting();
        assert_eq!(setting.ask(hasty(), true).await, Err(CodeError::Timeout));
        tokio::time::sleep(DETACHED_TIMEOUT).await;
        setting.cache.tasks.close();
        setting.cache.tasks.wait().await;
        assert_eq!(setting.counts(), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn computation_stops_when_all_callers_cancel() {
        let setting = setting();
        let call = patient();
        let cancel = call.cancel.clone();
        let other = patient();
        let other_cancel = other.cancel.clone();
        let cancel_both = async {
            tokio::task::yield_now().await;
            cancel.cancel();
            tokio::task::yield_now().await;
            assert!(setting.is_known(), "one caller is left");
            other_cancel.cancel();
        };
        let (first, second, ()) =
            tokio::join!(setting.ask(call, true), setting.ask(other, true), cancel_both);
        assert_eq!((first, second), (Err(CodeError::Cancelled), Err(CodeError::Cancelled)));
        setting.cache.tasks.close();
        setting.cache.tasks.wait().await;
        assert_eq!(setting.counts(), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn dropped_caller_counts_as_cancelled() {
        let setting = setting();
        {
            let asking = setting.ask(patient(), true);
            tokio::pin!(asking);
            assert!(futures::poll!(&mut asking).is_pending());
        }
        assert!(!setting.is_known());
        tokio::task::yield_now().await;
        // A new caller does not get the cancelled computation.
        setting.go.notify_one();
        assert_eq!(setting.ask(patient(), true).await.unwrap().as_str(), "answer");
    }

    #[tokio::test(start_paused = true)]
    async fn panic_is_an_internal_error_and_is_not_cached() {
        let setting = setting();
        let panics = |_: CallContext| async { panic!("on purpose") };
        let (call, unchanged) = (patient(), |_| std::future::ready(true));
        let asking = setting.cache.ask(&setting.request, &setting.current, &call, panics, unchanged);
        assert_eq!(asking.await.outcome, Err(CodeError::Internal));
        setting.go.notify_one();
        assert_eq!(setting.ask(patient(), true).await.unwrap().as_str(), "answer");
    }

    #[tokio::test(start_paused = true)]
    async fn closing_stops_computations_in_flight() {
        let setting = setting();
        assert_eq!(setting.ask(hasty(), true).await, Err(CodeError::Timeout));
        setting.cache.close().await;
        assert_eq!(setting.counts(), (1, 0));
    }
}
