//! Reads JSON arguments into typed ones, as strictly as the published schemas and with the same two allowances:
//! `null` means absent, and `5.0` is the integer `5`.
//!
//! The reader brings the JSON into its one form while it reads: afterwards it holds no `null` member and no integer
//! written as a float. Free-form fields (`serde_json::Value` and `Map`) are taken as they are.

use std::fmt::{self, Display};

use serde::de::value::StringDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::{Number, Value, map};

/// What is wrong with the arguments, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArgumentError {
    /// JSON pointer; empty for the arguments as a whole.
    pub path: String,
    pub message: String,
}

impl ArgumentError {
    fn new(message: impl Into<String>) -> Self {
        Self { path: String::new(), message: message.into() }
    }

    fn inside(mut self, segment: &dyn Display) -> Self {
        self.path.insert_str(0, &format!("/{segment}"));
        self
    }
}

impl Display for ArgumentError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for ArgumentError {}

impl de::Error for ArgumentError {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("`{field}` is missing"))
    }

    // The default messages quote the value, which may be a secret.
    fn invalid_type(_found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}"))
    }

    fn invalid_value(_found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}"))
    }

    fn unknown_variant(_variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("expected one of {}", expected.join(", ")))
    }
}

/// Reads `arguments` and leaves them in their one form.
pub(crate) fn read<T: DeserializeOwned>(arguments: &mut Value) -> Result<T, ArgumentError> {
    T::deserialize(Reader(arguments))
}

struct Reader<'a>(&'a mut Value);

impl Reader<'_> {
    fn text(&self) -> Result<String, ArgumentError> {
        self.0.as_str().map(str::to_owned).ok_or_else(|| ArgumentError::new("expected a string"))
    }
}

/// The value of a JSON number that is an integer.
fn integral(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 2f64.powi(63));
    number.as_i64().or(float.filter(|_| number.is_f64()).map(|float| float as i64))
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = ArgumentError;

    /// Free-form data.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        self.0.clone().deserialize_any(visitor).map_err(de::Error::custom)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        let flag = self.0.as_bool().ok_or_else(|| ArgumentError::new("expected true or false"))?;
        visitor.visit_bool(flag)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        let integer = self.0.as_number().and_then(integral);
        let integer = integer.ok_or_else(|| ArgumentError::new("expected an integer of 64 bits"))?;
        *self.0 = integer.into();
        visitor.visit_i64(integer)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        visitor.visit_string(self.text()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        let items = self.0.as_array_mut().ok_or_else(|| ArgumentError::new("expected an array"))?;
        visitor.visit_seq(Items(items.iter_mut().enumerate()))
    }

    /// A free-form object.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        if !self.0.is_object() {
            return Err(ArgumentError::new("expected an object"));
        }
        self.deserialize_any(visitor)
    }

    /// An object with these members and no others.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        let members = self.0.as_object_mut().ok_or_else(|| ArgumentError::new("expected an object"))?;
        if let Some(unknown) = members.keys().find(|name| !fields.contains(&name.as_str())) {
            return Err(ArgumentError::new(format!("unknown member {}", crate::name::quoted(unknown))));
        }
        members.retain(|_, value| !value.is_null());
        visitor.visit_map(Members { rest: members.iter_mut(), current: None })
    }

    /// A string that names a variant.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        let variant: StringDeserializer<ArgumentError> = self.text()?.into_deserializer();
        visitor.visit_enum(variant)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u32 u64 u128 f32 f64 char str bytes byte_buf unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}

struct Items<'a>(std::iter::Enumerate<std::slice::IterMut<'a, Value>>);

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = ArgumentError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ArgumentError> {
        let Some((index, item)) = self.0.next() else { return Ok(None) };
        seed.deserialize(Reader(item)).map(Some).map_err(|error| error.inside(&index))
    }
}

struct Members<'a> {
    rest: map::IterMut<'a>,
    current: Option<(&'a String, &'a mut Value)>,
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = ArgumentError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ArgumentError> {
        self.current = self.rest.next();
        let Some((name, _)) = &self.current else { return Ok(None) };
        seed.deserialize(name.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ArgumentError> {
        let (name, value) = self.current.take().expect("a key is read before its value");
        seed.deserialize(Reader(value)).map_err(|error| error.inside(name))
    }
}

/// A list with at least one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NonEmpty<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NonEmpty<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = Vec::deserialize(deserializer)?;
        if items.is_empty() { Err(de::Error::custom("expected at least one item")) } else { Ok(Self(items)) }
    }
}

/// An integer that only bounds something: beyond 64 bits it counts as the largest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound(pub i64);

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let beyond = value.as_f64().filter(|float| float.fract() == 0.0).map(|float| float as i64);
        let bound = value.as_number().and_then(integral).or(beyond);
        bound.map(Self).ok_or_else(|| de::Error::custom("expected an integer"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Tree {
        name: String,
        size: Option<i64>,
        #[serde(default)]
        kinds: Vec<Kind>,
        data: Option<Value>,
        #[serde(default)]
        below: Vec<Tree>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Oak,
    }

    #[test]
    fn null_is_absent_and_a_whole_float_is_an_integer() {
        let mut given = json!({"name": "a", "size": 5.0, "kinds": null, "data": {"kept": null, "size": 5.0},
            "below": [{"name": "b", "size": null, "kinds": ["oak"]}]});
        let tree: Tree = read(&mut given).unwrap();
        assert_eq!((tree.size, tree.kinds.len(), tree.below[0].kinds.len()), (Some(5), 0, 1));
        let normal = json!({"name": "a", "size": 5, "data": {"kept": null, "size": 5.0},
            "below": [{"name": "b", "kinds": ["oak"]}]});
        assert_eq!(given.to_string(), normal.to_string());
    }

    #[test]
    fn error_names_the_path() {
        for (mut given, path) in [
            (json!([]), ""),
            (json!({}), ""),
            (json!({"name": "a", "extra": null}), ""),
            (json!({"name": 5}), "/name"),
            (json!({"name": null}), ""),
            (json!({"name": "a", "size": 1.5}), "/size"),
            (json!({"name": "a", "size": 1e300}), "/size"),
            (json!({"name": "a", "kinds": ["elm"]}), "/kinds/0"),
            (json!({"name": "a", "kinds": [{"oak": null}]}), "/kinds/0"),
            (json!({"name": "a", "below": [{"name": "b"}, ["c"]]}), "/below/1"),
            (json!({"name": "a", "below": [{"name": "b", "below": [{"name": 5}]}]}), "/below/0/below/0/name"),
        ] {
            let shown = given.to_string();
            assert_eq!(read::<Tree>(&mut given).unwrap_err().path, path, "{shown}");
        }
    }

    #[test]
    fn bounds_saturate_and_empty_lists_are_rejected() {
        assert_eq!(read::<Bound>(&mut json!(1e300)).unwrap(), Bound(i64::MAX));
        assert_eq!(read::<Bound>(&mut json!(5.0)).unwrap(), Bound(5));
        assert!(read::<Bound>(&mut json!(0.5)).is_err());
        assert!(read::<NonEmpty<String>>(&mut json!([])).is_err());
        assert_eq!(read::<NonEmpty<String>>(&mut json!(["a"])).unwrap().0, ["a"]);
    }
}
