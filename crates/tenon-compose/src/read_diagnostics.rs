//! Reads diagnostics that an earlier composition saved, and checks their schema version.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::diagnostic::{self, DiagnosticSubject, WorkspaceDiagnostic};
use crate::json::{ParseError, utf8};
use crate::pipeline::versions;
use crate::registry::DiagnosticCode;

/// The version field, read before the rest of a diagnostic.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Versioned {
    diagnostic_schema_version: String,
}

/// A saved outcome; only the diagnostics are read.
#[derive(Deserialize)]
struct Persisted<'a> {
    #[serde(borrow)]
    diagnostics: Vec<&'a RawValue>,
}

/// Reads saved diagnostics: a list, or a whole outcome. Those of an unsupported schema version are left out, and each
/// such version is reported once.
///
/// # Errors
/// When the text is not JSON, or an element is not a diagnostic; with the position.
pub fn read_diagnostics(bytes: &[u8]) -> Result<Vec<WorkspaceDiagnostic>, ParseError> {
    let text = utf8(bytes)?;
    let entries = if text.trim_start().starts_with('[') {
        serde_json::from_str::<Vec<&RawValue>>(text)
    } else {
        serde_json::from_str::<Persisted<'_>>(text).map(|persisted| persisted.diagnostics)
    };
    let entries = entries.map_err(|error| ParseError::from_json(&error))?;
    let mut diagnostics = Vec::with_capacity(entries.len());
    let mut unsupported = BTreeSet::new();
    for entry in entries {
        let entry = entry.get();
        let failed = |error: serde_json::Error| within(text, entry, &error);
        let version = serde_json::from_str::<Versioned>(entry).map_err(failed)?.diagnostic_schema_version;
        if versions::supported(&version) {
            diagnostics.push(serde_json::from_str(entry).map_err(failed)?);
        } else {
            unsupported.insert(version);
        }
    }
    diagnostics.extend(unsupported.iter().map(|version| {
        let code = DiagnosticCode::UnsupportedDiagnosticSchema;
        versions::unsupported(code, "diagnosticSchemaVersion", version, DiagnosticSubject::host())
    }));
    diagnostic::sort(&mut diagnostics);
    Ok(diagnostics)
}

/// Translates an error position inside `part` to a position in `text`.
fn within(text: &str, part: &str, error: &serde_json::Error) -> ParseError {
    let mut error = ParseError::from_json(error);
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    let before = &text[..start];
    if error.line == 1 {
        error.column += before.len() - before.rfind('\n').map_or(0, |newline| newline + 1);
    }
    error.line += before.matches('\n').count();
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (String, usize, usize) {
        let error = read_diagnostics(text.as_bytes()).unwrap_err();
        (error.reason, error.line, error.column)
    }

    #[test]
    fn invalid_diagnostic_is_rejected_with_its_position() {
        for (text, reason, line, column) in [
            ("", "EOF while parsing a value", 1, 0),
            ("7", "invalid type: integer `7`, expected struct Persisted", 1, 1),
            ("{}", "missing field `diagnostics`", 1, 2),
            ("[\n  {}\n]", "missing field `diagnosticSchemaVersion`", 2, 4),
            ("[{\"diagnosticSchemaVersion\":1}]", "invalid type: integer `1`, expected a string", 1, 29),
            (
                "[\n {\"diagnosticSchemaVersion\":\"0.1\",\n\"code\":\"X\"}]",
                "unknown diagnostic code `X`",
                3,
                11,
            ),
        ] {
            assert_eq!(fault(text), (reason.to_owned(), line, column), "{text}");
        }
    }

    #[test]
    fn unsupported_version_is_reported_once() {
        let text = r#"{"ok":false,"diagnostics":[{"diagnosticSchemaVersion":"9"},{"diagnosticSchemaVersion":"9","x":1}]}"#;
        let diagnostics = read_diagnostics(text.as_bytes()).unwrap();
        assert_eq!(diagnostics.len(), 1);
        assert_eq!(diagnostics[0].code, DiagnosticCode::UnsupportedDiagnosticSchema);
        assert_eq!(diagnostics[0].details.text("received"), Some("9"));
    }
}
