//! Property tests: rules that hold for every input.
#![expect(clippy::unwrap_used, reason = "a test fails if its setup fails")]

mod budget;
mod cursor;
mod json;
mod position;
mod snapshot;

/// No file of past failures: turn the minimal input that a failure prints into a separate test.
fn cases(cases: u32) -> proptest::prelude::ProptestConfig {
    proptest::prelude::ProptestConfig {
        cases,
        failure_persistence: None,
        ..proptest::prelude::ProptestConfig::default()
    }
}
