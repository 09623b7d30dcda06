//! Runs provider code on worker threads, so that a panic or a hang affects only that call.
//!
//! A thread cannot be stopped from outside, so a call that passes its deadline is abandoned on its thread.
//! [`MAX_CONCURRENT_CALLS`] bounds the threads of one provider: when all of them hang, the next call fails after its
//! deadline without starting another.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use super::pack::ProviderError;

#[cfg(not(panic = "unwind"))]
compile_error!("a provider's panic can only be contained when panics unwind");

/// How many calls to one provider may run at the same time.
const MAX_CONCURRENT_CALLS: usize = 8;

/// Runs the calls of one provider.
#[derive(Default)]
pub(super) struct Isolation {
    running: Mutex<usize>,
    permit_released: Condvar,
}

impl Isolation {
    /// The result of `work`, or `None` when it fails, panics or takes too long.
    pub(super) fn run<T: Send + 'static>(
        self: &Arc<Self>,
        deadline: Duration,
        work: impl FnOnce() -> Result<T, ProviderError> + Send + 'static,
    ) -> Option<T> {
        let start = Instant::now();
        let permit = self.acquire(deadline)?;
        let (answer, answered) = mpsc::sync_channel(1);
        let worker = move || {
            let outcome = catch_unwind(AssertUnwindSafe(work));
            let outcome = match outcome {
                Ok(Ok(value)) => Some(value),
                Ok(Err(error)) => {
                    // Logged for the provider's author only; diagnostics must not reveal it.
                    tracing::debug!(error, "render provider failed");
                    None
                }
                Err(payload) => {
                    // Dropping the payload would run more provider code, which may panic again.
                    std::mem::forget(payload);
                    None
                }
            };
            drop(permit);
            // The receiver is gone when the deadline has passed.
            let _ = answer.send(outcome);
        };
        std::thread::Builder::new().name("render".to_owned()).spawn(worker).ok()?;
        answered.recv_timeout(deadline.saturating_sub(start.elapsed())).ok().flatten()
    }

    /// Waits for a permit, at most until the deadline.
    fn acquire(self: &Arc<Self>, deadline: Duration) -> Option<CallPermit> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut running, timeout) = self
            .permit_released
            .wait_timeout_while(running, deadline, |running| *running >= MAX_CONCURRENT_CALLS)
            .unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return None;
        }
        *running += 1;
        Some(CallPermit(Arc::clone(self)))
    }
}

/// The right to run one call; released on drop.
struct CallPermit(Arc<Isolation>);

impl Drop for CallPermit {
    fn drop(&mut self) {
        *self.0.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.permit_released.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn only_successful_calls_return_a_value() {
        let cell = Arc::new(Isolation::default());
        assert_eq!(cell.run(LONG, || Ok(7)), Some(7));
        assert_eq!(cell.run::<()>(LONG, || Err("no".into())), None);
        assert_eq!(cell.run::<()>(LONG, || panic!("contained")), None);
        assert_eq!(cell.run(LONG, || Ok(8)), Some(8));
    }

    #[test]
    fn panic_payload_is_not_dropped() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let cell = Arc::new(Isolation::default());
        assert_eq!(cell.run::<()>(LONG, || std::panic::panic_any(Bomb)), None);
    }

    #[test]
    fn hanging_calls_use_a_bounded_number_of_threads() {
        let cell = Arc::new(Isolation::default());
        let (release, released) = mpsc::sync_channel::<()>(0);
        let released = Arc::new(Mutex::new(released));
        for _ in 0..MAX_CONCURRENT_CALLS + 3 {
            let released = Arc::clone(&released);
            let hang = move || {
                let _ = released.lock().map(|released| released.recv().is_ok());
                Ok(())
            };
            assert_eq!(cell.run(SHORT, hang), None);
        }
        assert_eq!(*cell.running.lock().unwrap(), MAX_CONCURRENT_CALLS);
        drop(release);
        assert_eq!(cell.run(LONG, || Ok(9)), Some(9));
    }
}
