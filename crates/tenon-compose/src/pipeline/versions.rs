//! Versions: compatibility is a set of supported versions, never inferred from package versions.
//!
//! A version is checked before anything below it, because the meaning of an unsupported version is unknown.

use crate::diagnostic::{DiagnosticDetails, DiagnosticSubject, WorkspaceDiagnostic, truncated};
use crate::registry::DiagnosticCode;

/// The version this composer writes.
pub(crate) const CURRENT: &str = "0.1";

/// The versions it reads, for every kind of document.
pub(crate) const SUPPORTED: &[&str] = &[CURRENT];

pub(crate) fn supported(version: &str) -> bool {
    SUPPORTED.contains(&version)
}

/// The diagnostic for an unsupported version, with `owner` where the code requires it.
pub(crate) fn unsupported(
    code: DiagnosticCode,
    field: &str,
    received: &str,
    subject: DiagnosticSubject,
) -> WorkspaceDiagnostic {
    let mut details = DiagnosticDetails::default()
        .with("field", field)
        .with("received", truncated(received))
        .with("supported", SUPPORTED.to_vec());
    if code.row().details.contains(&"owner") {
        details = details.with_owner("owner", &subject.as_owner());
    }
    WorkspaceDiagnostic::new(code, vec![subject], details)
}
