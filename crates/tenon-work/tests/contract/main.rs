//! The contract of plans, tasks and memory: every rule is tested on both backends with the same code.

#![expect(clippy::unwrap_used, reason = "a test fails if its setup fails")]

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
mod lean;
mod next;
mod notes;
mod optimistic;
mod orientation;
mod outages;
mod processes;
mod proxy;
mod read_ahead;
mod revisions;
mod steps;
mod store;
mod targets;
mod team_store;
mod workspaces;
