//! A report as JSON: canonical, positions one-based, columns in UTF-16 units as on every surface.

use serde_json::{Value, json};
use tenon_contract::json::canonical_value;

use super::{CheckedFile, Report};
use crate::model::{Diagnostic, Severity};

/// One line. Files without findings are left out unless something about them is missing.
pub fn render(report: &Report) -> String {
    let files: Vec<Value> = report
        .files
        .iter()
        .filter(|file| !file.diagnostics.is_empty() || !file.missing.is_empty())
        .map(file)
        .collect();
    let absent: Vec<Value> = report
        .absent
        .iter()
        .map(|(server, absent)| json!({"server": server, "reason": absent.why, "files": absent.files}))
        .collect();
    canonical_value(&json!({
        "version": 1,
        "complete": report.is_complete(),
        "checked": report.checked,
        "counts": {
            "error": report.count(Severity::Error),
            "warning": report.count(Severity::Warning),
            "info": report.count(Severity::Info),
            "hint": report.count(Severity::Hint),
        },
        "files": files,
        "unavailable": absent,
        "unserved": report.unserved,
    }))
}

fn file(file: &CheckedFile) -> Value {
    let missing: Vec<Value> =
        file.missing.iter().map(|one| json!({"server": one.server, "reason": one.why})).collect();
    json!({
        "file": file.file,
        "diagnostics": file.diagnostics.iter().map(diagnostic).collect::<Vec<_>>(),
        "missing": missing,
    })
}

fn diagnostic(found: &Diagnostic) -> Value {
    let mut value = json!({
        "line": found.range.start.line + 1,
        "character": found.range.start.character + 1,
        "endLine": found.range.end.line + 1,
        "endCharacter": found.range.end.character + 1,
        "severity": found.severity().as_str(),
        "message": found.message,
    });
    if let Some(code) = &found.code {
        value["code"] = json!(code);
    }
    if let Some(source) = &found.source {
        value["source"] = json!(source);
    }
    value
}
