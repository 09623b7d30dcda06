//! The event that an agent sends to a hook.
//!
//! After a tool call: Claude Code and Codex (`PostToolUse`), Gemini CLI (`AfterTool`) and Cursor (`postToolUse`) name the tool
//! and its input. Edit tools name the file, Codex gives a patch whose header lines name the files, and shell tools name none.
//! At the end of a turn: `Stop`, `AfterAgent` and `stop`. When a session starts, also after its context was compacted:
//! `SessionStart` and `sessionStart`. Before that: `PreCompact`, `PreCompress` and `preCompact`. Other events and tools are
//! ignored.

use camino::Utf8PathBuf;
use serde::Deserialize;
use serde_json::{Value, json};

/// What happened.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: EventName,
    /// The agent's current folder.
    pub(super) folder: Option<Utf8PathBuf>,
    pub(super) kind: EventKind,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// The agent edited these files.
    Edit(Vec<NamedFile>),
    /// A tool ran that may have changed any file.
    Shell,
    /// The agent's turn ends.
    Stop,
    /// The agent has no context yet, or will lose it.
    Session,
}

/// A file as the agent named it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamedFile {
    pub(super) path: Utf8PathBuf,
    /// Whether the agent says that the file is new.
    pub(super) is_new: bool,
}

/// The name of an event, which decides the format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventName {
    PostToolUse,
    AfterTool,
    CursorPostToolUse,
    Stop,
    AfterAgent,
    CursorStop,
    SessionStart,
    CursorSessionStart,
    /// Before the context is compacted.
    PreCompact,
    GeminiPreCompress,
    CursorPreCompact,
}

/// The input is not a hook event.
#[derive(Debug, thiserror::Error)]
#[error("invalid hook event")]
pub(super) struct EventError(#[from] serde_json::Error);

#[derive(Deserialize)]
struct RawEvent {
    hook_event_name: String,
    #[serde(default)]
    cwd: Option<Utf8PathBuf>,
    /// Cursor.
    #[serde(default)]
    workspace_roots: Vec<Utf8PathBuf>,
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
    #[serde(default)]
    tool_response: Value,
    /// The agent continues because of a hook at the end of the turn.
    #[serde(default)]
    stop_hook_active: bool,
    /// Cursor: how many follow-ups of hooks this turn has had.
    #[serde(default)]
    loop_count: u64,
    /// Cursor: `completed`, `aborted` or `error`.
    #[serde(default)]
    status: Option<String>,
}

impl EventName {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "PostToolUse" => Self::PostToolUse,
            "AfterTool" => Self::AfterTool,
            "postToolUse" => Self::CursorPostToolUse,
            "Stop" => Self::Stop,
            "AfterAgent" => Self::AfterAgent,
            "stop" => Self::CursorStop,
            "SessionStart" => Self::SessionStart,
            "sessionStart" => Self::CursorSessionStart,
            "PreCompact" => Self::PreCompact,
            "PreCompress" => Self::GeminiPreCompress,
            "preCompact" => Self::CursorPreCompact,
            _ => return None,
        })
    }

    /// The output that passes text to the model, where the event can.
    pub(super) fn output(self, text: &str) -> String {
        let beside_the_result = |event: &str| json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } });
        let output = match self {
            Self::PostToolUse => beside_the_result("PostToolUse"),
            Self::AfterTool => beside_the_result("AfterTool"),
            Self::CursorPostToolUse => json!({ "additional_context": text }),
            Self::Stop => json!({ "decision": "block", "reason": text }),
            Self::AfterAgent => json!({ "decision": "deny", "reason": text }),
            Self::CursorStop => json!({ "followup_message": text }),
            Self::SessionStart => beside_the_result("SessionStart"),
            Self::CursorSessionStart => json!({ "additional_context": text }),
            // Claude Code adds plain text to the instructions for the summary; Codex ignores it.
            Self::PreCompact => return format!("Keep this in the summary:\n{text}"),
            // For the person: no output of these events reaches the model.
            Self::GeminiPreCompress => json!({ "systemMessage": text }),
            Self::CursorPreCompact => json!({ "user_message": text }),
        };
        output.to_string()
    }
}

impl Event {
    /// Returns `None` for events that need no report.
    pub(super) fn parse(text: &[u8]) -> Result<Option<Self>, EventError> {
        let raw: RawEvent = serde_json::from_slice(text)?;
        let Some(name) = EventName::parse(&raw.hook_event_name) else {
            return Ok(None);
        };
        let kind = match name {
            EventName::PostToolUse | EventName::AfterTool | EventName::CursorPostToolUse => {
                raw.tool_kind(name)
            }
            EventName::Stop | EventName::AfterAgent | EventName::CursorStop => raw.stop_kind(),
            EventName::SessionStart
            | EventName::CursorSessionStart
            | EventName::PreCompact
            | EventName::GeminiPreCompress
            | EventName::CursorPreCompact => Some(EventKind::Session),
        };
        let folder = raw.cwd.or_else(|| raw.workspace_roots.into_iter().next());
        Ok(kind.map(|kind| Self { name, folder, kind }))
    }
}

impl RawEvent {
    fn tool_kind(&self, name: EventName) -> Option<EventKind> {
        let text_of = |key: &str| self.tool_input.get(key).and_then(Value::as_str);
        // Claude Code says whether `Write` created the file.
        let is_new = self.tool_response.get("type").and_then(Value::as_str) == Some("create");
        let named = |key: &str| {
            text_of(key).map(|path| EventKind::Edit(vec![NamedFile { path: path.into(), is_new }]))
        };
        match self.tool_name.as_str() {
            // Cursor's edit tools are not documented; without a name the files on disk are compared.
            "Edit" | "Write" | "StrReplace" | "Delete" if name == EventName::CursorPostToolUse => {
                named("file_path").or_else(|| named("path")).or(Some(EventKind::Shell))
            }
            "Edit" | "MultiEdit" | "Write" | "write_file" | "replace" => named("file_path"),
            "NotebookEdit" => named("notebook_path"),
            "apply_patch" => {
                let files = text_of("command").map(patched)?;
                (!files.is_empty()).then_some(EventKind::Edit(files))
            }
            "Bash" | "Shell" | "shell" | "shell_command" | "local_shell" | "exec_command"
            | "run_shell_command" => Some(EventKind::Shell),
            _ => None,
        }
    }

    /// `None` if the agent continues because of a hook already, so that hooks never make it run forever, or if it was
    /// interrupted.
    fn stop_kind(&self) -> Option<EventKind> {
        let completed = self.status.as_deref().is_none_or(|status| status == "completed");
        (completed && !self.stop_hook_active && self.loop_count == 0).then_some(EventKind::Stop)
    }
}

/// The files that a patch adds, updates, moves or deletes.
fn patched(patch: &str) -> Vec<NamedFile> {
    let headers = ["*** Add File: ", "*** Update File: ", "*** Move to: ", "*** Delete File: "];
    let named = |line: &str| {
        let (index, name) = headers
            .iter()
            .enumerate()
            .find_map(|(index, header)| Some((index, line.strip_prefix(header)?)))?;
        Some(NamedFile { path: Utf8PathBuf::from(name.trim()), is_new: index == 0 })
    };
    let mut files: Vec<NamedFile> = patch.lines().filter_map(named).collect();
    files.sort_unstable();
    files.dedup_by(|later, first| later.path == first.path);
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(event: Value) -> Option<EventKind> {
        Some(Event::parse(event.to_string().as_bytes()).unwrap()?.kind)
    }

    fn edit(files: &[&str]) -> Option<EventKind> {
        Some(EventKind::Edit(
            files.iter().map(|path| NamedFile { path: path.into(), is_new: false }).collect(),
        ))
    }

    #[test]
    fn edited_files_are_found_for_each_agent() {
        let claude = json!({
            "session_id": "s", "transcript_path": "/t.jsonl", "cwd": "/w", "permission_mode": "default",
            "hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": "toolu_1",
            "tool_input": { "file_path": "/w/a.py", "old_string": "a", "new_string": "b" },
            "tool_response": { "filePath": "/w/a.py", "success": true },
        });
        assert_eq!(kind(claude), edit(&["/w/a.py"]));
        let notebook = json!({ "hook_event_name": "PostToolUse", "tool_name": "NotebookEdit",
            "tool_input": { "notebook_path": "/w/a.ipynb", "new_source": "x" } });
        assert_eq!(kind(notebook), edit(&["/w/a.ipynb"]));
        let gemini = json!({ "hook_event_name": "AfterTool", "tool_name": "replace", "timestamp": "2026-01-01T00:00:00Z",
            "tool_input": { "file_path": "src/a.ts", "old_string": "a", "new_string": "b" }, "tool_response": {} });
        assert_eq!(kind(gemini), edit(&["src/a.ts"]));
        let patch = "*** Begin Patch\n*** Update File: b.rs\n*** Move to: c.rs\n@@\n-x\n+*** Add File: no.rs\n*** Add File: a b.rs\n+y\n*** Delete File: d.rs\n*** Update File: b.rs\n*** End Patch\n";
        let codex = json!({ "hook_event_name": "PostToolUse", "tool_name": "apply_patch", "cwd": "/w",
            "tool_input": { "command": patch } });
        let Some(EventKind::Edit(files)) = kind(codex) else { panic!("a patch edits files") };
        let named: Vec<(&str, bool)> = files.iter().map(|file| (file.path.as_str(), file.is_new)).collect();
        assert_eq!(named, [("a b.rs", true), ("b.rs", false), ("c.rs", false), ("d.rs", false)]);
        let created = json!({ "hook_event_name": "PostToolUse", "tool_name": "Write",
            "tool_input": { "file_path": "/w/new.py" }, "tool_response": { "type": "create", "originalFile": null } });
        let new = NamedFile { path: "/w/new.py".into(), is_new: true };
        assert_eq!(kind(created), Some(EventKind::Edit(vec![new])));
        let cursor = json!({ "hook_event_name": "postToolUse", "tool_name": "Write", "workspace_roots": ["/w"],
            "tool_input": { "path": "/w/a.py" } });
        assert_eq!(kind(cursor), edit(&["/w/a.py"]));
        let unnamed =
            json!({ "hook_event_name": "postToolUse", "tool_name": "StrReplace", "tool_input": {} });
        assert_eq!(kind(unnamed), Some(EventKind::Shell));
    }

    #[test]
    fn shell_tools_of_each_agent_may_change_any_file() {
        for (event, tool) in [
            ("PostToolUse", "Bash"),
            ("PostToolUse", "shell"),
            ("PostToolUse", "local_shell"),
            ("AfterTool", "run_shell_command"),
            ("postToolUse", "Shell"),
        ] {
            let event =
                json!({ "hook_event_name": event, "tool_name": tool, "tool_input": { "command": "x" } });
            assert_eq!(kind(event), Some(EventKind::Shell), "{tool}");
        }
    }

    #[test]
    fn end_of_a_turn_is_reported_unless_a_hook_made_the_agent_continue() {
        for name in ["Stop", "AfterAgent", "stop"] {
            assert_eq!(kind(json!({ "hook_event_name": name })), Some(EventKind::Stop), "{name}");
        }
        for ignored in [
            json!({ "hook_event_name": "Stop", "stop_hook_active": true }),
            json!({ "hook_event_name": "AfterAgent", "stop_hook_active": true }),
            json!({ "hook_event_name": "stop", "status": "completed", "loop_count": 1 }),
            json!({ "hook_event_name": "stop", "status": "aborted", "loop_count": 0 }),
            json!({ "hook_event_name": "SubagentStop" }),
        ] {
            assert_eq!(kind(ignored.clone()), None, "{ignored}");
        }
    }

    #[test]
    fn output_has_the_format_of_the_event() {
        let output = |name: &str| EventName::parse(name).unwrap().output("text");
        assert_eq!(output("Stop"), r#"{"decision":"block","reason":"text"}"#);
        assert_eq!(output("AfterAgent"), r#"{"decision":"deny","reason":"text"}"#);
        assert_eq!(output("stop"), r#"{"followup_message":"text"}"#);
        assert_eq!(output("postToolUse"), r#"{"additional_context":"text"}"#);
        assert_eq!(output("sessionStart"), r#"{"additional_context":"text"}"#);
        assert_eq!(output("PreCompact"), "Keep this in the summary:\ntext");
        assert_eq!(output("PreCompress"), r#"{"systemMessage":"text"}"#);
        assert_eq!(output("preCompact"), r#"{"user_message":"text"}"#);
        for name in ["PostToolUse", "AfterTool", "SessionStart"] {
            let expected =
                json!({ "hookSpecificOutput": { "hookEventName": name, "additionalContext": "text" } });
            assert_eq!(output(name), expected.to_string());
        }
    }

    #[test]
    fn events_other_than_edits_are_ignored_and_invalid_json_is_an_error() {
        let edit = json!({ "file_path": "/w/a.py" });
        for other in [
            json!({ "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": edit }),
            json!({ "hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": edit }),
            json!({ "hook_event_name": "PostToolUse", "tool_name": "Edit" }),
            json!({ "hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": { "file_path": 7 } }),
            json!({ "hook_event_name": "PostToolUse", "tool_name": "apply_patch", "tool_input": { "command": "" } }),
        ] {
            assert_eq!(kind(other.clone()), None, "{other}");
        }
        for wrong in
            ["", "{", "[]", "7", r#"{"hook_event_name": 7}"#, r#"{"tool_name": "Edit"}"#, "\u{feff}{}"]
        {
            assert!(Event::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
