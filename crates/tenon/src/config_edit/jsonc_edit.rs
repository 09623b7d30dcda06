//! Edits a text of JSON with comments by spans: every byte that an edit does not concern stays where it is.
//!
//! The text is parsed only to find positions and never written again as a whole. An insertion follows the indentation and
//! line ends around it: what is on one line stays on one line. Comments and trailing commas are accepted, other extensions of
//! JSON are not, and a name that appears twice is refused where an edit depends on it.

use std::fmt::Write as _;
use std::ops::Range;

use jsonc_parser::ast::Value as Node;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

/// The mark that some editors write at the beginning of a file.
const BOM: &str = "\u{feff}";
/// A list or object of plain values stays on one line up to this many characters.
const LINE_WIDTH: usize = 120;

/// Why a text cannot be edited.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JsoncError {
    #[error("not valid JSON")]
    Syntax(#[source] jsonc_parser::errors::ParseError),
    #[error("{0} is not {1}")]
    Shape(String, &'static str),
    #[error("`{0}` appears twice")]
    Twice(String),
}

/// A step from a value to one inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// A value to insert. Members keep their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NewValue {
    Scalar(Value),
    List(Vec<NewValue>),
    Object(Vec<(String, NewValue)>),
}

impl NewValue {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Scalar(Value::String(text.into()))
    }

    pub(crate) fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::List(texts.into_iter().map(Self::text).collect())
    }

    pub(crate) fn object<const N: usize>(members: [(&str, NewValue); N]) -> Self {
        Self::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// The value as other code compares it.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Scalar(value) => value.clone(),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Object(members) => {
                members.iter().map(|(key, value)| (key.clone(), value.to_json())).collect()
            }
        }
    }

    fn is_plain(&self) -> bool {
        matches!(self, Self::Scalar(_))
    }

    fn on_one_line(&self) -> String {
        let joined = |parts: Vec<String>| parts.join(", ");
        match self {
            Self::Scalar(value) => value.to_string(),
            Self::List(items) => format!("[{}]", joined(items.iter().map(Self::on_one_line).collect())),
            Self::Object(members) if members.is_empty() => "{}".to_owned(),
            Self::Object(members) => {
                let member =
                    |(key, value): &(String, Self)| format!("{}: {}", quoted(key), value.on_one_line());
                format!("{{ {} }}", joined(members.iter().map(member).collect()))
            }
        }
    }

    /// The value as text whose first line is indented by `indent` already.
    fn render(&self, style: &Style<'_>, indent: &str) -> String {
        let line = self.on_one_line();
        let plain = match self {
            Self::Scalar(_) => true,
            Self::List(items) => items.iter().all(Self::is_plain),
            Self::Object(members) => members.iter().all(|(_, value)| value.is_plain()),
        };
        match style.line_end.is_empty() || (plain && line.len() <= LINE_WIDTH) {
            true => line,
            false => self.render_block(style, indent),
        }
    }

    /// As [`Self::render`], with a line for each item.
    fn render_block(&self, style: &Style<'_>, indent: &str) -> String {
        let deeper = format!("{indent}{}", style.unit);
        let (open, close, items): (char, char, Vec<String>) = match self {
            Self::Scalar(value) => return value.to_string(),
            Self::List(items) => ('[', ']', items.iter().map(|item| item.render(style, &deeper)).collect()),
            Self::Object(members) => {
                let member = |(key, value): &(String, Self)| {
                    format!("{}: {}", quoted(key), value.render(style, &deeper))
                };
                ('{', '}', members.iter().map(member).collect())
            }
        };
        let mut text = String::from(open);
        for (index, item) in items.iter().enumerate() {
            let comma = if index + 1 < items.len() { "," } else { "" };
            let _ = write!(text, "{}{deeper}{item}{comma}", style.line_end);
        }
        let _ = write!(text, "{}{indent}{close}", style.line_end);
        text
    }
}

fn quoted(key: &str) -> String {
    Value::from(key).to_string()
}

/// The whole text as a value; `None` if it has no value, only space and comments.
pub(crate) fn value(text: &str) -> Result<Option<Value>, JsoncError> {
    Ok(parse(text.strip_prefix(BOM).unwrap_or(text))?.as_ref().map(to_json))
}

/// Sets the member at `path`, with the objects above it if they are missing. Nothing else changes.
pub(crate) fn set(text: &str, path: &[&str], new: &NewValue) -> Result<String, JsoncError> {
    let (bom, text) = split_bom(text);
    let Some(root) = parse(text)? else {
        return Ok(format!("{bom}{}", appended_to_empty(text, &nested(path, new.clone()))));
    };
    let style = Style::of(text);
    let mut node = &root;
    let mut name = "the file".to_owned();
    for (depth, key) in path.iter().enumerate() {
        let container = Container::object(node, &name)?;
        let Some(item) = container.member(key)? else {
            let inserted = nested(&path[depth + 1..], new.clone());
            return Ok(format!("{bom}{}", container.append(text, &style, Some(key), &inserted)));
        };
        node = container.items[item].node;
        name = format!("`{key}`");
    }
    let span = span(node);
    let rendered = new.render(&style, line_indent(text, span.start));
    Ok(format!("{bom}{}{rendered}{}", &text[..span.start], &text[span.end..]))
}

/// Adds an item to the array at `path`, with the array and the objects above it if they are missing.
pub(crate) fn push(text: &str, path: &[&str], new: &NewValue) -> Result<String, JsoncError> {
    let (bom, body) = split_bom(text);
    if let Some(root) = parse(body)? {
        let mut node = Some(&root);
        let mut name = "the file".to_owned();
        for key in path {
            let Some(found) = node else { break };
            let container = Container::object(found, &name)?;
            node = container.member(key)?.map(|item| container.items[item].node);
            name = format!("`{key}`");
        }
        if let Some(array) = node {
            let container = Container::array(array, &name)?;
            return Ok(format!("{bom}{}", container.append(body, &Style::of(body), None, new)));
        }
    }
    set(text, path, &NewValue::List(vec![new.clone()]))
}

/// Replaces the value at a path that exists.
pub(crate) fn replace(text: &str, path: &[Step], new: &NewValue) -> Result<String, JsoncError> {
    let (bom, text) = split_bom(text);
    let Some(root) = parse(text)? else { return Ok(format!("{bom}{text}")) };
    let mut node = &root;
    for step in path {
        let next = match (step, node) {
            (Step::Key(key), Node::Object(object)) => object.get(key).map(|member| &member.value),
            (Step::Index(index), Node::Array(array)) => array.elements.get(*index),
            _ => None,
        };
        let Some(next) = next else { return Ok(format!("{bom}{text}")) };
        node = next;
    }
    let span = span(node);
    let rendered = new.render(&Style::of(text), line_indent(text, span.start));
    Ok(format!("{bom}{}{rendered}{}", &text[..span.start], &text[span.end..]))
}

/// Removes the value at `path`, and the lists and objects above it that it leaves empty. `None` if there is no such value.
pub(crate) fn remove(text: &str, path: &[Step]) -> Result<Option<String>, JsoncError> {
    let (bom, text) = split_bom(text);
    let Some(root) = parse(text)? else { return Ok(None) };
    let mut node = &root;
    let mut levels = Vec::new();
    for step in path {
        let (container, item) = match (step, node) {
            (Step::Key(key), Node::Object(_)) => {
                let container = Container::object(node, "")?;
                let item = container.member(key)?;
                (container, item)
            }
            (Step::Index(index), Node::Array(_)) => {
                let container = Container::array(node, "")?;
                let item = (*index < container.items.len()).then_some(*index);
                (container, item)
            }
            _ => return Ok(None),
        };
        let Some(item) = item else { return Ok(None) };
        node = container.items[item].node;
        levels.push((container, item));
    }
    // The outermost level whose other content stays.
    let shared = levels.iter().rposition(|(container, item)| !container.holds_only(text, *item));
    let Some((container, item)) = levels.get(shared.unwrap_or(0)) else { return Ok(None) };
    Ok(Some(format!("{bom}{}", container.without(text, *item))))
}

fn split_bom(text: &str) -> (&'static str, &str) {
    match text.strip_prefix(BOM) {
        Some(rest) => (BOM, rest),
        None => ("", text),
    }
}

fn parse(text: &str) -> Result<Option<Node<'_>>, JsoncError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: true,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    Ok(parse_to_ast(text, &CollectOptions::default(), &options).map_err(JsoncError::Syntax)?.value)
}

fn to_json(node: &Node<'_>) -> Value {
    match node {
        Node::StringLit(text) => Value::String(text.value.to_string()),
        Node::NumberLit(number) => serde_json::from_str(number.value).unwrap_or(Value::Null),
        Node::BooleanLit(value) => Value::Bool(value.value),
        Node::NullKeyword(_) => Value::Null,
        Node::Array(array) => array.elements.iter().map(to_json).collect(),
        Node::Object(object) => {
            let members = object.properties.iter();
            members.map(|member| (member.name.as_str().to_owned(), to_json(&member.value))).collect()
        }
    }
}

/// `value` inside objects with the given keys.
fn nested(path: &[&str], value: NewValue) -> NewValue {
    path.iter().rev().fold(value, |value, key| NewValue::Object(vec![((*key).to_owned(), value)]))
}

/// A value below a text that has only space and comments.
fn appended_to_empty(text: &str, value: &NewValue) -> String {
    let kept = if text.trim().is_empty() { "" } else { text };
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let gap = if kept.is_empty() || kept.ends_with('\n') { "" } else { line_end };
    let style = Style { line_end, ..Style::DEFAULT };
    format!("{kept}{gap}{}{line_end}", value.render_block(&style, ""))
}

/// An array or object in the text.
struct Container<'n, 'a> {
    span: Range<usize>,
    items: Vec<Item<'n, 'a>>,
}

struct Item<'n, 'a> {
    /// `None` for array items.
    key: Option<&'n str>,
    /// With its key.
    span: Range<usize>,
    node: &'n Node<'a>,
}

impl<'n, 'a> Container<'n, 'a> {
    fn object(node: &'n Node<'a>, name: &str) -> Result<Self, JsoncError> {
        let Node::Object(object) = node else {
            return Err(JsoncError::Shape(name.to_owned(), "an object"));
        };
        let items = object.properties.iter().map(|member| Item {
            key: Some(member.name.as_str()),
            span: member.range.start..member.range.end,
            node: &member.value,
        });
        Ok(Self { span: span(node), items: items.collect() })
    }

    fn array(node: &'n Node<'a>, name: &str) -> Result<Self, JsoncError> {
        let Node::Array(array) = node else {
            return Err(JsoncError::Shape(name.to_owned(), "an array"));
        };
        let items = array.elements.iter().map(|node| Item { key: None, span: span(node), node });
        Ok(Self { span: span(node), items: items.collect() })
    }

    /// The index of a member.
    fn member(&self, key: &str) -> Result<Option<usize>, JsoncError> {
        let mut found = (0..self.items.len()).filter(|index| self.items[*index].key == Some(key));
        let first = found.next();
        match found.next() {
            Some(_) => Err(JsoncError::Twice(key.to_owned())),
            None => Ok(first),
        }
    }

    /// The text with one more item at the end.
    fn append(&self, text: &str, style: &Style<'_>, key: Option<&str>, new: &NewValue) -> String {
        let inside = self.span.start + 1..self.span.end - 1;
        let has_lines = text[inside.clone()].contains('\n');
        let own_indent = line_indent(text, self.span.start);
        let item = |style: &Style<'_>, indent: &str| {
            let name = key.map(|key| format!("{}: ", quoted(key))).unwrap_or_default();
            format!("{name}{}", new.render(style, indent))
        };
        let Some(last) = self.items.last() else {
            let kept = inside.start + text[inside.clone()].trim_end().len();
            let indent = format!("{own_indent}{}", style.unit);
            let closing = match has_lines {
                true => String::new(),
                false => format!("{}{own_indent}", style.line_end),
            };
            let inserted = format!("{}{indent}{}{closing}", style.line_end, item(style, &indent));
            // Without lines, the space before the closing bracket would be left at a line's end.
            let rest = if has_lines || style.line_end.is_empty() { kept } else { inside.end };
            return format!("{}{inserted}{}", &text[..kept], &text[rest..]);
        };
        let next = next_token(text, last.span.end);
        let trailing = text[next..].starts_with(',');
        let (comma, after) = if trailing { ("", next + 1) } else { (",", last.span.end) };
        let end_comma = if trailing { "," } else { "" };
        let (at, inserted) = match has_lines {
            true => {
                let first_on_line = text[..last.span.start].trim_end_matches([' ', '\t']).ends_with('\n');
                let indent = match first_on_line {
                    true => line_indent(text, last.span.start).to_owned(),
                    false => format!("{own_indent}{}", style.unit),
                };
                let line_end = if style.line_end.is_empty() { "\n" } else { style.line_end };
                let style = Style { line_end, ..*style };
                (rest_of_line(text, after), format!("{line_end}{indent}{}{end_comma}", item(&style, &indent)))
            }
            false => {
                let style = Style { line_end: "", ..*style };
                (after, format!(" {}{end_comma}", item(&style, "")))
            }
        };
        format!("{}{comma}{}{inserted}{}", &text[..last.span.end], &text[last.span.end..at], &text[at..])
    }

    /// Whether nothing but one item is in it: no other item and no comment.
    fn holds_only(&self, text: &str, item: usize) -> bool {
        let span = &self.items[item].span;
        let around = [&text[self.span.start + 1..span.start], &text[span.end..self.span.end - 1]];
        self.items.len() == 1
            && around.iter().all(|part| part.chars().all(|one| one.is_whitespace() || one == ','))
    }

    /// The text without an item, its line and its comma.
    fn without(&self, text: &str, index: usize) -> String {
        let span = &self.items[index].span;
        let before = text[..span.start].trim_end_matches([' ', '\t']);
        let next = next_token(text, span.end);
        let spaced = text[span.end..next].trim().is_empty();
        let has_comma = text[next..].starts_with(',');
        let end = if has_comma && spaced { next + 1 } else { span.end };
        // What follows on the line stays on a separate line, as a comment may be on the line before.
        let ends_line = text[end..].trim_start_matches([' ', '\t', '\r']).starts_with('\n');
        let start = match before.strip_suffix('\n').filter(|_| ends_line) {
            Some(line) => line.strip_suffix('\r').unwrap_or(line).len(),
            None => before.len(),
        };
        // The last item without a comma behind it leaves the comma before it.
        let previous = index.checked_sub(1).map(|index| next_token(text, self.items[index].span.end));
        let dangling = match has_comma {
            true if !spaced => Some(next),
            true => None,
            false => previous,
        };
        let mut kept = String::with_capacity(text.len());
        let mut cuts: Vec<Range<usize>> =
            std::iter::once(start..end).chain(dangling.map(|at| at..at + 1)).collect();
        cuts.sort_by_key(|cut| cut.start);
        let mut at = 0;
        for cut in cuts {
            kept.push_str(&text[at..cut.start.max(at)]);
            at = cut.end.max(at);
        }
        kept + &text[at..]
    }
}

fn span(node: &Node<'_>) -> Range<usize> {
    let range = node.range();
    range.start..range.end
}

/// The position of the next token at or after `at`, behind space and comments.
fn next_token(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        let skipped = if trimmed.starts_with("//") {
            trimmed.find('\n').map_or(trimmed.len(), |end| end + 1)
        } else if trimmed.starts_with("/*") {
            trimmed.find("*/").map_or(trimmed.len(), |end| end + 2)
        } else {
            return at;
        };
        at += skipped;
    }
}

/// The end of the space and comments that follow `at` on its line.
fn rest_of_line(text: &str, at: usize) -> usize {
    let mut end = at;
    loop {
        let rest = &text[end..];
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let behind = &rest[spaces..];
        if behind.starts_with("//") {
            let line = behind.find('\n').unwrap_or(behind.len());
            let line = behind[..line].strip_suffix('\r').map_or(line, str::len);
            return end + spaces + line;
        }
        match behind.strip_prefix("/*").and_then(|comment| comment.find("*/")) {
            Some(length) if !behind[..length + 4].contains('\n') => end += spaces + length + 4,
            _ => return end,
        }
    }
}

/// The indentation of the line that `at` is on.
fn line_indent(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The indentation and line ends of a text.
#[derive(Clone, Copy)]
struct Style<'a> {
    unit: &'a str,
    /// Empty if all is on one line.
    line_end: &'a str,
}

impl<'a> Style<'a> {
    const DEFAULT: Style<'static> = Style { unit: "  ", line_end: "\n" };

    fn of(text: &'a str) -> Self {
        let Some((first, _)) = text.trim_end().split_once('\n') else {
            // One line stays one line, unless it is an empty object.
            let empty = text.trim().trim_start_matches('{').trim_end_matches('}').trim().is_empty();
            return if empty { Self::DEFAULT } else { Self { unit: "", line_end: "" } };
        };
        let line_end = if first.ends_with('\r') { "\r\n" } else { "\n" };
        let indented = text.lines().find(|line| {
            line.starts_with([' ', '\t']) && line.trim_start().starts_with(['"', '{', '[', '}', ']'])
        });
        let unit = indented.map_or("  ", |line| &line[..line.len() - line.trim_start().len()]);
        Self { unit, line_end }
    }
}

#[cfg(test)]
#[path = "jsonc_edit_tests.rs"]
mod tests;
