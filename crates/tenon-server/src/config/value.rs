//! Converts a written value to the kind that its key requires.
//!
//! Input is a TOML value or the string of an environment variable or flag. The result is the JSON value from which the
//! typed configuration is built.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::SignedDuration;
use serde_json::Value;
use tenon_work::WorkspaceName;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::key::ValueKind;

/// A valid value for a key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    pub(super) value: Value,
    /// A note for the user if the value was adjusted.
    pub(super) note: Option<String>,
}

impl From<Value> for Reading {
    fn from(value: Value) -> Self {
        Self { value, note: None }
    }
}

/// Why a value is invalid: `must be …`, to be shown after the key.
type Misfit = String;

/// What relative paths and `~` in a value refer to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Anchors<'a> {
    /// The folder that relative paths start at; without one they are rejected.
    pub(super) base: Option<&'a Utf8Path>,
    pub(super) home: Option<&'a Utf8Path>,
}

/// Reads a TOML value.
pub(super) fn from_toml(
    kind: ValueKind,
    value: &DeValue<'_>,
    anchors: Anchors<'_>,
) -> Result<Reading, Misfit> {
    match (kind, value) {
        (ValueKind::Flag, DeValue::Boolean(flag)) => Ok(Value::Bool(*flag).into()),
        (ValueKind::Number { .. } | ValueKind::Limit { .. }, DeValue::Integer(integer)) => {
            let number =
                i128::from_str_radix(integer.as_str(), integer.radix()).map_err(|_| expected(kind))?;
            number_of(kind, number)
        }
        (
            ValueKind::Duration { .. }
            | ValueKind::Text
            | ValueKind::Choice(_)
            | ValueKind::Path
            | ValueKind::Store
            | ValueKind::Workspace,
            DeValue::String(text),
        ) => string_of(kind, text, anchors).map(Reading::from),
        (
            ValueKind::Texts | ValueKind::Choices(_) | ValueKind::Globs | ValueKind::Paths,
            DeValue::Array(items),
        ) => {
            let item = item_kind(kind);
            let values = items.iter().map(|value| match value.get_ref() {
                DeValue::String(text) => string_of(item, text, anchors),
                other => Err(format!("must contain only strings, not {}", name_of(other))),
            });
            values.collect::<Result<Vec<_>, _>>().map(|values| Value::Array(values).into())
        }
        (ValueKind::TextMap, DeValue::Table(table)) => {
            let strings = table.iter().map(|(name, value)| match value.get_ref() {
                DeValue::String(text) => Ok((name.get_ref().to_string(), Value::from(text.as_ref()))),
                other => {
                    Err(format!("must contain only strings, but `{}` is {}", name.get_ref(), name_of(other)))
                }
            });
            strings.collect::<Result<_, _>>().map(|map| Value::Object(map).into())
        }
        (ValueKind::Object, DeValue::Table(table)) => object_of(table).map(Reading::from),
        (_, other) => Err(format!("{}, not {}", expected(kind), name_of(other))),
    }
}

/// Reads a string. Lists are split at commas, lists of paths at the system's path separator.
pub(super) fn from_text(kind: ValueKind, text: &str, anchors: Anchors<'_>) -> Result<Reading, Misfit> {
    match kind {
        ValueKind::Flag => match text {
            "true" | "1" => Ok(Value::Bool(true).into()),
            "false" | "0" => Ok(Value::Bool(false).into()),
            _ => Err("must be `true` or `false`".to_owned()),
        },
        ValueKind::Number { .. } | ValueKind::Limit { .. } => {
            number_of(kind, text.trim().parse().map_err(|_| expected(kind))?)
        }
        ValueKind::Duration { .. }
        | ValueKind::Text
        | ValueKind::Choice(_)
        | ValueKind::Path
        | ValueKind::Store
        | ValueKind::Workspace => string_of(kind, text, anchors).map(Reading::from),
        ValueKind::Texts | ValueKind::Choices(_) | ValueKind::Globs | ValueKind::Paths => {
            let separator = match kind {
                ValueKind::Paths if cfg!(windows) => ';',
                ValueKind::Paths => ':',
                _ => ',',
            };
            let items = text.split(separator).map(str::trim).filter(|item| !item.is_empty());
            let values = items.map(|item| string_of(item_kind(kind), item, anchors));
            values.collect::<Result<Vec<_>, _>>().map(|values| Value::Array(values).into())
        }
        ValueKind::TextMap | ValueKind::Object => Err("can only be set in a file".to_owned()),
    }
}

/// The duration that a `ValueKind::Duration` value means.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let span: SignedDuration = text.trim().parse().ok()?;
    Duration::try_from(span).ok()
}

fn item_kind(list: ValueKind) -> ValueKind {
    match list {
        ValueKind::Choices(choices) => ValueKind::Choice(choices),
        ValueKind::Paths => ValueKind::Path,
        other => other,
    }
}

fn number_of(kind: ValueKind, number: i128) -> Result<Reading, Misfit> {
    let (min, max, clamps) = match kind {
        ValueKind::Number { min, max } => (min, max, false),
        ValueKind::Limit { min, max } => (min, max, true),
        _ => unreachable!("called for numbers only"),
    };
    match u64::try_from(number) {
        Ok(number) if (min..=max).contains(&number) => Ok(Value::from(number).into()),
        _ if clamps && number > i128::from(max) => Ok(Reading {
            value: Value::from(max),
            note: Some(format!("{number} is above the maximum, {max}")),
        }),
        _ => Err(format!("must be a whole number from {min} to {max}, not {number}")),
    }
}

fn string_of(kind: ValueKind, text: &str, anchors: Anchors<'_>) -> Result<Value, Misfit> {
    match kind {
        ValueKind::Duration { min_ms, max_ms } => {
            let Some(span) = duration(text) else {
                return Err(expected(kind));
            };
            let millis = span.as_millis();
            if millis < u128::from(min_ms) || millis > u128::from(max_ms) {
                let words = |ms: u64| format!("{:#}", SignedDuration::from_millis(ms.cast_signed()));
                return Err(format!("must be between {} and {}, not `{text}`", words(min_ms), words(max_ms)));
            }
            Ok(Value::from(text.trim()))
        }
        ValueKind::Choice(choices) => match choices.contains(&text) {
            true => Ok(Value::from(text)),
            false => Err(format!("must be {}, not `{text}`", one_of(choices))),
        },
        ValueKind::Path => path_of(text, anchors).map(|path| Value::from(path.into_string())),
        ValueKind::Store if !text.contains("://") => {
            // It may be a mistyped URL with a password in it, so the value is not repeated.
            let path = path_of(text, anchors).map_err(|_| expected(kind))?;
            Ok(Value::from(path.into_string()))
        }
        ValueKind::Workspace if WorkspaceName::parse(text).is_err() => Err(expected(kind)),
        ValueKind::Globs if text.is_empty() || text.contains(['\0', '\n']) => {
            Err("must be patterns, each on one line and not empty".to_owned())
        }
        _ if text.is_empty() => Err("must not be empty".to_owned()),
        _ if text.contains('\0') => Err("must not contain a NUL character".to_owned()),
        _ => Ok(Value::from(text)),
    }
}

fn path_of(text: &str, anchors: Anchors<'_>) -> Result<Utf8PathBuf, Misfit> {
    if text.is_empty() || text.contains('\0') {
        return Err("must be a path".to_owned());
    }
    if let Some(below) = text.strip_prefix("~/") {
        let home = anchors.home.ok_or("starts with `~/`, but there is no home folder")?;
        return Ok(home.join(below));
    }
    let path = Utf8Path::new(text);
    match anchors.base {
        _ if path.is_absolute() => Ok(path.to_owned()),
        Some(base) => Ok(base.join(path)),
        None => Err(format!("must be an absolute path or start with `~/`, not `{text}`")),
    }
}

fn object_of(table: &DeTable<'_>) -> Result<Value, Misfit> {
    let members = table.iter().map(|(name, value)| Ok((name.get_ref().to_string(), json_of(value)?)));
    members.collect::<Result<_, _>>().map(Value::Object)
}

fn json_of(value: &Spanned<DeValue<'_>>) -> Result<Value, Misfit> {
    match value.get_ref() {
        DeValue::String(text) => Ok(Value::from(text.as_ref())),
        DeValue::Boolean(flag) => Ok(Value::Bool(*flag)),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map(Value::from)
            .map_err(|_| format!("contains {integer}, which is too large")),
        DeValue::Float(float) => float
            .as_str()
            .parse()
            .ok()
            .and_then(serde_json::Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| format!("contains {float}, which JSON cannot represent")),
        DeValue::Array(items) => array_of(items),
        DeValue::Table(table) => object_of(table),
        DeValue::Datetime(time) => Ok(Value::from(time.to_string())),
    }
}

fn array_of(items: &DeArray<'_>) -> Result<Value, Misfit> {
    items.iter().map(json_of).collect::<Result<_, _>>().map(Value::Array)
}

/// `must be …`, for a value of the wrong type.
fn expected(kind: ValueKind) -> String {
    match kind {
        ValueKind::Flag => "must be `true` or `false`".to_owned(),
        ValueKind::Number { min, max } | ValueKind::Limit { min, max } => {
            format!("must be a whole number from {min} to {max}")
        }
        ValueKind::Duration { .. } => "must be a duration with a unit, like \"15m\" or \"1h 30m\"".to_owned(),
        ValueKind::Text => "must be a string".to_owned(),
        ValueKind::Workspace => {
            "must be 1 to 128 of A-Z a-z 0-9 . _ / - with a letter or digit first".to_owned()
        }
        ValueKind::Choice(choices) => format!("must be {}", one_of(choices)),
        ValueKind::Texts => "must be a list of strings".to_owned(),
        ValueKind::Choices(choices) => format!("must be a list of {}", one_of(choices)),
        ValueKind::Globs => "must be a list of patterns".to_owned(),
        ValueKind::Path => "must be a path".to_owned(),
        ValueKind::Store => "must be an absolute path, start with `~/`, or be a `postgres://` URL".to_owned(),
        ValueKind::Paths => "must be a list of paths".to_owned(),
        ValueKind::TextMap | ValueKind::Object => "must be a table".to_owned(),
    }
}

fn one_of(choices: &[&str]) -> String {
    let quoted: Vec<String> = choices.iter().map(|choice| format!("`{choice}`")).collect();
    match quoted.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

fn name_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(kind: ValueKind, text: &str) -> Result<Value, String> {
        let anchors = Anchors { base: None, home: Some(Utf8Path::new("/home/ada")) };
        from_text(kind, text, anchors).map(|reading| reading.value)
    }

    #[test]
    fn strings_are_converted_to_their_kind() {
        assert_eq!(text(ValueKind::Flag, "1"), Ok(json!(true)));
        assert_eq!(text(ValueKind::Number { min: 0, max: 9 }, "7"), Ok(json!(7)));
        assert_eq!(text(ValueKind::Choices(&["a", "b"]), "b, a,"), Ok(json!(["b", "a"])));
        assert_eq!(text(ValueKind::Path, "~/x"), Ok(json!("/home/ada/x")));
        assert_eq!(text(ValueKind::Store, "~/x"), Ok(json!("/home/ada/x")));
        assert_eq!(text(ValueKind::Store, "postgres://db/x"), Ok(json!("postgres://db/x")));
        assert_eq!(text(ValueKind::Duration { min_ms: 1, max_ms: 9_000 }, "1s 500ms"), Ok(json!("1s 500ms")));
    }

    #[test]
    fn invalid_value_reports_what_is_valid() {
        let invalid = [
            text(ValueKind::Flag, "yes"),
            text(ValueKind::Number { min: 1, max: 9 }, "-1"),
            text(ValueKind::Number { min: 1, max: 9 }, "99999999999999999999999999999999999999999999"),
            text(ValueKind::Choice(&["a", "b", "c"]), "d"),
            text(ValueKind::Path, "relative"),
            text(ValueKind::Store, "postgres:/ada:secret@db/x"),
            text(ValueKind::Duration { min_ms: 1, max_ms: 9_000 }, "15"),
            text(ValueKind::Duration { min_ms: 1, max_ms: 9_000 }, "1h"),
            text(ValueKind::Workspace, "bad id!"),
            text(ValueKind::Text, ""),
            text(ValueKind::Object, "{}"),
        ];
        let messages: Vec<String> = invalid.into_iter().map(Result::unwrap_err).collect();
        insta::assert_snapshot!(messages.join("\n"), @r#"
        must be `true` or `false`
        must be a whole number from 1 to 9, not -1
        must be a whole number from 1 to 9
        must be `a`, `b` or `c`, not `d`
        must be an absolute path or start with `~/`, not `relative`
        must be an absolute path, start with `~/`, or be a `postgres://` URL
        must be a duration with a unit, like "15m" or "1h 30m"
        must be between 1ms and 9s, not `1h`
        must be 1 to 128 of A-Z a-z 0-9 . _ / - with a letter or digit first
        must not be empty
        can only be set in a file
        "#);
    }

    #[test]
    fn limit_above_its_maximum_is_reduced_with_a_note() {
        let reading = from_text(ValueKind::Limit { min: 1, max: 200 }, "500", Anchors::default()).unwrap();
        assert_eq!(reading.value, json!(200));
        assert_eq!(reading.note.as_deref(), Some("500 is above the maximum, 200"));
    }
}
