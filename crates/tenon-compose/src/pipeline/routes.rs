//! Routes: every declared path must be canonical, and every effective path has one active route.

use std::collections::BTreeSet;

use super::draft::{ContributionFields, Draft, State, duplicates};
use super::policy::Decisions;
use crate::diagnostic::{DiagnosticDetails, WorkspaceDiagnostic, truncated};
use crate::grammar;
use crate::kind::{ContributionKind, OwnerKind};
use crate::registry::DiagnosticCode;

/// Checks that `path` is canonical and that this kind of owner may use it.
pub(super) fn allowed(path: &str, owner: OwnerKind, allow_module_root: bool) -> Result<(), &'static str> {
    grammar::route_path(path)?;
    if path == "/" && owner == OwnerKind::Module && !allow_module_root {
        return Err("reserved-root");
    }
    Ok(())
}

pub(super) fn check(
    draft: &mut Draft<'_>,
    decisions: &Decisions<'_>,
    findings: &mut Vec<WorkspaceDiagnostic>,
) {
    grammar_of_all(draft, findings);

    let declared = |index: usize| match draft.contributions[index].fields {
        ContributionFields::Route { path } => Some(path),
        _ => None,
    };
    let effective = |index: usize| match decisions.aliases.get(&index) {
        Some(alias) => alias.path,
        None => declared(index).unwrap_or_default(),
    };
    let counts = |index: &usize| draft.contributions[*index].state.counts_in_conflicts();
    let routes = draft.of_kind(ContributionKind::Routes).iter().copied();
    let active: Vec<usize> = routes.filter(counts).collect();
    let mut conflicting = BTreeSet::new();
    for group in duplicates(&active, effective) {
        let (subjects, locations) =
            draft.subjects_with_locations(&group, "path", |index| draft.contributions[index].key.to_string());
        let details = DiagnosticDetails::default()
            .with("effectivePath", effective(group[0]))
            .with_owners("owners", subjects.iter().map(|subject| subject.as_owner()).collect());
        findings.push(
            WorkspaceDiagnostic::new(DiagnosticCode::DuplicateRoutePath, subjects, details).at(locations),
        );
        conflicting.extend(group);
    }
    for (index, alias) in &decisions.aliases {
        if !draft.contributions[*index].state.counts_in_conflicts() || conflicting.contains(index) {
            continue;
        }
        let subject = draft.subject(*index);
        let details = DiagnosticDetails::default()
            .with("originalPath", declared(*index).unwrap_or_default())
            .with("aliasedPath", alias.path)
            .with("policyId", truncated(alias.policy_id))
            .with_owner("owner", &subject.as_owner());
        let location = draft.location(*index, "path", format!("served at {}", alias.path));
        findings.push(
            WorkspaceDiagnostic::new(DiagnosticCode::RoutePathAliased, vec![subject], details).at([location]),
        );
    }
}

/// Checks every path, whether or not the contribution is active.
fn grammar_of_all(draft: &mut Draft<'_>, findings: &mut Vec<WorkspaceDiagnostic>) {
    for index in draft.of_kind(ContributionKind::Routes).to_vec() {
        let contribution = &draft.contributions[index];
        let ContributionFields::Route { path } = contribution.fields else {
            continue;
        };
        if contribution.state == State::Rejected {
            continue;
        }
        let owner = draft.owners[contribution.owner].kind;
        let Err(reason) = allowed(path, owner, draft.allow_module_root) else {
            continue;
        };
        let subject = draft.subject(index);
        let details = DiagnosticDetails::default()
            .with("routePath", truncated(path))
            .with("reason", reason)
            .with_owner("owner", &subject.as_owner());
        let location = draft.location(index, "path", reason.to_owned());
        findings.push(
            WorkspaceDiagnostic::new(DiagnosticCode::InvalidRoutePath, vec![subject], details).at([location]),
        );
        draft.contributions[index].state = State::Rejected;
    }
}
