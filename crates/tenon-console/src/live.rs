//! Live updates: which topics changed, as server-sent events.
//!
//! A page that follows events learns only that a topic changed, and reads itself again. One task watches the workspace while
//! at least one page is open, and ends with the last one: a console without open pages costs nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::Response;
use futures::stream;
use serde::Serialize;
use tenon_server::web::{DaemonAccess, KeepAlive};
use tokio::sync::watch;

use crate::composition_host::CompositionHost;
use crate::problem_board::ProblemBoard;
use crate::respond::respond;

/// How often state without notifications is compared: servers, epochs and modules.
const TICK: Duration = Duration::from_millis(200);

/// How long to wait before the next attempt to follow a store that does not exist yet or cannot be opened.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// How long changes of one topic are gathered before pages hear of them.
const GATHER: Duration = Duration::from_millis(60);

/// How often an idle stream shows that it is open.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// How often each topic changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Topics {
    activity: u64,
    servers: u64,
    problems: u64,
    work: u64,
    modules: u64,
}

impl Topics {
    /// The names of the topics that differ.
    fn changed(self, other: Self) -> Vec<&'static str> {
        let pairs = [
            ("activity", self.activity, other.activity),
            ("servers", self.servers, other.servers),
            ("problems", self.problems, other.problems),
            ("work", self.work, other.work),
            ("modules", self.modules, other.modules),
        ];
        pairs.into_iter().filter(|(_, a, b)| a != b).map(|(name, ..)| name).collect()
    }
}

/// See the module.
pub(crate) struct LiveFeed {
    access: DaemonAccess,
    host: Arc<CompositionHost>,
    problems: Arc<ProblemBoard>,
    topics: watch::Sender<Topics>,
    open_pages: AtomicUsize,
    is_watching: Mutex<bool>,
}

/// An open page, until it is dropped.
struct OpenPage {
    feed: Arc<LiveFeed>,
    _keep_alive: KeepAlive,
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        self.feed.open_pages.fetch_sub(1, Ordering::SeqCst);
    }
}

impl LiveFeed {
    pub(crate) fn new(
        access: DaemonAccess,
        host: Arc<CompositionHost>,
        problems: Arc<ProblemBoard>,
    ) -> Arc<Self> {
        let topics = watch::Sender::default();
        Arc::new(Self {
            access,
            host,
            problems,
            topics,
            open_pages: AtomicUsize::new(0),
            is_watching: Mutex::new(false),
        })
    }

    /// The stream of one page; `None` if the daemon is exiting.
    pub(crate) fn stream(self: &Arc<Self>) -> Option<Response> {
        let keep_alive = self.access.control().keep_alive()?;
        self.open_pages.fetch_add(1, Ordering::SeqCst);
        let page = OpenPage { feed: Arc::clone(self), _keep_alive: keep_alive };
        self.watch();
        let hello = format!("event: hello\ndata: {}\n\n", self.access.control().started_at());
        let receiver = self.topics.subscribe();
        let sent = *receiver.borrow();
        let first = stream::once(async move { Ok::<_, std::convert::Infallible>(Bytes::from(hello)) });
        let rest = stream::unfold((page, receiver, sent), |(page, mut receiver, sent)| async move {
            loop {
                match tokio::time::timeout(HEARTBEAT, receiver.changed()).await {
                    Err(_) => return Some((Ok(Bytes::from_static(b": open\n\n")), (page, receiver, sent))),
                    Ok(Err(_)) => return None,
                    Ok(Ok(())) => {
                        tokio::time::sleep(GATHER).await;
                        let now = *receiver.borrow_and_update();
                        let changed = now.changed(sent);
                        if !changed.is_empty() {
                            let event = format!("event: change\ndata: {}\n\n", changed.join(" "));
                            return Some((Ok(Bytes::from(event)), (page, receiver, now)));
                        }
                    }
                }
            }
        });
        let body = Body::from_stream(futures::StreamExt::chain(first, rest));
        Some(respond(StatusCode::OK, "text/event-stream", body))
    }

    /// Something in the store changed.
    pub(crate) fn touch_work(&self) {
        self.topics.send_modify(|topics| topics.work += 1);
    }

    /// Starts the watching task, if it does not run.
    fn watch(self: &Arc<Self>) {
        let mut is_watching = self.is_watching.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_watching {
            *is_watching = true;
            let feed = Arc::clone(self);
            tokio::spawn(async move {
                tokio::select! {
                    () = feed.watch_state() => {}
                    () = feed.follow_store() => {}
                }
            });
        }
    }

    /// Reports commits to the store, of any process.
    async fn follow_store(&self) {
        loop {
            let Some(mut commits) = self.access.store_changes().await else {
                tokio::time::sleep(STORE_RETRY).await;
                continue;
            };
            // Something may have been committed before this.
            self.touch_work();
            loop {
                commits.next().await;
                self.touch_work();
            }
        }
    }

    async fn watch_state(self: &Arc<Self>) {
        let mut activity = self.access.activity().changes();
        let mut seen = self.look().await;
        // The first page was read before this, and something may have changed since.
        self.topics.send_modify(|topics| {
            topics.servers += 1;
            topics.modules += 1;
        });
        self.check_problems();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                changed = activity.changed() => {
                    if changed.is_err() { return }
                    self.topics.send_modify(|topics| topics.activity += 1);
                    // Many calls are one change.
                    tokio::time::sleep(GATHER).await;
                }
                _ = tick.tick() => {
                    if self.ends() {
                        return;
                    }
                    let now = self.look().await;
                    if now != seen {
                        let problems = now.epochs != seen.epochs;
                        self.topics.send_modify(|topics| {
                            topics.servers += u64::from(now.servers != seen.servers);
                            topics.modules += u64::from(now.modules != seen.modules);
                        });
                        if problems {
                            self.check_problems();
                        }
                        seen = now;
                    }
                }
            }
        }
    }

    /// Ends the task if the last page is gone.
    fn ends(&self) -> bool {
        let mut is_watching = self.is_watching.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = self.open_pages.load(Ordering::SeqCst) == 0;
        *is_watching = !ends;
        ends
    }

    /// Finds the problems of the new state in the background.
    fn check_problems(self: &Arc<Self>) {
        let feed = Arc::clone(self);
        tokio::spawn(async move {
            if feed.problems.update().await {
                feed.topics.send_modify(|topics| topics.problems += 1);
            }
        });
    }

    async fn look(&self) -> Seen {
        let host = Arc::clone(&self.host);
        let modules = tokio::task::spawn_blocking(move || Arc::as_ptr(&host.current()) as usize);
        let modules = modules.await.unwrap_or_default();
        let servers = serde_json::to_string(&self.access.servers()).unwrap_or_default();
        Seen { servers, epochs: self.access.code_epochs(), modules }
    }
}

/// What is compared at every tick.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    servers: String,
    epochs: Option<[u64; 3]>,
    modules: usize,
}
