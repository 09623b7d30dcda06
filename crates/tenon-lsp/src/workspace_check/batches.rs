//! Checks many files in batches, so that no single file blocks the others.
//!
//! Files with the same servers are checked in batches, the groups beside each other. Files of a batch that does not advance,
//! and those that were in progress when a server ended, are checked again one at a time: only then is it known which file is
//! the cause. That file is given up and named; the server is started again for the others.
//!
//! A file may also make a server reject the whole project: a stack overflow of tsserver. Such a file is found by a question
//! that depends on the file's text alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, FuturesUnordered};
use futures::{FutureExt, Stream, StreamExt};
use tenon_contract::position::LineIndex;
use tenon_contract::root::{ReadError, WorkspacePath};

use crate::call_context::CallContext;
use crate::model::{Diagnostic, Gap, GapReason};
use crate::orchestrator::{ENDED_THE_SERVER, Orchestrator};
use crate::transport::RequestError;
use crate::workspace_check::MissingCheck;
use tenon_servers::registry::ServerId;

/// How many files are checked at once. A server that pushes needs a pause after each batch, so large batches are faster; all
/// files of a batch stay open.
const AT_ONCE: usize = 32;
/// How long a server that did not finish its last few files may take for one file alone.
const UNRESPONSIVE: Duration = Duration::from_secs(3);
/// After how many files that it did not finish in a row a server is restarted, and after how many it counts as unresponsive.
const RESTART_AFTER: u32 = 2;
const UNRESPONSIVE_AFTER: u32 = 4;
/// The delay before a file is checked again.
const PAUSE: Duration = Duration::from_millis(50);

/// The result of checking one file with all its servers.
pub struct FileOutcome {
    pub path: WorkspacePath,
    /// The checked text, or why there is none.
    pub lines: Result<LineIndex, ReadError>,
    pub diagnostics: Vec<Diagnostic>,
    /// In registry order.
    pub servers: Vec<ServerId>,
    pub gaps: Vec<Gap>,
    /// The servers that reject even questions about this file's text alone.
    pub rejected_by: Vec<ServerId>,
}

impl FileOutcome {
    /// The servers that did not check this text, and why.
    pub fn missing(&self) -> Vec<MissingCheck> {
        if let Err(error) = &self.lines {
            return vec![MissingCheck { server: None, why: error.to_string() }];
        }
        let why = |reason: &GapReason| match reason {
            // Diagnostics have no limit, and all known ones are in the answer.
            GapReason::Limit | GapReason::Unproven(_) | GapReason::Unavailable(_) => None,
            GapReason::Indexing => Some("still loading the project".to_owned()),
            GapReason::Pending => Some("did not finish in time".to_owned()),
            GapReason::Broken => Some("ended unexpectedly".to_owned()),
            GapReason::UnsupportedPath(found) => Some(format!("does not support `{found}` in a path")),
            GapReason::TooLarge => Some(RequestError::TooLarge.to_string()),
            GapReason::Refused(why) => Some(why.clone()),
        };
        let gaps = self.gaps.iter();
        gaps.filter_map(|gap| Some(MissingCheck { server: Some(gap.server.clone()), why: why(&gap.why)? }))
            .collect()
    }

    fn with(&self, reason: impl Fn(&GapReason) -> bool) -> Vec<ServerId> {
        self.gaps.iter().filter(|gap| reason(&gap.why)).map(|gap| gap.server.clone()).collect()
    }

    fn ended(&self) -> Vec<ServerId> {
        self.with(|why| *why == GapReason::Broken)
    }

    fn unfinished(&self) -> Vec<ServerId> {
        self.with(|why| matches!(why, GapReason::Pending | GapReason::Indexing))
    }
}

/// Checks files, each as it is on disk. Ends with the call; files that were not reached have a gap for it.
pub fn outcomes<'a>(
    orchestrator: &'a Orchestrator,
    files: impl IntoIterator<Item = WorkspacePath>,
    call: &'a CallContext,
) -> impl Stream<Item = FileOutcome> + Send + 'a {
    let mut groups: BTreeMap<Vec<ServerId>, VecDeque<WorkspacePath>> = BTreeMap::new();
    for path in files {
        groups.entry(orchestrator.checkers_of(&path)).or_default().push_back(path);
    }
    let groups = groups.into_values().map(|waiting| {
        let group = Group {
            orchestrator,
            call,
            waiting,
            running: FuturesUnordered::new(),
            in_progress: BTreeSet::new(),
            again: VecDeque::new(),
            unfinished: BTreeMap::new(),
        };
        stream::unfold(group, |mut group| async move { Some((group.next().await?, group)) }).boxed()
    });
    stream::select_all(groups)
}

/// The files of one set of servers.
struct Group<'a> {
    orchestrator: &'a Orchestrator,
    call: &'a CallContext,
    waiting: VecDeque<WorkspacePath>,
    running: FuturesUnordered<BoxFuture<'a, FileOutcome>>,
    in_progress: BTreeSet<WorkspacePath>,
    /// To be checked alone, with the servers that ended.
    again: VecDeque<(WorkspacePath, Vec<ServerId>)>,
    /// How many files in a row each server did not finish.
    unfinished: BTreeMap<ServerId, u32>,
}

impl Group<'_> {
    async fn next(&mut self) -> Option<FileOutcome> {
        loop {
            if self.running.is_empty() {
                if let Some((path, ended)) = self.again.pop_front() {
                    return Some(self.check_alone(path, ended).await);
                }
                self.start_batch()?;
            }
            match tokio::time::timeout(self.orchestrator.timeouts().stalled, self.running.next()).await {
                Ok(Some(outcome)) => {
                    self.in_progress.remove(&outcome.path);
                    let ended = outcome.ended();
                    if !ended.is_empty() && !self.is_over() {
                        self.again.push_back((outcome.path, ended));
                        continue;
                    }
                    self.note(&outcome);
                    return Some(outcome);
                }
                Ok(None) => {}
                // A server that is still loading is not stuck.
                Err(_) if self.is_loading().await => {}
                Err(_) => {
                    self.running.clear();
                    let stalled = std::mem::take(&mut self.in_progress);
                    self.again.extend(stalled.into_iter().map(|path| (path, Vec::new())));
                }
            }
        }
    }

    fn start_batch(&mut self) -> Option<()> {
        self.waiting.front()?;
        for path in self.waiting.drain(..self.waiting.len().min(AT_ONCE)) {
            self.in_progress.insert(path.clone());
            let (orchestrator, call) = (self.orchestrator, self.call.clone());
            self.running.push(async move { attempt(orchestrator, path, &call).await }.boxed());
        }
        Some(())
    }

    fn is_over(&self) -> bool {
        self.call.cancel.is_cancelled() || self.call.remaining().is_zero()
    }

    async fn is_loading(&mut self) -> bool {
        match self.in_progress.first() {
            Some(path) => !self.orchestrator.unready(Some(path)).await.is_empty(),
            None => false,
        }
    }

    /// Checks a file while no other file of the same servers is in progress.
    async fn check_alone(&mut self, path: WorkspacePath, mut ended: Vec<ServerId>) -> FileOutcome {
        let alone = self.orchestrator.timeouts().alone;
        let mut restarted = false;
        loop {
            let revived = ended.iter().all(|server| self.orchestrator.revive(server));
            let limit = if self.is_unresponsive(&path) { UNRESPONSIVE } else { alone };
            let call = self.call.at_most(limit);
            self.orchestrator.close_everywhere(&path, &call).await;
            let outcome = attempt(self.orchestrator, path.clone(), &call).await;
            if self.is_over() || !revived {
                return outcome;
            }
            ended = outcome.ended();
            if let (false, Ok(lines)) = (ended.is_empty(), &outcome.lines) {
                for server in &ended {
                    self.orchestrator.skip_file(server, &path, lines);
                }
                continue;
            }
            self.note(&outcome);
            let stuck = |server: &ServerId| self.unfinished.get(server) == Some(&RESTART_AFTER);
            let stuck: Vec<ServerId> = outcome.unfinished().into_iter().filter(stuck).collect();
            if stuck.is_empty() || restarted {
                return outcome;
            }
            for server in &stuck {
                self.orchestrator.replace_stuck(server).await;
            }
            restarted = true;
        }
    }

    fn is_unresponsive(&self, path: &WorkspacePath) -> bool {
        let servers = self.orchestrator.checkers_of(path);
        let silent =
            |server: &ServerId| self.unfinished.get(server).is_some_and(|count| *count >= UNRESPONSIVE_AFTER);
        servers.iter().any(silent)
    }

    fn note(&mut self, outcome: &FileOutcome) {
        let unfinished = outcome.unfinished();
        for server in &outcome.servers {
            match unfinished.contains(server) {
                true => *self.unfinished.entry(server.clone()).or_default() += 1,
                false => drop(self.unfinished.remove(server)),
            }
        }
    }
}

/// Checks a file until no server is pending or the call ends.
async fn attempt(orchestrator: &Orchestrator, path: WorkspacePath, call: &CallContext) -> FileOutcome {
    loop {
        let unread = |error| FileOutcome {
            path: path.clone(),
            lines: Err(error),
            diagnostics: Vec::new(),
            servers: Vec::new(),
            gaps: Vec::new(),
            rejected_by: Vec::new(),
        };
        let lines = match orchestrator.read(&path).await {
            Ok(lines) => lines,
            Err(error) => return unread(error),
        };
        let answer = match orchestrator.check(&path, Some(lines.text().to_string()), call).await {
            Ok(answer) => answer,
            Err(error) => return unread(error),
        };
        let over = call.cancel.is_cancelled() || call.remaining().is_zero();
        if over || answer.pending().next().is_none() {
            let (diagnostics, servers, gaps) = (answer.value, answer.servers, answer.gaps);
            let rejected_by = match gaps.iter().any(is_rejection) {
                true => rejected_by(orchestrator, &path, &gaps, call).await,
                false => Vec::new(),
            };
            return FileOutcome { path, lines: Ok(lines), diagnostics, servers, gaps, rejected_by };
        }
        let _ = call.bound(tokio::time::sleep(PAUSE)).await;
    }
}

fn is_rejection(gap: &Gap) -> bool {
    matches!(&gap.why, GapReason::Refused(why) if why != ENDED_THE_SERVER)
}

/// The servers that reject the check of a file, and its symbols, too.
async fn rejected_by(
    orchestrator: &Orchestrator,
    path: &WorkspacePath,
    gaps: &[Gap],
    call: &CallContext,
) -> Vec<ServerId> {
    let Ok(symbols) = orchestrator.document_symbols(path, call).await else {
        return Vec::new();
    };
    let is_rejected = |gap: &&Gap| gaps.iter().any(|other| other.server == gap.server && is_rejection(other));
    let rejections = symbols.gaps.iter().filter(|gap| is_rejection(gap)).filter(is_rejected);
    rejections.map(|gap| gap.server.clone()).collect()
}
