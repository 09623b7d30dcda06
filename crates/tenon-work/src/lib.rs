//! Plans, tasks and memory on SQLite or PostgreSQL.

mod arguments;
mod catalog;
mod cursor;
mod envelope;
mod error;
mod export;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod graph;
mod id;
mod import;
mod last_write;
mod lean;
mod limits;
mod memory;
mod name;
mod page;
mod path;
mod plan;
mod read_ahead;
mod request;
mod secrets;
mod store;
mod store_check;
mod tables;
mod tools;
mod vcs_head;
mod work;
mod work_call;
mod workspace;
mod workspace_id;

pub use catalog::{Access, WorkSurfaceKind, WorkTool};
pub use envelope::Envelope;
pub use error::{WorkError, WorkErrorCode};
pub use export::TransferCounts;
pub use lean::{
    Check, CheckOutcome, CheckResult, ImportedTasks, LeanAnswer, LeanCaller, LeanError, LeanRequest, LeanTool,
};
pub use name::WorkspaceName;
pub use request::WorkRequest;
pub use store::{ChangeSubscription, Store, StoreError, StoreLocation, StoreLocationError};
pub use store_check::StoreReport;
pub use vcs_head::VcsHead;
pub use work::{Work, WorkSettings};
pub use workspace_id::{repository_folder, workspace_id};
