//! `checkpoints` as clients give them: `{criteria: {confirmed: true}, …}`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::plan::step::{Checkpoint, Step};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Confirmation {
    confirmed: bool,
}

pub(crate) type Checkpoints = BTreeMap<Checkpoint, Confirmation>;

/// Confirms and takes back what the call says. True if that changed anything.
pub(crate) fn apply(checkpoints: &Checkpoints, step: &mut Step) -> bool {
    let before = step.confirmed.clone();
    for (&checkpoint, confirmation) in checkpoints {
        step.confirmed.retain(|confirmed| *confirmed != checkpoint);
        if confirmation.confirmed {
            step.confirmed.push(checkpoint);
        }
    }
    step.confirmed.sort();
    step.confirmed != before
}

/// The argument that confirms these.
pub(crate) fn confirming(missing: &[Checkpoint]) -> Value {
    let confirmed =
        missing.iter().map(|checkpoint| (checkpoint.as_str().to_owned(), json!({"confirmed": true})));
    Value::Object(Map::from_iter(confirmed))
}
