//! How to connect each agent: the piece of configuration that it wants, and the file it goes into.
//!
//! Every agent starts `tenon mcp --root DIR`; only the wrapping differs. The root is named, because agents differ in the folder
//! they start servers in.

use camino::Utf8Path;
use serde_json::{Value, json};

/// One agent's way of naming an MCP server.
#[derive(Debug)]
pub(crate) struct AgentConfig {
    /// For flags and scripts.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Where the text goes; `~` is the home folder, the rest is relative to the workspace.
    pub(crate) file: &'static str,
    pub(crate) text: String,
}

/// The names of all agents.
pub(crate) const NAMES: &[&str] = &["claude", "codex", "cursor", "gemini", "opencode", "vscode", "zed"];

/// What each agent needs to reach the workspace at `root` through `program`.
pub(crate) fn all(program: &str, root: &Utf8Path) -> Vec<AgentConfig> {
    let args = ["mcp", "--root", root.as_str()];
    let stdio = json!({"command": program, "args": args});
    let command: Vec<&str> = std::iter::once(program).chain(args).collect();
    let pretty = |value: Value| format!("{value:#}\n");
    vec![
        AgentConfig {
            name: "claude",
            title: "Claude Code",
            file: ".mcp.json",
            text: pretty(json!({"mcpServers": {"tenon": stdio}})),
        },
        AgentConfig {
            name: "codex",
            title: "Codex",
            file: "~/.codex/config.toml",
            // A JSON string or list of strings is also one in TOML.
            text: format!("[mcp_servers.tenon]\ncommand = {}\nargs = {}\n", json!(program), json!(args)),
        },
        AgentConfig {
            name: "cursor",
            title: "Cursor",
            file: ".cursor/mcp.json",
            text: pretty(json!({"mcpServers": {"tenon": stdio}})),
        },
        AgentConfig {
            name: "gemini",
            title: "Gemini CLI",
            file: ".gemini/settings.json",
            text: pretty(json!({"mcpServers": {"tenon": stdio}})),
        },
        AgentConfig {
            name: "opencode",
            title: "opencode",
            file: "opencode.json",
            text: pretty(json!({"mcp": {"tenon": {"type": "local", "command": command, "enabled": true}}})),
        },
        AgentConfig {
            name: "vscode",
            title: "VS Code (Copilot)",
            file: ".vscode/mcp.json",
            text: pretty(json!({"servers": {"tenon": {"type": "stdio", "command": program, "args": args}}})),
        },
        AgentConfig {
            name: "zed",
            title: "Zed",
            file: ".zed/settings.json",
            text: pretty(json!({"context_servers": {"tenon": stdio}})),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_has_its_name() {
        let agents = all("tenon", Utf8Path::new("/w"));
        assert_eq!(agents.iter().map(|agent| agent.name).collect::<Vec<_>>(), NAMES);
    }

    #[test]
    fn awkward_paths_survive_the_quoting() {
        let root = "/w/a \"b\" \\c/ü";
        for agent in all("tenon", Utf8Path::new(root)) {
            let value: Value = match agent.name {
                "codex" => toml::from_str(&agent.text).unwrap(),
                _ => serde_json::from_str(&agent.text).unwrap(),
            };
            assert!(holds(&value, root), "{}", agent.text);
        }
    }

    fn holds(value: &Value, text: &str) -> bool {
        match value {
            Value::String(found) => found == text,
            Value::Array(items) => items.iter().any(|item| holds(item, text)),
            Value::Object(members) => members.values().any(|member| holds(member, text)),
            _ => false,
        }
    }
}
