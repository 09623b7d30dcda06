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

/// The agents that `tenon connect` knows.
const AGENTS: [(&str, &str); 8] = [
    ("claude", "Claude Code"),
    ("codex", "Codex"),
    ("cursor", "Cursor"),
    ("gemini", "Gemini CLI"),
    ("opencode", "opencode"),
    ("vscode", "VS Code"),
    ("windsurf", "Windsurf"),
    ("zed", "Zed"),
];

async fn load(context: PageContext) -> PageData {
    let root = context.access.workspace().root();
    let (found, failure) = match own_command::run(root, &["connect", "--json"]).await {
        Ok(output) if output.succeeded => (serde_json::from_str(&output.stdout).unwrap_or(json!([])), None),
        Ok(output) => (json!([]), Some(output.summary().to_owned())),
        Err(why) => (json!([]), Some(why)),
    };
    let chosen = context.query.text("agent").filter(|agent| AGENTS.iter().any(|(id, _)| id == agent));
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
    let agents: Vec<Value> = AGENTS
        .iter()
        .map(|(id, title)| {
            let state = found.as_array().and_then(|list| list.iter().find(|one| one["name"] == *id));
            json!({
                "id": id, "title": title, "installed": state.is_some(),
                "state": state.map_or("not found", |state| state["state"].as_str().unwrap_or_default()),
                "detail": state.map(|state| state["detail"].clone()), "command": format!("tenon connect {id}"),
                "chosen": chosen == Some(*id),
            })
        })
        .collect();
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
    let known = |agent: &&str| AGENTS.iter().any(|(id, _)| id == agent);
    let (Some("connect"), Some(agent)) =
        (context.query.text("action"), context.query.text("agent").filter(known))
    else {
        return ActionOutcome::failed("There is no such agent.", "/connect");
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
