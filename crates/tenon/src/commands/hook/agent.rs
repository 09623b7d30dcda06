//! The agents that support hooks: their settings files and hook entries.

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use serde_json::json;

use super::settings::{HookEntry, Layout};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Agent {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// Cursor
    Cursor,
    /// opencode
    Opencode,
}

/// The commands that hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookCommand {
    PostEdit,
    Stop,
}

impl HookCommand {
    fn name(self) -> &'static str {
        match self {
            Self::PostEdit => "post-edit",
            Self::Stop => "stop",
        }
    }

    /// The command, quoted for a shell.
    pub(super) fn line(self, program: &str) -> String {
        let plain = program.chars().all(|one| one.is_ascii_alphanumeric() || "/._-+".contains(one));
        match plain {
            true => format!("{program} hook {}", self.name()),
            false => format!("'{}' hook {}", program.replace('\'', r"'\''"), self.name()),
        }
    }

    /// Whether a hook's command is this one, whatever the program's path.
    pub(super) fn is_run_by(self, command: &str) -> bool {
        let program = command.strip_suffix(self.name()).and_then(|rest| rest.strip_suffix(" hook "));
        program.is_some_and(|program| program.trim_matches('\'').ends_with("tenon"))
    }
}

impl Agent {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Cursor => "Cursor",
            Self::Opencode => "opencode",
        }
    }

    /// The value of `--client`.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Opencode => "opencode",
        }
    }

    /// The folder with its settings, below a workspace or the home folder.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Claude => ".claude",
            Self::Codex => ".codex",
            Self::Gemini => ".gemini",
            Self::Cursor => ".cursor",
            Self::Opencode => ".opencode",
        }
    }

    /// The programs that start it.
    pub(super) fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["claude"],
            Self::Codex => &["codex"],
            Self::Gemini => &["gemini"],
            Self::Cursor => &["cursor", "cursor-agent"],
            Self::Opencode => &["opencode"],
        }
    }

    /// The file with its hooks in a workspace.
    pub(super) fn project_file(self, root: &Utf8Path) -> Utf8PathBuf {
        let file = match self {
            Self::Claude | Self::Gemini => "settings.json",
            Self::Codex | Self::Cursor => "hooks.json",
            Self::Opencode => "plugins/tenon.js",
        };
        root.join(self.folder()).join(file)
    }

    /// The file with its hooks for all workspaces of the user.
    pub(super) fn user_file(self, home: &Utf8Path) -> Utf8PathBuf {
        match self {
            Self::Opencode => home.join(".config/opencode/plugins/tenon.js"),
            _ => self.project_file(home),
        }
    }

    /// The entries for its settings file. None for an agent whose hooks are a file of their own.
    pub(super) fn entries(self, program: &str) -> Vec<HookEntry> {
        // In seconds, for Gemini CLI in milliseconds. Agents kill a hook that takes longer.
        let (event, tools, stop, timeout) = match self {
            Self::Claude => ("PostToolUse", "Edit|MultiEdit|Write|NotebookEdit|Bash", "Stop", 30),
            Self::Codex => {
                ("PostToolUse", "apply_patch|Bash|shell|shell_command|local_shell|exec_command", "Stop", 30)
            }
            Self::Gemini => ("AfterTool", "write_file|replace|run_shell_command", "AfterAgent", 30_000),
            Self::Cursor => ("postToolUse", "Write|StrReplace|Edit|Delete|Shell", "stop", 30),
            Self::Opencode => return Vec::new(),
        };
        let post_edit = json!(HookCommand::PostEdit.line(program));
        let stop_command = json!(HookCommand::Stop.line(program));
        let lines = |lines: &[(usize, String)]| lines.to_vec();
        let nested = |matcher: Option<&str>, command: &serde_json::Value| {
            let hook = format!(r#"{{ "type": "command", "command": {command}, "timeout": {timeout} }}"#);
            let matcher = matcher.map(|tools| (1, format!(r#""matcher": "{tools}","#)));
            let mut entry = vec![(0, "{".to_owned())];
            entry.extend(matcher);
            entry.extend([(1, r#""hooks": ["#.to_owned()), (2, hook)]);
            entry.extend([(1, "]".to_owned()), (0, "}".to_owned())]);
            entry
        };
        let (layout, post_edit, stop_lines) = match self {
            // A follow-up is sent once: the hook itself prints nothing for the end of a follow-up.
            Self::Cursor => (
                Layout::Flat,
                lines(&[(
                    0,
                    format!(r#"{{ "command": {post_edit}, "matcher": "{tools}", "timeout": {timeout} }}"#),
                )]),
                lines(&[(
                    0,
                    format!(r#"{{ "command": {stop_command}, "timeout": {timeout}, "loop_limit": 1 }}"#),
                )]),
            ),
            _ => (Layout::Nested, nested(Some(tools), &post_edit), nested(None, &stop_command)),
        };
        vec![
            HookEntry { event, command: HookCommand::PostEdit, lines: post_edit, layout },
            HookEntry { event: stop, command: HookCommand::Stop, lines: stop_lines, layout },
        ]
    }

    /// A note to print after the installation.
    pub(super) fn note(self) -> Option<&'static str> {
        match self {
            Self::Claude | Self::Gemini => None,
            Self::Codex => Some("Codex runs a new hook only after you approve it with `/hooks`"),
            Self::Cursor => Some("Cursor shows the text of hooks to the model since version 2.4"),
            Self::Opencode => Some("opencode loads plugins when it starts"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenon_hook_is_recognized_with_any_program_path() {
        for command in [HookCommand::PostEdit, HookCommand::Stop] {
            for program in ["tenon", "/opt/a b/tenon", "/usr/bin/tenon", "/it's/tenon"] {
                assert!(command.is_run_by(&command.line(program)), "{program}");
            }
            for other in ["tenon hook", "prettier hook post-edit", "tenon mcp", "tenon stop"] {
                assert!(!command.is_run_by(other), "{other}");
            }
        }
        assert_eq!(HookCommand::PostEdit.line("/it's/tenon"), r"'/it'\''s/tenon' hook post-edit");
        assert!(!HookCommand::Stop.is_run_by("tenon hook post-edit"));
    }
}
