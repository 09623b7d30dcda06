//! A report as SARIF 2.1.0, for code scanning services.
//!
//! All servers share one run, so that a service closes the alerts of `tenon` when a later run has none. A rule's id is the
//! source and the code of a diagnostic.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tenon_contract::json::canonical_value;

use tenon_lsp::model::{Diagnostic, Severity};
use tenon_lsp::workspace_check::{CheckReport, CheckedFile};

/// The base of file URIs: the root of the sources.
const BASE: &str = "%SRCROOT%";

pub(crate) fn render(report: &CheckReport) -> String {
    let mut rules: BTreeMap<String, usize> = report.findings().map(|(_, found)| (rule(found), 0)).collect();
    for (position, index) in rules.values_mut().enumerate() {
        *index = position;
    }
    let result = |(file, found): (&CheckedFile, &Diagnostic)| {
        let mut result = result(file, found, &rules);
        if report.compared.is_some() {
            result["baselineState"] = json!("new");
        }
        result
    };
    let results: Vec<Value> = report.findings().map(result).collect();
    let notes: Vec<Value> = report
        .files
        .iter()
        .flat_map(|file| file.missing.iter().map(move |missing| (file, missing)))
        .map(|(file, missing)| {
            json!({
                "level": "error",
                "message": {"text": missing.to_string()},
                "locations": [{"physicalLocation": {"artifactLocation": artifact(file)}}],
            })
        })
        .collect();
    canonical_value(&json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "tenon",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.keys().map(|id| json!({"id": id})).collect::<Vec<_>>(),
            }},
            "columnKind": "utf16CodeUnits",
            "invocations": [{
                "executionSuccessful": report.is_complete(),
                "toolExecutionNotifications": notes,
            }],
            "results": results,
        }],
    }))
}

fn result(file: &CheckedFile, found: &Diagnostic, rules: &BTreeMap<String, usize>) -> Value {
    let id = rule(found);
    let level = match found.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info | Severity::Hint => "note",
    };
    json!({
        "ruleId": id,
        "ruleIndex": rules.get(&id),
        "level": level,
        "message": {"text": found.message},
        "locations": [{"physicalLocation": {
            "artifactLocation": artifact(file),
            "region": {
                "startLine": found.range.start.line + 1,
                "startColumn": found.range.start.character + 1,
                "endLine": found.range.end.line + 1,
                "endColumn": found.range.end.character + 1,
            },
        }}],
    })
}

fn rule(found: &Diagnostic) -> String {
    match (&found.source, &found.code) {
        (Some(source), Some(code)) => format!("{source}/{code}"),
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => "unnamed".to_owned(),
    }
}

fn artifact(file: &CheckedFile) -> Value {
    json!({"uri": reference(&file.file), "uriBaseId": BASE})
}

/// A relative path as a URI reference: everything but unreserved characters and slashes is escaped.
fn reference(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::super::example::{example, report};
    use super::*;

    #[test]
    fn sarif_has_rules_and_escaped_uris() {
        let text = render(&example());
        let value: Value = serde_json::from_str(&text).unwrap();
        let run = &value["runs"][0];
        assert_eq!(value["version"], "2.1.0");
        assert_eq!(run["columnKind"], "utf16CodeUnits");
        let rules: Vec<&str> = run["tool"]["driver"]["rules"]
            .as_array()
            .unwrap()
            .iter()
            .map(|rule| rule["id"].as_str().unwrap())
            .collect();
        assert_eq!(rules, ["Pyright/reportAssignmentType", "ts/2554", "unnamed"]);
        insta::assert_json_snapshot!(run["results"][1], @r#"
        {
          "level": "error",
          "locations": [
            {
              "physicalLocation": {
                "artifactLocation": {
                  "uri": "src/a%20b.py",
                  "uriBaseId": "%SRCROOT%"
                },
                "region": {
                  "endColumn": 15,
                  "endLine": 1,
                  "startColumn": 10,
                  "startLine": 1
                }
              }
            }
          ],
          "message": {
            "text": "Type \"str\" is not\n  assignable to \"int\""
          },
          "ruleId": "Pyright/reportAssignmentType",
          "ruleIndex": 0
        }
        "#);
        assert_eq!(run["results"][0]["level"], "note");
        assert_eq!(run["invocations"][0]["executionSuccessful"], true);
        // A run without findings is still reported: it closes alerts.
        let clean: Value = serde_json::from_str(&render(&report(vec![]))).unwrap();
        assert_eq!(clean["runs"][0]["results"], serde_json::json!([]));
    }
}
