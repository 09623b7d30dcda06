//! `vscode.lsp.definition` (§7.1): the definitions of the symbol at a position.

use serde::Deserialize;
use serde_json::json;
use tenon_contract::cursor::RequestKey;
use tenon_contract::epoch::EpochSet;
use tenon_contract::position::Position;
use tenon_lsp::CallContext;
use tenon_lsp::model::AnswerNote;

use crate::canonical::{Location, canonicalise};
use crate::code_reply::CodeReply;
use crate::code_tools::{CodeTools, Consistency, Question};
use crate::completeness::{RequiredServers, require_complete};
use crate::error::CodeError;
use crate::listing::Listed;
use crate::summary::{Caveats, count};

/// The arguments of `vscode.lsp.definition`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    pub uri: String,
    pub position: Position,
}

impl Definition {
    pub const TOOL: &'static str = "vscode.lsp.definition";
}

impl CodeTools {
    pub async fn definition(&self, input: Definition, call: &CallContext) -> Result<CodeReply, CodeError> {
        let Definition { uri, position } = input;
        let path = self.admit(uri).await?;
        let parts = RequestKey::new(Definition::TOOL, &[path.uri(), &position.line, &position.character]);
        let question = Question {
            request: parts,
            epochs: EpochSet::CODE,
            path: Some(path.clone()),
            consistency: Consistency::Unchanged,
        };
        self.reply(question, call, move |state, call| {
            let path = path.clone();
            async move {
                let answer = state.engine.definition(&path, position, &call).await?;
                let notes = answer.notes.clone();
                let found = require_complete(answer, RequiredServers::AtLeastOne)?;
                let caveats = Caveats::of(&found, notes);
                let mut locations = canonicalise(found.value.into_iter().map(Location::from).collect());
                let capped = locations.len() > state.limits.items;
                locations.truncate(state.limits.items);
                let mut caveats = Caveats { capped, ..caveats };
                if !locations.is_empty() {
                    caveats.notes.retain(|note| !matches!(note, AnswerNote::Outside(_)));
                }
                let summary =
                    caveats.summary(&format!("Found {}", count(locations.len(), "definition")), false);
                let lines = state
                    .listing
                    .then(|| locations.iter().flat_map(|location| location.lines(state.gate())).collect());
                let payload = json!({ "locations": locations, "summary": summary });
                CodeReply::new(payload, lines).within(state.limits.payload_bytes())
            }
        })
        .await
    }
}
