//! A limited number of places at a server, shared fairly between clients.
//!
//! A server answers requests one after the other, so every request that it has delays the next one. Only a few are sent at a
//! time; the others wait here, in one queue per client, and the queues take turns. So a client with hundreds of requests
//! delays another one by those that the server already has, and then by one request per turn.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::call_context::{CallContext, Interrupted};

/// The places at one server. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct FairSlots(Arc<Mutex<Slots>>);

#[derive(Debug)]
struct Slots {
    free: usize,
    waiting: BTreeMap<u64, VecDeque<oneshot::Sender<Slot>>>,
    /// The clients that wait, the next one first.
    turns: VecDeque<u64>,
}

/// A place at the server until it is dropped.
#[derive(Debug)]
pub(crate) struct Slot(FairSlots);

impl FairSlots {
    pub(crate) fn new(slots: usize) -> Self {
        Self(Arc::new(Mutex::new(Slots { free: slots, waiting: BTreeMap::new(), turns: VecDeque::new() })))
    }

    /// Waits for a place.
    pub(crate) async fn take(&self, call: &CallContext) -> Result<Slot, Interrupted> {
        let granted = {
            let mut slots = self.lock();
            if slots.free > 0 {
                slots.free -= 1;
                return Ok(Slot(self.clone()));
            }
            let (grant, granted) = oneshot::channel();
            let client = call.client();
            let queue = slots.waiting.entry(client).or_default();
            queue.push_back(grant);
            if queue.len() == 1 {
                slots.turns.push_back(client);
            }
            granted
        };
        // A place that is granted to a caller that left is dropped with the channel, which grants it again.
        call.bound(granted).await?.map_err(|_| Interrupted::Cancelled)
    }

    fn give_back(&self) {
        let grant = {
            let mut slots = self.lock();
            let grant = slots.next();
            if grant.is_none() {
                slots.free += 1;
            }
            grant
        };
        if let Some(grant) = grant {
            // Not under the lock: a receiver that left drops the place, which comes back here.
            let _ = grant.send(Slot(self.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    /// The next caller that still waits.
    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
        loop {
            let client = self.turns.pop_front()?;
            let queue = self.waiting.get_mut(&client)?;
            let grant = std::iter::from_fn(|| queue.pop_front()).find(|grant| !grant.is_closed());
            if queue.is_empty() {
                self.waiting.remove(&client);
            } else {
                self.turns.push_back(client);
            }
            if grant.is_some() {
                return grant;
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::future::{BoxFuture, FutureExt};

    use super::*;

    fn call(client: u64) -> CallContext {
        CallContext::within(Duration::from_secs(60)).for_client(client)
    }

    fn take(slots: &FairSlots, client: u64) -> BoxFuture<'static, Result<Slot, Interrupted>> {
        let slots = slots.clone();
        async move { slots.take(&call(client)).await }.boxed()
    }

    #[tokio::test(start_paused = true)]
    async fn flood_of_one_client_delays_another_by_one_request() {
        let slots = FairSlots::new(1);
        let held = slots.take(&call(1)).await.unwrap();
        let mut flood: Vec<_> = (0..100).map(|_| take(&slots, 1)).collect();
        for one in &mut flood {
            assert!(futures::poll!(one).is_pending());
        }
        let mut other = take(&slots, 2);
        assert!(futures::poll!(&mut other).is_pending());
        drop(held);
        let first = flood.remove(0).await.unwrap();
        assert!(futures::poll!(&mut other).is_pending());
        drop(first);
        other.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn place_of_a_caller_that_left_goes_to_the_next_one() {
        let slots = FairSlots::new(1);
        let held = slots.take(&call(1)).await.unwrap();
        let (mut gone, mut next) = (take(&slots, 2), take(&slots, 3));
        assert!(futures::poll!(&mut gone).is_pending() && futures::poll!(&mut next).is_pending());
        drop(gone);
        drop(held);
        drop(next.await.unwrap());
        // All places are free again.
        assert_eq!(slots.lock().free, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn granted_place_that_is_never_taken_is_free_again() {
        let slots = FairSlots::new(1);
        let held = slots.take(&call(1)).await.unwrap();
        let mut granted = take(&slots, 2);
        assert!(futures::poll!(&mut granted).is_pending());
        drop(held);
        drop(granted);
        assert_eq!(slots.lock().free, 1);
    }
}
