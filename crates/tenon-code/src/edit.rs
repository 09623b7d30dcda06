//! Edits: change a file, show the new text to the language servers, wait, and return the diagnostics that follow.
//!
//! [`Editor`] runs all four steps and returns one finished [`EditOutcome`]. Policy:
//! - Only regular UTF-8 files inside the root, opened beneath it without following links; never files that decide what runs
//!   on the user's machine ([`protected`]). A link inside the root to a file inside the root means that file.
//! - Reading, matching and writing are one step: edits of one file run one after the other ([`file_locks`]), and a file that
//!   another program changes between reading and writing is read again.
//! - A file is either unchanged or fully changed, with its mode, byte order mark and line endings.
//! - Language servers never make an edit fail, and diagnostics always belong to exactly the text that was written.

use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use futures::future::BoxFuture;
use serde::Deserialize;
use tenon_contract::root::{RootError, WorkspacePath};
use tenon_lsp::CallContext;
use tenon_lsp::orchestrator::Orchestrator;
use tokio::task::spawn_blocking;

mod directory;
mod edit_diagnostics;
mod error;
mod file_locks;
mod file_writer;
mod protected;
mod text;

pub use edit_diagnostics::{ChangedFile, EditDiagnostics, FileDiagnosticLines};
pub use error::EditError;
pub use text::Lines;

use file_locks::{FileLocks, ShowGuard};
use file_writer::{FileWriter, RequestedText, Texts};

/// Replaces a text that occurs once in a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    pub file: String,
    pub old_text: String,
    pub new_text: String,
    pub expected_sha256: Option<String>,
}

/// Creates a file, or overwrites the one with the expected hash.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    pub file: String,
    pub text: String,
    pub expected_sha256: Option<String>,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the root.
    pub file: String,
    /// SHA-256 of the bytes before, in hex; `None` for a new file.
    pub before: Option<String>,
    pub after: String,
    /// The lines of the old text that were replaced; `None` for a new file.
    pub replaced: Option<Lines>,
    /// The lines of the new text that replaced them.
    pub lines: Lines,
}

impl Change {
    pub fn created(&self) -> bool {
        self.before.is_none()
    }
}

/// A finished edit: the change and the diagnostics that follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditOutcome {
    pub change: Change,
    pub diagnostics: EditDiagnostics,
}

/// Opens the language servers of the workspace, which start with the first use; `None` if they cannot be used.
pub type OpenServers = Box<dyn Fn() -> BoxFuture<'static, Option<Orchestrator>> + Send + Sync>;

/// Edits files below one root.
pub struct Editor {
    writer: Arc<FileWriter>,
    locks: FileLocks,
    servers: OpenServers,
}

/// A changed file, with the right to show its text to the servers before any newer one.
struct Written {
    change: Change,
    path: WorkspacePath,
    texts: Texts,
    guard: ShowGuard,
}

impl Editor {
    /// Edits files below `root`, which must be a real path, but never Tenon's `own_paths`.
    pub fn new(
        root: &Utf8Path,
        own_paths: Vec<Utf8PathBuf>,
        servers: OpenServers,
    ) -> Result<Self, RootError> {
        let writer = Arc::new(FileWriter::new(root, own_paths)?);
        Ok(Self { writer, locks: FileLocks::default(), servers })
    }

    /// Replaces a text. Diagnostics in other files may take up to `wait`; `call` bounds the wait for diagnostics only.
    pub async fn edit(
        &self,
        edit: EditFile,
        wait: Duration,
        call: &CallContext,
    ) -> Result<EditOutcome, EditError> {
        let EditFile { file, old_text, new_text, expected_sha256 } = edit;
        let requested = RequestedText::Replace { old: old_text, new: new_text };
        self.run(file, requested, expected_sha256, wait, call).await
    }

    /// Creates or overwrites a file. Waits as [`Editor::edit`] does.
    pub async fn write(
        &self,
        write: WriteFile,
        wait: Duration,
        call: &CallContext,
    ) -> Result<EditOutcome, EditError> {
        let WriteFile { file, text, expected_sha256 } = write;
        self.run(file, RequestedText::Whole(text), expected_sha256, wait, call).await
    }

    /// The diagnostics after another program changed files. Waits as [`Editor::edit`] does.
    pub async fn diagnostics_after(
        &self,
        files: Vec<WorkspacePath>,
        wait: Duration,
        call: &CallContext,
    ) -> EditDiagnostics {
        let changed: Vec<ChangedFile> =
            files.into_iter().map(|path| ChangedFile { path, text: None, before: None }).collect();
        self.collect(&changed, wait, call).await
    }

    async fn run(
        &self,
        file: String,
        requested: RequestedText,
        expected: Option<String>,
        wait: Duration,
        call: &CallContext,
    ) -> Result<EditOutcome, EditError> {
        let Written { change, path, texts: Texts { before, after }, guard } =
            self.change(file, requested, expected).await?;
        let changed = ChangedFile { path, text: Some(after), before };
        let diagnostics = self.collect_until_superseded(changed, &guard, wait, call).await;
        Ok(EditOutcome { change, diagnostics })
    }

    /// Writes the file and takes the right to show it.
    async fn change(
        &self,
        file: String,
        requested: RequestedText,
        expected: Option<String>,
    ) -> Result<Written, EditError> {
        let writer = Arc::clone(&self.writer);
        let path = blocking(move || writer.admit(&file)).await?;
        let lock = self.locks.of(&path);
        let writing = lock.lock_for_write().await;
        let (writer, target) = (Arc::clone(&self.writer), path.clone());
        // The guard moves along: if the caller leaves, the next edit still waits until this file is written.
        let (writing, (texts, change)) = blocking(move || {
            let done = writer.change(&target, &requested, expected.as_deref())?;
            Ok((writing, done))
        })
        .await?;
        let guard = lock.lock_for_show(writing).await;
        Ok(Written { change, path, texts, guard })
    }

    /// Collects diagnostics until a newer edit of the file ends the wait; what is known by then is still an answer.
    async fn collect_until_superseded(
        &self,
        changed: ChangedFile,
        guard: &ShowGuard,
        wait: Duration,
        call: &CallContext,
    ) -> EditDiagnostics {
        let either = call.cancel.child_token();
        let call = CallContext::new(call.deadline, either.clone());
        let superseded = async {
            guard.superseded.cancelled().await;
            either.cancel();
            std::future::pending().await
        };
        let changed = [changed];
        let mut diagnostics = tokio::select! {
            biased;
            diagnostics = self.collect(&changed, wait, &call) => diagnostics,
            diagnostics = superseded => diagnostics,
        };
        diagnostics.complete &= !guard.superseded.is_cancelled();
        diagnostics
    }

    async fn collect(&self, changed: &[ChangedFile], wait: Duration, call: &CallContext) -> EditDiagnostics {
        match (self.servers)().await {
            Some(servers) => EditDiagnostics::collect(&servers, changed, wait, call).await,
            None => EditDiagnostics::default(),
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EditError> + Send + 'static,
) -> Result<T, EditError> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(EditError::Io(std::io::Error::other(error))))
}
