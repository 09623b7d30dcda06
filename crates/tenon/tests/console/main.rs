//! The web console of a real daemon: who may use it, what it shows, and what a person does with it in a browser.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod actions;
mod bad_input;
mod browser;
mod large_store;
mod live_updates;
mod problems;
mod signing_in;
mod text_on_pages;
