//! `s:0.s:2`: the position of a step, as ordinals from the root of the task.
//!
//! Ordinals are never reused: deleting a step leaves a gap, so a path never refers to another step later.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::id::IdError;

/// The deepest nesting of steps.
pub const MAX_DEPTH: usize = 16;

/// The default is empty: the path of a step that does not exist yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct StepPath(Vec<u32>);

impl StepPath {
    pub fn root(ordinal: u32) -> Self {
        Self(vec![ordinal])
    }

    pub fn child(&self, ordinal: u32) -> Self {
        let mut ordinals = self.0.clone();
        ordinals.push(ordinal);
        Self(ordinals)
    }

    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        (!above.is_empty()).then(|| Self(above.to_vec()))
    }

    /// The ordinals from the root down.
    pub(crate) fn ordinals(&self) -> &[u32] {
        &self.0
    }

    pub fn ordinal(&self) -> u32 {
        self.0.last().copied().unwrap_or(0)
    }

    pub fn depth(&self) -> usize {
        self.0.len()
    }

    pub fn is_below(&self, ancestor: &Self) -> bool {
        self.0.len() > ancestor.0.len() && self.0.starts_with(&ancestor.0)
    }

    /// A text whose byte order is the order of the tree, parents first.
    pub fn sort_key(&self) -> String {
        let parts: Vec<String> = self.0.iter().map(|ordinal| format!("{ordinal:08x}")).collect();
        parts.join(".")
    }

    /// Reads what [`StepPath::sort_key`] wrote.
    pub fn from_sort_key(key: &str) -> Option<Self> {
        let ordinals: Result<Vec<u32>, _> =
            key.split('.').map(|part| u32::from_str_radix(part, 16)).collect();
        ordinals.ok().map(Self)
    }
}

impl Display for StepPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, ordinal) in self.0.iter().enumerate() {
            let dot = if index == 0 { "" } else { "." };
            write!(formatter, "{dot}s:{ordinal}")?;
        }
        Ok(())
    }
}

impl FromStr for StepPath {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let mut ordinals = Vec::new();
        for part in text.split('.') {
            let digits = part.strip_prefix("s:").ok_or(IdError::WrongKind)?;
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(IdError::WrongKind);
            }
            ordinals.push(digits);
        }
        let ordinals: Result<Vec<u32>, _> = ordinals.into_iter().map(str::parse).collect();
        let path = Self(ordinals.map_err(|_| IdError::Unknown)?);
        if path.to_string() == text { Ok(path) } else { Err(IdError::Unknown) }
    }
}

impl Serialize for StepPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StepPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() {
            return Ok(Self::default());
        }
        text.parse().map_err(|_| de::Error::invalid_value(de::Unexpected::Str(&text), &"a step path"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_canonical_form_is_accepted() {
        assert_eq!("s:0.s:12".parse::<StepPath>().unwrap().to_string(), "s:0.s:12");
        for wrong in ["", "s:", "0", "s:0.", ".s:0", "s:0s:1", "s:-1", "s:0.S:1", "s:٣"] {
            assert_eq!(wrong.parse::<StepPath>(), Err(IdError::WrongKind), "{wrong}");
        }
        for never_given in ["s:00", "s:99999999999"] {
            assert_eq!(never_given.parse::<StepPath>(), Err(IdError::Unknown), "{never_given}");
        }
    }

    proptest! {
        #[test]
        fn sort_keys_order_like_the_tree(
            a in prop::collection::vec(any::<u32>(), 1..6),
            b in prop::collection::vec(0_u32..4, 1..6),
        ) {
            let (a, b) = (StepPath(a), StepPath(b));
            prop_assert_eq!(a.cmp(&b), a.sort_key().cmp(&b.sort_key()));
            prop_assert_eq!(StepPath::from_sort_key(&a.sort_key()).unwrap(), a.clone());
            prop_assert_eq!(a.to_string().parse::<StepPath>().unwrap(), a);
        }
    }
}
