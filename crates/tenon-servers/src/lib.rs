//! Language servers as programs: which ones exist, where they are, how to install them, which ones a workspace needs.

mod compilation_database;
pub mod confinement;
pub mod find;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod ignore_rules;
pub mod install;
pub mod language_count;
pub mod project_choices;
pub mod project_files;
pub mod registry;
pub mod walk;
