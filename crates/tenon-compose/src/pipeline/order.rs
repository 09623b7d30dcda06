//! Order: policy first, then `order`, then the canonical key. Message appenders ignore `order`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::draft::Draft;
use super::policy::Decisions;
use crate::kind::ContributionKind;

/// Sort key of entries that the policy does not order: `order` with missing last, then the canonical key.
type Rank<'d> = (bool, i64, &'d str);

/// The indices of the counting contributions, one sorted list for each kind.
pub(super) fn arrange(draft: &Draft<'_>, decisions: &Decisions<'_>) -> Vec<Vec<usize>> {
    let locations = inherited(draft, decisions);
    let mut followers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut waiting: BTreeMap<usize, usize> = BTreeMap::new();
    for (first, second) in &decisions.precedes {
        // The claims phase may have deactivated either of the two.
        let both_active =
            [first, second].into_iter().all(|index| draft.contributions[*index].state.counts_in_conflicts());
        if both_active {
            followers.entry(*first).or_default().push(*second);
            *waiting.entry(*second).or_default() += 1;
        }
    }
    let entries = |indices: &[usize]| -> Vec<(Rank<'_>, usize)> {
        let counting =
            indices.iter().copied().filter(|index| draft.contributions[*index].state.counts_in_conflicts());
        counting
            .map(|index| (locations.get(&index).copied().unwrap_or_else(|| rank(draft, index)), index))
            .collect()
    };
    draft.by_kind.iter().map(|indices| location(entries(indices), &followers, &mut waiting)).collect()
}

fn rank<'d>(draft: &'d Draft<'_>, index: usize) -> Rank<'d> {
    let contribution = &draft.contributions[index];
    let order = match contribution.kind {
        ContributionKind::MessageAppenders => None,
        _ => contribution.order,
    };
    (order.is_none(), order.unwrap_or_default(), &contribution.key)
}

/// The ranks that replacements inherit; the smallest if there are several.
fn inherited<'d>(draft: &'d Draft<'_>, decisions: &Decisions<'_>) -> BTreeMap<usize, Rank<'d>> {
    let mut ranks: BTreeMap<usize, Rank<'d>> = BTreeMap::new();
    for (left, replacement) in &decisions.replaced {
        let inherited = rank(draft, *left);
        let entry = ranks.entry(*replacement).or_insert(inherited);
        *entry = (*entry).min(inherited);
    }
    ranks
}

/// Topological sort that always takes the smallest entry whose predecessors are all placed.
fn location(
    entries: Vec<(Rank<'_>, usize)>,
    followers: &BTreeMap<usize, Vec<usize>>,
    waiting: &mut BTreeMap<usize, usize>,
) -> Vec<usize> {
    let constrained = entries.iter().any(|(_, index)| waiting.contains_key(index));
    if !constrained {
        let mut entries = entries;
        entries.sort_unstable();
        return entries.into_iter().map(|(_, index)| index).collect();
    }
    let ranks: BTreeMap<usize, Rank<'_>> = entries.iter().map(|(rank, index)| (*index, *rank)).collect();
    let free = entries.iter().filter(|(_, index)| !waiting.contains_key(index));
    let mut ready: BinaryHeap<Reverse<(Rank<'_>, usize)>> = free.copied().map(Reverse).collect();
    let mut placed = Vec::with_capacity(entries.len());
    while let Some(Reverse((_, index))) = ready.pop() {
        placed.push(index);
        for follower in followers.get(&index).into_iter().flatten() {
            let count = waiting.get_mut(follower).expect("every follower was counted");
            *count -= 1;
            if *count == 0 {
                ready.push(Reverse((ranks[follower], *follower)));
            }
        }
    }
    placed
}
