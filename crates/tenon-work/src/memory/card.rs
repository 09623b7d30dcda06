//! Cards: typed thoughts, kept in a trace and as nodes of a graph.
//!
//! A card comes as an object, as the JSON text of one, or as lines of `key: value`, where a line without a key
//! goes on with the text of the line before.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tenon_contract::id::sha256_hex;
use tenon_contract::json::canonical_value;

use crate::error::Failure;
use crate::name::quoted;

/// The types of cards there are.
pub(crate) const TYPES: [&str; 8] =
    ["frame", "hypothesis", "question", "test", "evidence", "decision", "note", "update"];

pub(crate) fn is_type(text: &str) -> bool {
    TYPES.contains(&text)
}

pub(crate) fn check_type(text: &str) -> Result<(), Failure> {
    if is_type(text) {
        return Ok(());
    }
    Err(Failure::invalid(format!("{} is no type of card", quoted(text)))
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

const KEYS: [&str; 6] = ["id", "type", "title", "text", "status", "tags"];

impl Card {
    pub(crate) fn read(value: &Value) -> Result<Self, Failure> {
        let fields = match value {
            Value::Object(fields) => fields.clone(),
            Value::String(text) if text.trim_start().starts_with('{') => {
                serde_json::from_str(text).map_err(|fault| refused(&fault.to_string()))?
            }
            Value::String(text) => lines(text)?,
            _ => return Err(refused("it is neither an object nor a text")),
        };
        let fields = fields.into_iter().filter(|(_, value)| !value.is_null()).collect();
        let card: Self =
            serde_json::from_value(Value::Object(fields)).map_err(|fault| refused(&fault.to_string()))?;
        check_type(&card.r#type)?;
        if card.title.is_none() && card.text.is_none() {
            return Err(refused("it has neither title nor text"));
        }
        Ok(card)
    }

    /// What the card says, without its id.
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

    /// The id it was given, or one that the same card always gets.
    pub(crate) fn id(&self) -> String {
        self.id
            .clone()
            .unwrap_or_else(|| format!("CARD-{}", &sha256_hex(canonical_value(&self.content()))[..16]))
    }

    /// The card as the trace keeps it.
    pub(crate) fn to_text(&self) -> String {
        let mut value = self.content();
        value["id"] = json!(self.id());
        canonical_value(&value)
    }
}

fn refused(why: &str) -> Failure {
    Failure::invalid(format!("the card cannot be read: {why}")).recovery("memory_think_template shows one")
}

fn lines(text: &str) -> Result<Map<String, Value>, Failure> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let key = line.split_once(':').map(|(key, value)| (key.trim().to_lowercase(), value.trim()));
        match (key, fields.last_mut()) {
            (Some((key, value)), _) if KEYS.contains(&key.as_str()) => fields.push((key, value.to_owned())),
            (_, Some((_, value))) => {
                value.push('\n');
                value.push_str(line);
            }
            (_, None) if line.trim().is_empty() => {}
            (_, None) => return Err(refused("its first line has no key")),
        }
    }
    let mut map = Map::new();
    for (key, value) in fields {
        let value = value.trim();
        let value = if key == "tags" {
            let tags = value.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            json!(tags.collect::<Vec<_>>())
        } else {
            json!(value)
        };
        if map.insert(key.clone(), value).is_some() {
            return Err(refused(&format!("`{key}` stands there twice")));
        }
    }
    Ok(map)
}

/// An empty card of a type, with what belongs into it.
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

    #[test]
    fn three_spellings_are_one_card() {
        let object =
            json!({"type": "decision", "title": "Use A: not B", "text": "a\n\nb: c", "tags": ["x", "y"]});
        let lines = json!("Type: decision\ntitle: Use A: not B\ntags: x, y\ntext: a\n\nb: c\n");
        let card = Card::read(&object).unwrap();
        assert_eq!(Card::read(&json!(object.to_string())).unwrap(), card);
        assert_eq!(Card::read(&lines).unwrap(), card);
        assert_eq!(Card::read(&lines).unwrap().id(), card.id());
        assert!(card.id().starts_with("CARD-"));
    }

    #[test]
    fn what_is_no_card_is_refused() {
        for bad in [
            json!(5),
            json!("no key here"),
            json!("type: decision"),
            json!("title: a\ntitle: b\ntype: note"),
            json!("{\"type\": "),
            json!({"type": "thought", "text": "x"}),
            json!({"text": "x"}),
            json!({"type": "note", "text": "x", "colour": "red"}),
        ] {
            assert!(Card::read(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_template_is_a_card() {
        for kind in TYPES {
            assert_eq!(Card::read(&template(kind)).unwrap().r#type, kind);
        }
    }
}
