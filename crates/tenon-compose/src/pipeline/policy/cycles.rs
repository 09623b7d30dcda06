//! Finds cycles of reorder operations, as strongly connected components of the "comes before" graph.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use super::{Action, OperationConflict, PolicyTarget, ValidOperation};

/// Every set of reorder operations on a common cycle. A replaced contribution counts as the replacement.
pub(super) fn find(valid: &[ValidOperation<'_>]) -> Vec<OperationConflict> {
    let replaced: BTreeMap<&str, &str> = valid
        .iter()
        .filter_map(|operation| match (operation.target, operation.action) {
            (PolicyTarget::Key(target), Action::Replace { with }) => Some((target, with)),
            _ => None,
        })
        .collect();
    let mut nodes: IndexMap<&str, usize> = IndexMap::new();
    let mut edges: Vec<(usize, usize, usize)> = Vec::new();
    for (index, operation) in valid.iter().enumerate() {
        let (first, second) = match (operation.target, operation.action) {
            (PolicyTarget::Key(target), Action::Before { anchor }) => (target, anchor),
            (PolicyTarget::Key(target), Action::After { anchor }) => (anchor, target),
            _ => continue,
        };
        let mut node = |key| {
            let key = replaced.get(key).copied().unwrap_or(key);
            let fresh = nodes.len();
            *nodes.entry(key).or_insert(fresh)
        };
        edges.push((node(first), node(second), index));
    }

    let parts = strongly_connected(nodes.len(), &edges);
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (first, second, operation) in edges {
        if parts[first] == parts[second] {
            groups.entry(parts[first]).or_default().push(operation);
        }
    }
    let reason = "reorder-cycle";
    groups.into_values().map(|members| OperationConflict { members, reason }).collect()
}

/// The strongly connected component of every node. Tarjan's algorithm with an explicit stack, since a chain of
/// operations may be as long as the input.
fn strongly_connected(count: usize, edges: &[(usize, usize, usize)]) -> Vec<usize> {
    const UNSEEN: usize = usize::MAX;
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (first, second, _) in edges {
        next[*first].push(*second);
    }
    let mut number = vec![UNSEEN; count];
    let mut lowest = vec![UNSEEN; count];
    let mut part = vec![UNSEEN; count];
    let mut open = Vec::new();
    let mut seen = 0;
    for start in 0..count {
        if number[start] != UNSEEN {
            continue;
        }
        // A node, and how many successors were followed.
        let mut path = vec![(start, 0)];
        while let Some((node, followed)) = path.last_mut() {
            let node = *node;
            if *followed == 0 {
                number[node] = seen;
                lowest[node] = seen;
                seen += 1;
                open.push(node);
            }
            if let Some(successor) = next[node].get(*followed) {
                *followed += 1;
                if number[*successor] == UNSEEN {
                    path.push((*successor, 0));
                } else if part[*successor] == UNSEEN {
                    lowest[node] = lowest[node].min(number[*successor]);
                }
                continue;
            }
            path.pop();
            if let Some((above, _)) = path.last() {
                lowest[*above] = lowest[*above].min(lowest[node]);
            }
            if lowest[node] == number[node] {
                while let Some(member) = open.pop() {
                    part[member] = number[node];
                    if member == node {
                        break;
                    }
                }
            }
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(count: usize, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let edges: Vec<_> = edges.iter().map(|(a, b)| (*a, *b, 0)).collect();
        let numbers = strongly_connected(count, &edges);
        let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (node, number) in numbers.into_iter().enumerate() {
            parts.entry(number).or_default().push(node);
        }
        let mut parts: Vec<_> = parts.into_values().collect();
        parts.sort();
        parts
    }

    #[test]
    fn only_cycles_form_components() {
        assert_eq!(parts(3, &[(0, 1), (1, 2)]), [vec![0], vec![1], vec![2]]);
        assert_eq!(parts(3, &[(0, 1), (1, 2), (2, 0)]), [vec![0, 1, 2]]);
        assert_eq!(
            parts(6, &[(0, 1), (1, 0), (1, 2), (2, 3), (3, 4), (4, 2), (5, 0)]),
            [vec![0, 1], vec![2, 3, 4], vec![5]]
        );
        assert_eq!(parts(2, &[(0, 0), (0, 1)]), [vec![0], vec![1]]);
    }

    #[test]
    fn long_chain_does_not_overflow_the_stack() {
        let edges: Vec<_> = (0..200_000).map(|node| (node, node + 1)).collect();
        assert_eq!(parts(200_001, &edges).len(), 200_001);
    }

    #[test]
    fn components_agree_with_reachability() {
        // Every graph of four nodes, as a bit mask over the sixteen possible edges.
        for mask in 0_u32..1 << 16 {
            let edges: Vec<_> =
                (0..16).filter(|bit| mask >> bit & 1 == 1).map(|bit| (bit / 4, bit % 4)).collect();
            let mut reach = [[false; 4]; 4];
            for (a, b) in &edges {
                reach[*a][*b] = true;
            }
            for middle in 0..4 {
                for a in 0..4 {
                    for b in 0..4 {
                        reach[a][b] |= reach[a][middle] && reach[middle][b];
                    }
                }
            }
            let labelled: Vec<_> = edges.iter().map(|(a, b)| (*a, *b, 0)).collect();
            let part = strongly_connected(4, &labelled);
            for a in 0..4 {
                for b in 0..4 {
                    let together = a == b || (reach[a][b] && reach[b][a]);
                    assert_eq!(part[a] == part[b], together, "{edges:?}");
                }
            }
        }
    }
}
