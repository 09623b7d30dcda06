//! Edits configuration files of users, agents and teams without changing any other byte.

pub(crate) mod diff;
pub(crate) mod edited_file;
pub(crate) mod jsonc_edit;
pub(crate) mod toml_table;
