//! The envelope: the shape of every answer, and the size limit of errors.

use serde_json::{Map, Value, json};
use tenon_contract::json::canonical_value;

use crate::error::{Proposal, WorkError, WorkErrorCode};
use crate::name::WorkspaceName;

/// The size limit of error envelopes.
const MAX_ERROR_BYTES: usize = 2048;

/// An answer: the structured result, and the same as compact JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    value: Value,
    text: String,
}

impl Envelope {
    pub(crate) fn new(value: Value) -> Self {
        let text = canonical_value(&value);
        Self { value, text }
    }

    pub fn success(&self) -> bool {
        self.value["success"] == true
    }

    /// The error code; none for a success.
    pub fn code(&self) -> Option<WorkErrorCode> {
        self.value["error"]["code"].as_str().and_then(WorkErrorCode::by_name)
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Compact JSON of the value, keys sorted.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn into_parts(self) -> (Value, String) {
        (self.value, self.text)
    }
}

/// The fields of an envelope besides the result.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub intent: &'static str,
    pub timestamp: String,
    pub workspace: Option<WorkspaceName>,
    pub warnings: Vec<String>,
    pub suggestions: Vec<Value>,
}

impl Frame {
    /// The successful envelope around a result.
    pub(crate) fn around(&self, mut result: Map<String, Value>) -> Value {
        if let Some(workspace) = &self.workspace {
            result.insert("workspace".into(), json!(workspace.as_str()));
        }
        // Not `json!`, which would copy the result.
        let fields: [(&str, Value); 8] = [
            ("success", true.into()),
            ("intent", self.intent.into()),
            ("result", result.into()),
            ("warnings", self.warnings.clone().into()),
            ("suggestions", self.suggestions.clone().into()),
            ("context", Map::new().into()),
            ("error", Value::Null),
            ("timestamp", self.timestamp.as_str().into()),
        ];
        Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// The envelope of an error. Suggestions come in order of importance; those that do not fit are left out.
    pub(crate) fn failed(&self, mut failure: WorkError) -> Value {
        let mut context = Map::new();
        if let Some(current) = failure.take_current() {
            context.insert("current".into(), current);
        }
        let result = match &self.workspace {
            Some(workspace) => json!({"workspace": workspace.as_str()}),
            None => json!({}),
        };
        let mut envelope = json!({
            "success": false,
            "intent": self.intent,
            "result": result,
            "warnings": self.warnings,
            "suggestions": [],
            "context": context,
            "error": failure.to_value(),
            "timestamp": self.timestamp,
        });
        shrink(&mut envelope);
        for suggestion in &self.suggestions {
            let with_it = canonical_value(&envelope).len() + canonical_value(suggestion).len() + 1;
            if with_it <= MAX_ERROR_BYTES
                && let Some(list) = envelope["suggestions"].as_array_mut()
            {
                list.push(suggestion.clone());
            }
        }
        envelope
    }
}

/// Removes the less important parts of an error until it fits.
fn shrink(envelope: &mut Value) {
    let fits = |envelope: &Value| canonical_value(envelope).len() <= MAX_ERROR_BYTES;
    if fits(envelope) {
        return;
    }
    envelope["warnings"] = json!([]);
    if fits(envelope) {
        return;
    }
    envelope["context"] = json!({});
    for field in ["expected", "actual", "missing", "recovery"] {
        if let Some(error) = envelope["error"].as_object_mut()
            && !fits(&Value::Object(error.clone()))
        {
            error.remove(field);
        }
    }
    if !fits(envelope) {
        let message = envelope["error"]["message"].as_str().unwrap_or_default();
        let short: String = message.chars().take(200).collect();
        envelope["error"]["message"] = json!(format!("{short}…"));
    }
}

/// A suggestion in the format of the seed. The caller has validated it.
pub(crate) fn suggestion(proposal: &Proposal, workspace: &WorkspaceName) -> Value {
    json!({
        "action": "call_tool",
        "target": proposal.tool.name(),
        "reason": proposal.reason,
        "priority": proposal.priority.as_str(),
        "validated": true,
        "params": params(proposal, workspace),
    })
}

/// The arguments of a proposed call, with the workspace, so that they do not depend on defaults.
pub(crate) fn params(proposal: &Proposal, workspace: &WorkspaceName) -> Map<String, Value> {
    let mut params = proposal.params.clone();
    params.insert("workspace".into(), json!(workspace.as_str()));
    params
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::WorkTool;
    use crate::error::Priority;

    #[test]
    fn error_stays_within_the_size_limit() {
        let frame = Frame {
            intent: "note",
            timestamp: "2026-01-02T03:04:05.678Z".into(),
            workspace: Some(WorkspaceName::parse(&"w".repeat(128)).unwrap()),
            warnings: vec!["x".repeat(3000)],
            suggestions: vec![
                json!({"params": {"note": "n".repeat(9000)}}),
                json!({"params": {"task": "TASK-001"}}),
            ],
        };
        let failure = WorkError::invalid("m".repeat(5000))
            .recovery("r".repeat(5000))
            .with("expected", "e".repeat(5000))
            .current(json!({"title": "t".repeat(5000)}));
        let envelope = Envelope::new(frame.failed(failure));
        assert!(envelope.text().len() <= MAX_ERROR_BYTES, "{}", envelope.text().len());
        assert_eq!(envelope.value()["error"]["code"], "INVALID_INPUT");
        assert_eq!(envelope.value()["suggestions"], json!([{"params": {"task": "TASK-001"}}]));
    }

    #[test]
    fn suggestion_names_the_workspace() {
        let workspace = WorkspaceName::parse("w").unwrap();
        let proposal =
            Proposal::new(WorkTool::TasksRadar, json!({"task": "TASK-001"}), "look", Priority::High);
        let wire = suggestion(&proposal, &workspace);
        assert_eq!(wire["params"], json!({"task": "TASK-001", "workspace": "w"}));
        assert_eq!(wire["validated"], json!(true));
    }
}
