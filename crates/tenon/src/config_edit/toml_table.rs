//! Edits one table of a TOML text by spans: every byte that an edit does not concern stays where it is.
//!
//! The parser gives the spans. It does not write the text, because that would change line ends and a missing last newline.
//! Every edit is parsed again: a layout in which the table would not be as wanted is refused.

use std::ops::Range;

use serde_json::Value;
use toml_edit::{Document, Item, Table, TableLike};

const BOM: &str = "\u{feff}";

/// Why a text cannot be edited.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TomlError {
    #[error("not valid TOML")]
    Syntax(#[source] Box<toml_edit::TomlError>),
    #[error("`{0}` is not written as a table with a header")]
    Shape(String),
}

/// The members of the table at `path`.
pub(crate) fn table(text: &str, path: &[&str]) -> Result<Option<Value>, TomlError> {
    let document = parse(text)?;
    let mut item = document.as_item();
    for key in path {
        let Some(next) = item.as_table_like().and_then(|table| table.get(key)) else { return Ok(None) };
        item = next;
    }
    Ok(Some(to_json(item)))
}

/// Sets members of the table at `path` and removes others from it. Creates the table at the end of the text.
pub(crate) fn set(
    text: &str,
    path: &[&str],
    members: &[(String, Value)],
    remove: &[&str],
) -> Result<String, TomlError> {
    let (bom, body) = split_bom(text);
    let line_end = if body.contains("\r\n") { "\r\n" } else { "\n" };
    let document = parse(text)?;
    let after = match find(&document, path)? {
        None => {
            let gap = match body {
                "" => "",
                _ if body.ends_with('\n') => line_end,
                _ => &line_end.repeat(2),
            };
            let lines = members.iter().map(|(key, value)| format!("{key} = {}{line_end}", written(value)));
            format!("{body}{gap}[{}]{line_end}{}", path.join("."), lines.collect::<String>())
        }
        Some((table, header)) => {
            let mut edits: Vec<(Range<usize>, String)> = Vec::new();
            let mut missing = String::new();
            for (key, value) in members {
                match table.get(key) {
                    None => missing.push_str(&format!("{line_end}{key} = {}", written(value))),
                    Some(item) if &to_json(item) == value => {}
                    Some(item) => edits.push((value_span(item, key)?, written(value))),
                }
            }
            if !missing.is_empty() {
                let end = line_end_at(body, header.end);
                edits.push((end..end, missing));
            }
            for key in remove {
                if let Some(item) = table.get(key) {
                    let value = value_span(item, key)?;
                    let start = body[..value.start].rfind('\n').map_or(0, |end| end + 1);
                    let end = body[value.end..].find('\n').map_or(body.len(), |end| value.end + end + 1);
                    edits.push((start..end, String::new()));
                }
            }
            applied(body, edits)
        }
    };
    let found = table(&after, path)?;
    let is_set =
        |(key, value): &(String, Value)| found.as_ref().and_then(|table| table.get(key)) == Some(value);
    match members.iter().all(is_set) {
        true => Ok(format!("{bom}{after}")),
        false => Err(TomlError::Shape(path.join("."))),
    }
}

/// Sets one value, where it is or in its table, which is created if necessary.
pub(crate) fn set_value(text: &str, path: &[&str], value: &Value) -> Result<String, TomlError> {
    let (bom, body) = split_bom(text);
    let line_end = if body.contains("\r\n") { "\r\n" } else { "\n" };
    let (Some((key, above)), document) = (path.split_last(), parse(text)?) else {
        return Ok(text.to_owned());
    };
    let mut item = Some(document.as_item());
    for step in path {
        item = item.and_then(|item| item.as_table_like()).and_then(|table| table.get(step));
    }
    let after = match item {
        Some(item) => applied(body, vec![(value_span(item, &path.join("."))?, written(value))]),
        None if above.is_empty() => format!("{key} = {}{line_end}{body}", written(value)),
        None => match find(&document, above) {
            Ok(_) => return set(text, above, &[((*key).to_owned(), value.clone())], &[]),
            // Written with dots: one more line of that kind, before the first table.
            Err(_) => format!("{} = {}{line_end}{body}", path.join("."), written(value)),
        },
    };
    match parent_table(&after, above)?.and_then(|table| table.get(key).cloned()).as_ref() == Some(value) {
        true => Ok(format!("{bom}{after}")),
        false => Err(TomlError::Shape(above.join("."))),
    }
}

fn parent_table(text: &str, path: &[&str]) -> Result<Option<Value>, TomlError> {
    table(text, path).map_err(|error| match error {
        // The text parsed before: the new line does not fit its layout.
        TomlError::Syntax(_) => TomlError::Shape(path.join(".")),
        other => other,
    })
}

/// Removes the table at `path` with all tables inside it. `None` if there is no such table.
pub(crate) fn remove(text: &str, path: &[&str]) -> Result<Option<String>, TomlError> {
    let (bom, body) = split_bom(text);
    let document = parse(text)?;
    if find(&document, path)?.is_none() {
        return Ok(None);
    }
    let mut sections = Vec::new();
    collect_sections(document.as_table(), &mut Vec::new(), &mut sections);
    sections.sort_by_key(|section| section.start);
    let mut edits = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        if section.path.len() < path.len() || section.path[..path.len()] != *path {
            continue;
        }
        let next = sections.get(index + 1).map_or(body.len(), |next| next.start);
        let start = body[..section.start].rfind('\n').map_or(0, |end| end + 1);
        // A blank line before the table goes with it.
        let before = body[..start].strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        let start = match before {
            Some(line) if line.is_empty() || line.ends_with('\n') => line.len(),
            _ => start,
        };
        edits.push((start..own_end(body, section.start, next), String::new()));
    }
    let after = applied(body, edits);
    match table(&after, path) {
        Ok(None) => Ok(Some(format!("{bom}{after}"))),
        _ => Err(TomlError::Shape(path.join("."))),
    }
}

fn split_bom(text: &str) -> (&'static str, &str) {
    match text.strip_prefix(BOM) {
        Some(rest) => (BOM, rest),
        None => ("", text),
    }
}

fn parse(text: &str) -> Result<Document<&str>, TomlError> {
    Document::parse(split_bom(text).1).map_err(|error| TomlError::Syntax(Box::new(error)))
}

/// A value in TOML. Texts and numbers look the same in JSON.
fn written(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// The table at a path and the span of the header.
fn find<'d>(
    document: &'d Document<&str>,
    path: &[&str],
) -> Result<Option<(&'d Table, Range<usize>)>, TomlError> {
    let mut table: &Table = document.as_table();
    for (depth, key) in path.iter().enumerate() {
        let shape = || TomlError::Shape(path[..=depth].join("."));
        table = match table.get(key) {
            None => return Ok(None),
            Some(Item::Table(found)) if !found.is_dotted() => found,
            Some(_) => return Err(shape()),
        };
    }
    match table.span() {
        Some(span) if !table.is_implicit() => Ok(Some((table, span))),
        _ => Err(TomlError::Shape(path.join("."))),
    }
}

fn value_span(item: &Item, key: &str) -> Result<Range<usize>, TomlError> {
    let value = item.as_value().and_then(toml_edit::Value::span);
    value.ok_or_else(|| TomlError::Shape(key.to_owned()))
}

/// The end of the line that `at` is on, before its line break.
fn line_end_at(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    if text[..end].ends_with('\r') { end - 1 } else { end }
}

/// The end of a section before `next`, without the comments behind it, which are about something else.
fn own_end(text: &str, start: usize, next: usize) -> usize {
    let mut end = match next == text.len() {
        true => next,
        false => text[..next].rfind('\n').map_or(next, |line| line + 1),
    };
    loop {
        let line_start = text[..end.saturating_sub(1)].rfind('\n').map_or(0, |line| line + 1);
        let line = text[line_start..end].trim();
        if line_start <= start || !(line.is_empty() || line.starts_with('#')) {
            return end;
        }
        end = line_start;
    }
}

fn applied(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut after = String::with_capacity(text.len());
    let mut at = 0;
    for (range, new) in edits {
        after.push_str(&text[at..range.start.max(at)]);
        after.push_str(&new);
        at = range.end.max(at);
    }
    after + &text[at..]
}

/// A table with a header in the text.
struct Section<'d> {
    path: Vec<&'d str>,
    start: usize,
}

fn collect_sections<'d>(table: &'d Table, path: &mut Vec<&'d str>, found: &mut Vec<Section<'d>>) {
    for (key, item) in table.iter() {
        path.push(key);
        let tables: Vec<&Table> = match item {
            Item::Table(inner) => vec![inner],
            Item::ArrayOfTables(inner) => inner.iter().collect(),
            Item::None | Item::Value(_) => vec![],
        };
        for inner in tables {
            let start = inner.span().filter(|_| !inner.is_implicit() && !inner.is_dotted());
            found.extend(start.map(|span| Section { path: path.clone(), start: span.start }));
            collect_sections(inner, path, found);
        }
        path.pop();
    }
}

fn to_json(item: &Item) -> Value {
    let members = |table: &dyn TableLike| {
        table.iter().map(|(key, item)| (key.to_owned(), to_json(item))).collect::<Value>()
    };
    match item {
        Item::None => Value::Null,
        Item::Table(table) => members(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| members(table)).collect(),
        Item::Value(value) => match value {
            toml_edit::Value::String(text) => Value::from(text.value().as_str()),
            toml_edit::Value::Integer(number) => Value::from(*number.value()),
            toml_edit::Value::Float(number) => Value::from(*number.value()),
            toml_edit::Value::Boolean(value) => Value::from(*value.value()),
            toml_edit::Value::Datetime(time) => Value::from(time.value().to_string()),
            toml_edit::Value::Array(items) => {
                items.iter().map(|value| to_json(&Item::Value(value.clone()))).collect()
            }
            toml_edit::Value::InlineTable(table) => members(table),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PATH: &[&str] = &["mcp_servers", "tenon"];

    fn members() -> Vec<(String, Value)> {
        vec![("command".to_owned(), json!("tenon")), ("args".to_owned(), json!(["mcp"]))]
    }

    #[test]
    fn table_is_added_and_removed_in_any_layout() {
        for before in [
            "",
            "model = \"x\"\n",
            "model = \"x\"",
            "# only a comment\n",
            "model = \"x\" # why\r\n\r\n[mcp_servers.a]\r\ncommand = \"a\"\r\n",
            "\u{feff}[tui]\nx = 1\n",
            "[mcp_servers]\n[mcp_servers.a]\nargs = [\n  \"[mcp_servers.tenon]\",\n]\n",
            "[[list]]\na = 1\n[[list]]\na = 2\n",
            "[mcp_servers.a]\nenv = { B = \"c\" }\n\n# tail\n",
        ] {
            let after = set(before, PATH, &members(), &[]).unwrap();
            assert!(after.starts_with(before), "{after:?}");
            assert_eq!(table(&after, PATH).unwrap().unwrap(), json!({"command": "tenon", "args": ["mcp"]}));
            assert_eq!(set(&after, PATH, &members(), &[]).unwrap(), after);
            if before.contains('\r') {
                assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
            }
            let removed = remove(&after, PATH).unwrap().unwrap();
            assert_eq!(removed.trim_end(), before.trim_end());
        }
    }

    #[test]
    fn existing_table_keeps_what_the_user_added() {
        let before = "[mcp_servers.tenon] # mine\ncommand = \"/old/tenon\" # moved\nstartup_timeout_sec = 30\nurl = \"u\"\n\n[mcp_servers.tenon.env]\nA = \"1\"\n\n# about b\n[b]\n";
        let after = set(before, PATH, &members(), &["url"]).unwrap();
        assert_eq!(
            after,
            "[mcp_servers.tenon] # mine\nargs = [\"mcp\"]\ncommand = \"tenon\" # moved\nstartup_timeout_sec = 30\n\n[mcp_servers.tenon.env]\nA = \"1\"\n\n# about b\n[b]\n"
        );
        assert_eq!(remove(&after, PATH).unwrap().unwrap(), "\n# about b\n[b]\n");
    }

    #[test]
    fn table_between_others_is_removed_alone() {
        let text = "[a]\nx = 1\n\n[mcp_servers.tenon]\ncommand = \"t\"\n\n# about b\n[b]\ny = 2\n";
        assert_eq!(remove(text, PATH).unwrap().unwrap(), "[a]\nx = 1\n\n# about b\n[b]\ny = 2\n");
        assert_eq!(remove("[a]\n", PATH).unwrap(), None);
    }

    #[test]
    fn value_is_set_in_any_layout() {
        let path = &["edit", "allow"];
        for (before, after) in [
            ("", "[edit]\nallow = [\"/w\"]\n"),
            ("http.port = 1\n", "http.port = 1\n\n[edit]\nallow = [\"/w\"]\n"),
            ("[edit] # mine\nwait_ms = 5\n", "[edit] # mine\nallow = [\"/w\"]\nwait_ms = 5\n"),
            ("[edit]\r\nallow = [] # none\r\n", "[edit]\r\nallow = [\"/w\"] # none\r\n"),
            (
                "edit.wait_ms = 5\n[http]\nport = 1",
                "edit.allow = [\"/w\"]\nedit.wait_ms = 5\n[http]\nport = 1",
            ),
            ("edit = { allow = [], wait_ms = 5 }\n", "edit = { allow = [\"/w\"], wait_ms = 5 }\n"),
        ] {
            assert_eq!(set_value(before, path, &json!(["/w"])).unwrap(), after);
        }
        let error = set_value("edit = { wait_ms = 5 }", path, &json!([])).unwrap_err();
        assert_eq!(error.to_string(), "`edit` is not written as a table with a header");
    }

    #[test]
    fn other_layouts_are_refused() {
        for (text, reason) in [
            ("a = ", "not valid TOML"),
            ("{}", "not valid TOML"),
            ("mcp_servers = {}", "`mcp_servers` is not written as a table with a header"),
            ("mcp_servers = 1", "`mcp_servers` is not written as a table with a header"),
            ("mcp_servers.tenon.command = \"x\"", "`mcp_servers` is not written as a table with a header"),
            (
                "[mcp_servers]\ntenon.command = \"x\"",
                "`mcp_servers.tenon` is not written as a table with a header",
            ),
            (
                "[mcp_servers]\ntenon = { command = \"x\" }",
                "`mcp_servers.tenon` is not written as a table with a header",
            ),
            ("[[mcp_servers.tenon]]\n", "`mcp_servers.tenon` is not written as a table with a header"),
            ("[mcp_servers.tenon.env]\n", "`mcp_servers.tenon` is not written as a table with a header"),
        ] {
            assert_eq!(set(text, PATH, &members(), &[]).unwrap_err().to_string(), reason, "{text}");
        }
    }
}
