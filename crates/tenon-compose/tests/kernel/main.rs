//! What the kernel must show beyond its fixtures.

mod bad_input;
mod build;
mod conflicts;
mod disk;
mod examples;
mod grammar;
mod pages;
mod permutations;
mod policy;
mod render;
mod schemas;
