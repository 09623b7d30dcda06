//! `checkpoints` as clients give them: `{criteria: {confirmed: true}, …}`.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::plan::step::{Checkpoint, Step};

#[derive(Debug, Clone, Copy, Deserialize)]
struct Confirmation {
    confirmed: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Checkpoints {
    criteria: Option<Confirmation>,
    tests: Option<Confirmation>,
    security: Option<Confirmation>,
    perf: Option<Confirmation>,
    docs: Option<Confirmation>,
}

impl Checkpoints {
    /// The checkpoints that the call names, and whether it confirms them.
    fn named(&self) -> impl Iterator<Item = (Checkpoint, bool)> {
        let all = [
            (Checkpoint::Criteria, self.criteria),
            (Checkpoint::Tests, self.tests),
            (Checkpoint::Security, self.security),
            (Checkpoint::Perf, self.perf),
            (Checkpoint::Docs, self.docs),
        ];
        all.into_iter().filter_map(|(checkpoint, given)| Some((checkpoint, given?.confirmed)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.named().next().is_none()
    }

    /// Sets or clears the confirmations of a step. True if that changed anything.
    pub(crate) fn apply(&self, step: &mut Step) -> bool {
        let before = step.confirmed.clone();
        for (checkpoint, confirmed) in self.named() {
            step.confirmed.retain(|other| *other != checkpoint);
            if confirmed {
                step.confirmed.push(checkpoint);
            }
        }
        step.confirmed.sort();
        step.confirmed != before
    }
}

/// The argument that confirms these.
pub(crate) fn confirming(missing: &[Checkpoint]) -> Value {
    let confirmed =
        missing.iter().map(|checkpoint| (checkpoint.as_str().to_owned(), json!({"confirmed": true})));
    Value::Object(Map::from_iter(confirmed))
}
