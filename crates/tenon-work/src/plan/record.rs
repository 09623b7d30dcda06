//! Records: the sum of their events.
//!
//! A record is a flat set of named fields. An event holds the fields it changed, before and after; for a created record,
//! those that differ from the default. So the current state is the default with all `after` fields applied, and an undo
//! applies the `before` fields.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(crate) type Fields = Map<String, Value>;

pub(crate) trait Record: Serialize + DeserializeOwned + Default + PartialEq {
    fn fields(&self) -> Fields {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            _ => unreachable!("records are structs of JSON values"),
        }
    }

    /// This record with some fields replaced; an error if a value has the wrong type.
    fn with(&self, changes: &Fields) -> Result<Self, serde_json::Error> {
        let mut fields = self.fields();
        for (name, value) in changes {
            fields.insert(name.clone(), value.clone());
        }
        serde_json::from_value(Value::Object(fields))
    }
}

/// The fields that differ, with both values.
pub(crate) fn difference<R: Record>(before: &R, after: &R) -> (Fields, Fields) {
    let (mut old, mut new) = (before.fields(), after.fields());
    old.retain(|name, value| new.get(name) != Some(value));
    new.retain(|name, _| old.contains_key(name));
    (old, new)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Point {
        x: i64,
        y: i64,
        label: Option<String>,
    }

    impl Record for Point {}

    #[test]
    fn difference_applies_in_both_directions() {
        let old = Point { x: 1, y: 2, label: None };
        let new = Point { x: 1, y: 3, label: Some("a".into()) };
        let (before, after) = difference(&old, &new);
        assert_eq!(Value::Object(before.clone()), json!({"y": 2, "label": null}));
        assert_eq!(Value::Object(after.clone()), json!({"y": 3, "label": "a"}));
        assert_eq!(old.with(&after).unwrap(), new);
        assert_eq!(new.with(&before).unwrap(), old);
        assert!(old.with(&Fields::from_iter([("z".into(), json!(1))])).is_err());
        assert!(old.with(&Fields::from_iter([("x".into(), json!("1"))])).is_err());
    }
}
