//! The `context` surface: documents for a query within a token budget, and passages of the workspace.
//!
//! Every failure, invalid arguments included, is the one error object of Context Resolve v0: as the structured result and,
//! with a newline, as the one text item. Arguments are checked in a fixed order (budget, query, cache), so the same mistakes
//! always get the same error. The text of a resolve is byte for byte what the command line prints; the structured result is
//! that text, parsed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tenon_context::{
    CachePool, CacheRoot, ContextErrorCode, Error, FindRequest, PackRequest, Query, inspect, list,
};
use tenon_lsp::CallContext;

use crate::engine::{Engine, PassageError};
use crate::surface::{
    Arguments, CallFailure, CallLimits, Catalog, SchemaFault, Surface, SurfaceTool, ToolAnswer, ToolCall,
    ToolOutcome, tool_set,
};

mod classify;

use classify::classify;

tool_set! {
    /// The tools of the contract.
    pub enum ContextTool {
        Resolve reads "context.resolve"
            "Picks the documents of a cache that answer a query best and fit a token budget. Same cache, query \
             and budget, same bytes.";
        ListCaches reads "context.list_caches" "Lists the document caches.";
        InspectCache reads "context.inspect_cache" "Shows what a document cache holds and whether it is valid.";
        Find reads text "context.find"
            "Answers a question with passages of this workspace that fit a token budget: documentation by section, code by \
             declaration, settings, tasks and notes. Ask in your own words; no cache needed.";
        Pack reads text "context.pack"
            "One bundle for a task or question that fits a token budget: the task with notes, symbols it names, their users, \
             passages, current problems. Says what was left out.";
    }
}

/// Larger than for other surfaces, because results contain whole documents.
const RESPONSE_BYTES: usize = 64 * 1024 * 1024;

/// The tools that need no workspace.
const CACHE_TOOLS: &[ContextTool] =
    &[ContextTool::Resolve, ContextTool::ListCaches, ContextTool::InspectCache];

/// How long before the deadline a question stops waiting for language servers.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// See the module.
pub struct ContextSurface {
    catalog: Catalog<ContextTool>,
    /// The workspace of questions; `None` serves caches alone.
    engine: Option<Arc<Engine>>,
    /// The folder that contains the caches; `None` means that there are none.
    root: Option<CacheRoot>,
    pool: Arc<CachePool>,
    timeout: Duration,
}

impl ContextSurface {
    pub(crate) const NAME: &'static str = "context";

    /// The default time limit of a call.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// Caches, and questions about a workspace.
    pub(crate) fn of_workspace(root: Option<PathBuf>, engine: &Arc<Engine>) -> Self {
        Self {
            catalog: Catalog::new(ContextTool::ALL),
            engine: Some(Arc::clone(engine)),
            ..Self::new(root, Self::TIMEOUT)
        }
    }

    /// Caches alone.
    pub fn new(root: Option<PathBuf>, timeout: Duration) -> Self {
        Self {
            catalog: Catalog::new(CACHE_TOOLS),
            engine: None,
            root: root.map(CacheRoot::new),
            pool: Arc::default(),
            timeout,
        }
    }
}

/// A call with valid arguments.
enum Request {
    Resolve { cache: String, query: Query, budget: u64 },
    ListCaches { root: Option<String> },
    InspectCache { cache: String },
    Find(FindRequest),
    Pack(PackRequest),
}

impl Request {
    fn read(tool: ContextTool, arguments: &Arguments) -> Result<Self, ContextErrorCode> {
        match tool {
            ContextTool::Resolve => {
                let budget =
                    arguments.get("budget").and_then(Value::as_u64).ok_or(ContextErrorCode::InvalidBudget)?;
                let query =
                    arguments.get("query").and_then(Value::as_str).ok_or(ContextErrorCode::InvalidQuery)?;
                let query = Query::new(query).map_err(|error| error.code())?;
                only(arguments, &["budget", "query", "cache"])?;
                Ok(Self::Resolve { cache: cache(arguments)?, query, budget })
            }
            ContextTool::InspectCache => {
                only(arguments, &["cache"])?;
                Ok(Self::InspectCache { cache: cache(arguments)? })
            }
            ContextTool::ListCaches => {
                only(arguments, &["root"])?;
                let root = arguments.get("root");
                let root =
                    root.map(|root| root.as_str().map(str::to_owned).ok_or(ContextErrorCode::CacheMissing));
                Ok(Self::ListCaches { root: root.transpose()? })
            }
            ContextTool::Find => {
                check_budget(arguments, false)?;
                Ok(Self::Find(typed(arguments)?))
            }
            ContextTool::Pack => {
                check_budget(arguments, true)?;
                Ok(Self::Pack(typed(arguments)?))
            }
        }
    }

    /// Runs the request. Reads files, so it may block.
    fn run(self, root: &CacheRoot, pool: &CachePool) -> Result<String, Error> {
        match self {
            Self::Resolve { cache, query, budget } => {
                let mut text = pool.resolve(&root.cache(&cache)?, query, budget)?.to_json();
                text.push('\n');
                Ok(text)
            }
            Self::InspectCache { cache } => Ok(json(&inspect(&root.cache(&cache)?)?)),
            Self::ListCaches { root: None } => Ok(json(&list(root.path())?)),
            Self::ListCaches { root: Some(below) } => Ok(json(&list(&root.cache(&below)?)?)),
            Self::Find(_) | Self::Pack(_) => unreachable!("questions about a workspace need no cache"),
        }
    }
}

/// The budget comes first, as for caches.
fn check_budget(arguments: &Arguments, is_required: bool) -> Result<(), ContextErrorCode> {
    match arguments.get("budget") {
        None if !is_required => Ok(()),
        Some(budget) if budget.as_u64().is_some_and(|budget| budget > 0) => Ok(()),
        _ => Err(ContextErrorCode::InvalidBudget),
    }
}

fn typed<T: DeserializeOwned>(arguments: &Arguments) -> Result<T, ContextErrorCode> {
    serde_json::from_value(Value::Object(arguments.clone())).map_err(|_| ContextErrorCode::InvalidQuery)
}

fn only(arguments: &Arguments, known: &[&str]) -> Result<(), ContextErrorCode> {
    let all_known = arguments.keys().all(|name| known.contains(&name.as_str()));
    if all_known { Ok(()) } else { Err(ContextErrorCode::InvalidQuery) }
}

fn cache(arguments: &Arguments) -> Result<String, ContextErrorCode> {
    arguments.get("cache").and_then(Value::as_str).map(str::to_owned).ok_or(ContextErrorCode::CacheMissing)
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, numbers and flags are JSON")
}

/// `text` as text and, parsed, as the structured result.
fn answer(text: String) -> ToolAnswer {
    let structured: Value = serde_json::from_str(&text).expect("the text was just written as JSON");
    ToolAnswer::structured(structured).with_text(text)
}

fn question(call: ToolCall) -> CallContext {
    let client = call.caller.client.0;
    CallContext::new(call.deadline - ANSWER_TIME, call.caller.cancel).for_client(client)
}

fn text_answer(tool: ContextTool, answered: Result<String, PassageError>) -> ToolAnswer {
    answered.map_or_else(
        |error| {
            tracing::info!(tool = tool.name(), %error, "a call failed");
            classify(classify::of_question(&error))
        },
        ToolAnswer::text,
    )
}

impl Surface for ContextSurface {
    type Tool = ContextTool;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn catalog(&self) -> &Catalog<ContextTool> {
        &self.catalog
    }

    fn limits(&self) -> CallLimits {
        CallLimits { deadline: self.timeout, response_bytes: RESPONSE_BYTES }
    }

    async fn call(&self, tool: ContextTool, arguments: Arguments, call: ToolCall) -> ToolOutcome {
        let request = match Request::read(tool, &arguments) {
            Ok(request) => request,
            Err(code) => return Ok(classify(code)),
        };
        let request = match (request, &self.engine) {
            (Request::Find(request), Some(engine)) => {
                let found = engine.find_passages(request, &question(call)).await;
                return Ok(text_answer(tool, found.map(|found| found.text())));
            }
            (Request::Pack(request), Some(engine)) => {
                return Ok(text_answer(tool, engine.context_pack(request, &question(call)).await));
            }
            (Request::Find(_) | Request::Pack(_), None) => {
                return Ok(classify(ContextErrorCode::InternalError));
            }
            (request, _) => request,
        };
        let Some(root) = self.root.clone() else {
            return Ok(classify(ContextErrorCode::CacheMissing));
        };
        if self.timeout.is_zero() {
            // The timer fires only at its next tick; the call could be done by then.
            return Ok(classify(ContextErrorCode::InternalError));
        }
        let pool = Arc::clone(&self.pool);
        // A load that outlives its call still completes: the next caller finds it done.
        let running = tokio::task::spawn_blocking(move || request.run(&root, &pool).map(answer));
        Ok(match running.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                tracing::info!(tool = tool.name(), %error, "a call failed");
                classify(error.code())
            }
            Err(panic) => {
                tracing::error!(tool = tool.name(), %panic, "a call panicked");
                classify(ContextErrorCode::InternalError)
            }
        })
    }

    /// The contract fixes which invalid argument is reported, whichever fault the schema check found first.
    fn classify_arguments(
        &self,
        tool: ContextTool,
        arguments: &Arguments,
        _fault: SchemaFault,
    ) -> ToolOutcome {
        Ok(classify(classify::of_arguments(tool, arguments)))
    }

    fn classify(&self, tool: ContextTool, failure: CallFailure) -> ToolOutcome {
        Ok(classify(classify::of_call(tool, &failure)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;
    use tempfile::TempDir;
    use tenon_context::{Existing, build, resolve};
    use tenon_contract::clock::Clock;

    use super::*;
    use crate::surface::{Caller, SurfaceSet, ToolNames};

    /// A root with one cache, `docs`.
    fn caches() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let sources = folder.path().join(".sources");
        fs::create_dir(&sources).unwrap();
        fs::write(sources.join("a.md"), "one two three").unwrap();
        fs::write(sources.join("b.md"), "two").unwrap();
        build(&sources, &folder.path().join("docs"), Existing::Keep, &Clock::system()).unwrap();
        folder
    }

    async fn call(surface: ContextSurface, tool: &str, arguments: Value) -> ToolAnswer {
        let set = SurfaceSet::single(surface, ToolNames::Dotted);
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        set.call(tool, arguments, Caller::default()).await.unwrap()
    }

    fn text(answer: &ToolAnswer) -> &str {
        let [item] = answer.content.as_slice() else { panic!("one item, not {:?}", answer.content) };
        &item.as_text().unwrap().text
    }

    async fn code(root: Option<PathBuf>, tool: &str, arguments: Value) -> String {
        let answer = call(ContextSurface::new(root, ContextSurface::TIMEOUT), tool, arguments).await;
        assert!(answer.is_error, "{answer:?}");
        let structured = answer.structured.clone().unwrap();
        assert_eq!(text(&answer), format!("{structured}\n"));
        let schema = serde_json::from_str(include_str!("../../../../schemas/context-error.json")).unwrap();
        jsonschema::validate(&schema, &structured).unwrap();
        // Clients check the structure of a failed call, too.
        let listed =
            ContextTool::ALL.iter().find(|known| known.name() == tool).unwrap().spec().output.unwrap();
        jsonschema::validate(&serde_json::from_str(listed).unwrap(), &structured).unwrap();
        structured["error"]["code"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn resolve_answers_what_the_library_returns() {
        let root = caches();
        let surface = ContextSurface::new(Some(root.path().to_owned()), ContextSurface::TIMEOUT);
        let arguments = json!({"cache": "docs", "query": "Two three", "budget": 100});
        let answer = call(surface, "context.resolve", arguments).await;
        let query = Query::new("Two three").unwrap();
        let expected = resolve(&root.path().join("docs"), query, 100).unwrap().to_json() + "\n";
        assert_eq!(text(&answer), expected);
        assert!(!answer.is_error);
        // The structured result has the same digits as the text.
        assert!(answer.structured.unwrap().to_string().contains("\"score\":0.6666667,"));
    }

    #[tokio::test]
    async fn caches_are_listed_and_inspected() {
        let root = caches();
        let surface = || ContextSurface::new(Some(root.path().to_owned()), ContextSurface::TIMEOUT);
        let listed = call(surface(), "context.list_caches", json!({})).await;
        assert_eq!(
            text(&listed),
            r#"{"caches":[{"path":".sources","has_manifest":false},{"path":"docs","has_manifest":true}]}"#
        );
        let below = call(surface(), "context.list_caches", json!({"root": "docs"})).await;
        assert_eq!(text(&below), r#"{"caches":[{"path":"documents","has_manifest":false}]}"#);
        let inspected = call(surface(), "context.inspect_cache", json!({"cache": "docs"})).await;
        assert!(text(&inspected).ends_with(r#","valid":true}"#));
        assert_eq!(inspected.structured.unwrap()["document_count"], 2);
    }

    /// The budget comes first, then the query, then the cache.
    #[tokio::test]
    async fn arguments_are_checked_in_order() {
        let root = caches();
        for (arguments, expected) in [
            (json!({}), "invalid_budget"),
            (json!({"budget": -1, "query": 7, "cache": 7}), "invalid_budget"),
            (json!({"budget": "4", "query": "", "cache": "docs"}), "invalid_budget"),
            (json!({"budget": 1.5, "query": "", "cache": "docs"}), "invalid_budget"),
            (json!({"budget": 1e30, "query": "", "cache": "docs"}), "invalid_budget"),
            (json!({"budget": 1}), "invalid_query"),
            (json!({"budget": 1, "query": ["x"], "cache": "nope"}), "invalid_query"),
            (json!({"budget": 1, "query": "x".repeat(65_537), "cache": "nope"}), "invalid_query"),
            (json!({"budget": 1, "query": "é".repeat(40_000), "cache": "nope"}), "invalid_query"),
            (json!({"budget": 1, "query": "", "cache": "docs", "more": 1}), "invalid_query"),
            (json!({"budget": 1, "query": ""}), "cache_missing"),
            (json!({"budget": 1, "query": "", "cache": null}), "cache_missing"),
        ] {
            let given = arguments.to_string();
            let found = code(Some(root.path().to_owned()), "context.resolve", arguments).await;
            assert_eq!(found, expected, "{}", &given[..given.len().min(200)]);
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn cache_names_cannot_leave_the_root() {
        let root = caches();
        let below = root.path().join("below");
        fs::create_dir(&below).unwrap();
        std::os::unix::fs::symlink("../docs", below.join("link")).unwrap();
        let absolute = root.path().join("docs");
        for name in
            ["", ".", "..", "../docs", "x/../../docs", "link", "nope", "a\0b", absolute.to_str().unwrap()]
        {
            for (tool, arguments) in [
                ("context.resolve", json!({"budget": 1, "query": "", "cache": name})),
                ("context.inspect_cache", json!({"cache": name})),
                ("context.list_caches", json!({"root": name})),
            ] {
                let found = code(Some(below.clone()), tool, arguments).await;
                assert_eq!(found, "cache_missing", "{tool} {name:?}");
            }
        }
    }

    #[tokio::test]
    async fn every_other_failure_has_its_code() {
        let root = caches();
        let resolve = || json!({"budget": 1, "query": "", "cache": "docs"});
        assert_eq!(code(None, "context.resolve", resolve()).await, "cache_missing");
        assert_eq!(code(None, "context.list_caches", json!({})).await, "cache_missing");
        assert_eq!(
            code(Some(root.path().to_owned()), "context.list_caches", json!({"cache": "x"})).await,
            "invalid_query"
        );
        fs::remove_file(root.path().join("docs/index.json")).unwrap();
        assert_eq!(code(Some(root.path().to_owned()), "context.resolve", resolve()).await, "cache_invalid");

        let surface = ContextSurface::new(Some(root.path().to_owned()), Duration::ZERO);
        let late = call(surface, "context.resolve", resolve()).await;
        assert_eq!(text(&late), "{\"error\":{\"code\":\"internal_error\",\"message\":\"Internal error\"}}\n");
    }

    #[test]
    fn response_above_the_cap_is_an_invalid_budget() {
        let surface = ContextSurface::new(None, ContextSurface::TIMEOUT);
        let failure = CallFailure::ResponseTooLarge { bytes: RESPONSE_BYTES + 1, limit: RESPONSE_BYTES };
        let answer = surface.classify(ContextTool::Resolve, failure).unwrap();
        assert_eq!(answer.structured.unwrap()["error"]["code"], "invalid_budget");
    }
}
