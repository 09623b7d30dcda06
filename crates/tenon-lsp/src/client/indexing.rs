//! Waits until a server has read files that changed on disk, where its answers do not wait for that by themselves.
//!
//! clangd learns of a change only from open documents, and answers from an index that it updates in the background; a header
//! that was missing stays missing for an open document until that is built again. pyright lists a new file's symbols only
//! after it has listed the project's files again.

use std::collections::BTreeSet;

use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;

use super::diagnostics::Freshness;
use super::{Client, Wait};
use crate::call_context::CallContext;
use crate::transport::RequestError;

impl Client {
    /// Notes that a document was opened or changed because its file changed on disk.
    pub(crate) fn note_shown(&self, path: &WorkspacePath) {
        if self.entry().rebuilds {
            self.session.state().unindexed.insert(path.as_str().to_owned());
        }
    }

    /// Closes the document of a deleted file. A server that keeps what it knows of closed documents gets an empty text first:
    /// otherwise a symbol that moved to another file stays in the deleted one.
    pub(crate) async fn forget(&self, call: &CallContext, path: &WorkspacePath) -> Result<(), RequestError> {
        if self.entry().rebuilds && self.entry().language_id(path.as_path()).is_some() {
            let _open = self.sync(call, path, &LineIndex::new(""), false).await?;
            self.await_built(call, path.as_str()).await?;
        }
        self.close(call, path.as_str()).await
    }

    /// The open files whose diagnostics may be about an earlier state of the disk.
    pub(crate) fn outdated_files(&self) -> BTreeSet<String> {
        let mut outdated = self.expected_files();
        let state = self.session.state();
        let old = state.documents.iter().filter(|document| self.is_old(&state, document));
        outdated.extend(old.map(|document| document.path.as_str().to_owned()));
        outdated
    }

    /// Waits until the server has built all files that changed on disk. It publishes their diagnostics after it has indexed them.
    pub(crate) async fn await_indexed(&self, call: &CallContext) -> Result<(), RequestError> {
        if !self.entry().rebuilds {
            return Ok(());
        }
        let keys: Vec<String> = self.session.state().unindexed.iter().cloned().collect();
        for key in keys {
            self.await_built(call, &key).await?;
            self.session.state().unindexed.remove(&key);
        }
        Ok(())
    }

    /// Builds a document again if files changed on disk since it was opened or changed, and waits for the result.
    pub(crate) async fn rebuild(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        lines: &LineIndex,
    ) -> Result<(), RequestError> {
        if !self.entry().rebuilds {
            return Ok(());
        }
        // First the text, so that the document is built once.
        let _open = self.sync(call, path, lines, true).await?;
        self.refresh(call, path).await?;
        self.await_built(call, path.as_str()).await
    }

    /// Waits until the server has published diagnostics for a document's current text, or it is closed.
    async fn await_built(&self, call: &CallContext, key: &str) -> Result<(), RequestError> {
        let built = self.wait_until(call, |state, now| match state.documents.get(key) {
            Some(document) if !state.ended => match state.answered_for_itself(document, now) {
                Freshness::Fresh => Wait::Done(()),
                Freshness::NotBefore(at) => Wait::Until(at),
                Freshness::Waiting => Wait::ForChange,
            },
            _ => Wait::Done(()),
        });
        Ok(built.await?)
    }

    /// Waits until the server has listed new files, for questions that open files alone do not answer.
    pub(crate) async fn await_listed(&self, call: &CallContext) -> Result<(), RequestError> {
        let listed = self.wait_until(call, |state, now| match state.readiness.listed_at(now) {
            Some(at) if !state.ended => Wait::Until(at),
            _ => Wait::Done(()),
        });
        Ok(listed.await?)
    }
}
