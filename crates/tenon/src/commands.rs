//! One file per command: its arguments and how it runs.

pub(crate) mod allow_edit;
pub(crate) mod ask;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod compose;
pub(crate) mod config;
pub(crate) mod connect;
pub(crate) mod console;
pub(crate) mod context;
pub(crate) mod context_server;
pub(crate) mod daemon;
pub(crate) mod doctor;
pub(crate) mod find;
pub(crate) mod hook;
pub(crate) mod logs;
#[cfg(unix)]
pub(crate) mod lsp_service;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod outline;
pub(crate) mod pack;
pub(crate) mod refs;
pub(crate) mod restart;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod store;
pub(crate) mod tasks;
pub(crate) mod token;
pub(crate) mod trust;
pub(crate) mod up;
pub(crate) mod version;
