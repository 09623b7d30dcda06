//! Remembers the texts of the last report, to find the files that any program changed since.
//!
//! The state of a report is a commit and the texts of the files that differed from it. It is kept in a file, so that it outlives
//! the daemon. Without an earlier report the last commit counts. Outside a repository the first report only takes note of
//! all files.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use tenon_contract::id::sha256_hex;
use tenon_contract::regular_file;
use tenon_contract::root::{RootGate, WorkspacePath};
use tenon_lsp::workspace_check::files::is_served;
use tenon_servers::find::SearchPath;
use tenon_servers::registry::Registry;
use tenon_servers::walk::Walk;
use tokio::sync::Mutex;

use crate::changed_files::{self, ChangedFile};
use crate::edit::ReportedChange;
use crate::git::{BlobId, GitError, GitRepository, Revision};

/// How long one git command may take while an agent waits.
const GIT_TIMEOUT: Duration = Duration::from_secs(3);

/// The most bytes of all texts that are kept. Of further files only the hash is kept.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// A larger file counts as missing; no server reads it.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The files of a workspace that are reported on.
#[derive(Debug, Clone)]
pub struct ReportedFiles {
    pub gate: RootGate,
    pub walk: Walk,
    pub registry: Registry,
    pub search: SearchPath,
}

/// See the module.
#[derive(Debug)]
pub struct ReportLog {
    files: ReportedFiles,
    /// Where the state is kept.
    record: Utf8PathBuf,
    state: Mutex<Option<State>>,
}

/// What changed since the last report. [`ReportLog::finish`] makes it the state of the last report.
#[derive(Debug)]
pub struct ChangesSinceReport {
    /// By path; deleted files included.
    pub files: Vec<ReportedChange>,
    next: State,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// `None` outside a repository, and for one without commits.
    commit: Option<String>,
    /// The files that differed from the commit; `None` for a deleted one.
    files: SeenTexts,
}

/// The texts of files; `None` for one that does not exist.
type SeenTexts = BTreeMap<Utf8PathBuf, Option<SeenText>>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SeenText {
    sha256: String,
    /// `None` if it is not UTF-8, or too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl ReportLog {
    pub fn new(files: ReportedFiles, record: Utf8PathBuf) -> Self {
        Self { files, record, state: Mutex::default() }
    }

    /// The files that changed since the last report.
    pub async fn changes(&self) -> Result<ChangesSinceReport, GitError> {
        let last = self.last().await;
        let repository = self.repository().await?;
        let Some(repository) = repository else {
            return Ok(self.changes_without_repository(last).await);
        };
        let head = repository.revision("HEAD").await?;
        let since = match last.as_ref().map(|last| last.commit.as_deref()) {
            // The commit may be gone.
            Some(Some(commit)) => repository.revision(commit).await.unwrap_or_else(|_| head.clone()),
            Some(None) => Revision::empty(),
            None => head.clone(),
        };
        let (now, blobs) = self.differing(&repository, &since).await?;
        let noted = last.map(|last| last.files).unwrap_or_default();
        let files = self.differences(&noted, &now);
        let next = if since == head { now } else { self.differing(&repository, &head).await?.0 };
        let files = self.with_texts(files, noted, &blobs, &repository).await?;
        Ok(ChangesSinceReport {
            files,
            next: State { commit: head.commit().map(str::to_owned), files: next },
        })
    }

    /// The changed files with their texts at the last report: as noted, else as in the commit.
    async fn with_texts(
        &self,
        files: Vec<Utf8PathBuf>,
        mut noted: SeenTexts,
        blobs: &BTreeMap<Utf8PathBuf, Option<BlobId>>,
        repository: &GitRepository,
    ) -> Result<Vec<ReportedChange>, GitError> {
        let wanted = files.iter().filter(|file| !noted.contains_key(*file));
        let wanted: Vec<BlobId> = wanted.filter_map(|file| blobs.get(file)?.clone()).collect();
        let mut texts = repository.texts(&wanted).await?.into_iter();
        let mut changes = Vec::new();
        for file in files {
            let (before, is_new) = match (noted.remove(&file), blobs.get(&file)) {
                (Some(Some(seen)), _) => (seen.text, false),
                (None, Some(Some(_))) => (texts.next().flatten(), false),
                // The file did not exist.
                (Some(None), _) | (None, Some(None) | None) => (Some(String::new()), true),
            };
            changes.extend(self.admitted(&file).map(|path| ReportedChange { path, before, is_new }));
        }
        Ok(changes)
    }

    fn admitted(&self, relative: &Utf8Path) -> Option<WorkspacePath> {
        self.files.gate.admit_target(self.files.walk.root().join(relative)).ok()
    }

    /// Makes these changes the state of the last report, except for files whose report is `unfinished`.
    pub async fn finish(&self, changes: ChangesSinceReport, unfinished: &[WorkspacePath]) -> io::Result<()> {
        let ChangesSinceReport { files, mut next } = changes;
        let root = self.files.walk.root();
        for ReportedChange { path, before, .. } in
            files.into_iter().filter(|file| unfinished.contains(&file.path))
        {
            if let Ok(relative) = path.as_path().strip_prefix(root) {
                let seen = before.map(|text| SeenText { sha256: sha256_hex(&text), text: Some(text) });
                next.files.insert(relative.to_owned(), seen.filter(|seen| seen.text.as_deref() != Some("")));
            }
        }
        self.keep(next).await
    }

    /// Takes note that these files were reported on as they are now.
    pub async fn note(&self, reported: &[WorkspacePath]) -> Result<(), GitError> {
        let mut state = match self.last().await {
            Some(state) => state,
            None => match self.repository().await? {
                Some(repository) => {
                    let head = repository.revision("HEAD").await?;
                    State { commit: head.commit().map(str::to_owned), files: BTreeMap::new() }
                }
                None => self.changes_without_repository(None).await.next,
            },
        };
        let root = self.files.walk.root();
        let paths = reported.iter().filter_map(|path| path.as_path().strip_prefix(root).ok());
        let paths: Vec<Utf8PathBuf> = paths.map(Utf8Path::to_owned).collect();
        state.files.extend(self.seen(paths).await);
        let record = self.record.clone();
        self.keep(state).await.map_err(|source| GitError::Read { path: record, source })
    }

    /// The text that a file had at the last report: empty if it did not exist, `None` if that is not known.
    pub async fn text(&self, path: &WorkspacePath) -> Option<String> {
        let relative = path.as_path().strip_prefix(self.files.walk.root()).ok()?;
        let mut last = self.last().await?;
        match last.files.remove(relative) {
            Some(Some(seen)) => return seen.text,
            Some(None) => return Some(String::new()),
            None => {}
        }
        // It had the text of the commit.
        let repository = self.repository().await.ok()??;
        let commit = repository.revision(&last.commit?).await.ok()?;
        repository.text_at(&commit, relative).await.ok()?
    }

    async fn repository(&self) -> Result<Option<GitRepository>, GitError> {
        match GitRepository::open(self.files.walk.root(), &self.files.search, GIT_TIMEOUT).await {
            Ok(repository) => Ok(Some(repository)),
            // A repository that git cannot read here is a folder like any other.
            Err(
                GitError::NotARepository
                | GitError::NoGit
                | GitError::Bare
                | GitError::ForeignLink { .. }
                | GitError::Unsupported(_),
            ) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The files that differ from a revision, as they are now, and as they are there.
    async fn differing(
        &self,
        repository: &GitRepository,
        since: &Revision,
    ) -> Result<(SeenTexts, BTreeMap<Utf8PathBuf, Option<BlobId>>), GitError> {
        let ReportedFiles { gate, walk, registry, .. } = &self.files;
        let changed = changed_files::since(repository, since, walk, gate, registry).await?;
        let relative = |ChangedFile { path, before, .. }: ChangedFile| {
            Some((path.as_path().strip_prefix(walk.root()).ok()?.to_owned(), before))
        };
        let blobs: BTreeMap<_, _> = changed.into_iter().filter_map(relative).collect();
        Ok((self.seen(blobs.keys().cloned().collect()).await, blobs))
    }

    async fn changes_without_repository(&self, last: Option<State>) -> ChangesSinceReport {
        let ReportedFiles { walk, registry, .. } = &self.files;
        let listing = walk.clone();
        let listed: Vec<Utf8PathBuf> =
            tokio::task::spawn_blocking(move || listing.files().collect()).await.unwrap_or_default();
        let served = listed.into_iter().filter(|path| is_served(registry, path));
        let relative = served.filter_map(|path| path.strip_prefix(walk.root()).map(Utf8Path::to_owned).ok());
        let now = self.seen(relative.collect()).await;
        // The state of a repository has only some of the files.
        let last = last.filter(|last| last.commit.is_none());
        let mut noted = last.unwrap_or_else(|| State { commit: None, files: now.clone() }).files;
        let changes = self.differences(&noted, &now).into_iter().filter_map(|file| {
            let (before, is_new) = match noted.remove(&file).flatten() {
                Some(seen) => (seen.text, false),
                None => (Some(String::new()), true),
            };
            Some(ReportedChange { path: self.admitted(&file)?, before, is_new })
        });
        ChangesSinceReport { files: changes.collect(), next: State { commit: None, files: now } }
    }

    /// The files whose texts differ. One that is only in one of the lists has the text of the commit in the other.
    fn differences(&self, before: &SeenTexts, now: &SeenTexts) -> Vec<Utf8PathBuf> {
        let paths: BTreeSet<&Utf8PathBuf> = before.keys().chain(now.keys()).collect();
        let differs = |path: &&&Utf8PathBuf| {
            let hash = |seen: &Option<SeenText>| seen.as_ref().map(|seen| seen.sha256.clone());
            match (before.get(**path), now.get(**path)) {
                (Some(before), Some(now)) => hash(before) != hash(now),
                // It has the text of the commit now; it was noted with that text, or with another.
                (Some(before), None) => {
                    let full = self.files.walk.root().join(path);
                    hash(before)
                        != regular_file::read(&full, MAX_FILE_BYTES).ok().map(|bytes| sha256_hex(&bytes))
                }
                _ => true,
            }
        };
        paths.iter().filter(differs).map(|path| (*path).clone()).collect()
    }

    /// The texts of files as they are now.
    async fn seen(&self, paths: Vec<Utf8PathBuf>) -> SeenTexts {
        let root = self.files.walk.root().to_owned();
        let reading = move || {
            let mut left = MAX_BYTES;
            let mut seen = BTreeMap::new();
            for path in paths {
                let text = regular_file::read(root.join(&path), MAX_FILE_BYTES).ok().map(|bytes| {
                    let sha256 = sha256_hex(&bytes);
                    let fits = bytes.len() <= left;
                    let text = String::from_utf8(bytes).ok().filter(|_| fits);
                    left -= text.as_ref().map_or(0, String::len);
                    SeenText { sha256, text }
                });
                seen.insert(path, text);
            }
            seen
        };
        tokio::task::spawn_blocking(reading).await.unwrap_or_default()
    }

    /// The state of the last report; `None` if there was none.
    async fn last(&self) -> Option<State> {
        let mut state = self.state.lock().await;
        if state.is_none() {
            let bytes = tokio::fs::read(&self.record).await.ok();
            *state = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        }
        state.clone()
    }

    async fn keep(&self, next: State) -> io::Result<()> {
        let mut state = self.state.lock().await;
        if state.as_ref() == Some(&next) {
            return Ok(());
        }
        let (record, bytes) = (self.record.clone(), serde_json::to_vec(&next)?);
        *state = Some(next);
        tokio::task::spawn_blocking(move || replace(&record, &bytes)).await.map_err(io::Error::other)?
    }
}

/// Replaces a file that only the user may read.
fn replace(file: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Utf8Path::new("/"));
    std::fs::create_dir_all(folder)?;
    let mut next = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut next, bytes)?;
    next.persist(file)?;
    Ok(())
}
