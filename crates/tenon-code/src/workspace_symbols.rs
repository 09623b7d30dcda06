//! `vscode.lsp.workspaceSymbols` (§7.5): symbols of the workspace by name, page by page.

use serde::Deserialize;
use tenon_contract::cursor::RequestKey;
use tenon_contract::epoch::EpochSet;
use tenon_lsp::CallContext;

use crate::canonical::{WorkspaceSymbol, canonicalise};
use crate::code_reply::CodeReply;
use crate::code_tools::{CodeTools, Consistency, Question};
use crate::completeness::{RequiredServers, require_complete};
use crate::error::CodeError;
use crate::page::{PageRequest, PageSize, PagedList};
use crate::summary::{Caveats, count};

/// The arguments of `vscode.lsp.workspaceSymbols`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspaceSymbols {
    pub query: String,
    pub page_size: Option<PageSize>,
    pub cursor: Option<String>,
}

impl WorkspaceSymbols {
    pub const TOOL: &'static str = "vscode.lsp.workspaceSymbols";
}

/// `query` is trimmed.
fn request(query: &str) -> RequestKey {
    RequestKey::new(WorkspaceSymbols::TOOL, &[&query])
}

impl CodeTools {
    pub async fn workspace_symbols(
        &self,
        input: WorkspaceSymbols,
        call: &CallContext,
    ) -> Result<CodeReply, CodeError> {
        let WorkspaceSymbols { query, page_size, cursor } = input;
        let query = query.trim().to_owned();
        if query.is_empty() {
            return Err(CodeError::BlankQuery);
        }
        self.admit_workspace()?;
        let question = Question {
            request: request(&query),
            epochs: EpochSet::CODE,
            path: None,
            consistency: Consistency::Unchanged,
        };
        self.page(question, PageRequest { size: page_size, cursor }, call, move |state, call| {
            let query = query.clone();
            async move {
                let found = require_complete(
                    state.engine.workspace_symbols(&query, &call).await,
                    RequiredServers::AnyNumber,
                )?;
                let uncovered = state.uncovered(&found);
                let symbols = canonicalise(found.value.into_iter().map(WorkspaceSymbol::from).collect());
                let limit = state.limits.workspace_symbols;
                if symbols.len() > limit {
                    return Err(CodeError::TooMany { what: "symbols", limit });
                }
                let words = |number| format!("Returned {}", count(number, "workspace symbol"));
                Ok(PagedList::new(
                    symbols,
                    words,
                    Caveats { uncovered, unproven: found.unproven, ..Caveats::default() },
                ))
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s7_5_request_keys_are_those_of_the_worked_examples() {
        let key = request("MyFunc");
        assert_eq!(key.as_str(), "886a0ace31d5f05215c4a2ba8ebd987b6b0f7bf2128eec9322067dfa39a9e6bb");
        let key = request("naïve 日本 😀");
        assert_eq!(key.as_str(), "81793a761ddecb7944997ae36e678fdffe75e6511d0fb45adb9460393ba27e42");
    }
}
