//! Natural arguments: whatever form a model gives a value in, read as what it means.
//!
//! A string may be a list, a number an id, a word a flag. Names are compared without case, `_` and `-`. Names that no tool
//! knows are kept, so that the answer can say that they were ignored.

use serde_json::{Map, Value};

use super::markdown_list::{self, ListItem};

/// The arguments of a call that have not been read yet.
pub(super) struct Fields(Vec<(String, Value)>);

impl Fields {
    pub(super) fn new(arguments: Map<String, Value>) -> Self {
        Self(arguments.into_iter().filter(|(_, value)| !is_absent(value)).collect())
    }

    /// Takes the first of these arguments that was given. Names are in lower case, letters and digits only.
    fn take(&mut self, names: &[&str]) -> Option<Value> {
        names.iter().find_map(|name| {
            let at = self.0.iter().position(|(given, _)| plain(given) == *name)?;
            Some(self.0.remove(at).1)
        })
    }

    pub(super) fn text(&mut self, names: &[&str]) -> Option<String> {
        self.take(names).map(|value| text(&value)).filter(|text| !text.is_empty())
    }

    pub(super) fn texts(&mut self, names: &[&str]) -> Vec<String> {
        self.take(names).map(|value| texts(&value)).unwrap_or_default()
    }

    pub(super) fn flag(&mut self, names: &[&str]) -> Option<Flag> {
        self.take(names).map(|value| flag(&value))
    }

    pub(super) fn steps(&mut self, names: &[&str]) -> Vec<ListItem> {
        self.take(names).map(|value| steps(&value)).unwrap_or_default()
    }

    pub(super) fn number(&mut self, names: &[&str]) -> Option<usize> {
        let value = self.take(names)?;
        text(&value).parse::<f64>().ok().filter(|number| *number >= 0.0).map(|number| number as usize)
    }

    /// The names of the arguments that nothing has read, sorted.
    pub(super) fn unread(self) -> Vec<String> {
        let mut names: Vec<String> =
            self.0.into_iter().map(|(name, _)| name.chars().take(40).collect()).collect();
        names.sort_unstable();
        names
    }
}

fn is_absent(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.iter().all(is_absent),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// A name or word in its one form.
fn plain(text: &str) -> String {
    text.chars().filter(|one| one.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// What an argument says as text: lists become lines.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Null => String::new(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join("\n"),
        Value::Object(map) => match titled(map) {
            Some(title) => text(title),
            None => value.to_string(),
        },
        other => other.to_string(),
    }
}

/// The member of an object that names it.
fn titled(map: &Map<String, Value>) -> Option<&Value> {
    const NAMES: [&str; 8] = ["title", "content", "text", "name", "step", "task", "description", "id"];
    NAMES.iter().find_map(|name| {
        map.iter().find(|(given, value)| plain(given) == *name && !is_absent(value)).map(|(_, value)| value)
    })
}

/// A list given as an array, as JSON in a string, or as text with commas or lines.
fn texts(value: &Value) -> Vec<String> {
    match unpacked(value) {
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::String(list) => {
            let parts = list.split([',', '\n', ';']).map(str::trim);
            parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
        }
        other => Some(text(&other)).filter(|text| !text.is_empty()).into_iter().collect(),
    }
}

/// Steps given as an array of strings or objects, or as a list in text.
fn steps(value: &Value) -> Vec<ListItem> {
    match unpacked(value) {
        Value::String(list) => markdown_list::read(&list),
        Value::Array(items) => items.iter().flat_map(steps).collect(),
        Value::Object(map) => match titled(&map).map(text) {
            Some(title) => vec![step(title, Fields::new(map))],
            // `{"1": "first", "2": "second"}`
            None => map.values().flat_map(steps).collect(),
        },
        Value::Null => Vec::new(),
        other => vec![ListItem::titled(&text(&other))],
    }
}

fn step(title: String, mut fields: Fields) -> ListItem {
    let mut item = ListItem::titled(&title);
    let done = fields.flag(&["done", "completed", "checked"]).is_some_and(|flag| flag.is_on());
    item.done |=
        done || fields.text(&["status", "state"]).is_some_and(|word| status(&word) == Some(Status::Done));
    item.criteria.extend(fields.texts(&["successcriteria", "criteria", "acceptance", "acceptancecriteria"]));
    item.tests.extend(fields.texts(&["tests", "test", "check", "checks", "verify"]));
    item.items.extend(fields.steps(&["steps", "substeps", "children", "subtasks", "items"]));
    item
}

/// A value that is JSON in a string.
fn unpacked(value: &Value) -> Value {
    if let Value::String(text) = value
        && (text.trim_start().starts_with('[') || text.trim_start().starts_with('{'))
        && let Ok(inside @ (Value::Array(_) | Value::Object(_))) = serde_json::from_str(text)
    {
        return inside;
    }
    value.clone()
}

/// A flag, or a text where a flag was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Flag {
    On,
    Off,
    Text(String),
}

impl Flag {
    /// A text counts as yes: the argument was given for a reason.
    pub(super) fn is_on(&self) -> bool {
        *self != Self::Off
    }
}

fn flag(value: &Value) -> Flag {
    let text = text(value);
    match plain(&text).as_str() {
        "true" | "yes" | "y" | "1" | "on" | "done" | "completed" | "complete" | "finished" | "x" => Flag::On,
        "false" | "no" | "n" | "0" | "off" | "open" | "undone" | "notdone" => Flag::Off,
        _ => Flag::Text(text),
    }
}

/// What a word for a status means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Todo,
    Active,
    Done,
    /// Todo or active.
    Open,
    Blocked,
    Unblocked,
    Cancelled,
    Ready,
    All,
}

pub(super) fn status(word: &str) -> Option<Status> {
    Some(match plain(word).as_str() {
        "todo" | "new" | "pending" | "notstarted" | "planned" | "backlog" | "queued" => Status::Todo,
        "active" | "inprogress" | "wip" | "doing" | "started" | "start" | "working" | "current"
        | "ongoing" | "resumed" | "workinprogress" => Status::Active,
        "done" | "completed" | "complete" | "finished" | "finish" | "closed" | "close" | "resolved"
        | "fixed" | "success" | "passed" | "true" => Status::Done,
        "open" | "reopen" | "reopened" | "incomplete" | "unfinished" | "notdone" | "remaining" | "undone"
        | "false" => Status::Open,
        "blocked" | "block" | "stuck" | "waiting" | "onhold" | "paused" => Status::Blocked,
        "unblocked" | "unblock" | "notblocked" => Status::Unblocked,
        "cancelled" | "canceled" | "cancel" | "dropped" | "wontfix" | "wontdo" | "deleted" | "delete"
        | "removed" | "abandoned" | "obsolete" | "skipped" => Status::Cancelled,
        "ready" | "available" | "next" | "unclaimed" => Status::Ready,
        "all" | "any" | "every" | "everything" | "both" => Status::All,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Fields {
        let Value::Object(map) = value else { panic!("arguments are an object") };
        Fields::new(map)
    }

    #[test]
    fn lists_are_read_in_any_form() {
        for given in [
            json!(["Read", "Write"]),
            json!("- Read\n- Write"),
            json!("1. Read\n2) Write\n"),
            json!("Read\nWrite"),
            json!("[\"Read\", \"Write\"]"),
            json!([{"content": "Read", "status": "pending"}, {"title": "Write"}]),
            json!({"1": "Read", "2": "Write"}),
        ] {
            let read = fields(json!({"Steps": given})).steps(&["steps"]);
            let titles: Vec<&str> = read.iter().map(|step| step.title.as_str()).collect();
            assert_eq!(titles, ["Read", "Write"], "{read:?}");
        }
    }

    #[test]
    fn names_and_flags_are_read_in_any_form() {
        let mut given = fields(json!({"task_id": 7, "Done": "yes", "x": null, "y": "", "extra": 1}));
        assert_eq!(given.text(&["id", "taskid"]), Some("7".into()));
        assert_eq!(given.flag(&["done"]), Some(Flag::On));
        assert_eq!(given.unread(), ["extra"]);
        for (word, meaning) in
            [("in progress", Status::Active), ("In-Progress", Status::Active), ("Completed", Status::Done)]
        {
            assert_eq!(status(word), Some(meaning), "{word}");
        }
        assert_eq!(status("purple"), None);
    }
}
