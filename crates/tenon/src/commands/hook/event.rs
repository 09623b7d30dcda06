//! The event that an agent sends to a hook after an edit.
//!
//! Claude Code (`PostToolUse`) and Gemini CLI (`AfterTool`) give one file in the tool's input. Codex (`PostToolUse`) gives a
//! patch, whose header lines name the files. Other events and tools are ignored.

use camino::Utf8PathBuf;
use serde::Deserialize;
use serde_json::Value;

/// An edit that an agent made.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// The event name, which the hook's output must repeat.
    pub(super) name: &'static str,
    /// The agent's current folder.
    pub(super) folder: Option<Utf8PathBuf>,
    /// The edited files, as the agent named them.
    pub(super) files: Vec<Utf8PathBuf>,
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
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
}

impl Event {
    /// Returns `None` for events other than edits.
    pub(super) fn parse(text: &[u8]) -> Result<Option<Self>, EventError> {
        let raw: RawEvent = serde_json::from_slice(text)?;
        let name = match raw.hook_event_name.as_str() {
            "PostToolUse" => "PostToolUse",
            "AfterTool" => "AfterTool",
            _ => return Ok(None),
        };
        let text_of = |key: &str| raw.tool_input.get(key).and_then(Value::as_str);
        let files: Vec<Utf8PathBuf> = match raw.tool_name.as_str() {
            "Edit" | "MultiEdit" | "Write" | "write_file" | "replace" => {
                text_of("file_path").map(Utf8PathBuf::from).into_iter().collect()
            }
            "NotebookEdit" => text_of("notebook_path").map(Utf8PathBuf::from).into_iter().collect(),
            "apply_patch" => text_of("command").map(patched).unwrap_or_default(),
            _ => Vec::new(),
        };
        let event = Self { name, folder: raw.cwd, files };
        Ok((!event.files.is_empty()).then_some(event))
    }
}

/// The files that a patch adds, updates or moves.
fn patched(patch: &str) -> Vec<Utf8PathBuf> {
    let headers = ["*** Add File: ", "*** Update File: ", "*** Move to: "];
    let named = |line: &str| {
        let name = headers.iter().find_map(|header| line.strip_prefix(header))?;
        Some(Utf8PathBuf::from(name.trim()))
    };
    let mut files: Vec<Utf8PathBuf> = patch.lines().filter_map(named).collect();
    files.sort_unstable();
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn files(event: Value) -> Option<Vec<String>> {
        let event = Event::parse(event.to_string().as_bytes()).unwrap()?;
        Some(event.files.into_iter().map(Utf8PathBuf::into_string).collect())
    }

    #[test]
    fn edited_files_are_found_for_each_agent() {
        let claude = json!({
            "session_id": "s", "transcript_path": "/t.jsonl", "cwd": "/w", "permission_mode": "default",
            "hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": "toolu_1",
            "tool_input": { "file_path": "/w/a.py", "old_string": "a", "new_string": "b" },
            "tool_response": { "filePath": "/w/a.py", "success": true },
        });
        assert_eq!(files(claude), Some(vec!["/w/a.py".to_owned()]));
        let notebook = json!({ "hook_event_name": "PostToolUse", "tool_name": "NotebookEdit",
            "tool_input": { "notebook_path": "/w/a.ipynb", "new_source": "x" } });
        assert_eq!(files(notebook), Some(vec!["/w/a.ipynb".to_owned()]));
        let gemini = json!({ "hook_event_name": "AfterTool", "tool_name": "replace", "timestamp": "2026-01-01T00:00:00Z",
            "tool_input": { "file_path": "src/a.ts", "old_string": "a", "new_string": "b" }, "tool_response": {} });
        assert_eq!(files(gemini), Some(vec!["src/a.ts".to_owned()]));
        let patch = "*** Begin Patch\n*** Update File: b.rs\n*** Move to: c.rs\n@@\n-x\n+*** Add File: no.rs\n*** Add File: a b.rs\n+y\n*** Delete File: d.rs\n*** Update File: b.rs\n*** End Patch\n";
        let codex = json!({ "hook_event_name": "PostToolUse", "tool_name": "apply_patch", "cwd": "/w",
            "tool_input": { "command": patch } });
        assert_eq!(files(codex), Some(["a b.rs", "b.rs", "c.rs"].map(str::to_owned).into()));
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
            json!({ "hook_event_name": "Stop" }),
        ] {
            assert_eq!(files(other.clone()), None, "{other}");
        }
        for wrong in
            ["", "{", "[]", "7", r#"{"hook_event_name": 7}"#, r#"{"tool_name": "Edit"}"#, "\u{feff}{}"]
        {
            assert!(Event::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
