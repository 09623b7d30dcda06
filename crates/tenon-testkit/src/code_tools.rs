//! The seven tools of the gateway contract as tests call them: names, arguments, and the schemas of their payloads.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::repository_root;

pub const DEFINITION: &str = "vscode.lsp.definition";
pub const REFERENCES: &str = "vscode.lsp.references";
pub const HOVER: &str = "vscode.lsp.hover";
pub const DOCUMENT_SYMBOLS: &str = "vscode.lsp.documentSymbols";
pub const WORKSPACE_SYMBOLS: &str = "vscode.lsp.workspaceSymbols";
pub const DOCUMENT_DIAGNOSTICS: &str = "vscode.lsp.diagnostics.document";
pub const WORKSPACE_DIAGNOSTICS: &str = "vscode.lsp.diagnostics.workspace";

/// In the contract's order.
pub const TOOLS: [&str; 7] = [
    DEFINITION,
    REFERENCES,
    HOVER,
    DOCUMENT_SYMBOLS,
    WORKSPACE_SYMBOLS,
    DOCUMENT_DIAGNOSTICS,
    WORKSPACE_DIAGNOSTICS,
];

/// The tools that take a URI.
pub const FILE_TOOLS: [&str; 5] = [DEFINITION, REFERENCES, HOVER, DOCUMENT_SYMBOLS, DOCUMENT_DIAGNOSTICS];

/// `{uri, position}`.
pub fn at(uri: &str, line: u32, character: u32) -> Value {
    json!({ "uri": uri, "position": { "line": line, "character": character } })
}

/// Arguments that the tool accepts; `uri` is ignored by tools that take none.
pub fn arguments(tool: &str, uri: &str) -> Value {
    match tool {
        DEFINITION | REFERENCES | HOVER => at(uri, 0, 0),
        DOCUMENT_SYMBOLS | DOCUMENT_DIAGNOSTICS => json!({ "uri": uri }),
        WORKSPACE_SYMBOLS => json!({ "query": "a" }),
        _ => json!({}),
    }
}

/// Panics unless a payload satisfies the output schema in `schemas/tools`.
pub fn check_payload(tool: &str, payload: &Value) {
    static VALIDATORS: OnceLock<BTreeMap<&str, jsonschema::Validator>> = OnceLock::new();
    let validator = |tool: &&'static str| {
        let path = repository_root().join(format!("schemas/tools/{tool}.output.json"));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let schema =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let validator = jsonschema::validator_for(&schema);
        (*tool, validator.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    };
    let validators = VALIDATORS.get_or_init(|| TOOLS.iter().map(validator).collect());
    let errors: Vec<String> = validators[tool].iter_errors(payload).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "`{tool}` breaks its output schema: {errors:#?}\n{payload:#}");
}
