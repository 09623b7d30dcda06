//! What the input declares, accepted or not: the answer to "does this reference name anything?".
//!
//! A reference to something that was declared and then rejected is silent, since the rejection was already reported.
//! Where a part of the input could not be read, it might have declared anything, and references into it are silent
//! too.

use std::collections::BTreeSet;

use indexmap::map::Entry;
use indexmap::{IndexMap, IndexSet};

use crate::grammar::{self, KeyParts};
use crate::kind::ContributionKind;

/// What a reference leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolution {
    /// A contribution that was read; its state says what became of it.
    Contribution(usize),
    /// Something that was declared but could not be read, or may have been.
    Unreadable,
    /// Nothing.
    Undeclared,
}

#[derive(Default)]
pub(super) struct Declarations<'i> {
    keys: IndexMap<KeyParts<'i>, Resolution>,
    owners: IndexSet<&'i str>,
    /// Claims of contributions that could not be read otherwise.
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

    /// A list of owners that could not be read.
    pub(super) fn unread_owners(&mut self) {
        self.unnamed_owner = true;
    }

    pub(super) fn unread_collection(&mut self, owner: Option<&'i str>, kind: ContributionKind) {
        self.unread_collections.extend(owner.map(|owner| (owner, kind)));
    }

    pub(super) fn unread_claim(&mut self, claim: Option<&'i str>) {
        self.unread_claims.extend(claim);
    }

    /// Declares a contribution; false if another one that was read has the same key.
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

    /// The parts of `key`, if exactly this key is declared.
    pub(super) fn exactly<'k>(&self, key: &'k str) -> Option<KeyParts<'k>> {
        grammar::key_splits(key).find(|parts| self.keys.contains_key(parts))
    }

    /// Whether something that could not be read declares `claim`, or may do so.
    pub(super) fn may_claim(&self, claim: &str) -> bool {
        self.unnamed_owner
            || !self.unread_owners.is_empty()
            || self.unread_claims.contains(claim)
            || self.unread_collections.iter().any(|(_, kind)| kind.claims().is_some())
    }
}
