//! Cards: typed thoughts, stored in a trace and as nodes of a graph.
//!
//! A card is given as an object, as the JSON text of one, or as lines of `key: value`. A line that is indented or does not
//! begin with `word:` continues the value before it; unknown keys are rejected. `meta` is JSON, `tags` are a list, with or
//! without brackets.

use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value, json};
use tenon_contract::id::sha256_hex;
use tenon_contract::json::canonical_value;

use crate::error::WorkError;
use crate::name::quoted;

/// The types of cards.
pub(crate) const TYPES: [&str; 8] =
    ["frame", "hypothesis", "question", "test", "evidence", "decision", "note", "update"];

pub(crate) fn is_type(text: &str) -> bool {
    TYPES.contains(&text)
}

pub(crate) fn check_type(text: &str) -> Result<(), WorkError> {
    if is_type(text) {
        return Ok(());
    }
    Err(WorkError::invalid(format!("{} is not a card type", quoted(text)))
        .recovery(format!("types: {}", TYPES.join(", "))))
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Card {
    pub id: Option<String>,
    pub r#type: String,
    pub title: Option<String>,
    pub text: Option<String>,
    pub status: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    pub meta: Option<Value>,
}

/// A card as clients give it.
#[derive(Debug, Clone)]
pub(crate) enum CardInput {
    Object(Map<String, Value>),
    Text(String),
}

impl<'de> Deserialize<'de> for CardInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Object(fields) => Ok(Self::Object(fields)),
            Value::String(text) => Ok(Self::Text(text)),
            _ => Err(de::Error::custom("expected an object or a string")),
        }
    }
}

const KEYS: [&str; 7] = ["id", "type", "title", "text", "status", "tags", "meta"];

impl Card {
    pub(crate) fn read(input: CardInput) -> Result<Self, WorkError> {
        let fields = match input {
            CardInput::Object(fields) => fields,
            CardInput::Text(text) if text.trim_start().starts_with('{') => {
                serde_json::from_str(&text).map_err(|fault| invalid_card(&fault.to_string()))?
            }
            CardInput::Text(text) => lines(&text)?,
        };
        let fields = fields.into_iter().filter(|(_, value)| !value.is_null()).collect();
        let card: Self = serde_json::from_value(Value::Object(fields))
            .map_err(|fault| invalid_card(&fault.to_string()))?;
        check_type(&card.r#type)?;
        if card.title.is_none() && card.text.is_none() {
            return Err(invalid_card("it has neither title nor text"));
        }
        Ok(card)
    }

    /// The content without the id.
    fn content(&self) -> Value {
        json!({
            "type": self.r#type,
            "title": self.title,
            "text": self.text,
            "status": self.status,
            "tags": self.tags,
            "meta": self.meta,
        })
    }

    /// The given id, or one derived from the content.
    pub(crate) fn id(&self) -> String {
        self.id
            .clone()
            .unwrap_or_else(|| format!("CARD-{}", &sha256_hex(canonical_value(&self.content()))[..16]))
    }

    /// The card as stored in the trace.
    pub(crate) fn to_text(&self) -> String {
        let mut value = self.content();
        value["id"] = json!(self.id());
        canonical_value(&value)
    }
}

fn invalid_card(why: &str) -> WorkError {
    WorkError::invalid(format!("invalid card: {why}")).recovery("memory_think_template shows one")
}

fn lines(text: &str) -> Result<Map<String, Value>, WorkError> {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let margin = &first[..first.len() - first.trim_start().len()];
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let line = line.strip_prefix(margin).unwrap_or(line);
        match (keyed(line), fields.last_mut()) {
            (Some((key, value)), _) => {
                let key = key.to_lowercase();
                if !KEYS.contains(&key.as_str()) {
                    return Err(invalid_card(&format!("unknown field {}", quoted(&key)))
                        .recovery("indent continuation lines"));
                }
                fields.push((key, value.to_owned()));
            }
            (None, Some((_, value))) => {
                value.push('\n');
                value.push_str(line);
            }
            (None, None) if line.trim().is_empty() => {}
            (None, None) => return Err(invalid_card("its first line has no key")),
        }
    }
    let mut map = Map::new();
    for (key, value) in fields {
        let value = match key.as_str() {
            "tags" => json!(tags(value.trim())),
            "meta" => meta(value.trim())?,
            _ => json!(value.trim()),
        };
        if map.insert(key.clone(), value).is_some() {
            return Err(invalid_card(&format!("`{key}` occurs twice")));
        }
    }
    Ok(map)
}

/// The key at the start of a line, and the value. `https://` and `C:\` do not count as keys.
fn keyed(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_word = key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    (is_word && (value.is_empty() || value.starts_with(char::is_whitespace))).then_some((key, value))
}

fn tags(value: &str) -> Vec<String> {
    if let Ok(tags) = serde_json::from_str(value) {
        return tags;
    }
    let inside = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(value);
    inside.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

fn meta(value: &str) -> Result<Value, WorkError> {
    if value.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(value).map_err(|fault| invalid_card(&format!("`meta` is not JSON: {fault}")))
}

/// An empty card of a type, with hints for its fields.
pub(crate) fn template(kind: &str) -> Value {
    let (title, text) = match kind {
        "frame" => ("What this is about", "Goal, limits, what is known"),
        "hypothesis" => ("What may be so", "Why it may be so, and what would show that it is not"),
        "question" => ("What is not known", "Why it matters and who could answer"),
        "test" => ("What will be tried", "How, and which outcome means what"),
        "evidence" => ("What was seen", "Where, and what it speaks for or against"),
        "decision" => ("What was decided", "Why, and what was given up for it"),
        "update" => ("What changed", "Since when, and what follows"),
        _ => ("In a few words", "In full"),
    };
    json!({"type": kind, "id": null, "title": title, "text": text, "status": "open", "tags": [], "meta": null})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &Value) -> Result<Card, String> {
        let input = serde_json::from_value(value.clone()).map_err(|fault| fault.to_string())?;
        Card::read(input).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn all_three_forms_give_the_same_card() {
        let object =
            json!({"type": "decision", "title": "Use A: not B", "text": "a\n\n b: c", "tags": ["x", "y"]});
        let lines = json!("Type: decision\ntitle: Use A: not B\ntags: x, y\ntext: a\n\n b: c\n");
        let card = read(&object).unwrap();
        assert_eq!(read(&json!(object.to_string())).unwrap(), card);
        assert_eq!(read(&lines).unwrap(), card);
        assert_eq!(read(&lines).unwrap().id(), card.id());
        assert!(card.id().starts_with("CARD-"));
    }

    #[test]
    fn lines_support_every_field() {
        let card = |text: &str| read(&json!(text)).unwrap();
        let full = card("type: note\nmeta: {\n  \"a\": [1]\n}\ntags: [x, y]\ntext: m");
        assert_eq!((full.meta, full.tags), (Some(json!({"a": [1]})), vec!["x".into(), "y".into()]));
        assert_eq!(card("type: note\ntags: [\"x, y\"]\nmeta:\ntext: m").tags, ["x, y"]);
        assert_eq!(card("  type: note\n  text: m\n    n: o").text.unwrap(), "m\n  n: o");
        let prose = "see\nhttps://example.com/a\nC:\\temp\n12:30\nwhat it means: nothing";
        assert_eq!(card(&format!("type: note\ntext: {prose}")).text.unwrap(), prose);
    }

    #[test]
    fn invalid_cards_are_rejected() {
        for bad in [
            json!(5),
            json!("no key here"),
            json!("type: decision"),
            json!("title: a\ntitle: b\ntype: note"),
            json!("type: note\ntext: hi\nbogus: x"),
            json!("type: note\ntext: hi\nmeta: {a}"),
            json!("{\"type\": "),
            json!({"type": "thought", "text": "x"}),
            json!({"text": "x"}),
            json!({"type": "note", "text": "x", "colour": "red"}),
        ] {
            assert!(read(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_template_is_a_card() {
        for kind in TYPES {
            assert_eq!(read(&template(kind)).unwrap().r#type, kind);
        }
    }
}
