//! `workspace_status` as text, for models that see only text: one fact per line.

use serde_json::Value;
use tenon_lsp::orchestrator::ServerState;

use crate::daemon::protocol::ServerSummary;

/// The servers that a line may name; the structured result has all of them.
const NAMED: usize = 12;

/// The status, from its structured form and the typed state of the servers.
pub(super) fn text(status: &Value, servers: &[ServerSummary]) -> String {
    let word = |pointer: &str| status.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let mut lines =
        vec![format!("root: {}", word("/root")), format!("trust: {}", trust(word("/trust/state"), status))];
    let more: Vec<&str> = texts(&status["roots"]).filter(|root| *root != word("/root")).collect();
    if !more.is_empty() {
        lines.push(format!("also readable: {}", more.join(", ")));
    }
    lines.push(format!("surfaces: {}", texts(&status["surfaces"]).collect::<Vec<_>>().join(", ")));
    lines.extend(server_lines(servers));
    let store = [word("/store/kind"), word("/store/location"), word("/store/problem")];
    let store: Vec<&str> = store.into_iter().filter(|part| !part.is_empty()).collect();
    lines.push(format!("store: {}", store.join(" ")));
    for setting in status["config"]["settings"].as_array().into_iter().flatten() {
        let (key, origin) = (setting["key"].as_str(), setting["origin"].as_str());
        let value = &setting["value"];
        lines.push(format!(
            "setting: {} = {value} from {}",
            key.unwrap_or_default(),
            origin.unwrap_or_default()
        ));
    }
    for ignored in status["config"]["ignored"].as_array().into_iter().flatten() {
        let (key, reason) = (ignored["key"].as_str(), ignored["reason"].as_str());
        lines.push(format!("ignored setting: {} ({})", key.unwrap_or_default(), reason.unwrap_or_default()));
    }
    lines.push(format!("version: {}", word("/versions/tenon")));
    lines.join("\n")
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn trust(state: &str, status: &Value) -> String {
    let changed: Vec<&str> = texts(&status["trust"]["changed"]).collect();
    match (state, changed.as_slice()) {
        ("untrusted", _) => "untrusted (the user can run `tenon trust`)".to_owned(),
        (state, []) => state.to_owned(),
        (state, changed) => format!("{state} (changed: {})", changed.join(", ")),
    }
}

/// One line per state, running servers first.
fn server_lines(servers: &[ServerSummary]) -> Vec<String> {
    const STATES: [ServerState; 6] = [
        ServerState::Active,
        ServerState::Starting,
        ServerState::Broken,
        ServerState::Idle,
        ServerState::Unavailable,
        ServerState::Disabled,
    ];
    let line = |state: ServerState| {
        let mut named: Vec<String> =
            servers.iter().filter(|server| server.status == state).map(server_text).collect();
        named.dedup();
        let more = named.len().saturating_sub(NAMED);
        named.truncate(NAMED);
        if more > 0 {
            named.push(format!("and {more} more"));
        }
        (!named.is_empty()).then(|| format!("servers {}: {}", state.as_str(), named.join(", ")))
    };
    let lines: Vec<String> = STATES.into_iter().filter_map(line).collect();
    if lines.is_empty() { vec!["servers: not started yet".to_owned()] } else { lines }
}

fn server_text(server: &ServerSummary) -> String {
    let shows_detail = matches!(server.status, ServerState::Broken | ServerState::Unavailable);
    match (&server.detail, server.status) {
        (Some(detail), _) if shows_detail => format!("{} ({detail})", server.id),
        (_, ServerState::Active) if !server.ready => format!("{} (loading)", server.id),
        _ => server.id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server(id: &str, status: ServerState, detail: Option<&str>, ready: bool) -> ServerSummary {
        ServerSummary {
            id: id.to_owned(),
            status,
            language: "x".to_owned(),
            server_pid: None,
            detail: detail.map(str::to_owned),
            project: None,
            ready,
        }
    }

    #[test]
    fn status_is_one_fact_per_line() {
        let status = json!({
            "root": "/w",
            "roots": ["/w", "/shared"],
            "trust": {"state": "stale", "changed": ["tenon.toml"]},
            "config": {
                "settings": [{"key": "mcp.content", "value": "text", "origin": "$TENON_MCP_CONTENT"}],
                "ignored": [{"key": "edit.allow", "origin": "/w/tenon.toml:1", "reason": "user-only"}],
            },
            "surfaces": ["explore", "workspace"],
            "store": {"kind": "sqlite", "location": "/d/work.sqlite3"},
            "versions": {"tenon": "1.2.3", "mcp": []},
        });
        let servers = [
            server("pyright", ServerState::Active, None, true),
            server("clangd", ServerState::Active, None, false),
            server("gopls", ServerState::Unavailable, Some("not installed"), false),
        ];
        insta::assert_snapshot!(text(&status, &servers), @r#"
        root: /w
        trust: stale (changed: tenon.toml)
        also readable: /shared
        surfaces: explore, workspace
        servers active: pyright, clangd (loading)
        servers unavailable: gopls (not installed)
        store: sqlite /d/work.sqlite3
        setting: mcp.content = "text" from $TENON_MCP_CONTENT
        ignored setting: edit.allow (user-only)
        version: 1.2.3
        "#);
        assert!(text(&status, &[]).contains("\nservers: not started yet\n"));
        let many: Vec<_> =
            (0..20).map(|n| server(&format!("s{n:02}"), ServerState::Idle, None, false)).collect();
        assert!(text(&status, &many).contains("s11, and 8 more\n"));
    }
}
