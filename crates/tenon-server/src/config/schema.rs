//! The JSON schema of `tenon.toml` for editors, generated from the list of keys.
//!
//! Draft 7, which the editors' TOML extensions support. Checked in as `schemas/tenon.schema.json`; a test compares them.

use serde_json::{Map, Value, json};

use super::key::{DefaultValue, KEYS, Key, SettingScope, ValueKind};

/// The schema as it is checked in: pretty-printed, with a trailing newline.
pub fn json() -> String {
    let mut properties = Map::new();
    for key in KEYS {
        let segments: Vec<&str> = key.path.split('.').collect();
        place(&mut properties, &segments, describe(key));
    }
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Tenon configuration (`tenon.toml` and the user's `config.toml`)",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    });
    format!("{schema:#}\n")
}

/// Inserts `leaf` at the path `segments`, creating the tables on the way.
fn place(properties: &mut Map<String, Value>, segments: &[&str], leaf: Value) {
    let [name, below @ ..] = segments else { return };
    if below.is_empty() {
        properties.insert((*name).to_owned(), leaf);
        return;
    }
    let table = properties.entry(*name).or_insert_with(|| json!({"type": "object"}));
    let table = table.as_object_mut().expect("tables are objects");
    if let ["*", below @ ..] = below {
        // Below names that the user chooses, every entry is one table.
        let entry = table.entry("additionalProperties").or_insert_with(closed_table);
        place(properties_of(entry), below, leaf);
    } else {
        table.insert("additionalProperties".to_owned(), json!(false));
        let entries = table.entry("properties").or_insert_with(|| json!({}));
        place(entries.as_object_mut().expect("properties are an object"), below, leaf);
    }
}

fn closed_table() -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": {}})
}

fn properties_of(table: &mut Value) -> &mut Map<String, Value> {
    table["properties"].as_object_mut().expect("a closed table has properties")
}

fn describe(key: &Key) -> Value {
    let mut schema = match key.kind {
        ValueKind::Flag => json!({"type": "boolean"}),
        ValueKind::Number { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        // Larger numbers are reduced to the maximum, so editors should not mark them as errors.
        ValueKind::Limit { min, .. } => json!({"type": "integer", "minimum": min}),
        ValueKind::Duration { .. } => json!({"type": "string", "examples": ["15m", "1h 30m"]}),
        ValueKind::Text | ValueKind::Path | ValueKind::Store => json!({"type": "string", "minLength": 1}),
        ValueKind::Workspace => json!({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$"}),
        ValueKind::Choice(choices) => json!({"enum": choices}),
        ValueKind::Texts | ValueKind::Globs | ValueKind::Paths => {
            json!({"type": "array", "items": {"type": "string", "minLength": 1}})
        }
        ValueKind::Choices(choices) => json!({"type": "array", "items": {"enum": choices}}),
        ValueKind::TextMap => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        ValueKind::Object => json!({"type": "object"}),
    };
    let about = schema.as_object_mut().expect("every kind is an object");
    let scope = match key.scope {
        SettingScope::Anyone => "",
        SettingScope::Trusted => " In a workspace: only once it is trusted.",
        SettingScope::User => " Only in the user's own configuration.",
    };
    about.insert("description".to_owned(), json!(format!("{}{scope}", key.doc)));
    match key.default {
        DefaultValue::Absent => {}
        DefaultValue::Flag(flag) => drop(about.insert("default".to_owned(), json!(flag))),
        DefaultValue::Number(number) => drop(about.insert("default".to_owned(), json!(number))),
        DefaultValue::Text(text) => drop(about.insert("default".to_owned(), json!(text))),
        DefaultValue::Texts(texts) => drop(about.insert("default".to_owned(), json!(texts))),
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(text: &str) -> bool {
        let schema: Value = serde_json::from_str(&json()).unwrap();
        let document: Value = toml::from_str(text).unwrap();
        jsonschema::validator_for(&schema).unwrap().is_valid(&document)
    }

    #[test]
    fn schema_agrees_with_the_reader() {
        assert!(accepts("[limits]\nmax_page_size = 50\n[servers.x]\ncommand = \"x\"\nsettings = {a = 1}\n"));
        assert!(!accepts("[limits]\npage_size = 50\n"));
        assert!(!accepts("[mcp]\ncontent = \"html\"\n"));
        assert!(!accepts("[servers.x]\ncmd = \"x\"\n"));
    }

    #[test]
    fn generated_schema_is_current() {
        tenon_testkit::generated::check("schemas/tenon.schema.json", &json());
    }
}
