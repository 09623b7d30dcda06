//! Policy: checks and applies the host's operations on conflicts, visibility and order.
//!
//! The check ignores runtime status: operations that contradict each other are reported even while their target is
//! inactive. Operations take effect on active contributions only, kind by kind and never in file order.

use std::collections::{BTreeMap, BTreeSet};

use super::declarations::Resolution;
use super::draft::{ContributionFields, Draft, Operation, State, field_step};
use super::routes;
use crate::diagnostic::{
    DiagnosticDetails, DiagnosticSubject, InputLocation, PointerStep, WorkspaceDiagnostic, sort_subjects,
    truncated,
};
use crate::grammar::{self, ReasonCode};
use crate::kind::{ContributionKind, OperationKind, OwnerKind};
use crate::registry::DiagnosticCode;

mod conflicts;
mod cycles;

/// The effects of the policy, by contribution index.
#[derive(Default)]
pub(super) struct Decisions<'i> {
    pub(super) aliases: BTreeMap<usize, Alias<'i>>,
    /// By claim.
    pub(super) overrides: BTreeMap<&'i str, Override<'i>>,
    /// From the replaced contribution to the replacement.
    pub(super) replaced: BTreeMap<usize, usize>,
    /// Pairs whose first comes before the second.
    pub(super) precedes: Vec<(usize, usize)>,
}

pub(super) struct Alias<'i> {
    pub(super) path: &'i str,
    pub(super) policy_id: &'i str,
}

pub(super) struct Override<'i> {
    pub(super) selected: usize,
    pub(super) policy_id: &'i str,
}

/// An operation that passed its own check.
struct ValidOperation<'i> {
    id: &'i str,
    target: PolicyTarget<'i>,
    action: Action<'i>,
    index: usize,
}

/// A claim and a contribution key may have the same text, so the kind is part of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PolicyTarget<'i> {
    Key(&'i str),
    Claim(&'i str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action<'i> {
    Hide,
    Replace { with: &'i str },
    Alias { path: &'i str },
    Override { with: &'i str },
    Before { anchor: &'i str },
    After { anchor: &'i str },
}

impl<'i> Action<'i> {
    fn kind(self) -> OperationKind {
        match self {
            Self::Hide => OperationKind::Hide,
            Self::Replace { .. } => OperationKind::Replace,
            Self::Alias { .. } => OperationKind::PathAlias,
            Self::Override { .. } => OperationKind::RendererOverride,
            Self::Before { .. } | Self::After { .. } => OperationKind::Reorder,
        }
    }

    /// The contribution that `use` names.
    fn uses(self) -> Option<&'i str> {
        match self {
            Self::Replace { with } | Self::Override { with } => Some(with),
            _ => None,
        }
    }
}

pub(super) fn apply<'i>(draft: &mut Draft<'i>, findings: &mut Vec<WorkspaceDiagnostic>) -> Decisions<'i> {
    let operations = std::mem::take(&mut draft.operations);
    let checker = PolicyChecker::new(draft, &operations);
    let mut valid = Vec::new();
    for operation in &operations {
        match checker.operation(operation) {
            Ok(operation) => valid.push(operation),
            Err(reason) => findings.push(checker.fault(operation, reason)),
        }
    }
    for find in [conflicts::find, cycles::find] {
        let mut ignored = BTreeSet::new();
        for group in find(&valid) {
            findings.push(checker.group_fault(&valid, &group));
            ignored.extend(group.members);
        }
        let mut index = 0..;
        valid.retain(|_| !index.next().is_some_and(|index| ignored.contains(&index)));
    }
    decide(draft, &valid)
}

/// A group of operations that repeat or contradict each other.
struct OperationConflict {
    members: Vec<usize>,
    reason: ReasonCode,
}

struct PolicyChecker<'d, 'i> {
    draft: &'d Draft<'i>,
    claims: BTreeSet<&'i str>,
}

impl<'d, 'i> PolicyChecker<'d, 'i> {
    fn new(draft: &'d Draft<'i>, operations: &[Operation<'i>]) -> Self {
        let overrides =
            operations.iter().any(|operation| operation.op == OperationKind::RendererOverride.as_str());
        let claim = |fields| match fields {
            ContributionFields::Renderer { claim } => Some(claim),
            _ => None,
        };
        let claims = if overrides {
            draft.contributions.iter().filter_map(|contribution| claim(contribution.fields)).collect()
        } else {
            BTreeSet::new()
        };
        Self { draft, claims }
    }

    /// Checks one operation: target, then `use`, then path.
    fn operation(&self, operation: &Operation<'i>) -> Result<ValidOperation<'i>, ReasonCode> {
        let kind = OperationKind::parse(operation.op).ok_or("unknown-operation")?;
        let (target, action) = match kind {
            OperationKind::Hide => {
                self.key(operation.target, |_| true, TARGET)?;
                (PolicyTarget::Key(operation.target), Action::Hide)
            }
            OperationKind::Replace => {
                let kind = self.key(operation.target, |_| true, TARGET)?;
                let with = operation.use_key.ok_or("missing-use")?;
                self.key(with, |other| other == kind, USE)?;
                (PolicyTarget::Key(operation.target), Action::Replace { with })
            }
            OperationKind::PathAlias => {
                self.key(operation.target, |kind| kind == ContributionKind::Routes, TARGET)?;
                let path = operation.path.ok_or("invalid-path")?;
                let builtin = operation.target.starts_with(grammar::BUILTIN_PREFIX);
                let owner = if builtin { OwnerKind::Builtin } else { OwnerKind::Module };
                routes::allowed(path, owner, self.draft.allow_module_root).map_err(|_| "invalid-path")?;
                (PolicyTarget::Key(operation.target), Action::Alias { path })
            }
            OperationKind::RendererOverride => {
                self.claim(operation.target)?;
                let with = operation.use_key.ok_or("missing-use")?;
                self.claimant(with, operation.target)?;
                (PolicyTarget::Claim(operation.target), Action::Override { with })
            }
            OperationKind::Reorder => {
                let kind = self.key(operation.target, |_| true, TARGET)?;
                let (anchor, action) = match (operation.before, operation.after) {
                    (Some(anchor), None) => (anchor, Action::Before { anchor }),
                    (None, Some(anchor)) => (anchor, Action::After { anchor }),
                    (None, None) => return Err("missing-use"),
                    (Some(_), Some(_)) => return Err("invalid-use"),
                };
                self.key(anchor, |other| other == kind, USE)?;
                (PolicyTarget::Key(operation.target), action)
            }
        };
        Ok(ValidOperation { id: operation.id, target, action, index: operation.index })
    }

    /// The kind of the declared contribution that `key` names, if it `fits`.
    fn key(
        &self,
        key: &str,
        fits: impl Fn(ContributionKind) -> bool,
        reasons: ReferenceReasons,
    ) -> Result<ContributionKind, ReasonCode> {
        let declared = self.draft.declarations.resolve(key) != Resolution::Undeclared;
        let parts = if declared { grammar::key_splits(key).next() } else { grammar::parse_key(key) };
        let kind = parts.ok_or(reasons.invalid)?.kind;
        if !fits(kind) {
            Err(reasons.invalid)
        } else if declared {
            Ok(kind)
        } else {
            Err(reasons.missing)
        }
    }

    fn claim(&self, claim: &str) -> Result<(), ReasonCode> {
        if self.claims.contains(claim) {
            return Ok(());
        }
        grammar::claim(claim).map_err(|_| TARGET.invalid)?;
        if self.draft.declarations.may_claim(claim) { Ok(()) } else { Err(TARGET.missing) }
    }

    fn claimant(&self, key: &str, claim: &str) -> Result<(), ReasonCode> {
        self.key(key, |kind| kind.claims().is_some(), USE)?;
        match self.draft.declarations.resolve(key) {
            Resolution::Contribution(index) if self.draft.contributions[index].state != State::Rejected => {
                let claims_it = matches!(self.draft.contributions[index].fields, ContributionFields::Renderer { claim: its } if its == claim);
                if claims_it { Ok(()) } else { Err(USE.invalid) }
            }
            _ => Ok(()),
        }
    }

    fn fault(&self, operation: &Operation<'i>, reason: ReasonCode) -> WorkspaceDiagnostic {
        let claims = operation.op == OperationKind::RendererOverride.as_str();
        let target =
            if claims { PolicyTarget::Claim(operation.target) } else { PolicyTarget::Key(operation.target) };
        let mut subjects = vec![DiagnosticSubject::host()];
        subjects.extend(self.subject(target));
        let details = DiagnosticDetails::default()
            .with("policyId", truncated(operation.id))
            .with("target", truncated(operation.target))
            .with("reason", reason);
        let location = operation_location(operation.index, at_fault(operation, reason), reason.to_owned());
        WorkspaceDiagnostic::new(DiagnosticCode::InvalidPolicy, subjects, details).at([location])
    }

    fn group_fault(&self, valid: &[ValidOperation<'i>], group: &OperationConflict) -> WorkspaceDiagnostic {
        let members = || group.members.iter().map(|index| &valid[*index]);
        let smallest = members().map(|operation| operation.id).min().unwrap_or_default();
        let mut targets: Vec<DiagnosticSubject> =
            members().filter_map(|operation| self.subject(operation.target)).collect();
        sort_subjects(&mut targets, |subject| subject);
        targets.dedup();
        let mut subjects = vec![DiagnosticSubject::host()];
        subjects.extend(targets);
        let details = DiagnosticDetails::default()
            .with("policyId", truncated(smallest))
            .with("target", format!("operation:{}", truncated(smallest)))
            .with("reason", group.reason);
        let locations: Vec<InputLocation> = members()
            .map(|operation| operation_location(operation.index, Some("id"), String::new()))
            .collect();
        WorkspaceDiagnostic::new(DiagnosticCode::InvalidPolicy, subjects, details).at(locations)
    }

    /// The subject of a target, if the target is declared.
    fn subject(&self, target: PolicyTarget<'i>) -> Option<DiagnosticSubject> {
        match target {
            PolicyTarget::Claim(claim) => self.claims.contains(claim).then(|| DiagnosticSubject {
                renderer_claim: Some(truncated(claim).to_owned()),
                ..DiagnosticSubject::default()
            }),
            PolicyTarget::Key(key) => {
                let parts = self.draft.declarations.exactly(key)?;
                Some(match self.draft.declarations.resolve(key) {
                    Resolution::Contribution(index)
                        if self.draft.contributions[index].state != State::Rejected =>
                    {
                        self.draft.subject(index)
                    }
                    // Several rejected contributions may share this key, so name the key alone.
                    _ => DiagnosticSubject::from_key(parts),
                })
            }
        }
    }
}

/// The reason codes for a reference that is undeclared, and for one that is malformed or of the wrong kind.
#[derive(Clone, Copy)]
struct ReferenceReasons {
    missing: ReasonCode,
    invalid: ReasonCode,
}

const TARGET: ReferenceReasons = ReferenceReasons { missing: "missing-target", invalid: "invalid-target" };
const USE: ReferenceReasons = ReferenceReasons { missing: "missing-use", invalid: "invalid-use" };

/// The field that a reason is about, if the operation has it.
fn at_fault(operation: &Operation<'_>, reason: ReasonCode) -> Option<&'static str> {
    let arguments = [
        ("use", operation.use_key),
        ("before", operation.before),
        ("after", operation.after),
        ("path", operation.path),
    ];
    match reason {
        "unknown-operation" => Some("op"),
        "missing-target" | "invalid-target" => Some("target"),
        _ => arguments.into_iter().find_map(|(name, value)| value.map(|_| name)),
    }
}

fn operation_location(index: usize, field: Option<&'static str>, note: String) -> InputLocation {
    let mut pointer = vec![field_step("policy"), field_step("operations"), PointerStep::Index(index)];
    pointer.extend(field.map(field_step));
    InputLocation { pointer, note }
}

/// Applies the operations to active contributions, kind by kind.
fn decide<'i>(draft: &mut Draft<'i>, valid: &[ValidOperation<'i>]) -> Decisions<'i> {
    let mut decisions = Decisions::default();
    let mut by_kind: Vec<&ValidOperation<'i>> = valid.iter().collect();
    by_kind.sort_by_key(|operation| operation.action.kind());
    for operation in by_kind {
        let active = |draft: &Draft<'i>, key: &str| match draft.declarations.resolve(key) {
            Resolution::Contribution(index) if draft.contributions[index].state.counts_in_conflicts() => {
                Some(index)
            }
            _ => None,
        };
        let replacement = |decisions: &Decisions<'i>, key: &str| match draft.declarations.resolve(key) {
            Resolution::Contribution(index) => {
                let index = decisions.replaced.get(&index).copied().unwrap_or(index);
                draft.contributions[index].state.counts_in_conflicts().then_some(index)
            }
            _ => None,
        };
        match (operation.target, operation.action) {
            (PolicyTarget::Key(target), Action::Hide) => {
                if let Some(target) = active(draft, target) {
                    draft.contributions[target].state = State::Hidden;
                }
            }
            (PolicyTarget::Key(target), Action::Replace { with }) => {
                if let (Some(target), Some(with)) = (active(draft, target), active(draft, with)) {
                    draft.contributions[target].state = State::Inactive;
                    decisions.replaced.insert(target, with);
                }
            }
            (PolicyTarget::Key(target), Action::Alias { path }) => {
                if let Some(target) = active(draft, target) {
                    let policy_id = operation.id;
                    decisions.aliases.insert(target, Alias { path, policy_id });
                }
            }
            (PolicyTarget::Claim(claim), Action::Override { with }) => {
                if let Some(selected) = active(draft, with) {
                    let policy_id = operation.id;
                    decisions.overrides.insert(claim, Override { selected, policy_id });
                }
            }
            (PolicyTarget::Key(target), Action::Before { anchor }) => {
                decisions
                    .precedes
                    .extend(replacement(&decisions, target).zip(replacement(&decisions, anchor)));
            }
            (PolicyTarget::Key(target), Action::After { anchor }) => {
                decisions
                    .precedes
                    .extend(replacement(&decisions, anchor).zip(replacement(&decisions, target)));
            }
            (PolicyTarget::Claim(_), _) | (PolicyTarget::Key(_), Action::Override { .. }) => {
                unreachable!("an override targets a claim, every other operation a key")
            }
        }
    }
    decisions
}
