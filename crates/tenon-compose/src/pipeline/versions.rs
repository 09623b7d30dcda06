//! Versions: compatibility is a set of supported versions, never an inference from package numbers.
//!
//! A version is looked at before anything below it: what an unsupported one means, nobody here can know.

use crate::diagnostic::{DiagnosticDetails, DiagnosticSubject, WorkspaceDiagnostic, shown};
use crate::registry::DiagnosticCode;

/// The version this composer writes.
pub(crate) const CURRENT: &str = "0.1";

/// The versions it reads, of every kind of document.
pub(crate) const SUPPORTED: &[&str] = &[CURRENT];

pub(crate) fn supported(version: &str) -> bool {
    SUPPORTED.contains(&version)
}

/// The diagnostic for an unsupported version; `owner` is its owner where the code names one.
pub(crate) fn unsupported(
    code: DiagnosticCode,
    field: &str,
    received: &str,
    subject: DiagnosticSubject,
) -> WorkspaceDiagnostic {
    let mut details = DiagnosticDetails::default()
        .with("field", field)
        .with("received", shown(received))
        .with("supported", SUPPORTED.to_vec());
    if code.row().details.contains(&"owner") {
        details = details.with_owner("owner", &subject.as_owner());
    }
    WorkspaceDiagnostic::new(code, vec![subject], details)
}
