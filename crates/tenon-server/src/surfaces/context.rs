//! The `context` surface: documents for a query within a token budget.
//!
//! Every failure, of arguments too, is the one error object of Context Resolve v0: as the structured result and, with a
//! newline, as the one text item. Arguments are looked at in a fixed order (budget, query, cache), so that the same
//! mistakes always get the same answer. The text of a resolve is what the command line prints, byte for byte; the
//! structured result is that text, read.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use tenon_context::{CachePool, CacheRoot, ContextErrorCode, Error, Query, inspect, list};

use crate::surface::{
    Answer, Arguments, Call, CallLimits, Catalog, Outcome, Refusal, SchemaFault, Surface, ToolSpec,
    unknown_tool,
};

const RESOLVE: &str = "context.resolve";
const LIST_CACHES: &str = "context.list_caches";
const INSPECT_CACHE: &str = "context.inspect_cache";

const TOOLS: &[ToolSpec] = &[
    ToolSpec {
        name: RESOLVE,
        description: "Picks the documents of a cache that answer a query best and fit a token budget. Same cache, query \
                      and budget, same bytes.",
        input: include_str!("../../../../schemas/tools/context.resolve.json"),
        output: Some(include_str!("../../../../schemas/tools/context.resolve.output.json")),
        read_only: true,
    },
    ToolSpec {
        name: LIST_CACHES,
        description: "Lists the document caches there are.",
        input: include_str!("../../../../schemas/tools/context.list_caches.json"),
        output: Some(include_str!("../../../../schemas/tools/context.list_caches.output.json")),
        read_only: true,
    },
    ToolSpec {
        name: INSPECT_CACHE,
        description: "Says what a document cache holds and whether it is valid.",
        input: include_str!("../../../../schemas/tools/context.inspect_cache.json"),
        output: Some(include_str!("../../../../schemas/tools/context.inspect_cache.output.json")),
        read_only: true,
    },
];

/// Whole documents are what is asked for here: more than the other surfaces may say.
const RESPONSE_BYTES: usize = 64 * 1024 * 1024;

/// See the module.
pub struct ContextSurface {
    catalog: Catalog,
    /// Where caches are named; without it there are none.
    root: Option<CacheRoot>,
    pool: Arc<CachePool>,
    timeout: Duration,
}

impl ContextSurface {
    pub const NAME: &'static str = "context";

    /// How long a call may take if nobody says otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    pub fn new(root: Option<PathBuf>, timeout: Duration) -> Self {
        Self { catalog: Catalog::new(TOOLS), root: root.map(CacheRoot::new), pool: Arc::default(), timeout }
    }
}

/// A call whose arguments make sense.
enum Request {
    Resolve { cache: String, query: Query, budget: u64 },
    ListCaches { root: Option<String> },
    InspectCache { cache: String },
}

impl Request {
    fn read(tool: &str, arguments: &Arguments) -> Result<Self, ContextErrorCode> {
        match tool {
            RESOLVE => {
                let budget =
                    arguments.get("budget").and_then(Value::as_u64).ok_or(ContextErrorCode::InvalidBudget)?;
                let query =
                    arguments.get("query").and_then(Value::as_str).ok_or(ContextErrorCode::InvalidQuery)?;
                let query = Query::new(query).map_err(|error| error.code())?;
                only(arguments, &["budget", "query", "cache"])?;
                Ok(Self::Resolve { cache: cache(arguments)?, query, budget })
            }
            INSPECT_CACHE => {
                only(arguments, &["cache"])?;
                Ok(Self::InspectCache { cache: cache(arguments)? })
            }
            _ => {
                only(arguments, &["root"])?;
                let root = arguments.get("root");
                let root =
                    root.map(|root| root.as_str().map(str::to_owned).ok_or(ContextErrorCode::CacheMissing));
                Ok(Self::ListCaches { root: root.transpose()? })
            }
        }
    }

    /// Does what was asked for. Reads files, and so may block.
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
        }
    }
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

/// The answer that says `text`, twice.
fn answer(text: String) -> Answer {
    let structured: Value = serde_json::from_str(&text).expect("the text was just written as JSON");
    Answer::structured(structured).with_text(text)
}

fn failure(code: ContextErrorCode) -> Outcome {
    #[derive(Serialize)]
    struct ErrorObject {
        error: Inner,
    }
    #[derive(Serialize)]
    struct Inner {
        code: ContextErrorCode,
        message: &'static str,
    }
    let object = ErrorObject { error: Inner { code, message: code.message() } };
    Ok(answer(json(&object) + "\n").failed())
}

impl Surface for ContextSurface {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn limits(&self, _tool: &str) -> CallLimits {
        CallLimits { deadline: self.timeout, response_bytes: RESPONSE_BYTES }
    }

    fn call<'a>(&'a self, tool: &'static str, arguments: Arguments, _call: Call) -> BoxFuture<'a, Outcome> {
        async move {
            let request = match Request::read(tool, &arguments) {
                Ok(request) => request,
                Err(code) => return failure(code),
            };
            let Some(root) = self.root.clone() else {
                return failure(ContextErrorCode::CacheMissing);
            };
            if self.timeout.is_zero() {
                // The clock would notice only at its next tick, and by then all might be done.
                return failure(ContextErrorCode::InternalError);
            }
            let pool = Arc::clone(&self.pool);
            // A load that outlives its call is finished all the same: the next caller finds it done.
            let running = tokio::task::spawn_blocking(move || request.run(&root, &pool).map(answer));
            match running.await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(error)) => {
                    tracing::info!(tool, %error, "a call failed");
                    failure(error.code())
                }
                Err(panic) => {
                    tracing::error!(tool, %panic, "a call broke down");
                    failure(ContextErrorCode::InternalError)
                }
            }
        }
        .boxed()
    }

    /// The mechanism names one fault of the arguments; which one is named here does not depend on it.
    fn refuse_arguments(&self, tool: &str, arguments: &Arguments, _fault: SchemaFault) -> Outcome {
        // What the schema refuses and we do not, such as an empty name, is the name of no cache.
        failure(Request::read(tool, arguments).err().unwrap_or(ContextErrorCode::CacheMissing))
    }

    fn refuse(&self, tool: &str, refusal: Refusal) -> Outcome {
        match refusal {
            Refusal::UnknownTool => Err(unknown_tool(tool)),
            Refusal::Schema(_) => failure(ContextErrorCode::InvalidQuery),
            // The budget is what decides how much is said, and a smaller one mends it.
            Refusal::ResponseTooLarge { .. } if tool == RESOLVE => failure(ContextErrorCode::InvalidBudget),
            Refusal::ResponseTooLarge { .. } => failure(ContextErrorCode::InternalError),
            Refusal::Timeout(_) | Refusal::Cancelled | Refusal::Internal => {
                failure(ContextErrorCode::InternalError)
            }
        }
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

    /// A root with the cache `docs` in it.
    fn caches() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let sources = folder.path().join(".sources");
        fs::create_dir(&sources).unwrap();
        fs::write(sources.join("a.md"), "one two three").unwrap();
        fs::write(sources.join("b.md"), "two").unwrap();
        build(&sources, &folder.path().join("docs"), Existing::Keep, &Clock::system()).unwrap();
        folder
    }

    async fn call(surface: ContextSurface, tool: &str, arguments: Value) -> Answer {
        let set = SurfaceSet::new(vec![Arc::new(surface)], ToolNames::Dotted);
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        set.call(tool, arguments, Caller::default()).await.unwrap()
    }

    fn text(answer: &Answer) -> &str {
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
        structured["error"]["code"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_resolve_says_what_the_library_says() {
        let root = caches();
        let surface = ContextSurface::new(Some(root.path().to_owned()), ContextSurface::TIMEOUT);
        let arguments = json!({"cache": "docs", "query": "Two three", "budget": 100});
        let answer = call(surface, "context.resolve", arguments).await;
        let query = Query::new("Two three").unwrap();
        let expected = resolve(&root.path().join("docs"), query, 100).unwrap().to_json() + "\n";
        assert_eq!(text(&answer), expected);
        assert!(!answer.is_error);
        // The structured result carries the digits of the text.
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

    /// Whatever else is wrong: the budget first, then the query, then the cache.
    #[tokio::test]
    async fn arguments_are_judged_in_order() {
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
    async fn names_lead_nowhere_else() {
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
    fn an_answer_past_the_cap_has_too_large_a_budget() {
        let surface = ContextSurface::new(None, ContextSurface::TIMEOUT);
        let refusal = Refusal::ResponseTooLarge { bytes: RESPONSE_BYTES + 1, limit: RESPONSE_BYTES };
        let answer = surface.refuse("context.resolve", refusal).unwrap();
        assert_eq!(answer.structured.unwrap()["error"]["code"], "invalid_budget");
    }
}
