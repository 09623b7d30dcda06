//! Compares the diagnostics of a text before and after a change: what is new, what is gone, and what stayed.
//!
//! Two diagnostics are the same if source, code and message are equal, and their ranges are the same place in both texts. Each
//! pairs with at most one. The best pairs are taken first: equal range, equal start, the same changed lines, any changed lines.

use std::borrow::Cow;

use tenon_lsp::model::Diagnostic;

mod line_diff;
mod text_map;

use text_map::{Anchor, Side};

pub use text_map::TextMap;

/// What a change did to the diagnostics of one file, in the order of the lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta<'a> {
    /// Only in the list after.
    pub new: Vec<&'a Diagnostic>,
    /// Only in the list before.
    pub gone: Vec<&'a Diagnostic>,
    /// In both, from the list after.
    pub unchanged: Vec<&'a Diagnostic>,
}

impl<'a> Delta<'a> {
    pub fn new(
        before: impl IntoIterator<Item = &'a Diagnostic>,
        after: impl IntoIterator<Item = &'a Diagnostic>,
        map: &TextMap,
    ) -> Self {
        let mut pairing = Pairing {
            before: before.into_iter().map(|one| Candidate::new(one, Side::Before, map)).collect(),
            after: after.into_iter().map(|one| Candidate::new(one, Side::After, map)).collect(),
        };
        pairing
            .pair(|one| (!one.start.is_replaced() && !one.end.is_replaced()).then_some((one.start, one.end)));
        pairing.pair(|one| (!one.start.is_replaced()).then_some(one.start));
        pairing.pair(|one| one.start.hunk().or(one.end.hunk()));
        pairing.pair(|one| one.start.hunk().or(one.end.hunk()).map(|_| ()));
        let alone = |side: &[Candidate<'a>]| {
            side.iter().filter(|one| !one.paired).map(|one| one.diagnostic).collect()
        };
        let unchanged = pairing.after.iter().filter(|one| one.paired).map(|one| one.diagnostic).collect();
        Self { new: alone(&pairing.after), gone: alone(&pairing.before), unchanged }
    }
}

/// A diagnostic with its place in both texts.
struct Candidate<'a> {
    diagnostic: &'a Diagnostic,
    /// With the line numbers of the text after, since some servers name other lines in their messages.
    message: Cow<'a, str>,
    start: Anchor,
    end: Anchor,
    paired: bool,
}

impl<'a> Candidate<'a> {
    fn new(diagnostic: &'a Diagnostic, side: Side, map: &TextMap) -> Self {
        let (start, end) = map.anchors(side, diagnostic.range);
        let message = mapped_message(&diagnostic.message, side, map);
        Self { diagnostic, message, start, end, paired: false }
    }

    fn name(&self) -> (&str, Option<&str>, Option<&str>) {
        (&self.message, self.diagnostic.code.as_deref(), self.diagnostic.source.as_deref())
    }
}

struct Pairing<'a> {
    before: Vec<Candidate<'a>>,
    after: Vec<Candidate<'a>>,
}

impl<'a> Pairing<'a> {
    /// Pairs what is left and has the same place, in order. `None` is not paired.
    fn pair<K: Ord>(&mut self, place: impl Fn(&Candidate<'a>) -> Option<K>) {
        let (before, after) = (sorted(&self.before, &place), sorted(&self.after, &place));
        let (mut pairs, mut rest) = (Vec::new(), after.iter().peekable());
        for (key, first) in &before {
            while rest.next_if(|(other, _)| other < key).is_some() {}
            if let Some((_, second)) = rest.next_if(|(other, _)| other == key) {
                pairs.push((*first, *second));
            }
        }
        for (first, second) in pairs {
            self.before[first].paired = true;
            self.after[second].paired = true;
        }
    }
}

type Key<'c, K> = (K, (&'c str, Option<&'c str>, Option<&'c str>));

/// What is not paired yet and has a place, by place and name, with its index.
fn sorted<'c, 'a, K: Ord>(
    side: &'c [Candidate<'a>],
    place: &impl Fn(&Candidate<'a>) -> Option<K>,
) -> Vec<(Key<'c, K>, usize)> {
    let left = side.iter().enumerate().filter(|(_, one)| !one.paired);
    let mut keys: Vec<_> = left.filter_map(|(index, one)| Some(((place(one)?, one.name()), index))).collect();
    keys.sort_unstable();
    keys
}

/// A message in which `line N` counts in the text after; `line ?` for a line that changed.
fn mapped_message<'a>(message: &'a str, side: Side, map: &TextMap) -> Cow<'a, str> {
    const WORD: &str = "line ";
    let mut mapped = Cow::Borrowed("");
    let mut rest = message;
    while let Some(at) = rest.find(WORD) {
        let (text, number) = rest.split_at(at + WORD.len());
        let digits = number.len() - number.trim_start_matches(|one: char| one.is_ascii_digit()).len();
        mapped += text;
        if let Some(line) = number[..digits].parse::<u32>().ok().and_then(|line| line.checked_sub(1)) {
            let kept =
                map.kept_line(side, line).map_or_else(|| "?".to_owned(), |line| (line + 1).to_string());
            mapped.to_mut().push_str(&kept);
        } else {
            mapped += &number[..digits];
        }
        rest = &number[digits..];
    }
    if mapped.is_empty() { Cow::Borrowed(message) } else { mapped + rest }
}

#[cfg(test)]
mod tests;
