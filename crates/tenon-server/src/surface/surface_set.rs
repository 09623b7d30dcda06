//! The surfaces that one client sees, and the path of a call through them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::Tool;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::activity::ActivityLog;

use super::{
    Arguments, CallFailure, Caller, ErrorData, Surface, SurfaceTool, ToolCall, ToolOutcome, malformed_call,
    unknown_tool,
};

/// A [`Surface`] of any type. The index of a tool is valid for the surface that gave it.
pub(crate) trait AnySurface: Send + Sync {
    fn name(&self) -> &'static str;

    fn listed(&self) -> &[Tool];

    fn instructions(&self) -> Option<&'static str>;

    fn position(&self, tool: &str) -> Option<usize>;

    fn call_at(&self, index: usize, arguments: Arguments, caller: Caller) -> BoxFuture<'_, SizedOutcome>;

    fn unknown_tool(&self, name: &str) -> ErrorData;

    fn malformed_call(&self) -> ErrorData;
}

impl<S: Surface> AnySurface for S {
    fn name(&self) -> &'static str {
        Surface::name(self)
    }

    fn listed(&self) -> &[Tool] {
        self.catalog().listed()
    }

    fn instructions(&self) -> Option<&'static str> {
        Surface::instructions(self)
    }

    fn position(&self, tool: &str) -> Option<usize> {
        self.catalog().position(tool)
    }

    fn call_at(&self, index: usize, arguments: Arguments, caller: Caller) -> BoxFuture<'_, SizedOutcome> {
        run(self, index, arguments, caller).boxed()
    }

    fn unknown_tool(&self, name: &str) -> ErrorData {
        Surface::unknown_tool(self, name)
    }

    fn malformed_call(&self) -> ErrorData {
        Surface::malformed_call(self)
    }
}

/// An outcome with its size on the wire, which is counted once.
pub(crate) struct SizedOutcome {
    outcome: ToolOutcome,
    bytes: usize,
}

impl From<ToolOutcome> for SizedOutcome {
    fn from(outcome: ToolOutcome) -> Self {
        let bytes = match &outcome {
            Ok(answer) => answer.delivered_bytes(),
            Err(error) => error.message.len(),
        };
        Self { outcome, bytes }
    }
}

/// Runs one call from its arguments to its bounded answer.
async fn run<S: Surface>(surface: &S, index: usize, arguments: Arguments, caller: Caller) -> SizedOutcome {
    let tool = surface.catalog().tool(index);
    let mut arguments = Value::Object(arguments);
    let checked = surface.catalog().check(index, &mut arguments);
    let Value::Object(arguments) = arguments else { unreachable!("built as an object above") };
    if let Err(fault) = checked {
        return surface.classify_arguments(tool, &arguments, fault).into();
    }

    let limits = surface.limits();
    let deadline = Instant::now() + limits.deadline;
    let cancel = caller.cancel.clone();
    // Boxed: it may be large, and would be moved several times.
    let running = surface.call(tool, arguments, ToolCall { deadline, caller }).boxed();
    let finished = tokio::select! {
        biased;
        finished = AssertUnwindSafe(running).catch_unwind() => finished,
        () = cancel.cancelled() => return surface.classify(tool, CallFailure::Cancelled).into(),
        () = tokio::time::sleep_until(deadline) => {
            return surface.classify(tool, CallFailure::Timeout(limits.deadline)).into();
        }
    };
    let sized = SizedOutcome::from(finished.unwrap_or_else(|_panic| {
        tracing::error!(tool = tool.name(), "a tool panicked");
        surface.classify(tool, CallFailure::Internal)
    }));
    let (bytes, limit) = (sized.bytes, limits.response_bytes);
    if sized.outcome.is_ok() && bytes > limit {
        return surface.classify(tool, CallFailure::ResponseTooLarge { bytes, limit }).into();
    }
    sized
}

/// How tool names are listed; calls accept both forms always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolNames {
    #[default]
    Dotted,
    Underscore,
}

/// Which results have a text listing besides structured content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentMode {
    /// Those for clients that show their model only text.
    #[default]
    Auto,
    Structured,
    Text,
}

/// The surfaces that a client sees, in catalog order.
#[derive(Clone)]
pub struct SurfaceSet {
    surfaces: Vec<Arc<dyn AnySurface>>,
    names: ToolNames,
    content: ContentMode,
    /// Records the calls, if set.
    activity: Option<Arc<ActivityLog>>,
}

impl SurfaceSet {
    /// A set of one surface.
    pub fn single(surface: impl Surface, names: ToolNames) -> Self {
        Self::new(vec![Arc::new(surface)], names, ContentMode::default())
    }

    pub(crate) fn new(surfaces: Vec<Arc<dyn AnySurface>>, names: ToolNames, content: ContentMode) -> Self {
        Self { surfaces, names, content, activity: None }
    }

    /// The same surfaces, with their calls recorded.
    pub(crate) fn recorded(self, activity: Option<Arc<ActivityLog>>) -> Self {
        Self { activity, ..self }
    }

    pub(crate) fn content(&self) -> ContentMode {
        self.content
    }

    /// The same surfaces, presented as one client wants them.
    pub(crate) fn presented(self, names: Option<ToolNames>, content: Option<ContentMode>) -> Self {
        let names = names.unwrap_or(self.names);
        Self { names, content: content.unwrap_or(self.content), ..self }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.surfaces.iter().any(|surface| surface.name() == name)
    }

    /// Whether this is one surface, called `name`.
    pub(crate) fn is_only(&self, name: &str) -> bool {
        matches!(self.surfaces.as_slice(), [surface] if surface.name() == name)
    }

    /// All tools, surface by surface.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        let mut tools: Vec<Tool> =
            self.surfaces.iter().flat_map(|surface| surface.listed().iter().cloned()).collect();
        if self.names == ToolNames::Underscore {
            for tool in &mut tools {
                tool.name = tool.name.replace('.', "_").into();
            }
        }
        tools
    }

    /// What `initialize` tells a model.
    pub(crate) fn instructions(&self) -> Option<String> {
        let texts: Vec<&str> = self.surfaces.iter().filter_map(|surface| surface.instructions()).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    /// The error for a call with parameters of the wrong type, in the style of the tool's surface.
    pub(crate) fn malformed_call(&self, name: Option<&str>) -> ErrorData {
        let named = name.and_then(|name| self.surfaces.iter().find(|one| one.position(name).is_some()));
        named.or(self.surfaces.first()).map_or_else(malformed_call, |surface| surface.malformed_call())
    }

    /// Runs the tool called `name`.
    pub(crate) async fn call(&self, name: &str, arguments: Arguments, caller: Caller) -> ToolOutcome {
        let found = self.surfaces.iter().find_map(|surface| Some((surface, surface.position(name)?)));
        let (surface, index) = match (found, self.surfaces.first()) {
            (Some(found), _) => found,
            (None, Some(first)) => return Err(first.unknown_tool(name)),
            (None, None) => return Err(unknown_tool(name)),
        };
        let Some(activity) = &self.activity else {
            return surface.call_at(index, arguments, caller).await.outcome;
        };
        let running = activity.begin(caller.name.as_deref().unwrap_or_default(), name, &arguments);
        let SizedOutcome { outcome, bytes } = surface.call_at(index, arguments, caller).await;
        running.end(&outcome, bytes);
        outcome
    }
}
