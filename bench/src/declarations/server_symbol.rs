//! The symbols of a document as a language server lists them, without their nesting.

use serde_json::Value;

use super::NamePlace;

/// The symbol kinds of the protocol that matter here.
pub(super) mod kind {
    pub(crate) const MODULE: u64 = 2;
    pub(crate) const NAMESPACE: u64 = 3;
    pub(crate) const CLASS: u64 = 5;
    pub(crate) const METHOD: u64 = 6;
    pub(crate) const PROPERTY: u64 = 7;
    pub(crate) const FIELD: u64 = 8;
    pub(crate) const CONSTRUCTOR: u64 = 9;
    pub(crate) const ENUM: u64 = 10;
    pub(crate) const INTERFACE: u64 = 11;
    pub(crate) const FUNCTION: u64 = 12;
    pub(crate) const VARIABLE: u64 = 13;
    pub(crate) const CONSTANT: u64 = 14;
    pub(crate) const OBJECT: u64 = 19;
    pub(crate) const ENUM_MEMBER: u64 = 22;
    pub(crate) const STRUCT: u64 = 23;
    pub(crate) const TYPE_PARAMETER: u64 = 26;
}

/// A symbol of a language server.
#[derive(Debug, Clone)]
pub(super) struct ServerSymbol {
    pub(super) name: String,
    pub(super) kind: u64,
    pub(super) place: NamePlace,
    /// The kinds around it, from the outermost to the innermost.
    pub(super) containers: Vec<u64>,
}

/// All symbols of an answer, the outer before the inner.
pub(super) fn flat(answer: &Value) -> Vec<ServerSymbol> {
    let mut found = Vec::new();
    add(answer, &mut Vec::new(), &mut found);
    found
}

fn add(list: &Value, containers: &mut Vec<u64>, found: &mut Vec<ServerSymbol>) {
    for one in list.as_array().into_iter().flatten() {
        let start = &one["selectionRange"]["start"];
        let (Some(line), Some(character), Some(kind)) =
            (start["line"].as_u64(), start["character"].as_u64(), one["kind"].as_u64())
        else {
            continue;
        };
        found.push(ServerSymbol {
            name: one["name"].as_str().unwrap_or_default().to_owned(),
            kind,
            place: (line, character),
            containers: containers.clone(),
        });
        containers.push(kind);
        add(&one["children"], containers, found);
        containers.pop();
    }
}
