//! Workspace composition: a pure kernel, its policy and the render runtime.
//!
//! Modules declare, the host resolves their runtime status, [`compose`] composes structure, the render runtime
//! executes. The kernel knows no clock, no file and no global state; only `disk` reads files.

mod composition;
mod diagnostic;
pub mod disk;
mod document;
pub mod grammar;
mod input;
pub mod kind;
mod locate;
mod pipeline;
mod reader;
pub mod registry;
pub mod render;
pub mod schema;
mod shape;

pub use composition::{
    Body, ComposedOwner, Composition, ContributionOwner, Entry, Outcome, RenderHandle, RequiredHandle,
    Runtime,
};
pub use diagnostic::{Details, Diagnostic, Place, Step, Subject, SubjectKind};
pub use document::ParseError;
pub use input::Input;
pub use locate::locate;
pub use pipeline::compose;
pub use reader::read_diagnostics;
