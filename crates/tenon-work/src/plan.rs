//! Plans, tasks and steps: what they hold, how they change, and the log of every change.

pub(crate) mod digest;
pub(crate) mod event;
pub(crate) mod gate;
pub(crate) mod history;
pub(crate) mod mutation;
pub(crate) mod record;
pub(crate) mod step;
pub(crate) mod steps;
pub(crate) mod target;
