//! `vscode.lsp.references` (§7.2): the references to the symbol at a position, page by page.

use serde::Deserialize;
use tenon_contract::cursor::RequestKey;
use tenon_contract::epoch::EpochSet;
use tenon_contract::position::Position;
use tenon_lsp::CallContext;

use crate::canonical::{Location, canonicalise};
use crate::code_reply::CodeReply;
use crate::code_tools::{CodeTools, Consistency, Question};
use crate::completeness::{RequiredServers, require_complete};
use crate::error::CodeError;
use crate::page::{PageRequest, PageSize, PagedList};
use crate::summary::{Caveats, count};

/// The arguments of `vscode.lsp.references`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct References {
    pub uri: String,
    pub position: Position,
    #[serde(default)]
    pub include_declaration: bool,
    pub page_size: Option<PageSize>,
    pub cursor: Option<String>,
}

impl References {
    pub const TOOL: &'static str = "vscode.lsp.references";
}

fn request(uri: &str, position: Position, include_declaration: bool) -> RequestKey {
    RequestKey::new(References::TOOL, &[&uri, &position.line, &position.character, &include_declaration])
}

impl CodeTools {
    pub async fn references(&self, input: References, call: &CallContext) -> Result<CodeReply, CodeError> {
        let References { uri, position, include_declaration, page_size, cursor } = input;
        let path = self.admit(uri).await?;
        let question = Question {
            request: request(path.uri().as_str(), position, include_declaration),
            epochs: EpochSet::CODE,
            path: Some(path.clone()),
            consistency: Consistency::Unchanged,
        };
        self.page(question, PageRequest { size: page_size, cursor }, call, move |state, call| {
            let path = path.clone();
            async move {
                let answer = state.engine.references(&path, position, include_declaration, &call).await?;
                let notes = answer.notes.clone();
                let found = require_complete(answer, RequiredServers::AtLeastOne)?;
                let caveats = Caveats::of(&found, notes);
                let locations = canonicalise(found.value.into_iter().map(Location::from).collect());
                let limit = state.limits.references;
                if locations.len() > limit {
                    return Err(CodeError::TooMany { what: "references", limit });
                }
                let words = |number| format!("Returned {}", count(number, "reference"));
                Ok(PagedList::new(locations, words, caveats))
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s7_2_request_keys_are_those_of_the_worked_examples() {
        let key = request("file:///abs/path/to/file.ts", Position::new(10, 4), false);
        assert_eq!(key.as_str(), "e2d003a32d2401610331caf8666277c9fbcd0ff66f5c9c151ed6f2233316cd4f");
        let key = request("file:///abs/path/b%20c.ts", Position::new(0, 0), false);
        assert_eq!(key.as_str(), "877f8ae4ee02e7e37023f59bb20bb16096ea1cbc0b8fedba1e7ab0ebdade7797");
        assert_ne!(key, request("file:///abs/path/b%20c.ts", Position::new(0, 0), true));
    }
}
