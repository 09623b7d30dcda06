//! `vscode.lsp.diagnostics.workspace` (§7.7): the diagnostics of the workspace by file, page by page.

use serde::Deserialize;
use tenon_contract::cursor::RequestKey;
use tenon_contract::epoch::EpochSet;
use tenon_lsp::CallContext;

use crate::canonical::{Diagnostic, FileDiagnostics, canonicalise};
use crate::code_reply::CodeReply;
use crate::code_tools::{CodeTools, Question};
use crate::error::CodeError;
use crate::page::{PageRequest, PageSize, PagedList};
use crate::summary::{Caveats, count};

/// The arguments of `vscode.lsp.diagnostics.workspace`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspaceDiagnostics {
    pub page_size: Option<PageSize>,
    pub cursor: Option<String>,
}

impl WorkspaceDiagnostics {
    pub const TOOL: &'static str = "vscode.lsp.diagnostics.workspace";
}

impl CodeTools {
    pub async fn workspace_diagnostics(
        &self,
        input: WorkspaceDiagnostics,
        call: &CallContext,
    ) -> Result<CodeReply, CodeError> {
        let WorkspaceDiagnostics { page_size, cursor } = input;
        self.admit_workspace()?;
        let question = Question {
            request: RequestKey::new(WorkspaceDiagnostics::TOOL, &[]),
            epochs: EpochSet::DIAGNOSTICS,
            path: None,
        };
        self.page(question, PageRequest { size: page_size, cursor }, call, move |state, call| async move {
            let found = state.background_check.findings(&call).await?;
            let uncovered = state.uncovered(&found);
            let mut capped = false;
            let files = found.value.files.iter().map(|(path, diagnostics)| {
                let all = diagnostics.iter().map(|one| Diagnostic::new(path, one.clone())).collect();
                let mut diagnostics = canonicalise(all);
                capped |= diagnostics.len() > state.limits.items;
                diagnostics.truncate(state.limits.items);
                FileDiagnostics { path: path.clone(), diagnostics }
            });
            let files = canonicalise(files.collect());
            let limit = state.limits.workspace_diagnostics;
            if files.len() > limit {
                return Err(CodeError::TooMany { what: "files with diagnostics", limit });
            }
            let words = |number| format!("Returned diagnostics for {}", count(number, "file"));
            let unproven = found.unproven.clone();
            let unchecked =
                found.value.unchecked.iter().map(|one| format!("{} ({})", one.file, one.why)).collect();
            Ok(PagedList::new(
                files,
                words,
                Caveats { uncovered, unproven, unchecked, capped, ..Caveats::default() },
            ))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s7_7_the_request_key_is_that_of_the_worked_example() {
        let key = RequestKey::new(WorkspaceDiagnostics::TOOL, &[]);
        assert_eq!(key.as_str(), "5253cea75afa57bf5cf2f0501a3d9c3be68aa2bf24dba33807b2ca51a95a76bb");
    }
}
