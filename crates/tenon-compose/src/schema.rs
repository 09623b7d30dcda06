//! Generates JSON schemas and TypeScript declarations from the contract types that the composer checks with.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::contract_types::{self, FieldType, ObjectType, UnionType};
use crate::pipeline::versions::SUPPORTED;

mod typescript;

pub use typescript::declarations;

/// The JSON schemas, by file name.
#[must_use]
pub fn schemas() -> Vec<(&'static str, Value)> {
    let roots: [(&str, &'static ObjectType, &str); 7] = [
        ("input.schema.json", &contract_types::INPUT, "The input of the workspace composer."),
        (
            "module.schema.json",
            &contract_types::MODULE_DECLARATION,
            "The declaration of a module, as its author writes it.",
        ),
        ("policy.schema.json", &contract_types::POLICY, "The host's composition policy."),
        (
            "outcome.schema.json",
            &contract_types::output::OUTCOME,
            "The result of composing: a composition or diagnostics.",
        ),
        ("diagnostic.schema.json", &contract_types::output::DIAGNOSTIC, "One structured diagnostic."),
        (
            "provider-summary.schema.json",
            &contract_types::output::PROVIDER_SUMMARY,
            "The summary of a render provider in a diagnostic.",
        ),
        ("pack.schema.json", &contract_types::output::PACK, "The render providers of one owner."),
    ];
    roots.into_iter().map(|(file, object_type, about)| (file, schema(object_type, about))).collect()
}

fn schema(root: &'static ObjectType, about: &str) -> Value {
    let mut definitions = Definitions::default();
    let Value::Object(mut object) = definitions.object(root) else { unreachable!("variants are objects") };
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

/// The object types that a schema refers to, each written once.
#[derive(Default)]
struct Definitions {
    written: BTreeMap<&'static str, Value>,
}

impl Definitions {
    fn object(&mut self, object_type: &'static ObjectType) -> Value {
        let mut properties = Map::new();
        for field in object_type.fields() {
            properties.insert(field.name.to_owned(), self.field_type(&field.field_type));
        }
        let required: Vec<&str> =
            object_type.fields().filter(|field| field.required).map(|field| field.name).collect();
        let mut object = json!({"type": "object", "additionalProperties": false, "properties": properties});
        if !required.is_empty() {
            object["required"] = json!(required);
        }
        object
    }

    fn reference(&mut self, object_type: &'static ObjectType) -> Value {
        if !self.written.contains_key(object_type.name) {
            // Reserved first: an object type may refer to itself.
            self.written.insert(object_type.name, Value::Null);
            let object = self.object(object_type);
            self.written.insert(object_type.name, object);
        }
        json!({"$ref": format!("#/$defs/{}", object_type.name)})
    }

    fn union(&mut self, union: &'static UnionType) -> Value {
        let variants: Vec<Value> =
            union.variants.iter().map(|object_type| self.reference(object_type)).collect();
        json!({"oneOf": variants})
    }

    fn field_type(&mut self, field_type: &'static FieldType) -> Value {
        match field_type {
            FieldType::String => json!({"type": "string"}),
            FieldType::Pattern(pattern) => json!({"type": "string", "pattern": pattern.regex}),
            FieldType::Version => json!({"enum": SUPPORTED}),
            FieldType::Integer => {
                json!({"type": "integer", "minimum": -contract_types::MAX_INTEGER, "maximum": contract_types::MAX_INTEGER})
            }
            FieldType::Boolean => json!({"type": "boolean"}),
            FieldType::AnyJson => json!(true),
            FieldType::AnyObject => json!({"type": "object"}),
            FieldType::Literal(text) => json!({"const": text}),
            FieldType::Enum(list) => json!({"enum": list.values}),
            FieldType::Handle(kind) => {
                let handle = self.reference(&contract_types::RENDER_HANDLE);
                json!({"allOf": [handle, {"properties": {"kind": {"const": kind.as_str()}}}]})
            }
            FieldType::Object(object_type) | FieldType::CheckedSeparately(object_type) => {
                self.reference(object_type)
            }
            FieldType::Array(item) => {
                let items = self.field_type(item);
                json!({"type": "array", "items": items})
            }
            FieldType::Union(union) => self.union(union),
            FieldType::Nullable(inner) => {
                let inner = self.field_type(inner);
                json!({"anyOf": [inner, {"type": "null"}]})
            }
        }
    }
}
