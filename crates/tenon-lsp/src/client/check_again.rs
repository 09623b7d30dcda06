//! Diagnostics of a file whose own text is unchanged, after another file changed.

use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;

use super::file_check::{Checked, gap_reason};
use super::{Client, Wait};
use crate::call_context::CallContext;
use crate::model::GapReason;

impl Client {
    /// The diagnostics of a file since the last change anywhere.
    pub(crate) async fn check_again(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        lines: &LineIndex,
    ) -> Checked {
        let key = path.as_str();
        if self.open_text(key).is_some()
            && let Err(error) = self.reopen(call, path).await
        {
            return Checked { diagnostics: Vec::new(), gap: Some(gap_reason(&error)) };
        }
        // A push server republishes by itself, after some time; a pull is up to date.
        let republished = async {
            let waited = self.wait_until(call, |state, _| match state.documents.get(key) {
                Some(document) if !state.ended && !state.capabilities.pulls() => {
                    match state.expects_diagnostics(document) {
                        true => Wait::ForChange,
                        false => Wait::Done(()),
                    }
                }
                _ => Wait::Done(()),
            });
            waited.await.is_ok()
        };
        let mut in_time = true;
        let noted = async { in_time = republished.await };
        let mut checked = self.check_while(call, path, lines, true, noted).await;
        if !in_time && checked.gap.is_none() {
            checked.gap = Some(GapReason::Pending);
        }
        checked
    }
}
