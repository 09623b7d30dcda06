//! Finds operations that repeat or contradict each other, grouped so that each group is one diagnostic.

use std::collections::BTreeMap;

use super::{OperationConflict, PolicyTarget, ValidOperation};
use crate::kind::OperationKind;

/// Every group of operations that repeat or contradict each other, and every operation that uses its own target.
pub(super) fn find(valid: &[ValidOperation<'_>]) -> Vec<OperationConflict> {
    let mut sets = DisjointSets::new(valid.len());
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    // One operation of each kind for each target; others of the same kind are linked to it.
    let mut by_target: BTreeMap<PolicyTarget<'_>, BTreeMap<OperationKind, usize>> = BTreeMap::new();
    for (index, operation) in valid.iter().enumerate() {
        let first = *by_id.entry(operation.id).or_insert(index);
        if first != index {
            sets.join(first, index, false);
        }
        let kinds = by_target.entry(operation.target).or_default();
        let first = *kinds.entry(operation.action.kind()).or_insert(index);
        if first != index {
            sets.join(first, index, valid[first].action != operation.action);
        }
    }
    for kinds in by_target.values() {
        if let Some(hide) = kinds.get(&OperationKind::Hide) {
            for other in kinds.values().filter(|other| *other != hide) {
                sets.join(*hide, *other, true);
            }
        }
    }
    for (index, operation) in valid.iter().enumerate() {
        let Some(used) = operation.action.uses() else {
            continue;
        };
        for other in by_target.get(&PolicyTarget::Key(used)).into_iter().flat_map(BTreeMap::values) {
            sets.join(*other, index, true);
        }
    }
    sets.groups()
}

/// Disjoint sets of operations.
struct DisjointSets {
    parents: Vec<usize>,
    /// Operations joined with another, and whether any join was a contradiction.
    linked: BTreeMap<usize, bool>,
}

impl DisjointSets {
    fn new(count: usize) -> Self {
        Self { parents: (0..count).collect(), linked: BTreeMap::new() }
    }

    fn root(&mut self, mut index: usize) -> usize {
        while self.parents[index] != index {
            self.parents[index] = self.parents[self.parents[index]];
            index = self.parents[index];
        }
        index
    }

    fn join(&mut self, a: usize, b: usize, contradiction: bool) {
        let (root_a, root_b) = (self.root(a), self.root(b));
        self.parents[root_a.max(root_b)] = root_a.min(root_b);
        for index in [a, b] {
            *self.linked.entry(index).or_default() |= contradiction;
        }
    }

    fn groups(mut self) -> Vec<OperationConflict> {
        let mut groups: BTreeMap<usize, (Vec<usize>, bool)> = BTreeMap::new();
        for (index, contradiction) in std::mem::take(&mut self.linked) {
            let (members, contradicting) = groups.entry(self.root(index)).or_default();
            members.push(index);
            *contradicting |= contradiction;
        }
        let reason =
            |contradicting| if contradicting { "conflicting-operations" } else { "duplicate-operation" };
        groups
            .into_values()
            .map(|(members, contradicting)| OperationConflict { members, reason: reason(contradicting) })
            .collect()
    }
}
