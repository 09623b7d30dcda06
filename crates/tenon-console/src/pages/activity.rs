//! Activity: every call of a tool, drawn by the composed renderer, and charts of latency and bytes.

use std::collections::BTreeMap;

use futures::FutureExt;
use serde_json::{Value, json};
use tenon_compose::kind::ContributionKind;
use tenon_server::activity::{CallOutcome, CallRecord};

use super::{Page, PageContext, PageData, Slot};
use crate::built_in::CALL_CLAIM;
use crate::form::encoded;
use crate::svg::ToolStats;

pub(super) const PAGE: Page = Page {
    owner: "builtin-tenon-activity",
    id: "activity",
    path: "/activity",
    title: "Activity",
    template: "activity.html",
    topics: "activity modules",
    load: |context| load(context).boxed(),
    act: None,
};

/// Calls per page.
const PER_PAGE: usize = 40;

async fn load(context: PageContext) -> PageData {
    let query = &context.query;
    let all = context.access.activity().calls();
    let names = |of: fn(&CallRecord) -> &str| {
        let names: std::collections::BTreeSet<&str> =
            all.iter().map(of).filter(|name| !name.is_empty()).collect();
        names.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let (clients, tools) = (names(|call| &call.client), names(|call| &call.tool));
    let (client, tool, outcome) = (query.text("client"), query.text("tool"), query.text("outcome"));
    let wanted: Vec<&CallRecord> = all
        .iter()
        .filter(|call| client.is_none_or(|name| call.client == name))
        .filter(|call| tool.is_none_or(|name| call.tool == name))
        .filter(|call| outcome.is_none_or(|name| json!(call.outcome) == name))
        .collect();
    let page = query.number::<usize>("page").unwrap_or(1).max(1);
    let shown = wanted.iter().copied().skip((page - 1) * PER_PAGE).take(PER_PAGE);
    let (rows, slots) = rows(&context, shown);
    let mut stats = stats(&all);
    stats.sort_by(|a, b| (b.calls, &a.tool).cmp(&(a.calls, &b.tool)));
    let link = |page: usize| {
        let filter =
            |name: &str, value: Option<&str>| value.map(|value| format!("{name}={}&", encoded(value)));
        let filters = [filter("client", client), filter("tool", tool), filter("outcome", outcome)];
        format!("?{}page={page}", filters.into_iter().flatten().collect::<String>())
    };
    let props = json!({
        "rows": rows, "total": wanted.len(), "recorded": all.len(), "limit": tenon_server::activity::MAX_CALLS,
        "clients": clients, "tools": tools, "client": client, "tool": tool, "outcome": outcome,
        "outcomes": ["running", "ok", "failed", "cancelled"],
        "stats": stats,
        "page": page, "newer": (page > 1).then(|| link(page - 1)),
        "older": (page * PER_PAGE < wanted.len()).then(|| link(page + 1)),
    });
    PageData { props, slots, title: None }
}

/// The rows of a table of calls, each with the slot in which its renderer draws.
pub(super) fn rows<'a>(
    context: &PageContext,
    calls: impl Iterator<Item = &'a CallRecord>,
) -> (Vec<Value>, Vec<Slot>) {
    let now = context.access.workspace().clock().unix_millis();
    let (mut rows, mut slots) = (Vec::new(), Vec::new());
    for call in calls {
        let composed = &context.composed;
        let own = composed.renderer(ContributionKind::ToolRenderers, &format!("tool:{}", call.tool));
        let default = || {
            Some((composed.renderer(ContributionKind::ActivityRenderers, CALL_CLAIM)?, "activity-renderer"))
        };
        let mut row = json!(call);
        row["ago"] = json!(seconds_since(&call.started_at, now));
        if let Some((entry, kind)) = own.map(|entry| (entry, "tool-renderer")).or_else(default) {
            let mut props =
                json!({"call": call, "data": entry.render_handle.as_ref().and_then(|h| h.data.clone())});
            crate::html::visible_value(&mut props);
            row["slot"] = json!(slots.len());
            slots.push(Slot { kind, key: std::sync::Arc::clone(&entry.key), props });
        }
        rows.push(row);
    }
    (rows, slots)
}

/// Seconds since a time in RFC 3339.
pub(super) fn seconds_since(time: &str, now_ms: u64) -> Option<i64> {
    let then = tenon_contract::clock::unix_millis_of(time)?;
    let now = i64::try_from(now_ms).ok()?;
    Some((now - then) / 1_000)
}

fn stats(calls: &[CallRecord]) -> Vec<ToolStats> {
    let mut by_tool: BTreeMap<&str, (Vec<u64>, u64)> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.outcome != CallOutcome::Running) {
        let (durations, bytes) = by_tool.entry(&call.tool).or_default();
        durations.push(call.duration_us);
        *bytes += call.bytes as u64;
    }
    let stats = by_tool.into_iter().map(|(tool, (mut durations, bytes))| {
        durations.sort_unstable();
        let at = |share: usize| durations[(durations.len() * share / 100).min(durations.len() - 1)];
        ToolStats {
            tool: tool.to_owned(),
            calls: durations.len() as u64,
            median_us: at(50),
            p95_us: at(95),
            bytes,
        }
    });
    stats.collect()
}
