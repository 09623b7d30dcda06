//! Finds the text positions of JSON pointers, so that the text format can show where a mistake is.
//!
//! The tree that the composer reads keeps no positions; only callers that show positions pay for finding them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::diagnostic::PointerStep;

/// The byte range of each pointer's value, or `None` where a pointer resolves to nothing.
#[must_use]
pub fn locate(text: &str, pointers: &[&[PointerStep]]) -> Vec<Option<Range<usize>>> {
    let mut wanted = PointerTree::default();
    for (number, pointer) in pointers.iter().enumerate() {
        let mut node = &mut wanted;
        for step in *pointer {
            node = node.children.entry(step).or_default();
        }
        node.numbers.push(number);
    }
    let mut search = PointerSearch { text, found: vec![None; pointers.len()] };
    if let Ok(root) = serde_json::from_str::<&RawValue>(text) {
        search.value(root, &wanted);
    }
    search.found
}

/// The pointers to find, merged into a tree.
#[derive(Default)]
struct PointerTree<'p> {
    numbers: Vec<usize>,
    children: BTreeMap<&'p PointerStep, PointerTree<'p>>,
}

struct PointerSearch<'t> {
    text: &'t str,
    found: Vec<Option<Range<usize>>>,
}

impl<'t> PointerSearch<'t> {
    fn value(&mut self, value: &'t RawValue, wanted: &PointerTree<'_>) {
        let raw = value.get();
        let start = raw.as_ptr() as usize - self.text.as_ptr() as usize;
        for number in &wanted.numbers {
            self.found[*number] = Some(start..start + raw.len());
        }
        if !wanted.children.is_empty() {
            // The text has been parsed before, and a scalar has no children, so the error is ignored.
            let _ = serde_json::Deserializer::from_str(raw)
                .deserialize_any(ChildVisitor { search: self, wanted });
        }
    }
}

struct ChildVisitor<'s, 't, 'w> {
    search: &'s mut PointerSearch<'t>,
    wanted: &'w PointerTree<'w>,
}

impl<'t> Visitor<'t> for ChildVisitor<'_, 't, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array or an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut access: A) -> Result<(), A::Error> {
        while let Some(name) = access.next_key::<String>()? {
            let step = PointerStep::Field(name.into());
            access.next_value_seed(ChildSeed {
                search: self.search,
                wanted: self.wanted.children.get(&step),
            })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut access: A) -> Result<(), A::Error> {
        for index in 0.. {
            let wanted = self.wanted.children.get(&PointerStep::Index(index));
            if access.next_element_seed(ChildSeed { search: self.search, wanted })?.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// One child value, parsed only if a pointer leads into it.
struct ChildSeed<'s, 't, 'w> {
    search: &'s mut PointerSearch<'t>,
    wanted: Option<&'w PointerTree<'w>>,
}

impl<'t> DeserializeSeed<'t> for ChildSeed<'_, 't, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'t>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.wanted {
            None => deserializer.deserialize_ignored_any(IgnoredAny).map(drop),
            Some(wanted) => {
                let value: &'t RawValue = serde::Deserialize::deserialize(deserializer)?;
                self.search.value(value, wanted);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> PointerStep {
        PointerStep::Field(name.to_owned().into())
    }

    #[test]
    fn pointers_resolve_to_byte_ranges() {
        let text = "{\n  \"a\": [1, {\"\\u0062\": \"x\"}, 3],\n  \"c\": {}\n}";
        let pointers: Vec<Vec<PointerStep>> = vec![
            vec![],
            vec![field("a"), PointerStep::Index(1), field("b")],
            vec![field("a"), PointerStep::Index(1)],
            vec![field("a"), PointerStep::Index(7)],
            vec![field("c")],
            vec![field("c"), field("d")],
            vec![field("c"), PointerStep::Index(0)],
            vec![field("a"), PointerStep::Index(0), field("x")],
        ];
        let pointers: Vec<&[PointerStep]> = pointers.iter().map(Vec::as_slice).collect();
        let found: Vec<Option<&str>> =
            locate(text, &pointers).into_iter().map(|range| range.map(|range| &text[range])).collect();
        assert_eq!(
            found,
            [Some(text), Some("\"x\""), Some("{\"\\u0062\": \"x\"}"), None, Some("{}"), None, None, None]
        );
        assert_eq!(locate("not json", &[&[]]), [None]);
    }
}
