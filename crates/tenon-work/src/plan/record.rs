//! Records: the sum of their events.
//!
//! A record is a flat set of named fields. An event holds the fields it changed, before and after; for a created record,
//! those that differ from the default. So the current state is the default with all `after` fields applied, and an undo
//! applies the `before` fields.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(crate) type Fields = Map<String, Value>;

/// The name of a field that differs, and both values.
pub(crate) type FieldChange = (&'static str, Value, Value);

pub(crate) trait Record: Serialize + DeserializeOwned + Default + PartialEq {
    /// The fields that differ from those of another record. See [`record`].
    fn differing(&self, after: &Self) -> Vec<FieldChange>;

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

/// Implements [`Record`] for a struct with exactly these fields. Only those that differ become JSON.
macro_rules! record {
    ($record:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::plan::record::Record for $record {
            fn differing(&self, after: &Self) -> Vec<$crate::plan::record::FieldChange> {
                let Self { $($field),+ } = self;
                let mut changes = Vec::new();
                $(
                    if *$field != after.$field {
                        let values = (serde_json::json!($field), serde_json::json!(after.$field));
                        changes.push((stringify!($field), values.0, values.1));
                    }
                )+
                changes
            }
        }
    };
}
pub(crate) use record;

/// The fields that differ, with both values.
pub(crate) fn difference<R: Record>(before: &R, after: &R) -> (Fields, Fields) {
    let changes = before.differing(after).into_iter();
    changes.map(|(name, old, new)| ((name.to_owned(), old), (name.to_owned(), new))).unzip()
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

    record!(Point { x, y, label });

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
