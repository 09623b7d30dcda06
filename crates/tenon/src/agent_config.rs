//! The configuration that connects each agent, and the file it belongs in.
//!
//! Every agent runs `tenon mcp --root DIR`; only the file format differs. The root is explicit because agents start MCP
//! servers in different folders.

use camino::Utf8Path;
use serde_json::{Value, json};

/// One agent's MCP server configuration.
#[derive(Debug)]
pub(crate) struct AgentConfig {
    /// The value of `--agent`.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Relative to the workspace, or to the home folder if it starts with `~`.
    pub(crate) file: &'static str,
    pub(crate) text: String,
}

/// The names of all agents.
pub(crate) const NAMES: &[&str] = &["claude", "codex", "cursor", "gemini", "opencode", "vscode", "zed"];

/// The configuration of every agent for the workspace at `root`, with `program` as the command.
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
    fn every_config_has_its_name_in_names() {
        let agents = all("tenon", Utf8Path::new("/w"));
        assert_eq!(agents.iter().map(|agent| agent.name).collect::<Vec<_>>(), NAMES);
    }

    #[test]
    fn root_with_special_characters_round_trips() {
        let root = "/w/a \"b\" \\c/ü";
        for agent in all("tenon", Utf8Path::new(root)) {
            let value: Value = match agent.name {
                "codex" => toml::from_str(&agent.text).unwrap(),
                _ => serde_json::from_str(&agent.text).unwrap(),
            };
            assert!(contains(&value, root), "{}", agent.text);
        }
    }

    fn contains(value: &Value, text: &str) -> bool {
        match value {
            Value::String(found) => found == text,
            Value::Array(items) => items.iter().any(|item| contains(item, text)),
            Value::Object(members) => members.values().any(|member| contains(member, text)),
            _ => false,
        }
    }
}
