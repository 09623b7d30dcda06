//! Memory: branches, the documents on them, and the full-text index over everything.

pub(crate) mod branch;
pub(crate) mod card;
pub(crate) mod entry;
pub(crate) mod ranking;
pub(crate) mod scope;
pub(crate) mod search;
pub(crate) mod search_query;

/// The document that notes go to when none is named.
pub(crate) const NOTES: &str = "notes";

/// The graph document that is used when none is named.
pub(crate) const GRAPH: &str = "graph";

/// The trace document that is used when none is named.
pub(crate) const TRACE: &str = "trace";
