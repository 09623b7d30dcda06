//! The draft: every readable owner, contribution and operation, with the state that the phases gave it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use indexmap::IndexMap;
use indexmap::map::Entry;

use super::declarations::Declarations;
use crate::diagnostic::{DiagnosticSubject, InputLocation, PointerStep, sort_subjects, truncated};
use crate::grammar;
use crate::json::Json;
use crate::kind::{AppenderPosition, ContributionKind, OwnerKind, RenderHandleKind, RuntimeStatus};

#[derive(Default)]
pub(super) struct Draft<'i> {
    pub(super) owners: Vec<Owner<'i>>,
    /// Grouped by owner, and inside an owner by kind.
    pub(super) contributions: Vec<Contribution<'i>>,
    /// Indices into `contributions`, by kind.
    pub(super) by_kind: [Vec<usize>; ContributionKind::ALL.len()],
    pub(super) operations: Vec<Operation<'i>>,
    pub(super) allow_module_root: bool,
    pub(super) declarations: Declarations<'i>,
    /// Contributions whose key an earlier one has already declared.
    pub(super) repeated: Vec<usize>,
}

pub(super) struct Owner<'i> {
    pub(super) kind: OwnerKind,
    pub(super) id: &'i str,
    pub(super) package_id: Option<&'i str>,
    pub(super) package_version: Option<&'i str>,
    /// Built-ins are always ready.
    pub(super) status: RuntimeStatus,
    pub(super) reason: Option<&'i str>,
    /// Position in `modules` or `builtins`.
    pub(super) index: usize,
    pub(super) contributions: Range<usize>,
    pub(super) rejected: bool,
}

pub(super) struct Contribution<'i> {
    pub(super) owner: usize,
    pub(super) kind: ContributionKind,
    pub(super) local_id: &'i str,
    pub(super) key: Arc<str>,
    pub(super) title: Option<&'i str>,
    pub(super) order: Option<i64>,
    pub(super) fields: ContributionFields<'i>,
    pub(super) handle: Option<Handle<'i>>,
    /// Position in the collection.
    pub(super) index: usize,
    pub(super) state: State,
}

/// The fields that only contributions of one kind have.
#[derive(Clone, Copy)]
pub(super) enum ContributionFields<'i> {
    Route { path: &'i str },
    SidebarItem { label: &'i str, route_key: &'i str },
    Configuration { purpose: &'i str },
    Integration,
    Renderer { claim: &'i str },
    Appender { target: &'i str, position: AppenderPosition },
    Fallback { status: RuntimeStatus },
}

pub(super) struct Handle<'i> {
    pub(super) kind: RenderHandleKind,
    pub(super) id: &'i str,
    pub(super) data: Option<&'i Json<'i>>,
}

/// The state of a contribution after the phases so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Part of the composition.
    Active,
    /// Left out of the result by a `hide` operation, but still counted in conflicts.
    Hidden,
    /// Excluded by the runtime status, or displaced by the policy.
    Inactive,
    /// Invalid; a diagnostic was reported.
    Rejected,
}

impl State {
    /// Whether it takes part in conflict checks.
    pub(super) fn counts_in_conflicts(self) -> bool {
        matches!(self, Self::Active | Self::Hidden)
    }
}

pub(super) struct Operation<'i> {
    pub(super) id: &'i str,
    pub(super) op: &'i str,
    pub(super) target: &'i str,
    pub(super) use_key: Option<&'i str>,
    pub(super) path: Option<&'i str>,
    pub(super) before: Option<&'i str>,
    pub(super) after: Option<&'i str>,
    pub(super) index: usize,
}

impl<'i> Draft<'i> {
    pub(super) fn add(&mut self, contribution: Contribution<'i>) -> usize {
        let index = self.contributions.len();
        self.by_kind[contribution.kind as usize].push(index);
        self.contributions.push(contribution);
        index
    }

    pub(super) fn of_kind(&self, kind: ContributionKind) -> &[usize] {
        &self.by_kind[kind as usize]
    }

    pub(super) fn owner_subject(&self, owner: usize) -> DiagnosticSubject {
        let owner = &self.owners[owner];
        DiagnosticSubject::owner(owner.kind, Some(owner.id), owner.package_id)
    }

    pub(super) fn subject(&self, contribution: usize) -> DiagnosticSubject {
        let contribution = &self.contributions[contribution];
        let mut subject = self
            .owner_subject(contribution.owner)
            .contribution(contribution.kind, Some(contribution.local_id));
        // A valid value stays complete, so that readers can compare it; an invalid one is truncated.
        match contribution.fields {
            ContributionFields::Route { path } => {
                let value = if grammar::route_path(path).is_ok() { path } else { truncated(path) };
                subject.route_path = Some(value.to_owned());
            }
            ContributionFields::Renderer { claim } => {
                let value = if grammar::claim(claim).is_ok() { claim } else { truncated(claim) };
                subject.renderer_claim = Some(value.to_owned());
            }
            _ => {}
        }
        subject
    }

    /// The sorted subjects of several contributions, each with the location of `field`.
    pub(super) fn subjects_with_locations(
        &self,
        group: &[usize],
        field: &'static str,
        note: impl Fn(usize) -> String,
    ) -> (Vec<DiagnosticSubject>, Vec<InputLocation>) {
        let mut mentions: Vec<_> = group
            .iter()
            .map(|index| (self.subject(*index), self.location(*index, field, note(*index))))
            .collect();
        sort_subjects(&mut mentions, |(subject, _)| subject);
        mentions.into_iter().unzip()
    }

    pub(super) fn owner_location(&self, owner: usize, note: String) -> InputLocation {
        let owner = &self.owners[owner];
        let (list, field) = match owner.kind {
            OwnerKind::Module => ("modules", "instanceId"),
            OwnerKind::Builtin => ("builtins", "ownerId"),
        };
        let pointer = vec![field_step(list), PointerStep::Index(owner.index), field_step(field)];
        InputLocation { pointer, note }
    }

    /// The location of one field of a contribution.
    pub(super) fn location(&self, contribution: usize, field: &'static str, note: String) -> InputLocation {
        let contribution = &self.contributions[contribution];
        let owner = &self.owners[contribution.owner];
        let list = match owner.kind {
            OwnerKind::Module => "modules",
            OwnerKind::Builtin => "builtins",
        };
        let pointer = vec![
            field_step(list),
            PointerStep::Index(owner.index),
            field_step("contributions"),
            field_step(contribution.kind.collection()),
            PointerStep::Index(contribution.index),
            field_step(field),
        ];
        InputLocation { pointer, note }
    }
}

pub(super) fn field_step(name: &'static str) -> PointerStep {
    PointerStep::Field(Cow::Borrowed(name))
}

/// Groups of two or more items that share a key, sorted by key.
pub(super) fn duplicates<K: Ord + Hash + Copy>(items: &[usize], key: impl Fn(usize) -> K) -> Vec<Vec<usize>> {
    let mut first: IndexMap<K, usize> = IndexMap::with_capacity(items.len());
    let mut groups: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for item in items.iter().copied() {
        let key = key(item);
        match first.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(item);
            }
            Entry::Occupied(known) => groups.entry(key).or_insert_with(|| vec![*known.get()]).push(item),
        }
    }
    groups.into_values().collect()
}
