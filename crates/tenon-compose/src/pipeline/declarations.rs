//! Every key that the input declares, accepted or rejected; resolves the references of policies and sidebar items.
//!
//! A reference to a rejected declaration is not reported, since the rejection already was. An unreadable part of the
//! input may have declared anything, so references into it are not reported either.

use std::collections::BTreeSet;

use indexmap::map::Entry;
use indexmap::{IndexMap, IndexSet};

use crate::grammar::{self, KeyParts};
use crate::kind::ContributionKind;

/// What a reference resolves to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolution {
    /// A readable contribution, by index; it may have been rejected since.
    Contribution(usize),
    /// Declared but unreadable, or possibly declared in an unreadable part of the input.
    Unreadable,
    /// Not declared.
    Undeclared,
}

#[derive(Default)]
pub(super) struct Declarations<'i> {
    keys: IndexMap<KeyParts<'i>, Resolution>,
    owners: IndexSet<&'i str>,
    /// Claims of rejected contributions.
    unread_claims: BTreeSet<&'i str>,
    unread_owners: BTreeSet<&'i str>,
    unread_collections: BTreeSet<(&'i str, ContributionKind)>,
    unnamed_owner: bool,
}

impl<'i> Declarations<'i> {
    pub(super) fn reserve(&mut self, count: usize) {
        self.keys.reserve(count);
    }

    pub(super) fn owner(&mut self, id: Option<&'i str>) {
        match id {
            Some(id) => {
                self.owners.insert(id);
            }
            None => self.unnamed_owner = true,
        }
    }

    pub(super) fn unread_owner(&mut self, id: Option<&'i str>) {
        self.owner(id);
        self.unread_owners.extend(id);
    }

    /// Records that a whole list of owners was unreadable.
    pub(super) fn unread_owners(&mut self) {
        self.unnamed_owner = true;
    }

    pub(super) fn unread_collection(&mut self, owner: Option<&'i str>, kind: ContributionKind) {
        self.unread_collections.extend(owner.map(|owner| (owner, kind)));
    }

    pub(super) fn unread_claim(&mut self, claim: Option<&'i str>) {
        self.unread_claims.extend(claim);
    }

    /// Records a declaration; false if another readable contribution has the same key.
    pub(super) fn contribution(&mut self, key: KeyParts<'i>, found: Resolution) -> bool {
        match self.keys.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(found);
                true
            }
            Entry::Occupied(mut known) if *known.get() == Resolution::Unreadable => {
                known.insert(found);
                true
            }
            Entry::Occupied(_) => found == Resolution::Unreadable,
        }
    }

    pub(super) fn resolve(&self, key: &str) -> Resolution {
        for parts in grammar::key_splits(key) {
            if let Some(found) = self.keys.get(&parts) {
                return *found;
            }
            let unread = self.unread_owners.contains(parts.owner_id)
                || self.unread_collections.contains(&(parts.owner_id, parts.kind))
                || (self.unnamed_owner && !self.owners.contains(parts.owner_id));
            if unread {
                return Resolution::Unreadable;
            }
        }
        Resolution::Undeclared
    }

    /// The parts of `key`, if this exact key is declared.
    pub(super) fn exactly<'k>(&self, key: &'k str) -> Option<KeyParts<'k>> {
        grammar::key_splits(key).find(|parts| self.keys.contains_key(parts))
    }

    /// Whether an unreadable part of the input declares, or may declare, `claim`.
    pub(super) fn may_claim(&self, claim: &str) -> bool {
        self.unnamed_owner
            || !self.unread_owners.is_empty()
            || self.unread_claims.contains(claim)
            || self.unread_collections.iter().any(|(_, kind)| kind.claims().is_some())
    }
}
