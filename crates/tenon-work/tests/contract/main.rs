//! The contract of plans, tasks and memory, rule by rule, on both engines with the same code.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod client;
mod postgres;

mod bad_input;
mod batch;
mod budget;
mod cards;
mod delta;
mod fixture;
mod graph;
mod history;
mod identifiers;
mod next;
mod notes;
mod orientation;
mod revisions;
mod steps;
mod targets;
mod workspaces;
