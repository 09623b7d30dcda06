//! The syntax index: every declaration of every source file, read with tree-sitter, and text and syntax search.
//!
//! - It needs no language server. A file with syntax errors gives the declarations that can be recognised.
//! - The caller names the files; the index does not walk folders and does not watch. Files are read by the rules of
//!   [`tenon_contract::regular_file`]: no link, pipe or device, nothing above a limit, nothing outside the root.
//! - Same files, same answers, whatever the order of the updates before.
//! - A language is data: a folder in `languages`, see `languages/README.md`.
//! - Nothing waits and nothing is timed: the work per file is limited by size and by counted parser steps.

mod declaration_kind;
mod early_view;
mod extract;
mod file_class;
mod file_reader;
mod find;
mod header_text;
mod highlight;
mod indexed_file;
mod language;
mod line_starts;
mod macro_words;
mod mentions;
mod name_table;
mod nesting;
mod path_filter;
mod search;
mod store;
mod symbol_query;
mod syntax_index;
mod syntax_search;
mod view;
mod words;

pub use declaration_kind::DeclarationKind;
pub use file_class::FileClass;
pub use find::{MatchTier, Matches, SymbolFilter};
pub use highlight::{HighlightKind, HighlightedLine, HighlightedSpan, highlight};
pub use indexed_file::{BaseRef, FileStamp, IndexedFile, NamePosition, ParseOutcome, SourceRange, SymbolRef};
pub use language::SourceLanguage;
pub use path_filter::{PathFilter, PathFilterError};
pub use search::{
    SearchError, SearchHit, SearchLimits, SearchMode, SearchRequest, SearchResult, SearchScope,
};
pub use symbol_query::{QueryError, SymbolQuery};
pub use syntax_index::{IndexOptions, SyntaxIndex};
pub use view::{SymbolId, View};
