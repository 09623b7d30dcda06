//! Rebuilds a cache whenever its sources change.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use notify::{Config, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher};
use tenon_contract::clock::Clock;

use crate::build::{Existing, build_with};
use crate::cache_folder::CacheFolder;
use crate::error::Error;
use crate::manifest::{Entry, Manifest};
use crate::sources::{SourceRules, read_sources};
use crate::verify::{CacheSummary, read_manifest};

/// Changes that follow each other within this time are one change.
const QUIET: Duration = Duration::from_millis(200);

/// Events may get lost: the sources are compared at least this often.
const RESCAN: Duration = Duration::from_secs(30);

/// What happened while watching.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// The cache was built.
    Built(CacheSummary),
    /// The build failed; the old cache is as it was. The next change tries again.
    Failed(Error),
}

/// Builds the cache if it is missing or differs from its sources, then again after every change, until `report` returns
/// `false`.
///
/// # Errors
/// If the sources cannot be watched.
pub fn watch(
    sources: &Path,
    cache: &Path,
    rules: &SourceRules,
    clock: &Clock,
    mut report: impl FnMut(WatchEvent) -> bool,
) -> Result<(), Error> {
    // One pending event is enough: it means that something changed.
    let (sender, changes) = sync_channel(1);
    let failed = |error: notify::Error| Error::io("watch", sources)(std::io::Error::other(error));
    let changed = move |_| {
        let _ = sender.try_send(());
    };
    // Reading a file is not a change.
    let config = Config::default().with_event_kinds(EventKindMask::CORE);
    let mut watcher = RecommendedWatcher::new(changed, config).map_err(failed)?;
    watcher.watch(sources, RecursiveMode::Recursive).map_err(failed)?;
    let mut last_failure: Option<String> = None;
    loop {
        let event = match is_current(sources, cache, rules, clock) {
            Ok(true) => None,
            Ok(false) => Some(
                build_with(sources, cache, rules, Existing::Replace, clock)
                    .map_or_else(WatchEvent::Failed, WatchEvent::Built),
            ),
            Err(error) => Some(WatchEvent::Failed(error)),
        };
        // A failure that lasts is reported once.
        let failure = match &event {
            Some(WatchEvent::Failed(error)) => Some(error.to_string()),
            _ => None,
        };
        let is_new = failure.is_none() || failure != last_failure;
        last_failure = failure;
        if let Some(event) = event.filter(|_| is_new)
            && !report(event)
        {
            return Ok(());
        }
        let waited = changes.recv_timeout(RESCAN);
        if waited == Err(RecvTimeoutError::Disconnected) {
            return Err(Error::io("watch", sources)(std::io::Error::other("the watcher ended")));
        }
        while waited.is_ok() && changes.recv_timeout(QUIET).is_ok() {}
    }
}

/// Whether the cache holds exactly the sources.
fn is_current(sources: &Path, cache: &Path, rules: &SourceRules, clock: &Clock) -> Result<bool, Error> {
    let Some(manifest) = CacheFolder::open(cache).ok().and_then(|folder| read_manifest(&folder).ok()) else {
        return Ok(false);
    };
    let documents = read_sources(sources, rules)?;
    let entry = |source: crate::sources::Source| Entry {
        id: source.id,
        version: source.version,
        file: String::new(),
    };
    let wanted = Manifest::new(documents.into_iter().map(entry).collect(), clock.now());
    Ok(wanted.cache_version == manifest.cache_version)
}
