//! Overview: the workspace at a glance, and what keeps it running.

use std::time::Duration;

use futures::FutureExt;
use serde_json::{Value, json};
use tenon_server::trust::TrustState;

use super::{Page, PageContext, PageData, activity, problem_counts};
use crate::action::ActionOutcome;
use crate::own_command;
use crate::pages::code;

pub(super) const PAGE: Page = Page {
    owner: "builtin-tenon-overview",
    id: "overview",
    path: "/",
    title: "Overview",
    template: "overview.html",
    topics: "servers problems activity modules",
    load: |context| load(context).boxed(),
    act: Some(|context| act(context).boxed()),
};

/// How long the page waits for problems of the current state; they come with an update otherwise.
const PROBLEMS_WAIT: Duration = Duration::from_millis(150);

/// How many calls are listed.
const RECENT: usize = 8;

async fn load(context: PageContext) -> PageData {
    let access = &context.access;
    let workspace = access.workspace();
    let problems = context.problems.view(PROBLEMS_WAIT).await;
    let servers: Vec<Value> = access
        .servers()
        .into_iter()
        .map(|server| {
            let memory = server.server_pid.and_then(resident_bytes);
            let mut shown = json!(server);
            shown["memory"] = json!(memory);
            // A server counts files as pending that it would check again if it were asked. Once all problems are known, that
            // reads as a contradiction.
            let counts_pending = |detail: &str| detail.starts_with("diagnostics pending");
            if problems.pending.is_none() && shown["detail"].as_str().is_some_and(counts_pending) {
                shown["detail"] = Value::Null;
            }
            shown
        })
        .collect();
    let (used, unused): (Vec<Value>, Vec<Value>) = servers
        .into_iter()
        .partition(|one| !matches!(one["status"].as_str(), Some("unavailable" | "disabled" | "idle")));
    let reopened = access.reopened();
    let trust = reopened.as_ref().map_or(workspace.trust(), |workspace| workspace.trust());
    let changed = match trust {
        TrustState::Stale { changed } => changed.clone(),
        _ => Vec::new(),
    };
    let calls = access.activity().calls();
    let (rows, slots) = activity::rows(&context, calls.iter().take(RECENT));
    let index = code::index_state(access).await;
    let props = json!({
        "root": workspace.root(),
        "trust": {"state": trust.name(), "changed": changed, "serving": workspace.trust().name()},
        "outdated": trust.name() != workspace.trust().name(),
        "clients": access.activity().clients(),
        "servers": used, "unused": unused,
        "index": index,
        "problems": problem_counts(&problems),
        "rows": rows,
        "started_at": access.control().started_at(),
        "pid": std::process::id(),
    });
    PageData { props, slots, title: None }
}

async fn act(context: PageContext) -> ActionOutcome {
    let access = &context.access;
    let root = access.workspace().root();
    match context.query.text("action") {
        Some("restart") => {
            let id = context.query.text("server").unwrap_or_default();
            match access.restart_server(id).await {
                Ok(()) => ActionOutcome::done(format!("{id} restarts with its next question."), "/"),
                Err(why) => ActionOutcome::failed(why, "/"),
            }
        }
        Some("trust") => match own_command::run(root, &["trust"]).await {
            Ok(output) if output.succeeded => {
                let text = "The workspace is trusted. Stop the daemon to apply it; the next client starts a new one.";
                ActionOutcome::done(text, "/").with_detail(output.stderr)
            }
            Ok(output) => ActionOutcome::failed(output.summary(), "/").with_detail(output.stderr),
            Err(why) => ActionOutcome::failed(why, "/"),
        },
        Some("stop") => ActionOutcome::stop(
            "The daemon stops. The next client starts a new one, and this page connects again.",
        ),
        _ => ActionOutcome::failed("There is no such action.", "/"),
    }
}

/// The memory of a process, from the kernel.
fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1024)
}
