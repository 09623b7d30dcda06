//! Laws that hold for every input, tried on many random ones.
#![expect(clippy::unwrap_used, reason = "what a test cannot set up or read back must fail it")]

mod budget;
mod cursor;
mod json;
mod position;
mod snapshot;

/// Cases without a file of past failures: a failure prints its smallest input, which becomes a test of its own.
fn cases(cases: u32) -> proptest::prelude::ProptestConfig {
    proptest::prelude::ProptestConfig {
        cases,
        failure_persistence: None,
        ..proptest::prelude::ProptestConfig::default()
    }
}
