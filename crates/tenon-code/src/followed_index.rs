//! An index of all files of a workspace: kept up to date by the journal of changed files, and kept on disk between processes.

use std::io;
use std::sync::Arc;

use camino::Utf8PathBuf;
use tenon_index::SyntaxIndex;
use tenon_lsp::CallContext;
use tenon_lsp::orchestrator::Orchestrator;
use tenon_lsp::process;
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, spawn_blocking};

/// What is derived from files. Paths are absolute.
pub trait FileIndex: Send + Sync + 'static {
    /// Reads the store, if that has not been done.
    fn load(&self);

    /// Makes these the files of the workspace, and reads those that are not known.
    fn replace_files(&self, files: &[Utf8PathBuf]);

    /// Reads again what changed, is new or was deleted.
    fn update_files(&self, changed: &[Utf8PathBuf]);

    /// Writes the store if the index changed.
    ///
    /// # Errors
    /// If the file cannot be written. The index stays usable.
    fn save(&self) -> io::Result<()>;
}

impl FileIndex for SyntaxIndex {
    fn load(&self) {
        self.load();
    }

    fn replace_files(&self, files: &[Utf8PathBuf]) {
        self.replace_files(files);
    }

    fn update_files(&self, changed: &[Utf8PathBuf]) {
        self.update_files(changed);
    }

    fn save(&self) -> io::Result<()> {
        self.save()
    }
}

/// See the module.
pub struct FollowedIndex<I> {
    index: Arc<I>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// The last entry of the change journal that the index knows; `None` before the first question.
    known: Option<u64>,
    /// Writes the store while questions are answered.
    saving: Option<JoinHandle<()>>,
}

impl<I: FileIndex> FollowedIndex<I> {
    pub fn new(index: Arc<I>) -> Self {
        Self { index, progress: Mutex::default() }
    }

    pub fn index(&self) -> &Arc<I> {
        &self.index
    }

    /// Brings the index up to date. `false` if it does not know all files: there was no time, or reading them failed.
    pub async fn refresh(&self, servers: &Orchestrator, call: &CallContext) -> bool {
        let is_first = self.progress.lock().await.known.is_none();
        let index = Arc::clone(&self.index);
        // The first question has to wait until the folders are walked: time to read the store.
        let load = async {
            if is_first {
                let _ = spawn_blocking(move || index.load()).await;
            }
        };
        let (caught_up, ()) = tokio::join!(servers.catch_up(call), load);
        let mut progress = self.progress.lock().await;
        let changes = servers.changes_since(progress.known.unwrap_or_default());
        let changed: Option<Vec<Utf8PathBuf>> = match (progress.known, changes.files) {
            (Some(_), Some(files)) => Some(files.into_iter().map(|path| path.as_path().to_owned()).collect()),
            _ => None,
        };
        if changed.as_ref().is_some_and(Vec::is_empty) {
            return caught_up;
        }
        let (index, all, is_whole) = (Arc::clone(&self.index), servers.clone(), changed.is_none());
        let work = spawn_blocking(move || match changed {
            Some(changed) => index.update_files(&changed),
            None => index.replace_files(&all.files()),
        });
        let is_current = work.await.is_ok() && caught_up;
        if is_current {
            progress.known = Some(changes.last);
        }
        if is_whole && progress.saving.as_ref().is_none_or(JoinHandle::is_finished) {
            let index = Arc::clone(&self.index);
            progress.saving = Some(spawn_blocking(move || {
                save(&*index);
                // Reading and writing take several times the memory of the index.
                process::return_freed_memory();
            }));
        }
        is_current
    }

    /// Keeps the index for the next start.
    pub async fn close(&self) {
        let saving = self.progress.lock().await.saving.take();
        let index = Arc::clone(&self.index);
        // A panic in either was logged; the index is only a cache.
        if let Some(saving) = saving {
            let _ = saving.await;
        }
        let _ = spawn_blocking(move || save(&*index)).await;
    }
}

fn save(index: &impl FileIndex) {
    if let Err(error) = index.save() {
        tracing::debug!(%error, index = std::any::type_name_of_val(index), "cannot keep the index");
    }
}
