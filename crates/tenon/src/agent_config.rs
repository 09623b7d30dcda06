//! The agents that Tenon connects to: where their configuration is, and what Tenon adds to it.
//!
//! An agent gets an entry for the MCP server `tenon` and, if it has hooks, the hooks. `docs/agents.md` lists the files.

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use serde_json::Value;
use tenon_server::config::Environment;

pub(crate) mod connection;
pub(crate) mod hook_entries;

use crate::config_edit::jsonc_edit::NewValue;

/// The environment variable with the bearer token, which is never written into a file of an agent.
pub(crate) const TOKEN_VARIABLE: &str = "TENON_TOKEN";

/// The variables that decide which daemon and settings a client gets. Codex starts servers with few variables: without these, it
/// would start a second daemon with other settings.
const FORWARDED: &[&str] = &[
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "TENON_CONFIG",
    "TENON_DATA_DIR",
    "TENON_STATE_DIR",
    "TENON_RUNTIME_DIR",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Agent {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
    /// VS Code (Copilot)
    Vscode,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// The workspace's settings, which a team may share
    Project,
    /// Your own settings, for all workspaces
    User,
}

/// How the agent reaches Tenon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio { program: String, surfaces: Vec<String> },
    Http { url: String },
}

/// The folders in which agents keep their configuration.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    pub(crate) root: Utf8PathBuf,
    pub(crate) home: Utf8PathBuf,
    claude: Option<Utf8PathBuf>,
    codex: Utf8PathBuf,
    config: Utf8PathBuf,
    vscode: Utf8PathBuf,
}

impl Folders {
    pub(crate) fn new(environment: &Environment, home: &Utf8Path, root: &Utf8Path) -> Self {
        let set = |name: &str| environment.get(name).map(Utf8PathBuf::from).filter(|path| path.is_absolute());
        let config = set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let vscode = if cfg!(target_os = "macos") {
            home.join("Library/Application Support/Code/User")
        } else if cfg!(windows) {
            set("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming")).join("Code/User")
        } else {
            config.join("Code/User")
        };
        Self {
            root: root.to_owned(),
            home: home.to_owned(),
            claude: set("CLAUDE_CONFIG_DIR"),
            codex: set("CODEX_HOME").unwrap_or_else(|| home.join(".codex")),
            config,
            vscode,
        }
    }
}

/// A file format with the place of the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryPlace {
    /// JSON with comments.
    Json(&'static [&'static str]),
    Toml(&'static [&'static str]),
}

impl Agent {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Vscode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
        }
    }

    /// The name on the command line.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Vscode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
        }
    }

    /// Windsurf has no configuration in a workspace.
    pub(crate) fn scopes(self) -> &'static [Scope] {
        match self {
            Self::Windsurf => &[Scope::User],
            _ => &[Scope::Project, Scope::User],
        }
    }

    /// The programs that start it.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["claude"],
            Self::Codex => &["codex"],
            Self::Cursor => &["cursor", "cursor-agent"],
            Self::Gemini => &["gemini"],
            Self::Opencode => &["opencode"],
            Self::Vscode => &["code"],
            Self::Windsurf => &["windsurf"],
            Self::Zed => &["zed", "zeditor"],
        }
    }

    /// Whether its program or the user's own settings are on this machine.
    pub(crate) fn is_found(self, folders: &Folders, environment: &Environment) -> bool {
        let path = environment.get("PATH").unwrap_or_default();
        let on_path =
            |program: &&str| std::env::split_paths(path).any(|folder| folder.join(program).is_file());
        let settings = match self {
            Self::Claude => folders.claude.clone().unwrap_or_else(|| folders.home.join(".claude")),
            Self::Codex => folders.codex.clone(),
            Self::Cursor => folders.home.join(".cursor"),
            Self::Gemini => folders.home.join(".gemini"),
            Self::Opencode => folders.config.join("opencode"),
            Self::Vscode => folders.vscode.clone(),
            Self::Windsurf => folders.home.join(".codeium/windsurf"),
            Self::Zed => folders.config.join("zed"),
        };
        self.programs().iter().any(on_path) || settings.is_dir()
    }

    /// The file with the MCP servers.
    pub(crate) fn entry_file(self, scope: Scope, folders: &Folders) -> Utf8PathBuf {
        let (root, home) = (&folders.root, &folders.home);
        match (self, scope) {
            (Self::Claude, Scope::Project) => root.join(".mcp.json"),
            (Self::Claude, Scope::User) => folders.claude.as_ref().unwrap_or(home).join(".claude.json"),
            (Self::Codex, Scope::Project) => root.join(".codex/config.toml"),
            (Self::Codex, Scope::User) => folders.codex.join("config.toml"),
            (Self::Cursor, Scope::Project) => root.join(".cursor/mcp.json"),
            (Self::Cursor, Scope::User) => home.join(".cursor/mcp.json"),
            (Self::Gemini, Scope::Project) => root.join(".gemini/settings.json"),
            (Self::Gemini, Scope::User) => home.join(".gemini/settings.json"),
            (Self::Opencode, Scope::Project) => json_or_jsonc(root, "opencode"),
            (Self::Opencode, Scope::User) => json_or_jsonc(&folders.config.join("opencode"), "opencode"),
            (Self::Vscode, Scope::Project) => root.join(".vscode/mcp.json"),
            (Self::Vscode, Scope::User) => folders.vscode.join("mcp.json"),
            (Self::Windsurf, _) => home.join(".codeium/windsurf/mcp_config.json"),
            (Self::Zed, Scope::Project) => root.join(".zed/settings.json"),
            (Self::Zed, Scope::User) => folders.config.join("zed/settings.json"),
        }
    }

    /// The file with the hooks, if the agent has any. It may be the file with the MCP servers.
    pub(crate) fn hooks_file(self, scope: Scope, folders: &Folders) -> Option<Utf8PathBuf> {
        let base = if scope == Scope::Project { &folders.root } else { &folders.home };
        match (self, scope) {
            (Self::Claude, Scope::User) => {
                let folder = folders.claude.clone().unwrap_or_else(|| base.join(".claude"));
                Some(folder.join("settings.json"))
            }
            (Self::Claude, Scope::Project) => Some(base.join(".claude/settings.json")),
            (Self::Codex, Scope::User) => Some(folders.codex.join("hooks.json")),
            (Self::Codex, Scope::Project) => Some(base.join(".codex/hooks.json")),
            (Self::Cursor, _) => Some(base.join(".cursor/hooks.json")),
            (Self::Gemini, _) => Some(self.entry_file(scope, folders)),
            (Self::Opencode, Scope::User) => Some(folders.config.join("opencode/plugins/tenon.js")),
            (Self::Opencode, Scope::Project) => Some(base.join(".opencode/plugins/tenon.js")),
            (Self::Vscode | Self::Windsurf | Self::Zed, _) => None,
        }
    }

    pub(crate) fn entry_place(self) -> EntryPlace {
        match self {
            Self::Claude | Self::Cursor | Self::Gemini | Self::Windsurf => {
                EntryPlace::Json(&["mcpServers", "tenon"])
            }
            Self::Codex => EntryPlace::Toml(&["mcp_servers", "tenon"]),
            Self::Opencode => EntryPlace::Json(&["mcp", "tenon"]),
            Self::Vscode => EntryPlace::Json(&["servers", "tenon"]),
            Self::Zed => EntryPlace::Json(&["context_servers", "tenon"]),
        }
    }

    /// The members of the entry.
    pub(crate) fn entry(
        self,
        scope: Scope,
        transport: &Transport,
        root: &Utf8Path,
    ) -> Vec<(String, NewValue)> {
        let text = |text: &str| NewValue::text(text);
        let members = match transport {
            Transport::Stdio { program, surfaces } => {
                let args = self.arguments(scope, surfaces, root);
                match self {
                    Self::Opencode => {
                        let command = std::iter::once(program.clone()).chain(args);
                        vec![("type", text("local")), ("command", NewValue::texts(command))]
                    }
                    Self::Vscode => vec![
                        ("type", text("stdio")),
                        ("command", text(program)),
                        ("args", NewValue::texts(args)),
                    ],
                    Self::Codex => vec![
                        ("command", text(program)),
                        ("args", NewValue::texts(args)),
                        ("env_vars", NewValue::texts(FORWARDED.iter().copied())),
                    ],
                    _ => vec![("command", text(program)), ("args", NewValue::texts(args))],
                }
            }
            Transport::Http { url } => {
                let reference = match self {
                    Self::Claude => format!("Bearer ${{{TOKEN_VARIABLE}}}"),
                    Self::Gemini => format!("Bearer ${TOKEN_VARIABLE}"),
                    Self::Opencode => format!("Bearer {{env:{TOKEN_VARIABLE}}}"),
                    _ => format!("Bearer ${{env:{TOKEN_VARIABLE}}}"),
                };
                let headers = ("headers", NewValue::object([("Authorization", text(&reference))]));
                match self {
                    Self::Codex => {
                        vec![("url", text(url)), ("bearer_token_env_var", text(TOKEN_VARIABLE))]
                    }
                    Self::Claude | Self::Vscode => vec![("type", text("http")), ("url", text(url)), headers],
                    Self::Opencode => vec![("type", text("remote")), ("url", text(url)), headers],
                    Self::Gemini => vec![("httpUrl", text(url)), headers],
                    Self::Windsurf => vec![("serverUrl", text(url)), headers],
                    Self::Cursor | Self::Zed => vec![("url", text(url)), headers],
                }
            }
        };
        members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// The arguments of `tenon`. In the user's own settings, the agent decides on the workspace: by the folder that it starts
    /// the server in, or by a variable.
    fn arguments(self, scope: Scope, surfaces: &[String], root: &Utf8Path) -> Vec<String> {
        let root = match (scope, self) {
            (Scope::User, Self::Cursor | Self::Vscode) => Some("${workspaceFolder}"),
            (Scope::Project, _) | (_, Self::Windsurf) => Some(root.as_str()),
            (Scope::User, _) => None,
        };
        let mut args = vec!["mcp".to_owned()];
        args.extend(root.into_iter().flat_map(|root| ["--root".to_owned(), root.to_owned()]));
        if !surfaces.is_empty() {
            args.extend(["--surface".to_owned(), surfaces.join(",")]);
        }
        args
    }

    /// All keys that some transport writes.
    pub(crate) const ENTRY_KEYS: &[&str] = &[
        "type",
        "command",
        "args",
        "url",
        "httpUrl",
        "serverUrl",
        "headers",
        "env_vars",
        "bearer_token_env_var",
    ];

    /// Whether the agent can read the token from the environment.
    pub(crate) fn supports_http(self) -> bool {
        self != Self::Zed
    }

    /// What the user has to do after the connection.
    pub(crate) fn notes(self, scope: Scope, hooks: bool) -> Vec<&'static str> {
        let mut notes = Vec::new();
        match (self, scope) {
            (Self::Claude, Scope::Project) => {
                notes.push("Claude Code asks before it uses the servers of `.mcp.json` for the first time");
            }
            (Self::Codex, Scope::Project) => {
                notes.push("Codex reads `.codex` only in projects that you trust in Codex");
            }
            (Self::Gemini, Scope::Project) => {
                notes.push("Gemini CLI reads `.gemini` only in folders that you trust in Gemini CLI");
            }
            (Self::Vscode, _) => notes.push("VS Code asks before it starts a new server"),
            (Self::Zed, Scope::Project) => {
                notes.push("Zed reads `.zed` only in projects that you trust in Zed")
            }
            (Self::Windsurf, _) => {
                notes.push("Windsurf has one configuration for all workspaces: `tenon` serves this one");
            }
            _ => {}
        }
        if hooks {
            match self {
                Self::Codex => notes.push("Codex runs a new hook only after you approve it with `/hooks`"),
                Self::Cursor => notes.push("Cursor shows the text of hooks to the model since version 2.4"),
                Self::Opencode => notes.push("opencode loads plugins when it starts"),
                _ => {}
            }
        }
        notes
    }
}

/// The surfaces that an entry selects with `--surface`.
pub(crate) fn surfaces_of(entry: &Value) -> Vec<String> {
    let lists = ["args", "command"].into_iter().filter_map(|key| entry.get(key)?.as_array());
    let words: Vec<&str> = lists.flatten().filter_map(Value::as_str).collect();
    let named = words.iter().position(|word| *word == "--surface").and_then(|at| words.get(at + 1));
    named.map(|names| names.split(',').map(str::to_owned).collect()).unwrap_or_default()
}

/// The file with comments if there is one.
fn json_or_jsonc(folder: &Utf8Path, name: &str) -> Utf8PathBuf {
    let with_comments = folder.join(format!("{name}.jsonc"));
    if with_comments.exists() { with_comments } else { folder.join(format!("{name}.json")) }
}
