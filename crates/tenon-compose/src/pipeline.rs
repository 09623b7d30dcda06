//! The composer: a pure function from an input to a composition or to the diagnostics that prevented one.
//!
//! Invariants: no clock, no I/O, no global state. The order in which the input lists owners, contributions and
//! operations does not affect the result. Each phase drops what it rejects, so one mistake yields one diagnostic and
//! the rest is still checked.

use crate::composition::CompositionOutcome;
use crate::diagnostic;
use crate::input::CompositionInput;

mod activation;
mod assemble;
mod claims;
mod declarations;
mod draft;
mod fields;
mod namespace;
mod order;
mod policy;
mod routes;
mod structure;
pub(crate) mod versions;

/// Composes a workspace.
#[must_use]
pub fn compose(input: &CompositionInput<'_>) -> CompositionOutcome {
    let mut findings = Vec::new();
    let mut draft = structure::read(input, &mut findings);
    namespace::check(&mut draft, &mut findings);
    activation::apply(&mut draft);
    let decisions = policy::apply(&mut draft, &mut findings);
    routes::check(&mut draft, &decisions, &mut findings);
    claims::check(&mut draft, &decisions, &mut findings);

    let failed = findings.iter().any(diagnostic::WorkspaceDiagnostic::is_error);
    diagnostic::sort(&mut findings);
    let composition = (!failed).then(|| {
        let ordered = order::arrange(&draft, &decisions);
        assemble::composition(&draft, &decisions, &ordered)
    });
    CompositionOutcome { composition, diagnostics: findings }
}
