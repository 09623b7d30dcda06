//! A report as canonical JSON, with one-based positions and columns in UTF-16 units, as on every surface.

use serde_json::{Value, json};
use tenon_contract::json::canonical_value;

use tenon_lsp::model::{Diagnostic, Severity};
use tenon_lsp::workspace_check::{CheckReport, CheckedFile};

/// One line. Leaves out files without findings, unless their check is incomplete.
pub(crate) fn render(report: &CheckReport) -> String {
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
    let mut document = json!({
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
    });
    if !report.notes.is_empty() {
        document["notes"] = json!(report.notes);
    }
    // The other members are about new findings then.
    if let Some(compared) = report.compared {
        document["compared"] = json!({
            "gone": compared.gone,
            "unchanged": compared.unchanged,
            "unchecked": compared.unchecked,
        });
    }
    canonical_value(&document)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tenon_lsp::ServerId;
    use tenon_lsp::workspace_check::{AbsentServer, MissingCheck};

    use super::super::example::{example, file, report};
    use super::*;

    #[test]
    fn json_is_canonical_with_one_based_positions() {
        insta::assert_snapshot!(render(&example()), @r#"{"checked":2,"complete":true,"counts":{"error":1,"hint":0,"info":1,"warning":1},"files":[{"diagnostics":[{"character":1,"code":"2554","endCharacter":2,"endLine":4,"line":1,"message":"Expected 1 argument","severity":"info","source":"ts"}],"file":"b.ts","missing":[]},{"diagnostics":[{"character":10,"code":"reportAssignmentType","endCharacter":15,"endLine":1,"line":1,"message":"Type \"str\" is not\n  assignable to \"int\"","severity":"error","source":"Pyright"},{"character":7,"endCharacter":16,"endLine":2,"line":2,"message":"100% wrong, really: yes","severity":"warning"}],"file":"src/a b.py","missing":[]}],"unavailable":[],"unserved":[],"version":1}"#);
        let mut partial = report(vec![file("a.py", "", vec![])]);
        let pyright = ServerId::new("pyright").unwrap();
        partial.files[0].missing =
            vec![MissingCheck { server: Some(pyright.clone()), why: "not done in time".to_owned() }];
        partial.absent = BTreeMap::from([(pyright, AbsentServer { why: "not found".to_owned(), files: 3 })]);
        partial.unserved = vec!["LICENSE".to_owned()];
        insta::assert_snapshot!(render(&partial), @r#"{"checked":1,"complete":false,"counts":{"error":0,"hint":0,"info":0,"warning":0},"files":[{"diagnostics":[],"file":"a.py","missing":[{"reason":"not done in time","server":"pyright"}]}],"unavailable":[{"files":3,"reason":"not found","server":"pyright"}],"unserved":["LICENSE"],"version":1}"#);
    }
}
