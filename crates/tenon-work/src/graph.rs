//! Versioned graphs: what names things in them, how versions become views, and how branches come together.

pub(crate) mod compare;
pub(crate) mod conflict;
pub(crate) mod id;
pub(crate) mod many;
pub(crate) mod query;
mod shown;
pub(crate) mod version;
pub(crate) mod whole;
