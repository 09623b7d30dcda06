//! The body of the fuzz target `hook_events`: it takes any bytes and panics if a promise is broken.

use serde_json::Value;

use super::event::{Event, EventKind};

/// `data` is the event that an agent sends.
pub(super) fn check(data: &[u8]) {
    let Ok(event) = Event::parse(data) else { return };
    // Unknown fields are skipped, and their text is not checked.
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    // The spelling of the JSON does not matter.
    assert_eq!(Event::parse(value.to_string().as_bytes()).ok(), Some(event));
    let Some(event) = Event::parse(data).ok().flatten() else { return };
    if let EventKind::Edit(files) = &event.kind {
        assert!(!files.is_empty());
        assert!(files.windows(2).all(|pair| pair[0].path < pair[1].path), "{files:?}");
    }
    let output = event.name.output("text\n");
    assert!(output.contains("text"));
    assert!(!output.starts_with('{') || serde_json::from_str::<Value>(&output).is_ok());
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_passes() {
        tenon_testkit::corpus::for_each("hook_events", super::check);
    }
}
