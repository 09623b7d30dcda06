//! `vscode.lsp.diagnostics.workspace` (§7.7): the diagnostics of the workspace by file, page by page.

use std::collections::BTreeMap;

use serde::Deserialize;
use tenon_contract::cursor::RequestKey;
use tenon_contract::epoch::EpochSet;
use tenon_lsp::{CallContext, ServerId};

use crate::background_check::{Unchecked, UncheckedFile};
use crate::canonical::{Diagnostic, FileDiagnostics, canonicalise};
use crate::code_reply::CodeReply;
use crate::code_tools::{CodeTools, Consistency, Question};
use crate::error::CodeError;
use crate::page::{PageRequest, PageSize, PagedList};
use crate::summary::{Caveats, count};

/// Up to this many files that one server failed on are named.
const MAX_FAILED: usize = 3;

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
            consistency: Consistency::Unchanged,
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
            let unchecked = unchecked_names(&found.value.unchecked);
            Ok(PagedList::new(
                files,
                words,
                Caveats { uncovered, unproven, unchecked, capped, ..Caveats::default() },
            ))
        })
        .await
    }
}

/// The files that were not checked, with the reason. Files that a server failed on are counted if there are many: one cause,
/// such as another file, is likely.
fn unchecked_names(files: &[UncheckedFile]) -> Vec<String> {
    let mut failures: BTreeMap<&ServerId, usize> = BTreeMap::new();
    for file in files {
        if let Unchecked::Failed(server) = &file.why {
            *failures.entry(server).or_default() += 1;
        }
    }
    failures.retain(|_, count| *count > MAX_FAILED);
    let is_counted = |file: &&UncheckedFile| matches!(&file.why, Unchecked::Failed(server) if failures.contains_key(server));
    let named = files.iter().filter(|file| !is_counted(file));
    let named = named.map(|file| format!("{} ({})", file.file, file.why));
    let counted = failures.iter().map(|(server, count)| format!("{count} files ({server} failed)"));
    named.chain(counted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_a_server_failed_on_are_counted_after_the_cause() {
        let server = ServerId::new("mine").unwrap();
        let file = |name: &str, why: fn(ServerId) -> Unchecked| UncheckedFile {
            file: name.to_owned(),
            why: why(server.clone()),
        };
        let mut files = vec![file("deep.ts", Unchecked::Rejected)];
        files.extend(["a", "b", "c"].map(|name| file(name, Unchecked::Failed)));
        let named =
            ["deep.ts (mine cannot read it)", "a (mine failed)", "b (mine failed)", "c (mine failed)"];
        assert_eq!(unchecked_names(&files), named);
        files.push(file("d", Unchecked::Failed));
        assert_eq!(unchecked_names(&files), ["deep.ts (mine cannot read it)", "4 files (mine failed)"]);
    }

    #[test]
    fn s7_7_the_request_key_is_that_of_the_worked_example() {
        let key = RequestKey::new(WorkspaceDiagnostics::TOOL, &[]);
        assert_eq!(key.as_str(), "5253cea75afa57bf5cf2f0501a3d9c3be68aa2bf24dba33807b2ca51a95a76bb");
    }
}
