//! Claims: every renderer claim must be well formed, claim nothing that is protected, and belong to one renderer.

use super::draft::{Draft, Role, State, duplicates};
use super::policy::Decisions;
use crate::diagnostic::{Details, Diagnostic, shown};
use crate::grammar;
use crate::kind::ContributionKind;
use crate::registry::Code;

pub(super) fn check(draft: &mut Draft<'_>, decisions: &Decisions<'_>, findings: &mut Vec<Diagnostic>) {
    grammar_of_all(draft, findings);

    let claim = |index: usize| match draft.contributions[index].role {
        Role::Renderer { claim } => Some(claim),
        _ => None,
    };
    let mut active = renderers(draft);
    active.retain(|index| draft.contributions[*index].state.counts());
    let mut displaced = Vec::new();
    for group in duplicates(&active, claim) {
        let name = claim(group[0]).unwrap_or_default();
        let chosen = decisions.overrides.get(name).filter(|chosen| group.contains(&chosen.selected));
        let note = |index: usize| match chosen {
            Some(chosen) if chosen.selected == index => "selected".to_owned(),
            Some(_) => "overridden".to_owned(),
            None => draft.contributions[index].key.to_string(),
        };
        let (subjects, places) = draft.mentions(&group, "claim", note);
        let details = Details::default().with("rendererClaim", name);
        let owner_of = |index: usize| draft.subject(index).as_owner();
        let (code, details) = match chosen {
            None => {
                let owners = group.iter().map(|index| owner_of(*index)).collect();
                (Code::DuplicateRendererClaim, details.with_owners("owners", owners))
            }
            Some(chosen) => {
                let losers = || group.iter().copied().filter(|index| *index != chosen.selected);
                displaced.extend(losers());
                let details = details
                    .with_owner("selectedOwner", &owner_of(chosen.selected))
                    .with_owners("overriddenOwners", losers().map(owner_of).collect())
                    .with("policyId", shown(chosen.policy_id));
                (Code::RendererOverridden, details)
            }
        };
        findings.push(Diagnostic::new(code, subjects, details).at(places));
    }
    for index in displaced {
        draft.contributions[index].state = State::Absent;
    }
}

/// Everything that claims.
fn renderers(draft: &Draft<'_>) -> Vec<usize> {
    let claiming = ContributionKind::ALL.iter().filter(|kind| kind.claims().is_some());
    claiming.flat_map(|kind| draft.of_kind(*kind)).copied().collect()
}

/// Claims are checked whether or not their contribution is active.
fn grammar_of_all(draft: &mut Draft<'_>, findings: &mut Vec<Diagnostic>) {
    for index in renderers(draft) {
        let contribution = &draft.contributions[index];
        let Role::Renderer { claim } = contribution.role else {
            continue;
        };
        if contribution.state == State::Rejected {
            continue;
        }
        let (code, word, note) = match (grammar::default_renderer(claim), grammar::claim(claim)) {
            (Some(protected), _) => {
                (Code::DefaultRendererClaimed, ("defaultRenderer", protected), "protected")
            }
            (None, Ok(kind)) if Some(kind) == contribution.kind.claims() => continue,
            (None, checked) => {
                let reason = checked.err().unwrap_or("kind-mismatch");
                (Code::InvalidRendererClaim, ("reason", reason), reason)
            }
        };
        let subject = draft.subject(index);
        let details = Details::default()
            .with("rendererClaim", shown(claim))
            .with(word.0, word.1)
            .with_owner("owner", &subject.as_owner());
        let place = draft.place(index, "claim", note.to_owned());
        findings.push(Diagnostic::new(code, vec![subject], details).at([place]));
        draft.contributions[index].state = State::Rejected;
    }
}
