//! One call of a `work`, `tasks` or `memory` tool from the command line, on the store itself.
//!
//! Commands print for people what the tool answers, one page of it; `--json` prints the envelope itself, whatever it says.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tenon_server::daemon::DaemonError;
use tenon_server::daemon::protocol::{DaemonRequest, DaemonResponse};
use tenon_server::surfaces::work::StoreHandle;
use tenon_work::{
    Access, Check, CheckOutcome, CheckResult, Envelope, LeanAnswer, LeanCaller, LeanError, LeanRequest,
    LeanTool, VcsHead, Work, WorkErrorCode, WorkTool, WorkspaceName,
};

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::{Invocation, block_on};
use crate::work_text;

/// Options of all commands for plans and memory.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkOptions {
    /// Workspace name; by default that of the current folder
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,
    /// Print the whole answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
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

/// Longer than the daemon lets checks run.
const CHECKS_TIMEOUT: Duration = Duration::from_secs(660);

/// The largest budget; people do not count bytes.
const MAX_CHARS: usize = 100_000;

/// The store of the workspace, opened on first use.
pub(crate) fn store_handle(invocation: &Invocation) -> Result<StoreHandle, Failure> {
    let root = invocation.root(None)?;
    Ok(StoreHandle::new(&invocation.workspace(&root, vec![])?))
}

fn envelope(
    tool: WorkTool,
    arguments: Value,
    options: &WorkOptions,
    invocation: &Invocation,
) -> Result<Envelope, Failure> {
    let store_handle = store_handle(invocation)?;
    let Value::Object(mut arguments) = arguments else { unreachable!("arguments are written as an object") };
    arguments.insert("workspace".into(), json!(options.workspace));
    if tool.access() == Access::Read || tool == WorkTool::TasksNext {
        arguments.insert("max_chars".into(), json!(MAX_CHARS));
    }
    Ok(match store_handle.parse(tool, arguments) {
        Ok(request) => block_on(async {
            let envelope = match options.workspace {
                Some(_) => store_handle.call_for_user(&request).await,
                None => store_handle.call(&request).await,
            };
            store_handle.close().await;
            envelope
        })?,
        Err(rejected) => *rejected,
    })
}

/// Calls a tool. With `--json` it also prints the answer.
pub(crate) fn call_tool(
    tool: WorkTool,
    arguments: Value,
    options: &WorkOptions,
    invocation: &mut Invocation,
) -> Result<ToolAnswer, Failure> {
    let envelope = envelope(tool, arguments, options, invocation)?;
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

/// Who calls from the command line.
fn person(invocation: &Invocation, root: &camino::Utf8Path) -> LeanCaller {
    let name = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| invocation.environment.get(name));
    LeanCaller {
        agent: name.unwrap_or("user").to_owned(),
        head: VcsHead::read(root.as_std_path()),
        checks: Vec::new(),
    }
}

/// Runs something on the store of the workspace, as the user.
pub(crate) fn with_work<T>(
    options: &WorkOptions,
    invocation: &Invocation,
    access: Access,
    inside: impl AsyncFnOnce(&Work, LeanCaller) -> Result<T, LeanError>,
) -> Result<T, Failure> {
    let caller = person(invocation, &invocation.root(None)?);
    let handle = store_handle(invocation)?;
    let name = options.workspace.as_deref().map(WorkspaceName::parse).transpose();
    let name = name.map_err(|error| Failure::new(Exit::Usage, error.message()))?;
    let done = block_on(async {
        let done = match name {
            // The user names the workspace, so no link is needed.
            Some(name) => match handle.work().await {
                Ok(work) => inside(&work.in_workspace(name), caller).await,
                Err(error) => Err(error.into()),
            },
            None => match handle.work_for(access).await {
                Ok(work) => inside(work, caller).await,
                Err(error) => Err(error.into()),
            },
        };
        handle.close().await;
        done
    })?;
    done.map_err(|error| Failure::new(exit(error.code()), error.message().replace('\n', " ")))
}

/// What happens to the checks of steps that a call closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepChecking {
    /// The daemon runs them, as for an agent.
    Run,
    /// The word of the person counts, and the answer says so.
    ByHand,
}

/// Calls a tool of the surface `work` and prints its answer.
pub(crate) fn call_lean(
    tool: LeanTool,
    arguments: Value,
    options: &WorkOptions,
    invocation: &mut Invocation,
) -> Result<LeanAnswer, Failure> {
    call_lean_checked(tool, arguments, StepChecking::Run, options, invocation)
}

/// The same, for a call that closes steps.
pub(crate) fn call_lean_checked(
    tool: LeanTool,
    arguments: Value,
    checking: StepChecking,
    options: &WorkOptions,
    invocation: &mut Invocation,
) -> Result<LeanAnswer, Failure> {
    let Value::Object(arguments) = arguments else { unreachable!("arguments are written as an object") };
    let read = |caller| LeanRequest::read(tool, arguments.clone(), caller);
    let first = with_work(options, invocation, tool.access(), async |work, caller| {
        let request = read(caller)?;
        let checks = work.lean_checks(&request).await?;
        let answer = if checks.is_empty() { Some(work.lean(&request).await?) } else { None };
        Ok((answer, checks))
    })?;
    let answer = match first {
        (Some(answer), _) => answer,
        // The store is closed meanwhile: checks may take minutes.
        (None, checks) => {
            let results = check_results(checks, checking, invocation)?;
            with_work(options, invocation, tool.access(), async |work, caller| {
                work.lean(&read(caller)?.with_checks(results)).await
            })?
        }
    };
    if options.json {
        invocation.print_data(answer.data.to_string())?;
    } else {
        // Calls are for agents.
        let lines = answer.text.lines().filter(|line| !line.starts_with("next: "));
        work_text::print(lines.collect::<Vec<_>>().join("\n"), invocation)?;
    }
    Ok(answer)
}

fn check_results(
    checks: Vec<Check>,
    checking: StepChecking,
    invocation: &mut Invocation,
) -> Result<Vec<CheckResult>, Failure> {
    match checking {
        StepChecking::ByHand => {
            let unchecked = |check| CheckResult {
                check,
                outcome: CheckOutcome::NotAllowed,
                output: "closed by hand".to_owned(),
                exit_code: None,
            };
            Ok(checks.into_iter().map(unchecked).collect())
        }
        StepChecking::Run => {
            for check in &checks {
                invocation.eprint(format!("checking {check}"));
            }
            let root = invocation.root(None)?;
            let request = DaemonRequest::StepChecks(checks);
            match daemon_client::request_or_start(invocation, &root, request, CHECKS_TIMEOUT)? {
                DaemonResponse::StepChecks(results) => Ok(results),
                DaemonResponse::Failed(why) => Err(Failure::new(Exit::No, why)),
                _ => Err(DaemonError::InvalidResponse.into()),
            }
        }
    }
}

/// Calls a tool and returns its result without printing anything.
pub(crate) fn call_tool_quietly(
    tool: WorkTool,
    arguments: Value,
    options: &WorkOptions,
    invocation: &Invocation,
) -> Result<Value, Failure> {
    let envelope = envelope(tool, arguments, options, invocation)?;
    if let Some(code) = envelope.code() {
        return Err(failure(code, &envelope.value()["error"]));
    }
    let (mut value, _) = envelope.into_parts();
    Ok(value["result"].take())
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
            true => invocation
                .eprint("nothing here yet: `tenon tasks add` adds a task, agents use the surface `work`"),
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
