//! The web console: pages that show what agents see and do, composed by `tenon-compose` and served by the daemon.
//!
//! Every page is a route of a built-in owner or of a user's module. Built-in pages and modules go the same way: the host
//! composes them ([`composition_host`]), a page loads its data ([`pages`]), and the render runtime draws it.
//!
//! - Text of files, servers, notes, modules and clients is escaped and its control characters are visible ([`html`]).
//! - A request without the session cookie gets 401. A request that changes something is a POST with the session's form
//!   token and the origin of the page ([`sign_in`], [`request_checks`]).
//! - Pages read without JavaScript. With it they follow the events of [`live`].

mod action;
mod built_in;
mod composition_host;
mod console;
mod form;
mod html;
mod live;
mod own_command;
mod pages;
mod problem_board;
mod request_checks;
mod respond;
mod sign_in;
mod svg;
mod tool_answer;

pub use console::Console;
