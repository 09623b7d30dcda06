//! Versioned graphs: what names things in them, how versions become views, and how branches come together.

pub(crate) mod bulk_read;
pub(crate) mod compare;
pub(crate) mod conflict;
pub(crate) mod id;
pub(crate) mod query;
pub(crate) mod summary;
pub(crate) mod version;
mod visibility;
