//! The agents whose hooks are documented: which file holds them, and what goes into it.

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

    /// Its file of hooks below a workspace or the home folder.
    pub(super) fn file(self, base: &Utf8Path) -> Utf8PathBuf {
        base.join(match self {
            Self::Claude => ".claude/settings.json",
            Self::Codex => ".codex/hooks.json",
            Self::Gemini => ".gemini/settings.json",
        })
    }

    /// The moment after a tool has run.
    pub(super) fn event(self) -> &'static str {
        match self {
            Self::Claude | Self::Codex => "PostToolUse",
            Self::Gemini => "AfterTool",
        }
    }

    /// What goes into the event's list, as lines with their depth.
    pub(super) fn entry(self, command: &str) -> Vec<(usize, String)> {
        // Claude Code and Codex count seconds, Gemini CLI milliseconds; both end a hook that takes longer.
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

    /// What the person must know besides.
    pub(super) fn note(self) -> Option<&'static str> {
        match self {
            Self::Claude | Self::Gemini => None,
            Self::Codex => Some("Codex runs a new hook only after you trust it: `/hooks` in Codex"),
        }
    }
}

/// Whether a hook's command is ours, however we are called.
pub(super) fn is_ours(command: &str) -> bool {
    command
        .strip_suffix(" hook post-edit")
        .is_some_and(|program| program.trim_matches('\'').ends_with("tenon"))
}

/// The command for a shell.
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
    fn our_command_is_known_however_it_is_written() {
        for program in ["tenon", "/opt/a b/tenon", "/usr/bin/tenon", "/it's/tenon"] {
            assert!(is_ours(&command(program)), "{program}");
        }
        assert_eq!(command("/it's/tenon"), r"'/it'\''s/tenon' hook post-edit");
        for other in ["tenon hook", "prettier hook post-edit", "tenon mcp"] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
