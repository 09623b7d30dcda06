//! `search`: lines with a text, a regular expression or a syntax pattern, with their enclosing declarations.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tenon_index::{
    SearchError, SearchLimits, SearchMode, SearchRequest, SearchScope, SourceLanguage, SymbolRef,
};
use tenon_lsp::CallContext;
use tenon_lsp::diagnostic_line::one_line;
use tokio::task::spawn_blocking;

use super::hit_list::{Hit, HitList};
use super::{ExploreError, Explorer, Notes, allowed, source};
use crate::summary::count;

/// The most lines that are kept; more are only counted.
const MAX_LINES: usize = 20_000;

/// The arguments of `search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    pub pattern: String,
    #[serde(default)]
    pub mode: SearchMode,
    pub path: Option<String>,
    pub language: Option<String>,
    pub cursor: Option<String>,
    pub max_bytes: Option<usize>,
}

impl Explorer {
    pub(super) async fn search(
        &self,
        input: Search,
        mut notes: Notes,
        call: &CallContext,
    ) -> Result<String, ExploreError> {
        let Search { pattern, mode, path, language, cursor, max_bytes } = input;
        let path = path.as_deref().map(|path| self.path_filter(path)).transpose()?;
        let language = language.as_deref().map(known_language).transpose()?;
        let request = SearchRequest {
            pattern,
            mode,
            scope: SearchScope { path, language },
            limits: SearchLimits {
                max_matches: MAX_LINES,
                max_line_bytes: source::MAX_CODE,
                deadline: Some(call.deadline.into_std()),
            },
        };
        let (index, servers) = (Arc::clone(self.index()), self.servers().clone());
        let searched = spawn_blocking(move || {
            let view = index.view();
            let result = view.search(&request, &servers.files())?;
            let hits = result.hits.iter().map(|hit| Hit {
                path: hit.path.clone(),
                line: hit.line,
                within: hit.symbol.and_then(|id| view.symbol(id)).map(SymbolRef::name_path),
                code: one_line(hit.text.trim(), source::MAX_CODE),
            });
            let hits: Vec<Hit> = hits.collect();
            Ok::<_, SearchError>((hits, result.total, result.files, result.complete, result.skipped))
        });
        let (hits, total, files, complete, skipped) =
            searched.await.map_err(|_| ExploreError::Internal)??;
        let at_least = if complete { "" } else { "at least " };
        let heading = match total {
            0 => "no matches".to_owned(),
            1 => "1 match".to_owned(),
            _ => format!("{at_least}{total} matches in {}", count(files as usize, "file")),
        };
        if mode == SearchMode::Syntax && total == 0 {
            notes.add("syntax patterns match parsed code only, not code inside macros; text mode finds that");
        }
        if !complete {
            notes.add("the search ran out of time; narrow with path or language");
        }
        if total > hits.len() as u64 {
            notes.add(format!(
                "only the first {} matches can be listed; narrow with path or language",
                hits.len()
            ));
        }
        if skipped > 0 {
            notes.add(format!("{skipped} files were not searched: too large or not readable"));
        }
        let list = HitList { heading, hits, narrow: "path, language" };
        Ok(list.answer(cursor.as_deref())?.with_notes(notes.into_lines()).fit(allowed(max_bytes)))
    }
}

fn known_language(name: &str) -> Result<SourceLanguage, ExploreError> {
    SourceLanguage::parse(name).ok_or_else(|| {
        let known: Vec<&str> = SourceLanguage::all().map(SourceLanguage::name).collect();
        ExploreError::Arguments(format!("unknown language `{name}`; known: {}", known.join(", ")))
    })
}
