//! The agents that support hooks: their settings files and hook entries.

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use serde_json::json;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Agent {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
}

impl Agent {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// The settings file with its hooks, below a workspace or the home folder.
    pub(super) fn file(self, base: &Utf8Path) -> Utf8PathBuf {
        base.join(match self {
            Self::Claude => ".claude/settings.json",
            Self::Codex => ".codex/hooks.json",
            Self::Gemini => ".gemini/settings.json",
        })
    }

    /// The hook event that follows a tool call.
    pub(super) fn event(self) -> &'static str {
        match self {
            Self::Claude | Self::Codex => "PostToolUse",
            Self::Gemini => "AfterTool",
        }
    }

    /// The entry for the event's list, as lines with their indentation depth.
    pub(super) fn entry(self, command: &str) -> Vec<(usize, String)> {
        // In seconds for Claude Code and Codex, in milliseconds for Gemini CLI. They kill a hook that takes longer.
        let (tools, timeout) = match self {
            Self::Claude => ("Edit|MultiEdit|Write|NotebookEdit", 30),
            Self::Codex => ("apply_patch", 30),
            Self::Gemini => ("write_file|replace", 30_000),
        };
        let command = json!(command);
        let hook = format!(r#"{{ "type": "command", "command": {command}, "timeout": {timeout} }}"#);
        vec![
            (0, "{".to_owned()),
            (1, format!(r#""matcher": "{tools}","#)),
            (1, r#""hooks": ["#.to_owned()),
            (2, hook),
            (1, "]".to_owned()),
            (0, "}".to_owned()),
        ]
    }

    /// A note to print after the installation.
    pub(super) fn note(self) -> Option<&'static str> {
        match self {
            Self::Claude | Self::Gemini => None,
            Self::Codex => Some("Codex runs a new hook only after you approve it with `/hooks`"),
        }
    }
}

/// Whether a hook's command runs Tenon's hook, whatever the program's path.
pub(super) fn is_tenon_hook(command: &str) -> bool {
    command
        .strip_suffix(" hook post-edit")
        .is_some_and(|program| program.trim_matches('\'').ends_with("tenon"))
}

/// The hook's command, quoted for a shell.
pub(super) fn command(program: &str) -> String {
    let plain = program.chars().all(|one| one.is_ascii_alphanumeric() || "/._-+".contains(one));
    match plain {
        true => format!("{program} hook post-edit"),
        false => format!("'{}' hook post-edit", program.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenon_hook_is_recognized_with_any_program_path() {
        for program in ["tenon", "/opt/a b/tenon", "/usr/bin/tenon", "/it's/tenon"] {
            assert!(is_tenon_hook(&command(program)), "{program}");
        }
        assert_eq!(command("/it's/tenon"), r"'/it'\''s/tenon' hook post-edit");
        for other in ["tenon hook", "prettier hook post-edit", "tenon mcp"] {
            assert!(!is_tenon_hook(other), "{other}");
        }
    }
}
