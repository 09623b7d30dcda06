//! The documentation page of the registry, written from its table.

use std::fmt::Write as _;

use super::REGISTRY;
use crate::pipeline::versions::SUPPORTED;

/// The version fields, and what each is the version of.
const VERSION_FIELDS: [(&str, &str); 6] = [
    ("compositionSchemaVersion", "the composer's input and the composition"),
    ("moduleApiVersion", "a module's declaration"),
    ("renderHandleVersion", "a render handle"),
    ("diagnosticSchemaVersion", "a diagnostic"),
    ("policySchemaVersion", "the composition policy"),
    ("renderRuntimeSchemaVersion", "a pack of render providers"),
];

/// What every detail holds.
const DETAILS: [(&str, &str); 28] = [
    ("owner", "a subject: whose it is"),
    ("owners", "subjects, one for each declaration, sorted by kind of owner, id and key"),
    ("instanceId", "the id of a module instance or built-in owner"),
    ("selectedOwner", "the subject that the policy chose"),
    ("overriddenOwners", "the subjects it was chosen over, sorted like `owners`"),
    ("field", "the field; for a wrong shape its path without list positions"),
    ("expected", "a type, or the sorted list of allowed values"),
    ("received", "`missing`, a type, or the value"),
    ("supported", "the sorted list of supported versions"),
    ("value", "the invalid value"),
    ("reason", "a stable reason code"),
    ("canonicalKey", "a contribution key"),
    ("routePath", "the declared path"),
    ("effectivePath", "the path after the policy"),
    ("originalPath", "the path before an alias"),
    ("aliasedPath", "the path after an alias"),
    ("rendererClaim", "a renderer claim"),
    ("policyId", "the id of the host's operation"),
    ("target", "the operation's target, or `operation:<id>` for a fault between operations"),
    ("renderHandle", "the id of a render handle"),
    ("kind", "the kind of a render handle"),
    ("provider", "what may be said of a render provider: never its code, its errors or its data"),
    ("providers", "the same of several, in the order of the packs; the order chooses nobody"),
    ("admissionReason", "why the host does not admit a provider"),
    ("unsupportedReason", "why a provider cannot be used"),
    ("failurePhase", "when a provider failed to load"),
    ("defaultRenderer", "the protected renderer"),
    ("use", "the contribution that an operation puts in place of another; reserved"),
];

/// The page in Markdown.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Composition diagnostics\n\n\
         The one place that says what a diagnostic code or a version field means. Written by `cargo xtask schemas` from the\n\
         registry in `crates/tenon-compose`; [composition](composition.md) says what composing is.\n\n\
         A diagnostic is data: match on `code` and `details`, never on `message`. A code is never reused, and its severity,\n\
         category and required details are contract. Diagnostics are sorted by severity, code, the first subject's key and then\n\
         their canonical JSON, so one input has one list, whatever the order in which it names things.\n\n\
         ## Version fields\n\n\
         | field | version of | supported |\n|---|---|---|\n",
    );
    for (field, of) in VERSION_FIELDS {
        let _ = writeln!(page, "| `{field}` | {of} | {} |", code_list(SUPPORTED));
    }
    page.push_str(
        "\nVersions are strings and are compared with a set; nothing is inferred from package versions, and no version\n\
         grants a permission. An unsupported version hides what is below it.\n\n\
         ## WorkspaceDiagnostic code registry\n\n\
         | code | severity | origin | category | required details | fixture | decisions |\n|---|---|---|---|---|---|---|\n",
    );
    for row in &REGISTRY {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} | `{}` | {} |",
            row.name,
            row.severity.as_str(),
            row.origin.as_str(),
            row.category.as_str(),
            code_list(row.details),
            row.fixture,
            row.decisions.join(", ")
        );
    }
    page.push_str("\n## Details\n\n| detail | holds |\n|---|---|\n");
    for (name, holds) in DETAILS {
        let _ = writeln!(page, "| `{name}` | {holds} |");
    }
    page.push_str("\n## Messages, reasons and how to mend them\n");
    for row in &REGISTRY {
        let _ = write!(page, "\n**`{}`** {} To mend it: {}.\n", row.name, row.message, row.help);
        if !row.reasons.is_empty() {
            page.push_str("\n| reason | to mend it |\n|---|---|\n");
            for (reason, help) in row.reasons {
                let _ = writeln!(page, "| `{reason}` | {help} |");
            }
        }
    }
    page
}

fn code_list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_required_detail_is_described() {
        for row in &REGISTRY {
            for detail in row.details {
                assert!(DETAILS.iter().any(|(name, _)| name == detail), "{detail}");
            }
        }
    }
}
