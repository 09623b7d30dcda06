//! Code queries with deterministic answers (canonicalise, filter, sort, dedup, cap, page), and edits ([`edit`]).
//!
//! The seven tools of the gateway contract without its wire format: one file per tool, from typed arguments to the payload.
//! Section numbers (§) refer to docs/contract.md.

mod background_check;
mod canonical;
pub mod changed_files;
mod code_reply;
mod code_tools;
mod completeness;
mod definition;
mod deleted_modules;
pub mod delta;
mod diagnostics_text;
mod document_diagnostics;
mod document_symbols;
pub mod edit;
mod edit_text;
mod error;
pub mod explore;
pub mod followed_index;
pub mod git;
mod hover;
mod in_flight_cache;
mod limits;
mod listing;
pub mod new_findings;
mod page;
mod references;
pub mod report_log;
mod service_diagnostics;
mod summary;
mod symbol_choice;
pub mod symbol_edit;
mod workspace_diagnostics;
mod workspace_problems;
mod workspace_symbols;

pub use code_reply::CodeReply;
pub use code_tools::{CodeTools, Options};
pub use definition::Definition;
pub use diagnostics_text::{DiagnosticsLimits, DiagnosticsText, ShownFile};
pub use document_diagnostics::DocumentDiagnostics;
pub use document_symbols::DocumentSymbols;
pub use edit_text::EditText;
pub use error::{CodeError, IndexingProgress, ProviderFailure, Unreadable};
pub use hover::Hover;
pub use limits::{CodeLimits, RETRY_AFTER};
pub use page::PageSize;
pub use references::References;
pub use service_diagnostics::{FileDiagnosticLines, ServiceDiagnostics};
pub use workspace_diagnostics::WorkspaceDiagnostics;
pub use workspace_problems::{FileProblems, WorkspaceProblems};
pub use workspace_symbols::WorkspaceSymbols;
