//! What the kernel must show beyond its fixtures.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bad_input;
mod build;
mod conflicts;
mod disk;
mod examples;
mod grammar;
mod pages;
mod permutations;
mod policy;
mod pure;
mod render;
mod schemas;
