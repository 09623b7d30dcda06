//! The check of arguments against a tool's input schema, the only one on the path of a call.

use serde_json::{Value, json};

use super::catalog::SchemaFault;

/// How a surface reads arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputStyle {
    /// Arguments must satisfy the schema as they were sent.
    Exact,
    /// `null` is absent for properties with a type, `5.0` is `5` for integers, and a list described as "same shape" is
    /// checked against the shape that contains it.
    Lenient,
    /// The tool reads any object and says itself what is missing; the schema only tells a model what to send.
    Natural,
}

/// A compiled input schema.
pub(super) struct InputCheck {
    schema: Value,
    style: InputStyle,
    validator: jsonschema::Validator,
}

impl InputCheck {
    pub(super) fn new(schema: Value, style: InputStyle) -> Self {
        let mut schema = schema;
        if style == InputStyle::Lenient {
            let listed = schema.clone();
            resolve_same_shape(&mut schema, &listed, "#");
        }
        let validator =
            jsonschema::validator_for(&schema).expect("checked-in input schemas compile (schemas test)");
        Self { schema, style, validator }
    }

    /// Checks `arguments`, after normalising them where the style says so.
    pub(super) fn run(&self, arguments: &mut Value) -> Result<(), SchemaFault> {
        if self.style == InputStyle::Natural {
            return Ok(());
        }
        if self.style == InputStyle::Lenient {
            normalise(&self.schema, &self.schema, arguments);
        }
        self.validator.validate(arguments).map_err(|error| SchemaFault {
            path: error.instance_path().to_string(),
            message: error.masked().to_string(),
        })
    }
}

/// Replaces "same shape" with a reference to the enclosing shape, so that it is checked at every depth.
///
/// The published schema has no references because not every client follows them.
fn resolve_same_shape(schema: &mut Value, listed: &Value, pointer: &str) {
    for (name, property) in listed["properties"].as_object().into_iter().flatten() {
        if property["description"] == "same shape" {
            schema["properties"][name]["items"] = json!({"$ref": pointer});
        } else {
            let pointer = format!("{pointer}/properties/{name}");
            resolve_same_shape(&mut schema["properties"][name], property, &pointer);
        }
    }
    if let Some(items) = listed.get("items") {
        resolve_same_shape(&mut schema["items"], items, &format!("{pointer}/items"));
    }
}

fn normalise(root: &Value, schema: &Value, value: &mut Value) {
    let reference = schema["$ref"].as_str().and_then(|pointer| root.pointer(&pointer[1..]));
    let schema = reference.unwrap_or(schema);
    match value {
        Value::Object(map) => {
            if let Some(Value::Object(known)) = schema.get("properties") {
                map.retain(|name, value| !(value.is_null() && known.get(name).is_some_and(is_typed)));
                for (name, value) in map.iter_mut() {
                    if let Some(schema) = known.get(name) {
                        normalise(root, schema, value);
                    }
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| normalise(root, schema, item));
            }
        }
        Value::Number(number) if schema.get("type").is_some_and(|kind| kind == "integer") => {
            if let Some(float) = number.as_f64().filter(|_| number.is_f64())
                && float.fract() == 0.0
                && float.abs() < 2f64.powi(63)
            {
                #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^63")]
                let whole = float as i64;
                *value = Value::from(whole);
            }
        }
        _ => {}
    }
}

/// A property of any type may really be `null`; for all others `null` means absent.
fn is_typed(schema: &Value) -> bool {
    schema.get("type").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(tool: &str) -> Value {
        let file = format!("{}/../../schemas/tools/{tool}.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&std::fs::read_to_string(file).expect("the schema is checked in")).expect("JSON")
    }

    fn checked(tool: &str, style: InputStyle, arguments: Value) -> Result<Value, SchemaFault> {
        let mut arguments = arguments;
        InputCheck::new(schema(tool), style).run(&mut arguments).map(|()| arguments)
    }

    fn lenient(tool: &str, arguments: Value) -> Result<Value, SchemaFault> {
        checked(tool, InputStyle::Lenient, arguments)
    }

    #[test]
    fn null_is_absent_except_for_untyped_properties() {
        let args = json!({"title": "x", "parent": null, "contract_data": {"kept": null},
            "steps": [{"title": "s", "success_criteria": ["c"], "tests": null, "steps": [
                {"title": "s", "success_criteria": ["c"], "blockers": null, "steps": [
                    {"title": "s", "success_criteria": ["c"], "steps": null}]}]}]});
        let expected = json!({"title": "x", "contract_data": {"kept": null},
            "steps": [{"title": "s", "success_criteria": ["c"], "steps": [
                {"title": "s", "success_criteria": ["c"], "steps": [
                    {"title": "s", "success_criteria": ["c"]}]}]}]});
        assert_eq!(lenient("tasks_create", args).unwrap(), expected);
        let verified = json!({"checkpoints": {"criteria": {"confirmed": true}, "tests": null}});
        let expected = json!({"checkpoints": {"criteria": {"confirmed": true}}});
        assert_eq!(lenient("tasks_verify", verified).unwrap(), expected);
        assert!(lenient("tasks_verify", json!({"checkpoints": {"speed": null}})).is_err());
        let patch = json!({"ops": [{"op": "set", "field": "description", "value": null}]});
        assert_eq!(lenient("tasks_patch", patch.clone()).unwrap(), patch);
    }

    #[test]
    fn integers_may_be_spelled_as_floats() {
        let args = json!({"limit": 5.0, "max_chars": 1e3});
        assert_eq!(lenient("tasks_context", args).unwrap(), json!({"limit": 5, "max_chars": 1000}));
        assert!(lenient("tasks_context", json!({"limit": 5.5})).is_err());
        assert!(lenient("tasks_context", json!({"limit": "5"})).is_err());
    }

    #[test]
    fn same_shape_is_checked_at_every_depth() {
        let step = |steps: Value| json!({"title": "s", "success_criteria": ["c"], "steps": steps});
        let nested = step(json!([step(json!([step(json!([{"no_such_field": 1}]))]))]));
        let fault = lenient("tasks_create", json!({"title": "x", "steps": [nested]})).unwrap_err();
        assert_eq!(fault.path, "/steps/0/steps/0/steps/0/steps/0");
    }

    #[test]
    fn exact_style_changes_nothing() {
        let null = checked("tasks_context", InputStyle::Exact, json!({"limit": null})).unwrap_err();
        assert_eq!(null.path, "/limit");
        let float = json!({"limit": 5.0});
        assert_eq!(checked("tasks_context", InputStyle::Exact, float.clone()).unwrap(), float);
    }
}
