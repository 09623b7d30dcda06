//! Plans, tasks and memory on SQLite or PostgreSQL.

mod call;
mod catalog;
mod check;
mod cursor;
mod envelope;
mod error;
mod graph;
mod id;
mod limits;
mod memory;
mod name;
mod page;
mod path;
mod plan;
mod portable;
mod request;
mod secrets;
mod store;
mod tables;
mod tools;
mod work;
mod workspace;
mod workspace_id;

pub use catalog::{Access, Surface, Tool};
pub use check::Report;
pub use envelope::Envelope;
pub use error::{Code, Failure};
pub use name::WorkspaceName;
pub use portable::Carried;
pub use store::{Engine, Location, Misplaced, Store, StoreError};
pub use work::{Settings, Work};
pub use workspace_id::workspace_id;
