//! The contract as JSON schemas and TypeScript declarations, written from the tables that the composer checks with.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::pipeline::versions::SUPPORTED;
use crate::shape::{self, Record, Shape, Union};

mod typescript;

pub use typescript::declarations;

/// The JSON schemas, by file name.
#[must_use]
pub fn schemas() -> Vec<(&'static str, Value)> {
    let roots: [(&str, &'static Record, &str); 7] = [
        ("input.schema.json", &shape::INPUT, "The input of the workspace composer."),
        ("module.schema.json", &shape::MODULE_DECLARATION, "What a module's author declares."),
        ("policy.schema.json", &shape::POLICY, "The host's composition policy."),
        ("outcome.schema.json", &shape::output::OUTCOME, "What came of composing."),
        ("diagnostic.schema.json", &shape::output::DIAGNOSTIC, "One structured diagnostic."),
        (
            "provider-summary.schema.json",
            &shape::output::PROVIDER_SUMMARY,
            "What a diagnostic says of a provider.",
        ),
        ("pack.schema.json", &shape::output::PACK, "The render providers of one owner."),
    ];
    roots.into_iter().map(|(file, record, about)| (file, schema(record, about))).collect()
}

fn schema(root: &'static Record, about: &str) -> Value {
    let mut definitions = Definitions::default();
    let Value::Object(mut object) = definitions.object(root) else { unreachable!("records are objects") };
    object.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    object.insert("title".to_owned(), json!(root.name));
    object.insert("description".to_owned(), json!(about));
    if !definitions.written.is_empty() {
        let written: Map<String, Value> =
            definitions.written.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
        object.insert("$defs".to_owned(), Value::Object(written));
    }
    Value::Object(object)
}

/// The records that a schema refers to, each written once.
#[derive(Default)]
struct Definitions {
    written: BTreeMap<&'static str, Value>,
}

impl Definitions {
    fn object(&mut self, record: &'static Record) -> Value {
        let mut properties = Map::new();
        for field in record.fields() {
            properties.insert(field.name.to_owned(), self.shape(&field.shape));
        }
        let required: Vec<&str> =
            record.fields().filter(|field| field.required).map(|field| field.name).collect();
        let mut object = json!({"type": "object", "additionalProperties": false, "properties": properties});
        if !required.is_empty() {
            object["required"] = json!(required);
        }
        object
    }

    fn reference(&mut self, record: &'static Record) -> Value {
        if !self.written.contains_key(record.name) {
            // Reserved first: a record may lead back to itself.
            self.written.insert(record.name, Value::Null);
            let object = self.object(record);
            self.written.insert(record.name, object);
        }
        json!({"$ref": format!("#/$defs/{}", record.name)})
    }

    fn union(&mut self, union: &'static Union) -> Value {
        let records: Vec<Value> = union.records.iter().map(|record| self.reference(record)).collect();
        json!({"oneOf": records})
    }

    fn shape(&mut self, shape: &'static Shape) -> Value {
        match shape {
            Shape::Text => json!({"type": "string"}),
            Shape::Pattern(pattern) => json!({"type": "string", "pattern": pattern.regex}),
            Shape::Version => json!({"enum": SUPPORTED}),
            Shape::Integer => {
                json!({"type": "integer", "minimum": -shape::MAX_INTEGER, "maximum": shape::MAX_INTEGER})
            }
            Shape::Flag => json!({"type": "boolean"}),
            Shape::Json => json!(true),
            Shape::JsonObject => json!({"type": "object"}),
            Shape::Literal(text) => json!({"const": text}),
            Shape::Word(list) => json!({"enum": list.words}),
            Shape::Handle(kind) => {
                let handle = self.reference(&shape::RENDER_HANDLE);
                json!({"allOf": [handle, {"properties": {"kind": {"const": kind.as_str()}}}]})
            }
            Shape::Record(record) | Shape::Apart(record) => self.reference(record),
            Shape::List(item) => {
                let items = self.shape(item);
                json!({"type": "array", "items": items})
            }
            Shape::Union(union) => self.union(union),
            Shape::Nullable(inner) => {
                let inner = self.shape(inner);
                json!({"anyOf": [inner, {"type": "null"}]})
            }
        }
    }
}
