//! Compares two texts by lines, in time that grows with their size only (decision 0408).
//!
//! Lines that occur once on both sides, in the same order, are the same line (a patience diff); so are equal lines around and
//! between them. Everything else counts as replaced.

use std::ops::Range;

/// How often the lines between equal ones are compared again.
const DEPTH: usize = 8;

/// Lines of one side, first and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) first: u32,
    pub(super) count: u32,
}

impl From<Range<usize>> for Span {
    fn from(lines: Range<usize>) -> Self {
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self { first: narrow(lines.start), count: narrow(lines.len()) }
    }
}

/// The lines that differ, ascending.
pub(super) fn changed_lines(before: &[&str], after: &[&str]) -> Vec<(Span, Span)> {
    let (before, after) = numbered(before, after);
    let mut changed = Vec::new();
    let mut open = vec![(0..before.len(), 0..after.len(), DEPTH)];
    while let Some((first, second, depth)) = open.pop() {
        let (first, second) = without_equal_ends(&before, &after, first, second);
        if first.is_empty() && second.is_empty() {
            continue;
        }
        let anchors = match depth {
            0 => Vec::new(),
            _ => anchors(&before[first.clone()], &after[second.clone()]),
        };
        if anchors.is_empty() {
            changed.push((Span::from(first), Span::from(second)));
            continue;
        }
        let (mut from, mut to) = (first.start, second.start);
        for (one, other) in anchors {
            let (one, other) = (first.start + one, second.start + other);
            open.push((from..one, to..other, depth - 1));
            (from, to) = (one + 1, other + 1);
        }
        open.push((from..first.end, to..second.end, depth - 1));
    }
    changed.sort_unstable();
    changed
}

/// Equal lines get equal numbers.
fn numbered(before: &[&str], after: &[&str]) -> (Vec<u32>, Vec<u32>) {
    let mut lines: Vec<(&str, usize)> = before.iter().chain(after).copied().zip(0..).collect();
    lines.sort_unstable();
    let mut numbers = vec![0; lines.len()];
    let mut number = 0;
    for (index, (line, at)) in lines.iter().enumerate() {
        if index > 0 && lines[index - 1].0 != *line {
            number += 1;
        }
        numbers[*at] = number;
    }
    let after = numbers.split_off(before.len());
    (numbers, after)
}

fn without_equal_ends(
    before: &[u32],
    after: &[u32],
    mut first: Range<usize>,
    mut second: Range<usize>,
) -> (Range<usize>, Range<usize>) {
    while !first.is_empty() && !second.is_empty() && before[first.start] == after[second.start] {
        first.start += 1;
        second.start += 1;
    }
    while !first.is_empty() && !second.is_empty() && before[first.end - 1] == after[second.end - 1] {
        first.end -= 1;
        second.end -= 1;
    }
    (first, second)
}

/// The longest ascending list of places of lines that occur once on each side.
fn anchors(before: &[u32], after: &[u32]) -> Vec<(usize, usize)> {
    let (before, after) = (unique(before), unique(after));
    let mut rest = after.into_iter().peekable();
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (number, at) in before {
        while rest.next_if(|(other, _)| *other < number).is_some() {}
        if let Some((_, other)) = rest.next_if(|(other, _)| *other == number) {
            pairs.push((at, other));
        }
    }
    pairs.sort_unstable();
    // The pair that ends the best list of each length, and the pair before each.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, (_, at)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *at);
        previous.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut list = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(index) = next {
        list.push(pairs[index]);
        next = previous[index];
    }
    list.reverse();
    list
}

/// The numbers that occur once, ascending, with their places.
fn unique(lines: &[u32]) -> Vec<(u32, usize)> {
    let mut sorted: Vec<(u32, usize)> = lines.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let is_unique = |index: usize| {
        let differs = |other: Option<usize>| {
            other.and_then(|other| sorted.get(other)).is_none_or(|(number, _)| *number != sorted[index].0)
        };
        differs(index.checked_sub(1)) && differs(Some(index + 1))
    };
    (0..sorted.len()).filter(|index| is_unique(*index)).map(|index| sorted[index]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn changed(before: &str, after: &str) -> Vec<((u32, u32), (u32, u32))> {
        let lines = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        let (before, after) = (lines(before), lines(after));
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        let hunks = changed_lines(&before, &after);
        hunks.into_iter().map(|(one, two)| ((one.first, one.count), (two.first, two.count))).collect()
    }

    #[test]
    fn changes_between_equal_lines_are_found() {
        assert_eq!(changed("abc", "abc"), []);
        assert_eq!(changed("abc", "axc"), [((1, 1), (1, 1))]);
        assert_eq!(changed("", "ab"), [((0, 0), (0, 2))]);
        assert_eq!(changed("abcdef", "xbcyydez"), [((0, 1), (0, 1)), ((3, 0), (3, 2)), ((5, 1), (7, 1))]);
        // Lines that repeat count where they touch others that do not.
        assert_eq!(changed("1--a--2", "3--a--4"), [((0, 1), (0, 1)), ((6, 1), (6, 1))]);
    }

    proptest! {
        /// Removing the changed lines leaves equal texts, in any order of changes.
        #[test]
        fn lines_outside_the_changes_are_equal(before in "[a-e]{0,12}", after in "[a-e]{0,12}") {
            let hunks = changed(&before, &after);
            let without = |text: &str, spans: Vec<(u32, u32)>| {
                let inside = |at: u32| spans.iter().any(|(first, count)| (*first..first + count).contains(&at));
                text.chars().zip(0..).filter(|(_, at)| !inside(*at)).map(|(one, _)| one).collect::<String>()
            };
            let (first, second): (Vec<_>, Vec<_>) = hunks.into_iter().unzip();
            prop_assert_eq!(without(&before, first), without(&after, second));
        }
    }
}
