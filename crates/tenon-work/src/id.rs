//! Identifiers of plans, tasks, steps, events, operations and evidence.
//!
//! Each is a number of a per-workspace counter in a fixed spelling. Parsing accepts exactly the spelling that
//! [`Display`] writes: `TASK-0007` fits the pattern but names nothing, since the seventh task is `TASK-007`.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Why a string is not an id of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdError {
    /// It does not follow the pattern of this kind of id.
    WrongKind,
    /// It follows the pattern, but no counter writes it this way.
    Unknown,
}

/// What a [`TargetId`] names. Plans come before tasks in every list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    Plan,
    Task,
}

impl TargetKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Task => "task",
        }
    }
}

/// `PLAN-001` or `TASK-001`: what carries a revision and a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TargetId {
    pub kind: TargetKind,
    number: u64,
}

/// Tasks sort after plans in the one integer key that the store uses.
const TASK_BIT: i64 = 1 << 40;

impl TargetId {
    pub fn new(kind: TargetKind, number: u64) -> Self {
        Self { kind, number }
    }

    /// The key of this target in the store; its order is the order of lists.
    pub fn key(self) -> i64 {
        let number = i64::try_from(self.number).unwrap_or(i64::MAX) & (TASK_BIT - 1);
        match self.kind {
            TargetKind::Plan => number,
            TargetKind::Task => number | TASK_BIT,
        }
    }

    pub fn from_key(key: i64) -> Self {
        let number = u64::try_from(key & (TASK_BIT - 1)).unwrap_or(0);
        let kind = if key & TASK_BIT == 0 { TargetKind::Plan } else { TargetKind::Task };
        Self { kind, number }
    }

    /// The branch on which reasoning about this target is kept.
    pub fn branch(self) -> String {
        format!("{}/{self}", self.kind.as_str())
    }

    pub fn graph_doc(self) -> String {
        format!("{self}-graph")
    }

    pub fn trace_doc(self) -> String {
        format!("{self}-trace")
    }
}

impl Display for TargetId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.kind {
            TargetKind::Plan => "PLAN",
            TargetKind::Task => "TASK",
        };
        write!(formatter, "{prefix}-{:03}", self.number)
    }
}

impl FromStr for TargetId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let (kind, digits) = match text.split_once('-') {
            Some(("PLAN", digits)) => (TargetKind::Plan, digits),
            Some(("TASK", digits)) => (TargetKind::Task, digits),
            _ => return Err(IdError::WrongKind),
        };
        if digits.len() < 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(IdError::WrongKind);
        }
        let number = digits.parse().map_err(|_| IdError::Unknown)?;
        canonical(Self { kind, number }, text)
    }
}

/// `STEP-0000002A`: eight or more upper-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepId(pub u64);

impl Display for StepId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "STEP-{:08X}", self.0)
    }
}

impl FromStr for StepId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let digits = text.strip_prefix("STEP-").or_else(|| text.strip_prefix("NODE-"));
        let digits = digits.ok_or(IdError::WrongKind)?;
        if digits.len() < 8 || !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(IdError::WrongKind);
        }
        canonical(Self(u64::from_str_radix(digits, 16).map_err(|_| IdError::Unknown)?), text)
    }
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u64);

        impl Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!($prefix, "{:016}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let digits = text.strip_prefix($prefix).ok_or(IdError::WrongKind)?;
                if digits.len() < 16 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(IdError::WrongKind);
                }
                canonical(Self(digits.parse().map_err(|_| IdError::Unknown)?), text)
            }
        }
    };
}

numbered!(
    /// `evt_` and sixteen digits, without gaps inside a workspace.
    EventId,
    "evt_"
);
numbered!(
    /// `op_` and the number of the first event of an operation that can be undone.
    OperationId,
    "op_"
);
numbered!(
    /// `evd_` and the sequence number of the entry that holds the evidence.
    EvidenceId,
    "evd_"
);

fn canonical<T: Display>(id: T, text: &str) -> Result<T, IdError> {
    if id.to_string() == text { Ok(id) } else { Err(IdError::Unknown) }
}

macro_rules! as_string {
    ($($name:ident),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(|_| {
                    de::Error::invalid_value(de::Unexpected::Str(&text), &stringify!($name))
                })
            }
        }
    )*};
}

as_string!(TargetId, StepId, EventId, OperationId, EvidenceId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_the_contract() {
        assert_eq!(TargetId::new(TargetKind::Plan, 1).to_string(), "PLAN-001");
        assert_eq!(TargetId::new(TargetKind::Task, 1234).to_string(), "TASK-1234");
        assert_eq!(StepId(42).to_string(), "STEP-0000002A");
        assert_eq!(EventId(7).to_string(), "evt_0000000000000007");
    }

    #[test]
    fn only_the_canonical_form_is_accepted() {
        let read = |text: &str| text.parse::<TargetId>();
        assert_eq!(read("TASK-007").unwrap(), TargetId::new(TargetKind::Task, 7));
        assert_eq!(read("TASK-0007"), Err(IdError::Unknown));
        assert_eq!(read("TASK-99999999999999999999999"), Err(IdError::Unknown));
        for wrong in ["", "TASK-07", "task-007", "STEP-00000001", "TASK-0x7", "TASK-٠٠٧"] {
            assert_eq!(read(wrong), Err(IdError::WrongKind), "{wrong}");
        }
        assert_eq!("STEP-0000002A".parse(), Ok(StepId(42)));
        assert_eq!("STEP-0000002a".parse::<StepId>(), Err(IdError::Unknown));
        assert_eq!("NODE-00000001".parse::<StepId>(), Err(IdError::Unknown));
        assert_eq!("STEP-0000000-".parse::<StepId>(), Err(IdError::WrongKind));
        assert_eq!("evt_1".parse::<EventId>(), Err(IdError::WrongKind));
        assert_eq!("evt_0000000000000012".parse(), Ok(EventId(12)));
    }

    #[test]
    fn store_keys_keep_the_order_of_lists() {
        let plan = TargetId::new(TargetKind::Plan, 900);
        let task = TargetId::new(TargetKind::Task, 1);
        assert!(plan.key() < task.key());
        assert_eq!(TargetId::from_key(plan.key()), plan);
        assert_eq!(TargetId::from_key(task.key()), task);
    }

    #[test]
    fn target_has_a_reasoning_ref() {
        let task = TargetId::new(TargetKind::Task, 1);
        assert_eq!(task.branch(), "task/TASK-001");
        assert_eq!(task.graph_doc(), "TASK-001-graph");
        assert_eq!(task.trace_doc(), "TASK-001-trace");
    }
}
