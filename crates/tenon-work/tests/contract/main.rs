//! The contract of plans, tasks and memory, rule by rule, on both engines with the same code.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod client;

mod bad_input;
mod batch;
mod budget;
mod cards;
mod catalog;
mod delta;
mod fixture;
mod graph;
mod graph_model;
mod history;
mod identifiers;
mod import;
mod next;
mod notes;
mod orientation;
mod outages;
mod processes;
mod revisions;
mod steps;
mod store;
mod targets;
mod workspaces;
