//! Claims: a renderer claim must be valid, must not name a protected default renderer, and has one active claimant.

use super::draft::{ContributionFields, Draft, State, duplicates};
use super::policy::Decisions;
use crate::diagnostic::{DiagnosticDetails, WorkspaceDiagnostic, truncated};
use crate::grammar;
use crate::kind::ContributionKind;
use crate::registry::DiagnosticCode;

pub(super) fn check(
    draft: &mut Draft<'_>,
    decisions: &Decisions<'_>,
    findings: &mut Vec<WorkspaceDiagnostic>,
) {
    grammar_of_all(draft, findings);

    let claim = |index: usize| match draft.contributions[index].fields {
        ContributionFields::Renderer { claim } => Some(claim),
        _ => None,
    };
    let mut active = renderers(draft);
    active.retain(|index| draft.contributions[*index].state.counts_in_conflicts());
    let mut displaced = Vec::new();
    for group in duplicates(&active, claim) {
        let name = claim(group[0]).unwrap_or_default();
        let chosen = decisions.overrides.get(name).filter(|chosen| group.contains(&chosen.selected));
        let note = |index: usize| match chosen {
            Some(chosen) if chosen.selected == index => "selected".to_owned(),
            Some(_) => "overridden".to_owned(),
            None => draft.contributions[index].key.to_string(),
        };
        let (subjects, locations) = draft.subjects_with_locations(&group, "claim", note);
        let details = DiagnosticDetails::default().with("rendererClaim", name);
        let owner_of = |index: usize| draft.subject(index).as_owner();
        let (code, details) = match chosen {
            None => {
                let owners = group.iter().map(|index| owner_of(*index)).collect();
                (DiagnosticCode::DuplicateRendererClaim, details.with_owners("owners", owners))
            }
            Some(chosen) => {
                let losers = || group.iter().copied().filter(|index| *index != chosen.selected);
                displaced.extend(losers());
                let details = details
                    .with_owner("selectedOwner", &owner_of(chosen.selected))
                    .with_owners("overriddenOwners", losers().map(owner_of).collect())
                    .with("policyId", truncated(chosen.policy_id));
                (DiagnosticCode::RendererOverridden, details)
            }
        };
        findings.push(WorkspaceDiagnostic::new(code, subjects, details).at(locations));
    }
    for index in displaced {
        draft.contributions[index].state = State::Inactive;
    }
}

/// The contributions of every kind that has claims.
fn renderers(draft: &Draft<'_>) -> Vec<usize> {
    let claiming = ContributionKind::ALL.iter().filter(|kind| kind.claims().is_some());
    claiming.flat_map(|kind| draft.of_kind(*kind)).copied().collect()
}

/// Checks every claim, whether or not the contribution is active.
fn grammar_of_all(draft: &mut Draft<'_>, findings: &mut Vec<WorkspaceDiagnostic>) {
    for index in renderers(draft) {
        let contribution = &draft.contributions[index];
        let ContributionFields::Renderer { claim } = contribution.fields else {
            continue;
        };
        if contribution.state == State::Rejected {
            continue;
        }
        let (code, extra, note) = match (grammar::default_renderer(claim), grammar::claim(claim)) {
            (Some(protected), _) => {
                (DiagnosticCode::DefaultRendererClaimed, ("defaultRenderer", protected), "protected")
            }
            (None, Ok(kind)) if Some(kind) == contribution.kind.claims() => continue,
            (None, checked) => {
                let reason = checked.err().unwrap_or("kind-mismatch");
                (DiagnosticCode::InvalidRendererClaim, ("reason", reason), reason)
            }
        };
        let subject = draft.subject(index);
        let details = DiagnosticDetails::default()
            .with("rendererClaim", truncated(claim))
            .with(extra.0, extra.1)
            .with_owner("owner", &subject.as_owner());
        let location = draft.location(index, "claim", note.to_owned());
        findings.push(WorkspaceDiagnostic::new(code, vec![subject], details).at([location]));
        draft.contributions[index].state = State::Rejected;
    }
}
