//! A cache of query results, finished and in flight: identical queries share one computation, and a slow one outlives its
//! caller.
//!
//! The snapshot key identifies a query, so two are identical only if nothing changed between them. Each computation is a
//! task. If a caller times out, the computation continues for a while and its result is cached for the retry, unless the
//! state changed meanwhile. If every caller has cancelled, the computation stops.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tenon_contract::clock::Clock;
use tenon_contract::cursor::SnapshotKey;
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

/// A computation in flight.
struct Flight<T> {
    /// Distinguishes it from a later flight of the same query.
    number: u64,
    outcome: Shared<BoxFuture<'static, Outcome<T>>>,
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
    by_key: BTreeMap<SnapshotKey, Flight<T>>,
}

impl<T: ByteSized> InFlightCache<T> {
    pub(crate) fn new(limits: SnapshotLimits, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            kept: SnapshotStore::new(limits, clock),
            flights: Mutex::new(Flights { last: 0, by_key: BTreeMap::new() }),
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

    /// Answers the query `key` from the cache, from a computation in flight, or by starting `compute`.
    ///
    /// `unchanged` is awaited if the computation outlived its callers: whether `key` is still the key of the query.
    pub(crate) async fn ask<F>(
        self: &Arc<Self>,
        key: &SnapshotKey,
        call: &CallContext,
        compute: impl FnOnce(CallContext) -> F,
        unchanged: impl Future<Output = bool> + Send + 'static,
    ) -> Outcome<T>
    where
        F: Future<Output = Result<T, CodeError>> + Send + 'static,
    {
        if let Some(kept) = self.kept(key) {
            return Ok(kept);
        }
        let (outcome, mut guard) = self.join(key, compute, unchanged);
        match call.bound(outcome).await {
            Ok(outcome) => outcome,
            Err(Interrupted::Deadline) => {
                guard.back_later = true;
                Err(CodeError::Timeout)
            }
            Err(Interrupted::Cancelled) => Err(CodeError::Cancelled),
        }
    }

    /// Stops all computations and waits for their end.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn join<F>(
        self: &Arc<Self>,
        key: &SnapshotKey,
        compute: impl FnOnce(CallContext) -> F,
        unchanged: impl Future<Output = bool> + Send + 'static,
    ) -> (Shared<BoxFuture<'static, Outcome<T>>>, CallerGuard<T>)
    where
        F: Future<Output = Result<T, CodeError>> + Send + 'static,
    {
        let mut flights = self.flights();
        if let Some(flight) = flights.by_key.get_mut(key) {
            flight.callers += 1;
            return (flight.outcome.clone(), self.guard(key, flight.number));
        }
        flights.last += 1;
        let number = flights.last;
        let cancel = self.closing.child_token();
        // The caller has caught up with the disk before it made the key.
        let call =
            CallContext::new(tokio::time::Instant::now() + DETACHED_TIMEOUT, cancel.clone()).caught_up();
        let work = compute(call);
        let task = self.tasks.spawn({
            let (cache, key) = (Arc::clone(self), key.clone());
            async move {
                let outcome = AssertUnwindSafe(work).catch_unwind().await;
                let outcome = outcome.unwrap_or(Err(CodeError::Internal)).map(Arc::new);
                if let Ok(result) = &outcome
                    && cache.is_awaited_later(&key, number)
                    && unchanged.await
                {
                    // If it is too large to cache, the retry computes it again.
                    let _ = cache.keep(&key, result);
                }
                cache.remove(&key, number);
                outcome
            }
        });
        let outcome = async move { task.await.unwrap_or(Err(CodeError::Internal)) }.boxed().shared();
        let flight = Flight { number, outcome: outcome.clone(), callers: 1, awaited_later: false, cancel };
        flights.by_key.insert(key.clone(), flight);
        (outcome, self.guard(key, number))
    }

    fn guard(self: &Arc<Self>, key: &SnapshotKey, number: u64) -> CallerGuard<T> {
        CallerGuard { cache: Arc::clone(self), key: key.clone(), number, back_later: false }
    }

    fn is_awaited_later(&self, key: &SnapshotKey, number: u64) -> bool {
        let flights = self.flights();
        flights.by_key.get(key).is_some_and(|flight| flight.number == number && flight.awaited_later)
    }

    fn remove(&self, key: &SnapshotKey, number: u64) {
        let mut flights = self.flights();
        if flights.by_key.get(key).is_some_and(|flight| flight.number == number) {
            flights.by_key.remove(key);
        }
    }
}

impl<T> InFlightCache<T> {
    fn flights(&self) -> MutexGuard<'_, Flights<T>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, key: &SnapshotKey, number: u64, back_later: bool) {
        let mut flights = self.flights();
        let Some(flight) = flights.by_key.get_mut(key).filter(|flight| flight.number == number) else {
            return;
        };
        flight.callers -= 1;
        flight.awaited_later |= back_later;
        if flight.callers == 0 && !flight.awaited_later {
            flight.cancel.cancel();
            // A new caller must not join the cancelled computation.
            flights.by_key.remove(key);
        }
    }
}

/// Counts a caller of a flight until it is dropped.
struct CallerGuard<T> {
    cache: Arc<InFlightCache<T>>,
    key: SnapshotKey,
    number: u64,
    back_later: bool,
}

impl<T> Drop for CallerGuard<T> {
    fn drop(&mut self) {
        self.cache.leave(&self.key, self.number, self.back_later);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tenon_contract::cursor::RequestKey;
    use tenon_contract::epoch::{EpochSet, Epochs};
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
        key: SnapshotKey,
        /// Lets a computation finish.
        go: Arc<Notify>,
        started: Arc<AtomicUsize>,
        finished: Arc<AtomicUsize>,
    }

    fn setting() -> Setting {
        let gate = RootGate::new(Vec::<&str>::new()).unwrap();
        let tuple = Epochs::starting_now(&Clock::system()).tuple(EpochSet::CODE, &gate);
        Setting {
            cache: InFlightCache::new(SnapshotLimits::default(), Clock::system()),
            key: SnapshotKey::new(&RequestKey::new("t", &[]), &tuple),
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
            self.cache.ask(&self.key, &call, compute, async move { unchanged }).await
        }

        /// Whether the answer is in flight or cached.
        fn is_known(&self) -> bool {
            self.cache.flights().by_key.contains_key(&self.key) || self.cache.kept(&self.key).is_some()
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
        let outcome = setting.cache.ask(&setting.key, &patient(), panics, async { true }).await;
        assert_eq!(outcome, Err(CodeError::Internal));
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
