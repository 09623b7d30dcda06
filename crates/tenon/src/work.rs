//! One call of a `tasks` or `memory` tool from the command line: the store opened, the answer answer.
//!
//! Commands print for people what the tool answers, one page of it; `--json` prints the envelope itself, whatever it says.
//! Agents write what is printed here, so nothing of it may steer a terminal.

use serde_json::{Map, Value, json};
use tenon_server::surfaces::work::StoreHandle;
use tenon_work::{Envelope, WorkErrorCode, WorkTool};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::{Invocation, block_on};

/// What all commands about plans and memory take.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkOptions {
    /// Whose plans and memory; otherwise those of the workspace here
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,
    /// Print JSON: the whole answer
    #[arg(long)]
    json: bool,
}

/// What commands take that list things.
#[derive(Debug, clap::Args)]
pub(crate) struct PageOptions {
    /// The most to list
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    limit: u32,
    /// Go on where an earlier list ended
    #[arg(long)]
    cursor: Option<String>,
}

/// The most that one answer may hold; people do not count bytes.
const MAX_CHARS: usize = 100_000;

/// The store of the workspace, which is opened by the first use.
pub(crate) fn store_handle(invocation: &Invocation) -> Result<StoreHandle, Failure> {
    let root = invocation.root(None)?;
    Ok(StoreHandle::new(&invocation.workspace(&root, vec![])?))
}

/// Calls a tool. With `--json` the answer is printed and there is nothing left to tell.
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
            let envelope = store_handle.call(&request).await;
            store_handle.close().await;
            envelope
        })?,
        Err(rejected) => *rejected,
    };
    if options.json {
        invocation.print(envelope.text())?;
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

/// The answer to a call, and whether it has been printed already.
pub(crate) struct ToolAnswer {
    pub(crate) result: Value,
    pub(crate) silent: bool,
}

/// Adds what a list is asked with.
pub(crate) fn paged(mut arguments: Value, paging: &PageOptions) -> Value {
    arguments["limit"] = json!(paging.limit);
    arguments["cursor"] = json!(paging.cursor);
    arguments
}

/// The arguments that were given, without those that were not.
pub(crate) fn given<const N: usize>(arguments: [(&str, Value); N]) -> Value {
    let given = arguments.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(given.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

fn print_notices(envelope: &Envelope, invocation: &mut Invocation) {
    for warning in list(&envelope.value()["warnings"]) {
        invocation.eprint(format!("warning: {}", line(warning)));
    }
    let next = &envelope.value()["result"]["pagination"]["next_cursor"];
    if let Some(cursor) = next.as_str() {
        invocation.eprint(format!("there is more; go on with `--cursor {cursor}`"));
    }
}

fn failure(code: WorkErrorCode, error: &Value) -> Failure {
    let failure = Failure::new(exit(code), line(&error["message"]));
    match code {
        // The tools' own words name tools.
        WorkErrorCode::UnknownId => failure.hint("`tenon tasks list` shows what there is"),
        WorkErrorCode::UnknownWorkspace | WorkErrorCode::NotInitialized => {
            failure.hint("check `--workspace`; an agent makes a workspace with `memory_init`")
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

/// A text as one line that a terminal shows and does not obey.
pub(crate) fn line(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_printed_steers_a_terminal() {
        assert_eq!(line(&json!("a\u{1b}[31mb\r\nc\u{9b}1m")), "a [31mb  c 1m");
        assert_eq!(line(&json!(null)), "");
        assert_eq!(line(&json!(7)), "7");
    }

    #[test]
    fn what_was_not_given_is_not_asked() {
        assert_eq!(given([("a", json!(null)), ("b", json!(1))]), json!({"b": 1}));
    }
}
