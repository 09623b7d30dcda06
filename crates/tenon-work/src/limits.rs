//! Size limits. A call that exceeds one is rejected before anything is written.

use serde_json::Value;
use tenon_contract::json::canonical_value;

use crate::error::WorkError;

const TITLE_CHARS: usize = 500;
const TEXT_BYTES: usize = 256 * 1024;
/// `meta` describes an origin; content has its own, larger limit.
const META_BYTES: usize = 4 * 1024;
/// Steps or operations in one call, and items in one list.
pub(crate) const PER_CALL: usize = 1000;
const STEPS_PER_TASK: usize = 10_000;
const EVIDENCE_PER_STEP: usize = 100;

/// The limits of every argument: no text and no list of any tool is larger.
pub(crate) fn argument(name: &str, value: &Value) -> Result<(), WorkError> {
    match value {
        Value::String(value) => text(name, value),
        Value::Array(items) => {
            count(name, items.len(), PER_CALL)?;
            items.iter().try_for_each(|item| argument(name, item))
        }
        Value::Object(map) => map.iter().try_for_each(|(name, value)| match value {
            // Free-form data may have longer lists; its total size is checked by the tool.
            Value::Array(items) => items.iter().try_for_each(|item| argument(name, item)),
            value => argument(name, value),
        }),
        _ => Ok(()),
    }
}

pub(crate) fn title(text: &str) -> Result<(), WorkError> {
    short("title", text)
}

/// A short label.
pub(crate) fn short(name: &str, text: &str) -> Result<(), WorkError> {
    if text.trim().is_empty() {
        return Err(WorkError::invalid(format!("{name} is empty")).recovery("give a text"));
    }
    if text.chars().nth(TITLE_CHARS).is_some() {
        return Err(WorkError::invalid(format!("{name} has more than {TITLE_CHARS} characters"))
            .recovery("put the details into a longer text"));
    }
    Ok(())
}

pub(crate) fn text(name: &str, text: &str) -> Result<(), WorkError> {
    within(name, text.len(), TEXT_BYTES)
}

pub(crate) fn texts(name: &str, texts: &[String]) -> Result<(), WorkError> {
    count(name, texts.len(), PER_CALL)?;
    texts.iter().try_for_each(|item| text(name, item))
}

pub(crate) fn data(name: &str, value: &Value) -> Result<(), WorkError> {
    within(name, canonical_value(value).len(), TEXT_BYTES)
}

pub(crate) fn meta(value: &Value) -> Result<(), WorkError> {
    within("meta", canonical_value(value).len(), META_BYTES)
}

pub(crate) fn evidence(items: usize) -> Result<(), WorkError> {
    total("evidence of the step", items, EVIDENCE_PER_STEP, "attach the rest to another step")
}

/// The steps that a plan or task would have.
pub(crate) fn steps(of: &str, items: usize) -> Result<(), WorkError> {
    total(
        &format!("steps of {of}"),
        items,
        STEPS_PER_TASK,
        "create another task for the rest, or delete steps",
    )
}

/// A limit that splitting the call does not help with.
fn total(name: &str, items: usize, most: usize, recovery: &str) -> Result<(), WorkError> {
    count(name, items, most).map_err(|failure| failure.recovery(recovery))
}

pub(crate) fn count(name: &str, items: usize, most: usize) -> Result<(), WorkError> {
    if items > most {
        return Err(WorkError::invalid(format!("{name}: {items} items, the limit is {most}"))
            .recovery("split it over several calls"));
    }
    Ok(())
}

fn within(name: &str, bytes: usize, most: usize) -> Result<(), WorkError> {
    if bytes > most {
        return Err(WorkError::invalid(format!("{name}: {bytes} bytes, the limit is {most}"))
            .recovery("shorten it, or split it over several calls"));
    }
    Ok(())
}
