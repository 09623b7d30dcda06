//! The thread that turns events into epochs and changes, and reads the tree when events are not enough.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use camino::{Utf8Path, Utf8PathBuf};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use notify::event::{ModifyKind, RenameMode};
use notify::{Config, EventKind, EventKindMask, PathOp, RecommendedWatcher, Watcher};
use tenon_contract::epoch::Epoch;
use tenon_servers::ignore_rules::IgnoreRules;

use super::event_queue::{Batch, Touch};
use super::file_table::{FileTable, Files, Stamp};
use super::{Shared, lock};
use crate::client::FileChangeKind;

/// Servers read a lot, and reading changes nothing: the system would report every file that anyone opens.
const KINDS: EventKindMask = EventKindMask::CREATE
    .union(EventKindMask::REMOVE)
    .union(EventKindMask::MODIFY_DATA)
    .union(EventKindMask::MODIFY_NAME);

/// Runs until the queue is stopped.
/// `cookies` is the folder of the cookie.
pub(super) fn run(shared: &Arc<Shared>, cookies: Option<&Path>) {
    let watcher = {
        let (shared, cookies) = (Arc::clone(shared), cookies.map(Path::to_owned));
        let handle = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if is_irrelevant(event.kind) => {}
            Ok(event) if !event.need_rescan() => {
                for path in &event.paths {
                    match cookies.as_ref().and_then(|cookies| path.strip_prefix(cookies).ok()) {
                        Some(name) => shared.cookie_arrived(name),
                        None => shared.events.touch(path, Touch::of(event.kind)),
                    }
                }
            }
            Ok(_) | Err(_) => shared.events.rescan(),
        };
        RecommendedWatcher::new(handle, Config::default().with_event_kinds(KINDS))
    };
    let mut worker = Worker { shared, watcher: watcher.ok(), rules: BTreeMap::new() };
    if let Some(cookies) = cookies {
        worker.watch([cookies]);
    }
    worker.rescan(true);
    shared.read.store(true, Ordering::Relaxed);
    while let Some(batch) = shared.events.next() {
        worker.handle(batch);
    }
}

/// Events without a change, and events that are repeated in another form.
fn is_irrelevant(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)) => true,
        // The old and the new name also get one event each.
        EventKind::Modify(ModifyKind::Name(mode)) => mode == RenameMode::Both,
        _ => false,
    }
}

struct Worker<'a> {
    shared: &'a Shared,
    watcher: Option<RecommendedWatcher>,
    /// By root.
    rules: BTreeMap<Utf8PathBuf, IgnoreRules>,
}

impl Worker<'_> {
    fn watch<'p>(&mut self, folders: impl IntoIterator<Item = &'p Path>) {
        let mut left: Vec<PathOp> = folders.into_iter().map(PathOp::watch_non_recursive).collect();
        while !left.is_empty() {
            let watched = match &mut self.watcher {
                Some(watcher) => watcher.update_paths(std::mem::take(&mut left)),
                None => return self.cannot_watch(None, &notify::Error::generic("no watcher")),
            };
            let Err(failed) = watched else { return };
            let Some(folder) = failed.origin.as_ref().map(PathOp::as_path) else {
                return self.cannot_watch(None, &failed.source);
            };
            // Removed meanwhile; the parent's events report that.
            if folder.exists() {
                self.cannot_watch(Some(folder), &failed.source);
            }
            left = failed.remaining;
        }
    }

    fn cannot_watch(&self, folder: Option<&Path>, error: &notify::Error) {
        if !self.shared.blind.swap(true, Ordering::Relaxed) {
            let folder = folder.map(|folder| folder.display().to_string());
            tracing::warn!(%error, folder, "cannot watch a folder; every flush reads the tree");
        }
    }

    fn handle(&mut self, batch: Batch) {
        let Batch { touched, cookies, mut rescan, asked } = batch;
        if !asked.is_empty() {
            self.shared.accept_roots();
            rescan = true;
        }
        // Servers cannot address files whose names are not UTF-8.
        let paths = touched.iter().filter_map(|(path, touch)| Some((Utf8Path::from_path(path)?, *touch)));
        // A folder that moved keeps its watch, which ends with the old name and begins again with the new one.
        let (here, gone): (Vec<_>, Vec<_>) =
            paths.partition(|(path, _)| std::fs::symlink_metadata(path).is_ok());
        for (path, touch) in gone.into_iter().chain(here) {
            rescan |= self.touched(path, touch);
        }
        if rescan {
            self.rescan(false);
        }
        for cookie in cookies {
            self.shared.settle(cookie);
        }
        for done in asked {
            let _ = done.send(());
        }
    }

    /// Looks at a path. `true` if the whole tree must be read.
    fn touched(&mut self, path: &Utf8Path, touch: Touch) -> bool {
        let Some(root) = self.root_of(path) else {
            return false;
        };
        if path == root && touch.left {
            self.shared.root_lost.store(true, Ordering::SeqCst);
        }
        // Events are late, so the current state decides.
        let metadata = std::fs::symlink_metadata(path).ok();
        let is_folder = metadata.as_ref().is_some_and(std::fs::Metadata::is_dir);
        let known_folder = lock(&self.shared.files).has_folder(path);
        let hidden =
            self.rules.get(&root).is_some_and(|rules| rules.is_ignored(path, is_folder || known_folder));
        if hidden {
            return false;
        }
        if IgnoreRules::is_rule_file(path) {
            return true;
        }
        if known_folder && !is_folder {
            self.compare(path, FileTable::default());
        }
        match metadata {
            Some(metadata) if metadata.is_dir() => {
                if lock(&self.shared.files).remove_file(path) {
                    self.note(path, FileChangeKind::Deleted);
                }
                let mut found = FileTable::default();
                self.walk(&root, path, &mut found);
                self.compare(path, found);
            }
            Some(metadata) if metadata.is_file() => self.file_is(path, Stamp::of(&metadata), touch),
            // A link or a special file; perhaps in the place of a file.
            Some(_) => {
                self.shared.epochs.advance(Epoch::Fs);
                if lock(&self.shared.files).remove_file(path) {
                    self.note(path, FileChangeKind::Deleted);
                }
            }
            None => {
                if lock(&self.shared.files).remove_file(path) {
                    self.note(path, FileChangeKind::Deleted);
                }
            }
        }
        false
    }

    fn file_is(&self, path: &Utf8Path, stamp: Stamp, touch: Touch) {
        let before = lock(&self.shared.files).put(path, stamp);
        match before {
            None => self.note(path, FileChangeKind::Created),
            Some(before) => {
                // Replaced by another file of the same name: file listings may change, too.
                if touch.replaced {
                    self.shared.epochs.advance(Epoch::Fs);
                }
                // One write causes several events; only the first counts.
                if before != stamp || touch.written {
                    self.note(path, FileChangeKind::Changed);
                }
            }
        }
    }

    /// Counts a change and keeps it for the servers.
    fn note(&self, path: &Utf8Path, kind: FileChangeKind) {
        self.shared.epochs.advance(Epoch::Text);
        if kind != FileChangeKind::Changed {
            self.shared.epochs.advance(Epoch::Fs);
        }
        let mut changes = lock(&self.shared.changes);
        let before = changes.get(path).copied();
        changes.insert(path.to_owned(), kind.after(before));
        drop(changes);
        self.shared.changed.notify_waiters();
    }

    fn root_of(&self, path: &Utf8Path) -> Option<Utf8PathBuf> {
        self.shared.roots.iter().find(|root| path.starts_with(root)).cloned()
    }

    /// The patterns of the configuration, which was validated: an invalid one excludes nothing.
    fn configured(&self, root: &Utf8Path) -> Option<Gitignore> {
        let mut builder = GitignoreBuilder::new(root);
        for pattern in &self.shared.ignore {
            let _ = builder.add_line(None, pattern);
        }
        builder.build().ok().filter(|rules| !rules.is_empty())
    }

    /// Reads the whole tree and notes all differences. The first read reports no changes.
    fn rescan(&mut self, first: bool) {
        // This scan completes earlier flushes, in case their events were lost.
        let waiting = std::mem::take(&mut *lock(&self.shared.cookies));
        for root in self.shared.roots.clone() {
            // A root inside another one is read with it.
            if self.shared.roots.iter().any(|other| *other != root && root.starts_with(other)) {
                continue;
            }
            self.rules.insert(root.clone(), IgnoreRules::for_root(&root, self.configured(&root)));
            let mut found = FileTable::default();
            self.walk(&root, &root, &mut found);
            if first {
                lock(&self.shared.files).absorb(found);
            } else {
                self.compare(&root, found);
            }
        }
        for done in waiting.into_values() {
            let _ = done.send(());
        }
    }

    /// Reads a folder and everything below it. Each folder is watched before it is read, so that no change in between is missed.
    fn walk(&mut self, root: &Utf8Path, top: &Utf8Path, found: &mut FileTable) {
        let mut level = vec![top.to_owned()];
        while !level.is_empty() {
            // Also known folders: one may be another folder of the same name, and with the old folder its watch ended.
            self.watch(level.iter().map(|folder| folder.as_std_path()));
            let mut below = Vec::new();
            for folder in level {
                let rules = self.rules.entry(root.to_owned()).or_default();
                let Ok(listing) = rules.list(&folder) else { continue };
                if listing.is_marked && folder != top {
                    self.unwatch(&folder);
                    continue;
                }
                let mut files = Files::new();
                for (entry, kind) in listing.entries {
                    if kind.is_dir() {
                        below.push(entry.into_path());
                    } else if kind.is_file()
                        && let Ok(metadata) = entry.metadata()
                    {
                        files.insert(entry.file_name().into(), Stamp::of(&metadata));
                    }
                }
                found.put_folder(folder, files);
            }
            level = below;
        }
    }

    fn unwatch(&mut self, folder: &Utf8Path) {
        if let Some(watcher) = &mut self.watcher {
            let _ = watcher.unwatch(folder.as_std_path());
        }
    }

    /// Notes every difference between the last state below a folder and the current one.
    fn compare(&mut self, folder: &Utf8Path, found: FileTable) {
        let is_root = |folder: &Utf8Path| self.shared.roots.iter().any(|root| root == folder);
        let (changes, left, has_new) = {
            let mut files = lock(&self.shared.files);
            let before = files.take_folder(folder);
            let gone = before
                .iter()
                .filter(|(path, _)| found.stamp(path).is_none())
                .map(|(path, _)| (path, FileChangeKind::Deleted));
            let here = found.iter().filter_map(|(path, stamp)| match before.stamp(&path) {
                None => Some((path, FileChangeKind::Created)),
                Some(old) if old != stamp => Some((path, FileChangeKind::Changed)),
                Some(_) => None,
            });
            let mut changes: Vec<_> = gone.chain(here).collect();
            let only_in = |one: &FileTable, other: &FileTable| -> Vec<Utf8PathBuf> {
                let folders = one.folders().filter(|folder| !other.has_folder(folder) && !is_root(folder));
                folders.map(Utf8Path::to_owned).collect()
            };
            let (left, new) = (only_in(&before, &found), only_in(&found, &before));
            // Servers that look for a file in a missing folder watch for the folder.
            changes.extend(left.iter().map(|folder| (folder.clone(), FileChangeKind::Deleted)));
            changes.extend(new.iter().map(|folder| (folder.clone(), FileChangeKind::Created)));
            files.absorb(found);
            (changes, left, !new.is_empty())
        };
        // The watch of a folder that moved away would keep reporting the old name. If there are new folders, one of them may
        // be that folder, with that watch.
        if !has_new {
            for folder in left {
                self.unwatch(&folder);
            }
        }
        for (path, kind) in changes {
            self.note(&path, kind);
        }
    }
}
