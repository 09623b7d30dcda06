//! Tests of the composer and the render runtime beyond the contract's fixtures.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod conflicts;
mod disk_module;
mod examples;
mod grammar;
mod inputs;
mod invalid_input;
mod permutations;
mod policy;
mod purity;
mod registry_page;
mod render;
mod schemas;
