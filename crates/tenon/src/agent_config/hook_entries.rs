//! The hooks in an agent's settings file: what they are, and how they are added, found and removed.

use serde_json::{Value, json};

use super::Agent;
use crate::config_edit::jsonc_edit::{self, JsoncError, NewValue, Step};

/// The commands that hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookCommand {
    PostEdit,
    Stop,
    SessionStart,
    PreCompact,
}

impl HookCommand {
    fn name(self) -> &'static str {
        match self {
            Self::PostEdit => "post-edit",
            Self::Stop => "stop",
            Self::SessionStart => "session-start",
            Self::PreCompact => "pre-compact",
        }
    }

    /// The command, quoted for a shell.
    fn line(self, program: &str) -> String {
        let plain = program.chars().all(|one| one.is_ascii_alphanumeric() || "/._-+".contains(one));
        match plain {
            true => format!("{program} hook {}", self.name()),
            false => format!("'{}' hook {}", program.replace('\'', r"'\''"), self.name()),
        }
    }

    /// Whether a hook's command is this one, whatever the program's path.
    fn is_run_by(self, command: &str) -> bool {
        let program = command.strip_suffix(self.name()).and_then(|rest| rest.strip_suffix(" hook "));
        program.is_some_and(|program| program.trim_matches('\'').ends_with("tenon"))
    }
}

/// How an event's list holds hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// `{"matcher": …, "hooks": [{"command": …}]}`
    Nested,
    /// `{"command": …}`
    Flat,
}

/// A hook in a settings file.
struct HookEntry {
    /// The event that runs it.
    event: &'static str,
    command: HookCommand,
    value: NewValue,
    layout: Layout,
}

/// How many of an agent's hooks a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookState {
    Missing,
    /// Some are missing, or run another program.
    Stale,
    Installed,
}

fn entries(agent: Agent, program: &str) -> Vec<HookEntry> {
    // In seconds, for Gemini CLI in milliseconds. Agents kill a hook that takes longer.
    let (event, tools, stop, start, timeout) = match agent {
        Agent::Claude => {
            ("PostToolUse", "Edit|MultiEdit|Write|NotebookEdit|Bash", "Stop", "SessionStart", 30)
        }
        Agent::Codex => {
            let tools = "apply_patch|Bash|shell|shell_command|local_shell|exec_command";
            ("PostToolUse", tools, "Stop", "SessionStart", 30)
        }
        Agent::Gemini => {
            ("AfterTool", "write_file|replace|run_shell_command", "AfterAgent", "SessionStart", 30_000)
        }
        Agent::Cursor => ("postToolUse", "Write|StrReplace|Edit|Delete|Shell", "stop", "sessionStart", 30),
        Agent::Opencode | Agent::Vscode | Agent::Zed | Agent::Windsurf => return Vec::new(),
    };
    let timeout = NewValue::Scalar(json!(timeout));
    let line = |command: HookCommand| NewValue::text(command.line(program));
    let nested = |matcher: Option<&str>, command: HookCommand| {
        let hook = NewValue::object([
            ("type", NewValue::text("command")),
            ("command", line(command)),
            ("timeout", timeout.clone()),
        ]);
        let mut members = Vec::new();
        members.extend(matcher.map(|tools| ("matcher".to_owned(), NewValue::text(tools))));
        members.push(("hooks".to_owned(), NewValue::List(vec![hook])));
        NewValue::Object(members)
    };
    let (layout, post_edit, stop_entry, start_entry) = match agent {
        // A follow-up is sent once: the hook itself prints nothing for the end of a follow-up.
        Agent::Cursor => (
            Layout::Flat,
            NewValue::object([
                ("command", line(HookCommand::PostEdit)),
                ("matcher", NewValue::text(tools)),
                ("timeout", timeout.clone()),
            ]),
            NewValue::object([
                ("command", line(HookCommand::Stop)),
                ("timeout", timeout.clone()),
                ("loop_limit", NewValue::Scalar(json!(1))),
            ]),
            NewValue::object([("command", line(HookCommand::SessionStart)), ("timeout", timeout.clone())]),
        ),
        _ => (
            Layout::Nested,
            nested(Some(tools), HookCommand::PostEdit),
            nested(None, HookCommand::Stop),
            nested(None, HookCommand::SessionStart),
        ),
    };
    let mut entries = vec![
        HookEntry { event, command: HookCommand::PostEdit, value: post_edit, layout },
        HookEntry { event: stop, command: HookCommand::Stop, value: stop_entry, layout },
        HookEntry { event: start, command: HookCommand::SessionStart, value: start_entry, layout },
    ];
    // Others have such an event, too, but pass no output of it to the model.
    if agent == Agent::Claude {
        let command = HookCommand::PreCompact;
        entries.push(HookEntry { event: "PreCompact", command, value: nested(None, command), layout });
    }
    entries
}

impl HookEntry {
    /// The path of Tenon's hook in a file's value.
    fn find(&self, file: Option<&Value>) -> Option<Vec<Step>> {
        let list = file?.get("hooks")?.get(self.event)?.as_array()?;
        let is_ours = |hook: &Value| {
            hook.get("command").and_then(Value::as_str).is_some_and(|line| self.command.is_run_by(line))
        };
        let base = [Step::Key("hooks".to_owned()), Step::Key(self.event.to_owned())];
        list.iter().enumerate().find_map(|(index, entry)| {
            let mut path = [&base[..], &[Step::Index(index)]].concat();
            match self.layout {
                Layout::Flat => is_ours(entry).then_some(path),
                Layout::Nested => {
                    let inner = entry.get("hooks")?.as_array()?.iter().position(is_ours)?;
                    path.extend([Step::Key("hooks".to_owned()), Step::Index(inner)]);
                    Some(path)
                }
            }
        })
    }

    /// The command's path if its hook runs another program.
    fn outdated(&self, file: Option<&Value>, program: &str) -> Option<Vec<Step>> {
        let mut path = self.find(file)?;
        path.push(Step::Key("command".to_owned()));
        let line = path.iter().try_fold(file?, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        });
        (line?.as_str()? != self.command.line(program)).then_some(path)
    }
}

/// The text with all hooks of an agent.
pub(crate) fn add(text: &str, agent: Agent, program: &str) -> Result<String, JsoncError> {
    let mut current = text.to_owned();
    if agent == Agent::Cursor && jsonc_edit::value(text)?.is_none_or(|value| value.get("version").is_none()) {
        current = jsonc_edit::set(&current, &["version"], &NewValue::Scalar(json!(1)))?;
    }
    for entry in entries(agent, program) {
        let value = jsonc_edit::value(&current)?;
        if let Some(path) = entry.outdated(value.as_ref(), program) {
            let line = NewValue::text(entry.command.line(program));
            current = jsonc_edit::replace(&current, &path, &line)?;
        } else if entry.find(value.as_ref()).is_none() {
            current = jsonc_edit::push(&current, &["hooks", entry.event], &entry.value)?;
        }
    }
    Ok(current)
}

/// The text without the hooks, and without the lists and objects that they would leave empty.
pub(crate) fn remove(text: &str, agent: Agent) -> Result<String, JsoncError> {
    let mut current = text.to_owned();
    for entry in entries(agent, "tenon").iter().rev() {
        while let Some(path) = entry.find(jsonc_edit::value(&current)?.as_ref()) {
            // An entry with Tenon's hook alone goes with it.
            let parent = match entry.layout {
                Layout::Nested => only_hook(&current, &path)?,
                Layout::Flat => None,
            };
            match jsonc_edit::remove(&current, parent.as_deref().unwrap_or(&path))? {
                Some(next) => current = next,
                None => break,
            }
        }
    }
    Ok(current)
}

/// The path of the entry whose only hook is at `path`.
fn only_hook(text: &str, path: &[Step]) -> Result<Option<Vec<Step>>, JsoncError> {
    let parent = &path[..path.len() - 2];
    let value = jsonc_edit::value(text)?;
    let entry = value.as_ref().and_then(|value| {
        parent.iter().try_fold(value, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        })
    });
    let hooks = entry.and_then(|entry| entry.get("hooks")).and_then(Value::as_array);
    Ok(hooks.is_some_and(|hooks| hooks.len() == 1).then(|| parent.to_vec()))
}

pub(crate) fn state(text: &str, agent: Agent, program: &str) -> Result<HookState, JsoncError> {
    let value = jsonc_edit::value(text)?;
    let entries = entries(agent, program);
    let found = entries.iter().filter(|entry| entry.find(value.as_ref()).is_some()).count();
    let outdated = entries.iter().any(|entry| entry.outdated(value.as_ref(), program).is_some());
    Ok(match found {
        0 => HookState::Missing,
        all if all == entries.len() && !outdated => HookState::Installed,
        _ => HookState::Stale,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that the hooks are added, that adding again changes nothing, and that removal restores the rest.
    fn assert_added(before: &str) {
        let after = add(before, Agent::Claude, "tenon").unwrap();
        let value = jsonc_edit::value(&after).unwrap().unwrap();
        for (event, command) in [
            ("PostToolUse", "tenon hook post-edit"),
            ("Stop", "tenon hook stop"),
            ("SessionStart", "tenon hook session-start"),
            ("PreCompact", "tenon hook pre-compact"),
        ] {
            let entries = value["hooks"][event].as_array().unwrap();
            assert_eq!(entries.last().unwrap()["hooks"][0]["command"], command);
        }
        assert_eq!(state(&after, Agent::Claude, "tenon").unwrap(), HookState::Installed);
        assert_eq!(add(&after, Agent::Claude, "tenon").unwrap(), after);
        let without = jsonc_edit::value(&remove(&after, Agent::Claude).unwrap()).unwrap().unwrap();
        let mut expected = jsonc_edit::value(before).unwrap().unwrap();
        // Removal also drops event lists that were empty before.
        if let Some(hooks) = expected.get_mut("hooks").and_then(Value::as_object_mut) {
            hooks.retain(|event, list| {
                !["PostToolUse", "Stop"].contains(&event.as_str()) || list != &serde_json::json!([])
            });
            if hooks.is_empty() {
                expected.as_object_mut().unwrap().remove("hooks");
            }
        }
        assert_eq!(without, expected, "{after}");
    }

    #[test]
    fn missing_file_is_created_with_the_hooks() {
        insta::assert_snapshot!(add("", Agent::Gemini, "tenon").unwrap(), @r#"
        {
          "hooks": {
            "AfterTool": [
              {
                "matcher": "write_file|replace|run_shell_command",
                "hooks": [
                  { "type": "command", "command": "tenon hook post-edit", "timeout": 30000 }
                ]
              }
            ],
            "AfterAgent": [
              {
                "hooks": [
                  { "type": "command", "command": "tenon hook stop", "timeout": 30000 }
                ]
              }
            ],
            "SessionStart": [
              {
                "hooks": [
                  { "type": "command", "command": "tenon hook session-start", "timeout": 30000 }
                ]
              }
            ]
          }
        }
        "#);
        insta::assert_snapshot!(add("", Agent::Cursor, "tenon").unwrap(), @r#"
        {
          "version": 1,
          "hooks": {
            "postToolUse": [
              { "command": "tenon hook post-edit", "matcher": "Write|StrReplace|Edit|Delete|Shell", "timeout": 30 }
            ],
            "stop": [
              { "command": "tenon hook stop", "timeout": 30, "loop_limit": 1 }
            ],
            "sessionStart": [
              { "command": "tenon hook session-start", "timeout": 30 }
            ]
          }
        }
        "#);
    }

    #[test]
    fn flat_entries_are_added_and_removed_beside_others() {
        let before = "{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [\n      { \"command\": \"notify\" }\n    ]\n  }\n}\n";
        let after = add(before, Agent::Cursor, "tenon").unwrap();
        assert_eq!(state(&after, Agent::Cursor, "tenon").unwrap(), HookState::Installed);
        assert_eq!(remove(&after, Agent::Cursor).unwrap(), before);
        assert_eq!(remove(before, Agent::Cursor).unwrap(), before);
    }

    #[test]
    fn hooks_are_added_to_any_layout() {
        for before in [
            "{}",
            "{ }\n",
            "{\n}\n",
            r#"{"a":1}"#,
            "{\"hooks\": {}}",
            "{\n  // comment\n  \"hooks\": {\n  },\n  \"z\": [1, 2],\n}\n",
            "{\n\t\"hooks\": {\n\t\t\"PostToolUse\": [\n\t\t]\n\t}\n}",
            "{\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": []}]}, \"a\\\"b\": \"}{,\"}",
            "{\n  \"hooks\": {\n    \"PostToolUse\": [\n      {\"matcher\": \"Write\", \"hooks\": [{\"type\": \"command\", \"command\": \"fmt\"}]}\n    ],\n    \"Stop\": []\n  }\n}\n",
            "{\r\n  \"a\": \"ü😀\",\r\n  \"hooks\": { \"PostToolUse\": [] }\r\n}\r\n",
        ] {
            assert_added(before);
        }
    }

    #[test]
    fn removal_keeps_other_hooks_of_the_same_entry() {
        let tenon = r#"{"type": "command", "command": "/usr/bin/tenon hook post-edit"}"#;
        let other = r#"{"type": "command", "command": "fmt"}"#;
        for (hooks, left) in [
            (format!("[{tenon}, {other}]"), format!("[ {other}]")),
            (format!("[{other},{tenon}]"), format!("[{other}]")),
        ] {
            let file = |hooks: &str| {
                format!(r#"{{"hooks": {{"PostToolUse": [{{"matcher": "X", "hooks": {hooks}}}]}}}}"#)
            };
            assert_eq!(remove(&file(&hooks), Agent::Claude).unwrap(), file(&left));
        }
    }

    #[test]
    fn hook_of_another_program_is_stale_and_only_its_command_changes() {
        let before = "{\"hooks\": {\"PostToolUse\": [{\"matcher\": \"Write\", \"hooks\": [{\"command\": \"/old/tenon hook post-edit\", \"timeout\": 9}]}]}}";
        assert_eq!(state(before, Agent::Claude, "tenon").unwrap(), HookState::Stale);
        let after = add(before, Agent::Claude, "tenon").unwrap();
        assert!(after.starts_with(&before.replace("/old/tenon", "tenon")[..before.len() - 8]), "{after}");
        assert_eq!(state(&after, Agent::Claude, "tenon").unwrap(), HookState::Installed);
    }

    #[test]
    fn unsupported_files_are_rejected() {
        for (text, reason) in [
            ("{", "not valid JSON"),
            ("[]", "the file is not an object"),
            (r#"{"hooks": []}"#, "`hooks` is not an object"),
            (r#"{"hooks": {"PostToolUse": {}}}"#, "`PostToolUse` is not an array"),
        ] {
            assert_eq!(add(text, Agent::Claude, "tenon").unwrap_err().to_string(), reason, "{text}");
        }
    }

    #[test]
    fn tenon_hook_is_recognized_with_any_program_path() {
        for command in
            [HookCommand::PostEdit, HookCommand::Stop, HookCommand::SessionStart, HookCommand::PreCompact]
        {
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
