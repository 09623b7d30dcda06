//! `workspace_compose`: composes a workspace. The outcome is the tool result, even when it has error diagnostics.

use serde_json::{Value, json};
use tenon_compose::kind::ContributionKind;
use tenon_compose::{CompositionInput, CompositionOutcome, WorkspaceDiagnostic, compose};

use super::classify::{Failure, classify};
use crate::surface::{Arguments, ToolAnswer};

/// How many diagnostics the text lists; the structured result has all of them.
const NAMED: usize = 20;

/// Runs the composer. The time depends on the input's size, so call it on a blocking thread.
pub(super) fn answer(arguments: &Arguments) -> ToolAnswer {
    match outcome(arguments) {
        Ok(outcome) => ToolAnswer::structured(json!(outcome)).with_text(text(&outcome)),
        Err(error) => classify(&Failure::Compose(error)),
    }
}

fn outcome(arguments: &Arguments) -> Result<CompositionOutcome, tenon_compose::ParseError> {
    let input = CompositionInput::from_value(arguments.get("input").unwrap_or(&Value::Null))?;
    let input = match arguments.get("policy") {
        Some(policy) => input.with_policy(CompositionInput::from_value(policy)?),
        None => input,
    };
    Ok(compose(&input))
}

/// The outcome in a few lines, for clients that show text only.
fn text(outcome: &CompositionOutcome) -> String {
    let mut lines = Vec::new();
    if let Some(composition) = &outcome.composition {
        let entries: usize = ContributionKind::ALL.iter().map(|kind| composition.entries(*kind).len()).sum();
        lines.push(format!("composed: {} owners, {entries} contributions", composition.owners.len()));
    }
    lines.extend(outcome.diagnostics.iter().take(NAMED).map(line));
    if let Some(more) = outcome.diagnostics.len().checked_sub(NAMED).filter(|more| *more > 0) {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

fn line(diagnostic: &WorkspaceDiagnostic) -> String {
    let severity = diagnostic.severity.as_str();
    let keys: Vec<&str> = diagnostic
        .subjects
        .iter()
        .filter_map(|subject| subject.canonical_key.as_deref().or(subject.owner_id.as_deref()))
        .take(NAMED)
        .collect();
    let mut line = format!("{severity}[{}]: {}", diagnostic.code, diagnostic.message);
    if !keys.is_empty() {
        line.push_str(&format!(" [{}]", keys.join(", ")));
    }
    if diagnostic.is_error() {
        line.push_str(&format!(" Help: {}.", diagnostic.help()));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(value: Value) -> Arguments {
        value.as_object().cloned().expect("arguments are an object")
    }

    fn module(id: &str) -> Value {
        let handle = json!({"renderHandleVersion": "0.1", "kind": "route", "id": "home"});
        let routes = json!([{"id": "home", "path": "/home", "renderHandle": handle}]);
        json!({
            "packageId": "@acme/lab",
            "moduleApiVersion": "0.1",
            "instanceId": id,
            "runtime": {"status": "ready"},
            "contributions": {"routes": routes},
        })
    }

    #[test]
    fn outcome_with_errors_is_a_result() {
        let input = json!({"compositionSchemaVersion": "0.1", "modules": [module("bbb"), module("aaa")]});
        let answer = answer(&arguments(json!({"input": input})));
        assert!(!answer.is_error);
        let structured = answer.structured.expect("the outcome is structured");
        assert_eq!((&structured["ok"], &structured["composition"]), (&json!(false), &Value::Null));
        let text = json!(answer.content[0])["text"].clone();
        assert_eq!(
            text,
            "error[WCP-ROUTE-001]: Route path '/home' is claimed by multiple active contributions. \
             [aaa:routes/home, bbb:routes/home] \
             Help: change a path, or resolve it in the policy with `pathAlias` or `replace`."
        );
    }

    #[test]
    fn policy_argument_replaces_the_inputs_policy() {
        let input = json!({"compositionSchemaVersion": "0.1", "modules": [module("bbb"), module("aaa")]});
        let alias = json!({"id": "move", "op": "pathAlias", "target": "aaa:routes/home", "path": "/aaa"});
        let policy = json!({"policySchemaVersion": "0.1", "operations": [alias]});
        let answer = answer(&arguments(json!({"input": input, "policy": policy})));
        assert_eq!(answer.structured.expect("the outcome is structured")["ok"], true);
        let text = json!(answer.content[0])["text"].as_str().map(str::to_owned).unwrap_or_default();
        assert!(text.starts_with("composed: 2 owners, 2 contributions\ninfo[WCP-ROUTE-003]"), "{text}");
    }

    #[test]
    fn excess_diagnostics_are_counted() {
        let modules: Vec<Value> = (0..50).map(|_| json!(7)).collect();
        let input = json!({"compositionSchemaVersion": "0.1", "modules": modules});
        let answer = answer(&arguments(json!({"input": input})));
        let text = json!(answer.content[0])["text"].as_str().map(str::to_owned).unwrap_or_default();
        assert_eq!((text.lines().count(), text.lines().last()), (21, Some("and 30 more")));
    }
}
