//! Routes: every declared path must be canonical, every effective path belongs to one route.

use std::collections::BTreeSet;

use super::draft::{Draft, Role, State, duplicates};
use super::policy::Decisions;
use crate::diagnostic::{Details, Diagnostic, shown};
use crate::grammar;
use crate::kind::{ContributionKind, OwnerKind};
use crate::registry::Code;

/// Whether `path` is canonical and this owner may claim it.
pub(super) fn allowed(path: &str, owner: OwnerKind, allow_module_root: bool) -> Result<(), &'static str> {
    grammar::route_path(path)?;
    if path == "/" && owner == OwnerKind::Module && !allow_module_root {
        return Err("reserved-root");
    }
    Ok(())
}

pub(super) fn check(draft: &mut Draft<'_>, decisions: &Decisions<'_>, findings: &mut Vec<Diagnostic>) {
    grammar_of_all(draft, findings);

    let declared = |index: usize| match draft.contributions[index].role {
        Role::Route { path } => Some(path),
        _ => None,
    };
    let effective = |index: usize| match decisions.aliases.get(&index) {
        Some(alias) => alias.path,
        None => declared(index).unwrap_or_default(),
    };
    let counts = |index: &usize| draft.contributions[*index].state.counts();
    let routes = draft.of_kind(ContributionKind::Routes).iter().copied();
    let active: Vec<usize> = routes.filter(counts).collect();
    let mut conflicting = BTreeSet::new();
    for group in duplicates(&active, effective) {
        let (subjects, places) =
            draft.mentions(&group, "path", |index| draft.contributions[index].key.to_string());
        let details = Details::default()
            .with("effectivePath", effective(group[0]))
            .with_owners("owners", subjects.iter().map(|subject| subject.as_owner()).collect());
        findings.push(Diagnostic::new(Code::DuplicateRoutePath, subjects, details).at(places));
        conflicting.extend(group);
    }
    for (index, alias) in &decisions.aliases {
        if !draft.contributions[*index].state.counts() || conflicting.contains(index) {
            continue;
        }
        let subject = draft.subject(*index);
        let details = Details::default()
            .with("originalPath", declared(*index).unwrap_or_default())
            .with("aliasedPath", alias.path)
            .with("policyId", shown(alias.policy_id))
            .with_owner("owner", &subject.as_owner());
        let place = draft.place(*index, "path", format!("served at {}", alias.path));
        findings.push(Diagnostic::new(Code::RoutePathAliased, vec![subject], details).at([place]));
    }
}

/// Paths are checked whether or not their contribution is active.
fn grammar_of_all(draft: &mut Draft<'_>, findings: &mut Vec<Diagnostic>) {
    for index in draft.of_kind(ContributionKind::Routes).to_vec() {
        let contribution = &draft.contributions[index];
        let Role::Route { path } = contribution.role else {
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
        let details = Details::default()
            .with("routePath", shown(path))
            .with("reason", reason)
            .with_owner("owner", &subject.as_owner());
        let place = draft.place(index, "path", reason.to_owned());
        findings.push(Diagnostic::new(Code::InvalidRoutePath, vec![subject], details).at([place]));
        draft.contributions[index].state = State::Rejected;
    }
}
