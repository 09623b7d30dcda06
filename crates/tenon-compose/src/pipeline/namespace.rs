//! Namespace: ids must be valid and unique. All owners of a duplicate are rejected, so declaration order never decides.

use std::collections::BTreeSet;

use super::draft::{Draft, State, duplicates};
use crate::diagnostic::{DiagnosticDetails, WorkspaceDiagnostic, sort_subjects, truncated};
use crate::grammar;
use crate::kind::OwnerKind;
use crate::registry::DiagnosticCode;

pub(super) fn check(draft: &mut Draft<'_>, findings: &mut Vec<WorkspaceDiagnostic>) {
    owner_ids(draft, findings);
    duplicate_owners(draft, findings);
    for owner in draft.owners.iter().filter(|owner| owner.rejected) {
        for contribution in &mut draft.contributions[owner.contributions.clone()] {
            contribution.state = State::Rejected;
        }
    }
    local_ids(draft, findings);
    duplicate_keys(draft, findings);
}

fn owner_ids(draft: &mut Draft<'_>, findings: &mut Vec<WorkspaceDiagnostic>) {
    for index in 0..draft.owners.len() {
        let owner = &draft.owners[index];
        let (field, checked) = match owner.kind {
            OwnerKind::Module => ("instanceId", grammar::instance_id(owner.id)),
            OwnerKind::Builtin => ("ownerId", grammar::builtin_id(owner.id)),
        };
        let Err(reason) = checked else { continue };
        let details = DiagnosticDetails::default()
            .with("value", truncated(owner.id))
            .with("field", field)
            .with("reason", reason);
        let location = draft.owner_location(index, reason.to_owned());
        let diagnostic = WorkspaceDiagnostic::new(
            DiagnosticCode::InvalidInstanceId,
            vec![draft.owner_subject(index)],
            details,
        );
        findings.push(diagnostic.at([location]));
        draft.owners[index].rejected = true;
    }
}

fn duplicate_owners(draft: &mut Draft<'_>, findings: &mut Vec<WorkspaceDiagnostic>) {
    let accepted: Vec<usize> =
        (0..draft.owners.len()).filter(|index| !draft.owners[*index].rejected).collect();
    for group in duplicates(&accepted, |index| draft.owners[index].id) {
        let mut mentions: Vec<_> = group
            .iter()
            .map(|index| (draft.owner_subject(*index), draft.owner_location(*index, "used here".to_owned())))
            .collect();
        sort_subjects(&mut mentions, |(subject, _)| subject);
        let (subjects, locations): (Vec<_>, Vec<_>) = mentions.into_iter().unzip();
        let details = DiagnosticDetails::default()
            .with("instanceId", draft.owners[group[0]].id)
            .with_owners("owners", subjects.clone());
        findings.push(
            WorkspaceDiagnostic::new(DiagnosticCode::DuplicateInstanceId, subjects, details).at(locations),
        );
        for index in group {
            draft.owners[index].rejected = true;
        }
    }
}

fn local_ids(draft: &mut Draft<'_>, findings: &mut Vec<WorkspaceDiagnostic>) {
    for index in 0..draft.contributions.len() {
        let contribution = &draft.contributions[index];
        if contribution.state == State::Rejected {
            continue;
        }
        let Err(reason) = grammar::local_id(contribution.local_id) else {
            continue;
        };
        let details = DiagnosticDetails::default()
            .with("value", truncated(contribution.local_id))
            .with("field", "localId")
            .with("reason", reason);
        let location = draft.location(index, "id", reason.to_owned());
        let diagnostic =
            WorkspaceDiagnostic::new(DiagnosticCode::InvalidLocalId, vec![draft.subject(index)], details);
        findings.push(diagnostic.at([location]));
        draft.contributions[index].state = State::Rejected;
    }
}

fn duplicate_keys(draft: &mut Draft<'_>, findings: &mut Vec<WorkspaceDiagnostic>) {
    let owners: BTreeSet<usize> =
        draft.repeated.iter().map(|index| draft.contributions[*index].owner).collect();
    for owner in owners {
        let range = draft.owners[owner].contributions.clone();
        let accepted: Vec<usize> =
            range.filter(|index| draft.contributions[*index].state != State::Rejected).collect();
        let key = |index: usize| (draft.contributions[index].kind, draft.contributions[index].local_id);
        for group in duplicates(&accepted, key) {
            let (subjects, locations) =
                draft.subjects_with_locations(&group, "id", |_| "declared here".to_owned());
            let details = DiagnosticDetails::default()
                .with("canonicalKey", &*draft.contributions[group[0]].key)
                .with_owners("owners", subjects.iter().map(|subject| subject.as_owner()).collect());
            findings.push(
                WorkspaceDiagnostic::new(DiagnosticCode::DuplicateCanonicalKey, subjects, details)
                    .at(locations),
            );
            for index in group {
                draft.contributions[index].state = State::Rejected;
            }
        }
    }
}
