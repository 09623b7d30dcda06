//! Calls of the tools that agents use, with their answers as pages need them.

use std::time::Duration;

use serde_json::Value;
use tenon_server::surface::{ContentBlock, ToolAnswer};
use tenon_server::web::DaemonAccess;

/// How long a page waits for the store.
const READ_WAIT: Duration = Duration::from_secs(3);

/// Why a tool gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolFailure {
    /// A code of the surface; empty if it has none.
    pub(crate) code: String,
    pub(crate) message: String,
}

impl ToolFailure {
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self.code.as_str(), "REVISION_MISMATCH" | "CONFLICT")
    }
}

async fn call(access: &DaemonAccess, tool: &str, arguments: Value) -> Result<ToolAnswer, ToolFailure> {
    let Value::Object(arguments) = arguments else { unreachable!("pages pass objects") };
    let outcome = access.call(tool, arguments).await;
    outcome.map_err(|error| ToolFailure { code: String::new(), message: error.message.into_owned() })
}

/// The `result` of a tool of the `tasks` or `memory` surface.
pub(crate) async fn work(access: &DaemonAccess, tool: &str, arguments: Value) -> Result<Value, ToolFailure> {
    let answer = call(access, tool, arguments).await?;
    let mut envelope = answer.structured.unwrap_or_default();
    if envelope["success"] == Value::Bool(true) {
        return Ok(envelope["result"].take());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let error = &envelope["error"];
    let mut message = text(&error["message"]);
    if message.is_empty() {
        message = "the store gave no answer".to_owned();
    }
    Err(ToolFailure { code: text(&error["code"]), message })
}

/// The same for a page, which does not wait long for a store that another process has locked.
pub(crate) async fn read_work(
    access: &DaemonAccess,
    tool: &'static str,
    arguments: Value,
) -> Result<Value, ToolFailure> {
    // A call waits for a lock in its thread, so it needs a separate task.
    let access = access.clone();
    let reading = tokio::spawn(async move { work(&access, tool, arguments).await });
    match tokio::time::timeout(READ_WAIT, reading).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_panic)) => {
            Err(ToolFailure { code: String::new(), message: "the store gave no answer".to_owned() })
        }
        Err(_) => {
            let seconds = READ_WAIT.as_secs();
            let message =
                format!("the store gave no answer within {seconds} s; another process may have locked it");
            Err(ToolFailure { code: String::new(), message })
        }
    }
}

/// The structured answer of a tool whose failures are `{"error": {code, message}}`.
pub(crate) async fn context(
    access: &DaemonAccess,
    tool: &str,
    arguments: Value,
) -> Result<Value, ToolFailure> {
    let answer = call(access, tool, arguments).await?;
    let value = answer.structured.unwrap_or_default();
    match value.get("error") {
        None => Ok(value),
        Some(error) => {
            let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
            Err(ToolFailure { code: text("code"), message: text("message") })
        }
    }
}

/// The text of a tool of the `explore` surface.
pub(crate) async fn text(access: &DaemonAccess, tool: &str, arguments: Value) -> Result<String, ToolFailure> {
    let answer = call(access, tool, arguments).await?;
    let texts: Vec<&str> = answer.content.iter().filter_map(block_text).collect();
    let text = texts.join("\n");
    match answer.is_error {
        false => Ok(text),
        true => Err(ToolFailure { code: String::new(), message: text }),
    }
}

fn block_text(block: &ContentBlock) -> Option<&str> {
    Some(block.as_text()?.text.as_str())
}
