//! Inserts the hook into an agent's settings file, or removes it, without changing any other byte.
//!
//! The file belongs to the user: it is parsed only to find positions in its text, and never reserialised. The insertion is
//! one piece of text that follows the file's indentation and line ends.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::agent::{Agent, HookCommand};

/// Why a settings file cannot be changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingsError {
    #[error("not valid JSON")]
    NotJson(#[from] serde_json::Error),
    #[error("{0}")]
    Shape(&'static str),
}

/// A hook in a settings file.
#[derive(Debug, Clone)]
pub(super) struct HookEntry {
    /// The event that runs it.
    pub(super) event: &'static str,
    pub(super) command: HookCommand,
    /// The entry for the event's list, as lines with their indentation depth.
    pub(super) lines: Vec<(usize, String)>,
    pub(super) layout: Layout,
}

/// How an event's list holds hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// `{"matcher": …, "hooks": [{"command": …}]}`
    Nested,
    /// `{"command": …}`
    Flat,
}

/// A piece of text to insert at an offset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Insertion {
    pub(super) at: usize,
    pub(super) text: String,
}

impl Insertion {
    pub(super) fn apply(&self, text: &str) -> String {
        format!("{}{}{}", &text[..self.at], self.text, &text[self.at..])
    }

    /// The text before the insertion.
    pub(super) fn undo(&self, text: &str) -> Option<String> {
        let end = self.at.checked_add(self.text.len())?;
        Some(format!("{}{}", text.get(..self.at)?, text.get(end..)?))
    }
}

/// An array or object in the text, and its items with their spans.
struct Container<'a> {
    span: Range<usize>,
    items: Vec<Item<'a>>,
}

struct Item<'a> {
    /// `None` for array items.
    key: Option<String>,
    raw: &'a str,
    span: Range<usize>,
}

impl<'a> Container<'a> {
    fn object(whole: &str, raw: &'a str, shape: &'static str) -> Result<Self, SettingsError> {
        let members: BTreeMap<String, &'a RawValue> =
            serde_json::from_str(raw).map_err(|_| SettingsError::Shape(shape))?;
        let items = members.into_iter().map(|(key, value)| Item::new(whole, Some(key), value));
        Ok(Self::new(whole, raw, items.collect()))
    }

    fn list(whole: &str, raw: &'a str, shape: &'static str) -> Result<Self, SettingsError> {
        let values: Vec<&'a RawValue> = serde_json::from_str(raw).map_err(|_| SettingsError::Shape(shape))?;
        let items = values.into_iter().map(|value| Item::new(whole, None, value));
        Ok(Self::new(whole, raw, items.collect()))
    }

    fn new(whole: &str, raw: &str, mut items: Vec<Item<'a>>) -> Self {
        items.sort_by_key(|item| item.span.start);
        Self { span: span(whole, raw), items }
    }

    fn member(&self, key: &str) -> Option<(usize, &Item<'a>)> {
        self.items.iter().enumerate().find(|(_, item)| item.key.as_deref() == Some(key))
    }

    /// The range to delete so that the item is removed and the rest is unchanged.
    fn removal_range(&self, text: &str, index: usize) -> Range<usize> {
        let end = self.items[index].span.end;
        if let Some(before) = index.checked_sub(1) {
            return self.items[before].span.end..end;
        }
        let inside = self.span.start + 1;
        match text[end..].find(',') {
            Some(comma) if self.items.len() > 1 => inside..end + comma + 1,
            _ => inside..self.span.end - 1,
        }
    }
}

impl<'a> Item<'a> {
    fn new(whole: &str, key: Option<String>, value: &'a RawValue) -> Self {
        Self { key, raw: value.get(), span: span(whole, value.get()) }
    }
}

/// The byte range of `part` in `whole`, which it is a slice of.
fn span(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

/// The containers on the path `hooks`, event, entries, as far as the file has them. Indices are positions in the parent.
struct HookPath<'a> {
    root: Container<'a>,
    hooks: Option<(usize, Container<'a>)>,
    list: Option<(usize, Container<'a>)>,
}

impl<'a> HookPath<'a> {
    fn find(text: &'a str, event: &str) -> Result<Self, SettingsError> {
        let whole: &RawValue = serde_json::from_str(text)?;
        let root = Container::object(text, whole.get(), "not a JSON object")?;
        let hooks = match root.member("hooks") {
            Some((index, item)) => {
                Some((index, Container::object(text, item.raw, "`hooks` is not an object")?))
            }
            None => None,
        };
        let list = match hooks.as_ref().and_then(|(_, hooks)| hooks.member(event)) {
            Some((index, item)) => {
                Some((index, Container::list(text, item.raw, "the hooks of the event are not an array")?))
            }
            None => None,
        };
        Ok(Self { root, hooks, list })
    }

    /// Tenon's hook: its entry's index and, in the nested layout, the entry's list with its index there.
    fn tenon_hook(&self, text: &str, wanted: &HookEntry) -> Option<(usize, Option<(usize, Container<'a>)>)> {
        #[derive(Deserialize)]
        struct Entry<'a> {
            #[serde(borrow)]
            hooks: &'a RawValue,
        }
        #[derive(Deserialize)]
        struct Hook {
            command: String,
        }
        let is_ours = |hook: &Item<'_>| {
            serde_json::from_str::<Hook>(hook.raw).is_ok_and(|hook| wanted.command.is_run_by(&hook.command))
        };
        let (_, list) = self.list.as_ref()?;
        list.items.iter().enumerate().find_map(|(index, item)| match wanted.layout {
            Layout::Flat => is_ours(item).then_some((index, None)),
            Layout::Nested => {
                let entry: Entry<'a> = serde_json::from_str(item.raw).ok()?;
                let hooks = Container::list(text, entry.hooks.get(), "").ok()?;
                let inner = hooks.items.iter().position(is_ours)?;
                Some((index, Some((inner, hooks))))
            }
        })
    }
}

/// The texts to insert, one after the other, into a file that may not exist yet. Empty if it has all hooks already.
pub(super) fn insertions(
    text: Option<&str>,
    agent: Agent,
    program: &str,
) -> Result<Vec<Insertion>, SettingsError> {
    let is_new = text.is_none_or(|text| text.trim().is_empty());
    let empty = if agent == Agent::Cursor { "{\n  \"version\": 1\n}" } else { "{}" };
    let mut current = text.filter(|_| !is_new).unwrap_or(empty).to_owned();
    let mut pieces = Vec::new();
    let mut insert = |current: &mut String, piece: Insertion| {
        *current = piece.apply(current);
        pieces.push(piece);
    };
    for entry in agent.entries(program) {
        if let Some(piece) = insertion(&current, &entry)? {
            insert(&mut current, piece);
        }
    }
    if agent == Agent::Cursor && Some(current.as_str()) != text && !has_member(&current, "version")? {
        let piece = member(&current, vec![(0, r#""version": 1"#.to_owned())])?;
        insert(&mut current, piece);
    }
    match is_new {
        true => Ok(vec![Insertion { at: 0, text: current + "\n" }]),
        false => Ok(pieces),
    }
}

fn has_member(text: &str, key: &str) -> Result<bool, SettingsError> {
    let whole: &RawValue = serde_json::from_str(text)?;
    Ok(Container::object(text, whole.get(), "not a JSON object")?.member(key).is_some())
}

/// Inserts a member at the end of the file's object.
fn member(text: &str, lines: Vec<(usize, String)>) -> Result<Insertion, SettingsError> {
    let whole: &RawValue = serde_json::from_str(text)?;
    let root = Container::object(text, whole.get(), "not a JSON object")?;
    Ok(appended(text, &root, 0, &lines))
}

fn insertion(text: &str, entry: &HookEntry) -> Result<Option<Insertion>, SettingsError> {
    let path = HookPath::find(text, entry.event)?;
    if path.tenon_hook(text, entry).is_some() {
        return Ok(None);
    }
    let list = || wrapped(format!("\"{}\": [", entry.event), entry.lines.clone(), "]");
    let hooks = || wrapped("\"hooks\": {".to_owned(), list(), "}");
    Ok(Some(match (&path.hooks, &path.list) {
        (_, Some((_, found))) => appended(text, found, 2, &entry.lines),
        (Some((_, found)), None) => appended(text, found, 1, &list()),
        (None, None) => appended(text, &path.root, 0, &hooks()),
    }))
}

/// Inserts lines as the last item of an array or object at a depth.
fn appended(text: &str, container: &Container<'_>, depth: usize, lines: &[(usize, String)]) -> Insertion {
    let style = Style::of(text);
    let new = style.lines(lines, depth + 1);
    match container.items.last() {
        Some(last) => Insertion { at: last.span.end, text: format!(",{}{new}", style.line_end) },
        None => {
            let closing = format!("{}{}", style.line_end, style.indent(depth));
            Insertion { at: container.span.start + 1, text: format!("{}{new}{closing}", style.line_end) }
        }
    }
}

/// The text without the hooks, and without the arrays and objects that they would leave empty. `None` if it has none.
pub(super) fn without_hooks(text: &str, agent: Agent) -> Result<Option<String>, SettingsError> {
    let mut current = text.to_owned();
    for entry in agent.entries("tenon").iter().rev() {
        if let Some(cut) = removal(&current, entry)? {
            current.replace_range(cut, "");
        }
    }
    Ok((current != text).then_some(current))
}

/// Whether the file has all hooks.
pub(super) fn has_hooks(text: &str, agent: Agent) -> bool {
    let has = |entry: &HookEntry| {
        HookPath::find(text, entry.event).is_ok_and(|path| path.tenon_hook(text, entry).is_some())
    };
    agent.entries("tenon").iter().all(has)
}

fn removal(text: &str, entry: &HookEntry) -> Result<Option<Range<usize>>, SettingsError> {
    let path = HookPath::find(text, entry.event)?;
    let (Some((index, own)), Some((hooks_at, hooks)), Some((list_at, list))) =
        (path.tenon_hook(text, entry), &path.hooks, &path.list)
    else {
        return Ok(None);
    };
    let mut levels: Vec<(&Container<'_>, usize)> = Vec::new();
    levels.extend(own.as_ref().map(|(inner, own)| (own, *inner)));
    levels.extend([(list, index), (hooks, *list_at), (&path.root, *hooks_at)]);
    let shared = levels.iter().find(|(container, _)| container.items.len() > 1);
    let (container, item) = shared.unwrap_or(&levels[levels.len() - 1]);
    Ok(Some(container.removal_range(text, *item)))
}

/// Indents lines between an opening and a closing line.
fn wrapped(open: String, inside: Vec<(usize, String)>, close: &str) -> Vec<(usize, String)> {
    let deeper = inside.into_iter().map(|(depth, line)| (depth + 1, line));
    std::iter::once((0, open)).chain(deeper).chain([(0, close.to_owned())]).collect()
}

/// The indentation and line ends of a file.
struct Style<'a> {
    unit: &'a str,
    line_end: &'a str,
}

impl<'a> Style<'a> {
    const DEFAULT: Style<'static> = Style { unit: "  ", line_end: "\n" };

    fn of(text: &'a str) -> Self {
        let Some((first, rest)) = text.trim_end().split_once('\n') else {
            // One line: stays one line, unless it is an empty object.
            let empty = text.trim().trim_start_matches('{').trim_end_matches('}').trim().is_empty();
            return if empty { Self::DEFAULT } else { Self { unit: "", line_end: "" } };
        };
        let line_end = if first.ends_with('\r') { "\r\n" } else { "\n" };
        let indented = rest.lines().find(|line| line.starts_with([' ', '\t']));
        let unit = indented.map_or(Self::DEFAULT.unit, |line| &line[..line.len() - line.trim_start().len()]);
        Self { unit, line_end }
    }

    fn indent(&self, depth: usize) -> String {
        self.unit.repeat(depth)
    }

    fn lines(&self, lines: &[(usize, String)], depth: usize) -> String {
        let lines = lines.iter().map(|(deeper, line)| self.indent(depth + deeper) + line);
        lines.collect::<Vec<_>>().join(self.line_end)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn apply(text: &str, pieces: &[Insertion]) -> String {
        pieces.iter().fold(text.to_owned(), |text, piece| piece.apply(&text))
    }

    fn installed(text: &str) -> String {
        let pieces = insertions(Some(text), Agent::Claude, "tenon").unwrap();
        assert!(!pieces.is_empty(), "the hook is installed already");
        apply(text, &pieces)
    }

    fn removed(text: &str) -> String {
        without_hooks(text, Agent::Claude).unwrap().expect("the hook is installed")
    }

    /// Asserts that the hooks are installed, that installing again changes nothing, and that removal restores the rest.
    fn assert_installed(before: &str) {
        let after = installed(before);
        let value: Value = serde_json::from_str(&after).unwrap_or_else(|error| panic!("{error}: {after}"));
        for (event, command) in [("PostToolUse", "tenon hook post-edit"), ("Stop", "tenon hook stop")] {
            let entries = value["hooks"][event].as_array().unwrap();
            assert_eq!(entries.last().unwrap()["hooks"][0]["command"], command);
        }
        assert!(has_hooks(&after, Agent::Claude));
        assert_eq!(insertions(Some(&after), Agent::Claude, "tenon").unwrap(), [], "{after}");
        let without: Value = serde_json::from_str(&removed(&after)).unwrap();
        let mut expected: Value = serde_json::from_str(before).unwrap();
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
        let new = |agent| apply("", &insertions(None, agent, "tenon").unwrap());
        insta::assert_snapshot!(new(Agent::Gemini), @r#"
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
            ]
          }
        }
        "#);
        insta::assert_snapshot!(new(Agent::Cursor), @r#"
        {
          "version": 1,
          "hooks": {
            "postToolUse": [
              { "command": "tenon hook post-edit", "matcher": "Write|StrReplace|Edit|Delete|Shell", "timeout": 30 }
            ],
            "stop": [
              { "command": "tenon hook stop", "timeout": 30, "loop_limit": 1 }
            ]
          }
        }
        "#);
    }

    #[test]
    fn flat_entries_are_inserted_and_removed_beside_others() {
        let before = "{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [\n      { \"command\": \"notify\" }\n    ]\n  }\n}\n";
        let after = apply(before, &insertions(Some(before), Agent::Cursor, "tenon").unwrap());
        assert!(has_hooks(&after, Agent::Cursor), "{after}");
        assert_eq!(insertions(Some(&after), Agent::Cursor, "tenon").unwrap(), []);
        assert_eq!(without_hooks(&after, Agent::Cursor).unwrap().as_deref(), Some(before));
        assert_eq!(without_hooks(before, Agent::Cursor).unwrap(), None);
    }

    #[test]
    fn other_settings_are_kept() {
        let before = "{\n    \"model\": \"opus\",\n    \"env\": {\"A\": \"1\"}\n}";
        insta::assert_snapshot!(installed(before), @r#"
        {
            "model": "opus",
            "env": {"A": "1"},
            "hooks": {
                "PostToolUse": [
                    {
                        "matcher": "Edit|MultiEdit|Write|NotebookEdit|Bash",
                        "hooks": [
                            { "type": "command", "command": "tenon hook post-edit", "timeout": 30 }
                        ]
                    }
                ],
                "Stop": [
                    {
                        "hooks": [
                            { "type": "command", "command": "tenon hook stop", "timeout": 30 }
                        ]
                    }
                ]
            }
        }
        "#);
        assert_eq!(removed(&installed(before)), before);
    }

    #[test]
    fn install_and_removal_keep_any_layout() {
        for before in [
            "{}",
            "{ }\n",
            "{\n}\n",
            r#"{"a":1}"#,
            "{\"hooks\": {}}",
            "{\n  \"hooks\": {\n  },\n  \"z\": [1, 2]\n}\n",
            "{\n\t\"hooks\": {\n\t\t\"PostToolUse\": [\n\t\t]\n\t}\n}",
            "{\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": []}]}, \"a\\\"b\": \"}{,\"}",
            "{\n  \"hooks\": {\n    \"PostToolUse\": [\n      {\"matcher\": \"Write\", \"hooks\": [{\"type\": \"command\", \"command\": \"fmt\"}]}\n    ],\n    \"Stop\": []\n  }\n}\n",
            "{\r\n  \"a\": \"ü😀\",\r\n  \"hooks\": { \"PostToolUse\": [] }\r\n}\r\n",
        ] {
            assert_installed(before);
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
            assert_eq!(removed(&file(&hooks)), file(&left));
        }
    }

    #[test]
    fn unsupported_files_are_rejected() {
        for (text, reason) in [
            ("{", "not valid JSON"),
            ("// comment\n{}", "not valid JSON"),
            ("[]", "not a JSON object"),
            (r#"{"hooks": []}"#, "`hooks` is not an object"),
            (r#"{"hooks": {"PostToolUse": {}}}"#, "the hooks of the event are not an array"),
        ] {
            let error = insertions(Some(text), Agent::Claude, "tenon").unwrap_err();
            assert_eq!(error.to_string(), reason, "{text}");
        }
    }
}
