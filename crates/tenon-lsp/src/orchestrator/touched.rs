//! What a change touches: the lines that differ between two texts, and the symbols on them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tenon_contract::position::{Encoding, LineIndex, Position};

use crate::identifiers;
use crate::model::Symbol;

/// Up to this many lines are compared line by line; between larger texts, one range covers everything that differs.
const MAX_COMPARED: usize = 20_000;
/// The most characters of a declaration that are searched for the end of the header.
const MAX_HEADER: usize = 8 * 1024;

/// How many steps a change is followed through the names of one file.
const MAX_STEPS: usize = 3;

/// Lines that differ. One of the two ranges may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hunk {
    pub(super) old: Range<u32>,
    pub(super) new: Range<u32>,
}

impl Hunk {
    /// The same lines, seen from the other text.
    pub(super) fn reversed(&self) -> Self {
        Self { old: self.new.clone(), new: self.old.clone() }
    }
}

/// A place that other files may reference: a declared symbol, or an attribute that a method sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) name: String,
    /// The names of the enclosing symbols, outermost first.
    pub(super) containers: Vec<String>,
    /// The offset of the name.
    pub(super) offset: usize,
    /// The kind, by its protocol name.
    pub(super) kind: &'static str,
    /// Whether the change touches more than its body.
    pub(super) header: bool,
    /// Whether the declaration says `abstract`.
    pub(super) is_abstract: bool,
    /// Whether a method sets it, rather than that it is declared.
    pub(super) is_attribute: bool,
}

impl Place {
    /// The same symbol in another version of the text.
    pub(super) fn key(&self) -> (Vec<String>, String) {
        (self.containers.clone(), self.name.clone())
    }
}

/// The lines that differ between two texts, ascending.
pub(super) fn hunks(old: &LineIndex, new: &LineIndex) -> Vec<Hunk> {
    let old: Vec<&str> = (0..old.line_count()).filter_map(|line| old.line(line)).collect();
    let new: Vec<&str> = (0..new.line_count()).filter_map(|line| new.line(line)).collect();
    let mut found = Vec::new();
    compare(&old, &new, 0, 0, &mut found);
    found
}

/// Skips equal lines at both ends, then splits at lines that occur once on both sides.
fn compare(old: &[&str], new: &[&str], old_at: usize, new_at: usize, found: &mut Vec<Hunk>) {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[head..], &new[head..]);
    let (old_at, new_at) = (old_at + head, new_at + head);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    if old.is_empty() && new.is_empty() {
        return;
    }
    let (mut old_from, mut new_from) = (0, 0);
    let anchors = match old.len().max(new.len()) <= MAX_COMPARED {
        true => anchors(old, new),
        false => Vec::new(),
    };
    if anchors.is_empty() {
        found.push(Hunk { old: lines(old_at, old.len()), new: lines(new_at, new.len()) });
        return;
    }
    for (old_to, new_to) in anchors.into_iter().chain([(old.len(), new.len())]) {
        let (old, new) = (&old[old_from..old_to], &new[new_from..new_to]);
        compare(old, new, old_at + old_from, new_at + new_from, found);
        (old_from, new_from) = (old_to, new_to);
    }
}

fn lines(from: usize, count: usize) -> Range<u32> {
    let narrow = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
    narrow(from)..narrow(from + count)
}

/// Lines that occur exactly once on both sides, in an order that is ascending on both.
fn anchors(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let mut places: BTreeMap<&str, [Option<Result<usize, ()>>; 2]> = BTreeMap::new();
    for (side, lines) in [old, new].into_iter().enumerate() {
        for (at, line) in lines.iter().enumerate() {
            let place = &mut places.entry(line).or_default()[side];
            *place = Some(if place.is_none() { Ok(at) } else { Err(()) });
        }
    }
    let mut pairs: Vec<(usize, usize)> =
        places.into_values().filter_map(|[old, new]| Some((old?.ok()?, new?.ok()?))).collect();
    pairs.sort_unstable();
    // The longest ascending run of the new lines: `piles` holds the last pair of each length.
    let mut piles: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    for (index, (_, new)) in pairs.iter().enumerate() {
        let pile = piles.partition_point(|&last| pairs[last].1 < *new);
        before[index] = pile.checked_sub(1).map(|below| piles[below]);
        match piles.get_mut(pile) {
            Some(last) => *last = index,
            None => piles.push(index),
        }
    }
    let mut run = Vec::new();
    let mut next = piles.last().copied();
    while let Some(index) = next {
        run.push(pairs[index]);
        next = before[index];
    }
    run.reverse();
    run
}

/// The symbols on changed lines of one text. An empty range is a place where the other text has more lines.
pub(super) fn touched(symbols: &[Symbol], text: &LineIndex, changed: &[Range<u32>]) -> Vec<Place> {
    let symbols = Nested::of(symbols);
    let mut found: BTreeMap<usize, bool> = BTreeMap::new();
    for lines in changed {
        // A line that was added before this one belongs to what is around it, or before it.
        let (spot, around) = match lines.is_empty() {
            true => (lines.start.saturating_sub(1)..=lines.start.saturating_sub(1), true),
            false => (lines.start..=lines.end - 1, false),
        };
        for line in spot {
            if let Some(index) = symbols.deepest(line) {
                let symbol = symbols.all[index];
                let ended = around && symbol.range.end.line <= line;
                // A line that was added below the header belongs to the body.
                let last = if around { lines.start } else { line };
                let in_header = is_header(symbol, text, last) && !(ended && is_function(symbol));
                *found.entry(index).or_default() |= in_header;
            }
        }
        // Members that are added or removed change what contains them.
        for (index, symbol) in symbols.all.iter().enumerate() {
            let inside = lines.contains(&symbol.range.start.line) && lines.contains(&symbol.range.end.line);
            if inside && symbols.visible[index] {
                found.insert(index, true);
            }
        }
    }
    let mut places: Vec<Place> =
        found.into_iter().map(|(index, header)| symbols.place(index, text, header)).collect();
    places.extend(attributes(&symbols, text, changed));
    places
}

/// Adds the symbols of the same text that mention a changed name, a name that they give on, and so on: a base class, a type in a
/// signature, a function whose result is returned.
pub(super) fn add_mentions(
    places: &mut Vec<Place>,
    symbols: &[Symbol],
    text: &LineIndex,
    names: &BTreeSet<String>,
) {
    let mut names = names.clone();
    let mut followed: BTreeSet<String> = BTreeSet::new();
    for _ in 0..MAX_STEPS {
        names.extend(places.iter().filter(|place| place.header).map(|place| place.name.clone()));
        let fresh: BTreeSet<&str> = names.difference(&followed).map(String::as_str).collect();
        let mentions = |line: &u32| {
            let line = text.line(*line).unwrap_or_default();
            line.split(|c| !identifiers::is_part(c)).any(|word| fresh.contains(word))
        };
        let lines: Vec<Range<u32>> = match fresh.is_empty() {
            true => break,
            false => (0..text.line_count()).filter(mentions).map(|line| line..line + 1).collect(),
        };
        for found in touched(symbols, text, &lines) {
            match places.iter_mut().find(|place| place.offset == found.offset) {
                Some(place) => place.header |= found.header,
                None => places.push(found),
            }
        }
        followed.clone_from(&names);
    }
}

/// All symbols that other files can reference.
pub(super) fn declared(symbols: &[Symbol], text: &LineIndex) -> Vec<Place> {
    let symbols = Nested::of(symbols);
    let visible = (0..symbols.all.len()).filter(|index| symbols.visible[*index]);
    visible.map(|index| symbols.place(index, text, true)).collect()
}

/// A document's symbols with their parents.
struct Nested<'a> {
    all: Vec<&'a Symbol>,
    parents: Vec<Option<usize>>,
    /// Whether other files can reference it: it is not inside a function.
    visible: Vec<bool>,
}

impl<'a> Nested<'a> {
    fn of(symbols: &'a [Symbol]) -> Self {
        let all: Vec<&Symbol> = symbols.iter().collect();
        let mut parents = Vec::with_capacity(all.len());
        let mut visible: Vec<bool> = Vec::with_capacity(all.len());
        let mut open: Vec<usize> = Vec::new();
        for (index, symbol) in all.iter().enumerate() {
            open.truncate(symbol.depth as usize);
            let parent = open.last().copied();
            parents.push(parent);
            visible.push(parent.is_none_or(|parent| visible[parent] && !is_function(all[parent])));
            open.push(index);
        }
        Self { all, parents, visible }
    }

    /// The innermost visible symbol with this line.
    fn deepest(&self, line: u32) -> Option<usize> {
        let contains = |index: &usize| {
            let range = self.all[*index].range;
            self.visible[*index] && range.start.line <= line && line <= range.end.line
        };
        (0..self.all.len()).filter(contains).max_by_key(|index| self.all[*index].depth)
    }

    fn containers(&self, index: usize) -> Vec<String> {
        let mut names = Vec::new();
        let mut next = self.parents[index];
        while let Some(parent) = next {
            names.push(self.all[parent].name.clone());
            next = self.parents[parent];
        }
        names.reverse();
        if names.is_empty() {
            names.extend(self.all[index].container.clone());
        }
        names
    }

    fn place(&self, index: usize, text: &LineIndex, header: bool) -> Place {
        let symbol = self.all[index];
        Place {
            name: symbol.name.clone(),
            containers: self.containers(index),
            offset: name_offset(symbol, text),
            kind: symbol.kind.name(),
            header,
            is_abstract: is_abstract(symbol, text),
            is_attribute: false,
        }
    }
}

fn is_function(symbol: &Symbol) -> bool {
    matches!(symbol.kind.name(), "function" | "method" | "constructor")
}

/// The offset of a symbol's name. Some servers give only the whole declaration.
fn name_offset(symbol: &Symbol, text: &LineIndex) -> usize {
    let start = text.offset_clamped(symbol.selection.start, Encoding::Utf16);
    let end = text.offset_clamped(symbol.range.end, Encoding::Utf16).max(start);
    let declaration = &text.text()[start..text.text().floor_char_boundary(end.min(start + MAX_HEADER))];
    let whole = |at: &usize| {
        !declaration[..*at].ends_with(identifiers::is_part)
            && !declaration[at + symbol.name.len()..].starts_with(identifiers::is_part)
    };
    let mut found = declaration.match_indices(symbol.name.as_str()).map(|(at, _)| at);
    found.find(whole).map_or(start, |at| start + at)
}

/// Whether a line belongs to a declaration's header: everything before the body that it starts.
fn is_header(symbol: &Symbol, text: &LineIndex, line: u32) -> bool {
    let start = name_offset(symbol, text);
    let whole = text.text();
    let rest = &whole[start..whole.floor_char_boundary(whole.len().min(start + MAX_HEADER))];
    let mut depth = 0_i32;
    let mut end = None;
    let mut previous = ' ';
    for (at, c) in rest.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth <= 0 => end = Some(at),
            '>' if depth <= 0 && previous == '=' => end = Some(at),
            '\n' if depth <= 0 && previous == ':' => end = Some(at),
            _ => {}
        }
        if end.is_some() {
            break;
        }
        if c == '\n' || !c.is_whitespace() {
            previous = c;
        }
    }
    let body = end.map_or(u32::MAX, |at| text.position_clamped(start + at, Encoding::Utf8).line);
    line <= body
}

/// Whether a declaration is marked as abstract, on its first line or on the one before.
fn is_abstract(symbol: &Symbol, text: &LineIndex) -> bool {
    let first = symbol.range.start.line;
    let lines = first.saturating_sub(1)..=symbol.selection.start.line.max(first);
    lines.filter_map(|line| text.line(line)).any(|line| line.contains("abstract"))
}

/// An attribute that a line sets, as in `self.name = value`, and its offset in the line.
fn assigned_attribute(line: &str) -> Option<(&str, usize)> {
    let rest = ["self.", "this."].iter().find_map(|own| line.trim_start().strip_prefix(own))?;
    let end = rest.find(|c| !identifiers::is_part(c)).unwrap_or(rest.len());
    let (name, after) = (&rest[..end], rest[end..].trim_start());
    let assigns = after.starts_with(':') || (after.starts_with('=') && !after.starts_with("=="));
    (assigns && !name.is_empty()).then(|| (name, line.len() - rest.len()))
}

/// The names of the attributes that these lines set.
pub(super) fn assigned_attributes(text: &LineIndex, lines: &[Range<u32>]) -> BTreeSet<String> {
    let lines = lines.iter().flat_map(Clone::clone).filter_map(|line| text.line(line));
    lines.filter_map(|line| Some(assigned_attribute(line)?.0.to_owned())).collect()
}

/// The attributes that changed lines set on an object of the class around them.
fn attributes(symbols: &Nested<'_>, text: &LineIndex, changed: &[Range<u32>]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for line in changed.iter().flat_map(Clone::clone) {
        let assigned = text.line(line).and_then(assigned_attribute);
        let (Some((name, column)), Some(around)) = (assigned, symbols.deepest(line)) else {
            continue;
        };
        let mut containers = symbols.containers(around);
        if !is_function(symbols.all[around]) {
            containers.push(symbols.all[around].name.clone());
        }
        places.push(Place {
            name: name.to_owned(),
            containers,
            offset: text.offset_clamped(Position::new(line, 0), Encoding::Utf8) + column,
            kind: "property",
            header: false,
            is_abstract: false,
            is_attribute: true,
        });
    }
    places
}

#[cfg(test)]
mod tests {
    use tenon_contract::root::RootGate;

    use super::*;
    use crate::model::SymbolKind;

    fn symbol(name: &str, kind: u32, lines: Range<u32>, depth: u32) -> Symbol {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        let path = RootGate::new([folder.path()]).unwrap().admit_path("a").unwrap();
        let range = tenon_contract::position::Range::new(
            Position::new(lines.start, 0),
            Position::new(lines.end - 1, 80),
        );
        Symbol {
            path,
            name: name.to_owned(),
            kind: SymbolKind(kind),
            range,
            selection: range,
            container: None,
            depth,
        }
    }

    fn hunks_of(old: &str, new: &str) -> Vec<(Range<u32>, Range<u32>)> {
        let found = hunks(&LineIndex::new(old), &LineIndex::new(new));
        found.into_iter().map(|hunk| (hunk.old, hunk.new)).collect()
    }

    #[test]
    fn hunks_are_small_and_separate() {
        assert_eq!(hunks_of("a\nb\nc", "a\nb\nc"), []);
        assert_eq!(hunks_of("a\nb\nc\nd\ne", "a\nB\nc\nD\ne"), [(1..2, 1..2), (3..4, 3..4)]);
        assert_eq!(hunks_of("a\nb", "a\nnew\nb"), [(1..1, 1..2)]);
        assert_eq!(hunks_of("a\ngone\nb", "a\nb"), [(1..2, 1..1)]);
        assert_eq!(hunks_of("x\ny", ""), [(0..2, 0..1)]);
    }

    #[test]
    fn change_is_followed_through_the_names_of_a_file() {
        let text = "type Size = number;\ninterface Box { size: Size }\nfunction make(): Box {\n  return x;\n}\nfunction use() {\n  return make();\n}\nfunction alone() {}\n";
        let symbols = [
            symbol("Size", 26, 0..1, 0),
            symbol("Box", 11, 1..2, 0),
            symbol("make", 12, 2..5, 0),
            symbol("use", 12, 5..8, 0),
            symbol("alone", 12, 8..9, 0),
        ];
        let lines = LineIndex::new(text);
        let mut places = touched(&symbols, &lines, std::slice::from_ref(&(0..1)));
        add_mentions(&mut places, &symbols, &lines, &BTreeSet::new());
        let found: Vec<(&str, bool)> =
            places.iter().map(|place| (place.name.as_str(), place.header)).collect();
        assert_eq!(found, [("Size", true), ("Box", true), ("make", true), ("use", false)]);
        let mut imported = Vec::new();
        add_mentions(&mut imported, &symbols, &lines, &BTreeSet::from(["make".to_owned()]));
        assert_eq!(imported.iter().map(|place| place.name.as_str()).collect::<Vec<_>>(), ["make", "use"]);
    }

    #[test]
    fn header_and_body_of_a_declaration_differ() {
        let text =
            "class A:\n    def f(\n        self,\n    ) -> int:\n        self.x = 1\n        return 2\n";
        let symbols = [symbol("A", 5, 0..6, 0), symbol("f", 6, 1..6, 1), symbol("local", 13, 4..5, 2)];
        let at = |line: u32| -> Vec<(String, bool)> {
            let places = touched(&symbols, &LineIndex::new(text), std::slice::from_ref(&(line..line + 1)));
            places.into_iter().map(|place| (place.name, place.header)).collect()
        };
        assert_eq!(at(0), [("A".to_owned(), true)]);
        assert_eq!(at(2), [("f".to_owned(), true)]);
        assert_eq!(at(5), [("f".to_owned(), false)]);
        assert_eq!(at(4), [("f".to_owned(), false), ("x".to_owned(), false)]);
        let lines = LineIndex::new(text);
        let added = |line: u32| touched(&symbols, &lines, std::slice::from_ref(&(line..line)))[0].header;
        assert_eq!((added(3), added(4)), (true, false), "inside and below the header");
        let places = touched(&symbols, &lines, std::slice::from_ref(&(4..5)));
        assert_eq!(places[1].containers, ["A"]);
        assert_eq!(&text[places[1].offset..=places[1].offset], "x");
    }
}
