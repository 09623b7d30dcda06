//! What was reported on files: their texts, and for reports that were not complete the findings.
//!
//! A file is unfinished while some server has not reported on its text. Its baseline then stays the text before the first
//! unfinished change, and what was reported is kept, so that the next report has what was missing, once.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_contract::root::WorkspacePath;
use tenon_lsp::orchestrator::ChangedText;

use super::last_texts::LastTexts;
use super::told_findings::ToldFindings;

#[derive(Debug, Default)]
pub(super) struct ReportState {
    /// The baselines of the next report. Empty for a deleted file.
    texts: LastTexts,
    unfinished: BTreeMap<WorkspacePath, Unfinished>,
    told: ToldFindings,
}

#[derive(Debug)]
struct Unfinished {
    /// The text of the last report; `None` for a deleted file.
    text: Option<Arc<str>>,
    /// A newer edit ended the wait.
    interrupted: bool,
}

impl ReportState {
    /// The text before the next report on a file.
    pub(super) fn baseline(&mut self, path: &WorkspacePath) -> Option<Arc<str>> {
        self.texts.get(path)
    }

    /// Whether a file was reported on with this text, and only servers are missing.
    pub(super) fn is_waiting(&self, path: &WorkspacePath, text: Option<&str>) -> bool {
        self.unfinished.get(path).is_some_and(|file| file.text.as_deref() == text)
    }

    /// The baseline of an edit that interrupted the report on its text before, which is then not worth a check.
    pub(super) fn interrupted_baseline(&mut self, path: &WorkspacePath, before: &str) -> Option<Arc<str>> {
        let file = self.unfinished.get(path).filter(|file| file.interrupted)?;
        (file.text.as_deref() == Some(before)).then(|| self.texts.get(path)).flatten()
    }

    /// What was reported on unfinished changes.
    pub(super) fn told(&self) -> ToldFindings {
        self.told.clone()
    }

    /// Takes note of a report, which a newer edit may have `interrupted`.
    pub(super) fn note(
        &mut self,
        changed: &[ChangedText],
        unfinished: &[WorkspacePath],
        interrupted: bool,
        told: ToldFindings,
    ) {
        for ChangedText { path, before, after } in changed {
            let was_unfinished = self.unfinished.contains_key(path);
            let baseline = self.texts.get(path);
            // An edit on top of an unfinished one was compared with a newer text.
            let skips_some = was_unfinished && baseline.is_some() && baseline.as_deref() != before.as_deref();
            if unfinished.contains(path) || skips_some {
                if !was_unfinished {
                    self.texts.put(path, before.as_deref());
                }
                let text = after.as_deref().map(Into::into);
                self.unfinished.insert(path.clone(), Unfinished { text, interrupted });
            } else {
                self.texts.put(path, Some(after.as_deref().unwrap_or_default()));
                self.unfinished.remove(path);
            }
        }
        if self.unfinished.is_empty() {
            self.told = ToldFindings::default();
        } else {
            self.told.merge(told);
        }
    }
}
