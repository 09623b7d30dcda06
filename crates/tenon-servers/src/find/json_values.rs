//! Values inside the JSON settings of a server.

use serde_json::Value;

/// Replaces a placeholder in all strings of a value.
pub(super) fn fill(value: &mut Value, placeholder: &str, text: &str) {
    match value {
        Value::String(string) => *string = string.replace(placeholder, text),
        Value::Array(values) => values.iter_mut().for_each(|one| fill(one, placeholder, text)),
        Value::Object(fields) => fields.values_mut().for_each(|one| fill(one, placeholder, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The value of a dotted key.
pub(super) fn lookup<'v>(value: &'v Value, dotted: &str) -> Option<&'v Value> {
    dotted.split('.').try_fold(value, |value, key| value.get(key))
}

/// Sets a dotted key, replacing values on the way by objects.
pub(super) fn set(value: &mut Value, dotted: &str, new: Value) {
    let slot = dotted.split('.').fold(value, |value, key| {
        if !value.is_object() {
            *value = Value::Object(serde_json::Map::new());
        }
        value.as_object_mut().expect("made an object one line above").entry(key).or_insert(Value::Null)
    });
    *slot = new;
}
