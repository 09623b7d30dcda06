//! What the kernel must show beyond its fixtures.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

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
