//! Connect: the agents on this machine, and what `tenon connect` would write for each.

use futures::FutureExt;
use serde_json::{Value, json};

use super::{Page, PageContext, PageData};
use crate::action::ActionOutcome;
use crate::own_command;

pub(super) const PAGE: Page = Page {
    owner: "builtin-tenon-connect",
    id: "connect",
    path: "/connect",
    title: "Connect",
    template: "connect.html",
    topics: "",
    load: |context| load(context).boxed(),
    act: Some(|context| act(context).boxed()),
};

async fn load(context: PageContext) -> PageData {
    let root = context.access.workspace().root();
    let (mut agents, failure) = match own_command::run(root, &["connect", "--json"]).await {
        Ok(output) if output.succeeded => {
            (serde_json::from_str::<Vec<Value>>(&output.stdout).unwrap_or_default(), None)
        }
        Ok(output) => (Vec::new(), Some(output.summary().to_owned())),
        Err(why) => (Vec::new(), Some(why)),
    };
    for agent in &mut agents {
        agent["command"] = json!(format!("tenon connect {}", agent["name"].as_str().unwrap_or_default()));
    }
    let chosen = context.query.text("agent").filter(|name| agents.iter().any(|one| one["name"] == *name));
    let preview = match chosen {
        Some(agent) => match own_command::run(root, &["connect", agent, "--dry-run"]).await {
            Ok(output) if output.succeeded => {
                json!({"agent": agent, "diff": diff(&output.stdout), "note": output.summary()})
            }
            Ok(output) => json!({"agent": agent, "failure": output.summary()}),
            Err(why) => json!({"agent": agent, "failure": why}),
        },
        None => Value::Null,
    };
    PageData::new(json!({"agents": agents, "failure": failure, "preview": preview}))
}

/// The lines of a diff with their kind.
fn diff(text: &str) -> Vec<Value> {
    let kind = |line: &str| match line.as_bytes().first() {
        Some(b'+') => "added",
        Some(b'-') => "removed",
        _ => "same",
    };
    text.lines().map(|line| json!({"kind": kind(line), "text": line})).collect()
}

async fn act(context: PageContext) -> ActionOutcome {
    // The command knows the agents; a name can be nothing else, such as an option.
    let is_name = |agent: &&str| agent.bytes().all(|byte| byte.is_ascii_lowercase());
    let (Some("connect"), Some(agent)) =
        (context.query.text("action"), context.query.text("agent").filter(is_name))
    else {
        return ActionOutcome::failed("There is no such action.", "/connect");
    };
    match own_command::run(context.access.workspace().root(), &["connect", agent]).await {
        Ok(output) if output.succeeded => {
            ActionOutcome::done(format!("`tenon connect {agent}` is done."), "/connect")
                .with_detail(output.stderr)
        }
        Ok(output) => ActionOutcome::failed(output.summary(), "/connect").with_detail(output.stderr),
        Err(why) => ActionOutcome::failed(why, "/connect"),
    }
}
