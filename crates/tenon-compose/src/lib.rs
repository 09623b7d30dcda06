//! Workspace composition: the pure composer, the composition policy and the render runtime.
//!
//! Modules declare contributions, the host resolves their runtime status, [`compose`] builds the composition, and the
//! render runtime renders it. The composer uses no clock, no I/O and no global state; only `disk_module` and
//! templates read files. Types have the names that the published TypeScript declarations give them.

mod composition;
mod contract_types;
mod diagnostic;
pub mod disk_module;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod grammar;
mod input;
mod json;
pub mod kind;
mod locate;
mod pipeline;
mod read_diagnostics;
pub mod registry;
pub mod render;
pub mod schema;

pub use composition::{
    ComposedEntry, ComposedOwner, Composition, CompositionOutcome, ContributionOwner, EntryFields,
    ModuleRuntime, RenderHandle, RequiredRenderHandle,
};
pub use diagnostic::{
    DiagnosticDetails, DiagnosticSubject, InputLocation, PointerStep, SubjectOwnerKind, WorkspaceDiagnostic,
};
pub use input::CompositionInput;
pub use json::ParseError;
pub use locate::locate;
pub use pipeline::compose;
pub use read_diagnostics::read_diagnostics;
