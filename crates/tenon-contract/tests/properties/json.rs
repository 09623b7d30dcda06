//! Canonical JSON: one text per value, independent of key order, and lossless.

use proptest::prelude::*;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Number, Value};
use tenon_contract::json::{canonical, canonical_value};

/// A JSON value whose objects keep insertion order.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(Value),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Leaf(value) => value.serialize(serializer),
            Self::List(items) => items.serialize(serializer),
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, item) in entries {
                    map.serialize_entry(key, item)?;
                }
                map.end()
            }
        }
    }
}

impl Tree {
    /// The same value with reordered object entries.
    fn reordered(&self) -> Self {
        match self {
            Self::Leaf(value) => Self::Leaf(value.clone()),
            Self::List(items) => Self::List(items.iter().map(Self::reordered).collect()),
            Self::Map(entries) => {
                let mut other: Vec<_> =
                    entries.iter().map(|(key, item)| (key.clone(), item.reordered())).collect();
                other.reverse();
                let half = other.len() / 2;
                other.rotate_left(half);
                Self::Map(other)
            }
        }
    }
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-(1_i64 << 54)..1 << 54).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-1e22..1e22).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[\\x00-\\x20\"\\\\/\u{7f}-\u{2030}]{0,8}".prop_map(Value::from),
    ]
}

fn tree() -> impl Strategy<Value = Tree> {
    leaf().prop_map(Tree::Leaf).prop_recursive(4, 48, 6, |inner| {
        let key = prop_oneof![any::<String>(), "[a-c\u{e000}-\u{10ffff}]{0,2}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Tree::List),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|map| Tree::Map(map.into_iter().collect())),
        ]
    })
}

/// Equal as JSON: `1.0` equals `1`; distinct integers always differ.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || same_number(a, b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

fn same_number(a: &Number, b: &Number) -> bool {
    (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
}

proptest! {
    #![proptest_config(crate::cases(1024))]

    #[test]
    fn parsing_gives_the_same_value_and_the_same_text(tree in tree()) {
        let text = canonical(&tree).unwrap();
        let read: Value = serde_json::from_str(&text).unwrap();
        prop_assert!(same(&read, &serde_json::to_value(&tree).unwrap()), "{}", text);
        prop_assert_eq!(canonical_value(&read), text);
    }

    #[test]
    fn key_order_does_not_matter(tree in tree()) {
        prop_assert_eq!(canonical(&tree.reordered()).unwrap(), canonical(&tree).unwrap());
    }

    #[test]
    fn different_values_have_different_texts(a in tree(), b in tree()) {
        let equal = canonical(&a).unwrap() == canonical(&b).unwrap();
        prop_assert_eq!(equal, same(&serde_json::to_value(&a).unwrap(), &serde_json::to_value(&b).unwrap()));
    }

    #[test]
    fn integers_are_written_digit_for_digit(unsigned: u64, signed: i64) {
        prop_assert_eq!(canonical(&unsigned).unwrap(), unsigned.to_string());
        prop_assert_eq!(canonical(&signed).unwrap(), signed.to_string());
    }

    #[test]
    fn floats_round_trip_without_trailing_zero(float: f64) {
        prop_assume!(float.is_finite());
        let text = canonical(&float).unwrap();
        prop_assert_eq!(text.parse::<f64>().unwrap(), float);
        prop_assert!(text.bytes().filter(u8::is_ascii_digit).count() > 0);
        prop_assert!(!text.ends_with(".0"));
    }
}
