//! Plans, tasks and steps: what they hold, how they change, and the log of every change.

pub(crate) mod event;
pub(crate) mod gate;
pub(crate) mod mutation;
pub(crate) mod radar;
pub(crate) mod record;
pub(crate) mod step;
pub(crate) mod step_tree;
pub(crate) mod target;
pub(crate) mod undo;
