//! Versions: compatibility is a set of supported versions, never an inference from package numbers.
//!
//! A version is looked at before anything below it: what an unsupported one means, nobody here can know.

use crate::diagnostic::{Details, Diagnostic, Subject, shown};
use crate::registry::Code;

/// The version this composer writes.
pub(crate) const CURRENT: &str = "0.1";

/// The versions it reads, of every kind of document.
pub(crate) const SUPPORTED: &[&str] = &[CURRENT];

pub(crate) fn supported(version: &str) -> bool {
    SUPPORTED.contains(&version)
}

/// The diagnostic for an unsupported version; `owner` is its owner where the code names one.
pub(crate) fn unsupported(code: Code, field: &str, received: &str, subject: Subject) -> Diagnostic {
    let mut details = Details::default()
        .with("field", field)
        .with("received", shown(received))
        .with("supported", SUPPORTED.to_vec());
    if code.registered().details.contains(&"owner") {
        details = details.with_owner("owner", &subject.as_owner());
    }
    Diagnostic::new(code, vec![subject], details)
}
