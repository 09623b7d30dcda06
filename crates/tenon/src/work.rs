//! One call of a `tasks` or `memory` tool from the command line: the store opened, the answer answer.
//!
//! Commands print for people what the tool answers, one page of it; `--json` prints the envelope itself, whatever it says.

use serde_json::{Map, Value, json};
use tenon_server::surfaces::work::StoreHandle;
use tenon_work::{Envelope, WorkErrorCode, WorkTool};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::{Invocation, block_on};

/// Options of all commands for plans and memory.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkOptions {
    /// Workspace name; by default that of the current folder
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,
    /// Print the whole answer as JSON
    #[arg(long)]
    json: bool,
}

/// Options of commands that list.
#[derive(Debug, clap::Args)]
pub(crate) struct PageOptions {
    /// Maximum number of items
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    limit: u32,
    /// Continue an earlier list
    #[arg(long)]
    cursor: Option<String>,
}

/// The largest budget; people do not count bytes.
const MAX_CHARS: usize = 100_000;

/// The store of the workspace, opened on first use.
pub(crate) fn store_handle(invocation: &Invocation) -> Result<StoreHandle, Failure> {
    let root = invocation.root(None)?;
    Ok(StoreHandle::new(&invocation.workspace(&root, vec![])?))
}

/// Calls a tool. With `--json` it also prints the answer.
pub(crate) fn call_tool(
    tool: WorkTool,
    arguments: Value,
    options: &WorkOptions,
    invocation: &mut Invocation,
) -> Result<ToolAnswer, Failure> {
    let store_handle = store_handle(invocation)?;
    let Value::Object(mut arguments) = arguments else { unreachable!("arguments are written as an object") };
    arguments.insert("workspace".into(), json!(options.workspace));
    arguments.insert("max_chars".into(), json!(MAX_CHARS));
    let envelope = match store_handle.parse(tool, arguments) {
        Ok(request) => block_on(async {
            let envelope = match options.workspace {
                Some(_) => store_handle.call_for_user(&request).await,
                None => store_handle.call(&request).await,
            };
            store_handle.close().await;
            envelope
        })?,
        Err(rejected) => *rejected,
    };
    if options.json {
        invocation.print_data(envelope.text())?;
    }
    if let Some(code) = envelope.code() {
        return Err(failure(code, &envelope.value()["error"]));
    }
    if !options.json {
        print_notices(&envelope, invocation);
    }
    let (mut value, _) = envelope.into_parts();
    Ok(ToolAnswer { result: value["result"].take(), silent: options.json })
}

/// The result of a call, and whether it was printed already.
pub(crate) struct ToolAnswer {
    pub(crate) result: Value,
    pub(crate) silent: bool,
}

/// Adds the paging arguments.
pub(crate) fn paged(mut arguments: Value, paging: &PageOptions) -> Value {
    arguments["limit"] = json!(paging.limit);
    arguments["cursor"] = json!(paging.cursor);
    arguments
}

/// Arguments without those that are null.
pub(crate) fn given<const N: usize>(arguments: [(&str, Value); N]) -> Value {
    let given = arguments.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(given.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

fn print_notices(envelope: &Envelope, invocation: &mut Invocation) {
    for warning in list(&envelope.value()["warnings"]) {
        let text = line(warning);
        // A workspace without plans is not a problem.
        match text.ends_with("does not exist yet") {
            true => invocation.eprint(
                "nothing here yet: agents write plans and notes through the surfaces `tasks` and `memory`",
            ),
            false => invocation.eprint(format!("warning: {text}")),
        }
    }
    let next = &envelope.value()["result"]["pagination"]["next_cursor"];
    if let Some(cursor) = next.as_str() {
        invocation.eprint(format!("there is more; continue with `--cursor {cursor}`"));
    }
}

fn failure(code: WorkErrorCode, error: &Value) -> Failure {
    let failure = Failure::new(exit(code), line(&error["message"]));
    match code {
        // The recovery texts of the tools name tools, not commands.
        WorkErrorCode::UnknownId => failure.hint("`tenon tasks list` lists plans and tasks"),
        WorkErrorCode::UnknownWorkspace => failure
            .hint("check `--workspace`; an agent creates a workspace with `memory_init`")
            .hint("`tenon tasks link` lets this folder use the workspace of another one"),
        WorkErrorCode::NotInitialized => {
            failure.hint("check `--workspace`; an agent creates a workspace with `memory_init`")
        }
        _ if error["recovery"].is_string() => failure.hint(line(&error["recovery"])),
        _ => failure,
    }
}

fn exit(code: WorkErrorCode) -> Exit {
    match code {
        WorkErrorCode::UnknownId | WorkErrorCode::UnknownWorkspace | WorkErrorCode::NotInitialized => {
            Exit::No
        }
        WorkErrorCode::RevisionMismatch
        | WorkErrorCode::Conflict
        | WorkErrorCode::CheckpointsNotConfirmed => Exit::No,
        WorkErrorCode::InvalidName | WorkErrorCode::InvalidInput | WorkErrorCode::BudgetExceeded => {
            Exit::Usage
        }
        WorkErrorCode::ExpectedTargetMismatch
        | WorkErrorCode::StrictTargeting
        | WorkErrorCode::MergeNotSupported => Exit::Usage,
        WorkErrorCode::StoreError | WorkErrorCode::StoreBusy => Exit::Files,
        WorkErrorCode::UnknownTool => Exit::Internal,
    }
}

/// The items of a JSON array; none if it is something else.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A text as one line.
pub(crate) fn line(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    text.replace(['\n', '\r', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_one_line() {
        assert_eq!(line(&json!(" a\tb\r\nc\n")), "a b  c");
        assert_eq!(line(&json!(null)), "");
        assert_eq!(line(&json!(7)), "7");
    }

    #[test]
    fn null_arguments_are_removed() {
        assert_eq!(given([("a", json!(null)), ("b", json!(1))]), json!({"b": 1}));
    }
}
