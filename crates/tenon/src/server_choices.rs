//! Which server of a group each project of the workspace has, and why, as text and JSON.

use serde_json::{Value, json};
use tenon_contract::visible::visible;
use tenon_server::workspace::Workspace;
use tenon_servers::project_choices::{self, ProjectChoice};
use tenon_servers::registry::Registry;

use crate::failure::Failure;
use crate::language_servers;

pub(crate) fn of(workspace: &Workspace, registry: &Registry) -> Result<Vec<ProjectChoice>, Failure> {
    let walk = language_servers::walk(workspace)?;
    Ok(project_choices::of_workspace(&walk, workspace.gate(), registry, &workspace.finder()))
}

/// `TypeScript and JavaScript in web: typescript-language-server, the project has `typescript` 5.9.3`, then its notes.
pub(crate) fn lines(choices: &[ProjectChoice]) -> Vec<String> {
    let lines = choices.iter().flat_map(|one| {
        let project = if one.project.as_str().is_empty() { "." } else { one.project.as_str() };
        let ProjectChoice { language, choice, .. } = one;
        let chosen = format!("{language} in {}: {}, {}", visible(project), choice.server, choice.why);
        let notes = one.notes.iter().map(|note| format!("  note: {}", visible(note)));
        std::iter::once(chosen).chain(notes)
    });
    lines.collect()
}

pub(crate) fn json(choices: &[ProjectChoice]) -> Vec<Value> {
    let one = |one: &ProjectChoice| {
        json!({
            "project": one.project, "language": one.language, "server": one.choice.server,
            "why": one.choice.why.to_string(), "notes": one.notes,
        })
    };
    choices.iter().map(one).collect()
}
