//! The declarations of one text: parse it, run the language's query, and order what it found.
//!
//! The work is bounded without a clock: by the size of the text, by counted steps of the parser and the query, and by a
//! limit on nested declarations. So the result depends on the text alone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};

use tree_sitter::{
    Node, ParseOptions, Parser, Point, QueryCursor, QueryCursorOptions, StreamingIterator, Tree, TreeCursor,
};

use crate::file_class::says_generated;
use crate::header_text;
use crate::indexed_file::{BaseEntry, FileContent, NONE, SymbolEntry, TextPart};
use crate::language::{Capture, LanguageRules};
use crate::line_starts::{Columns, LineStarts};
use crate::macro_words::{ParsedText, without_macros};
use crate::nesting::{Surroundings, surroundings};
use crate::words::distinct_word_hashes;
use crate::{DeclarationKind, ParseOutcome, SourceLanguage};

/// Larger files are listed, not parsed.
pub(crate) const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Declarations nested deeper belong to the last one above the limit.
const MAX_DEPTH: usize = 64;
/// The rest of the file is not indexed.
const MAX_SYMBOLS: usize = 65_536;
/// Half-finished matches of the query at a time. Each step of the query looks at all of them.
const MAX_OPEN_MATCHES: u32 = 1024;
/// Nodes deeper in the tree are not declarations. Open matches grow with the depth.
const MAX_NODE_DEPTH: u32 = 256;
const MAX_NAME_BYTES: usize = 512;
const MAX_BASES: usize = 256;
/// Enough to see whether an attribute marks a test.
const MAX_ATTRIBUTE_BYTES: usize = 256;

/// Parses texts; keeps its parser between them.
pub(crate) struct Extractor {
    parser: Parser,
    cursor: QueryCursor,
}

impl Extractor {
    pub(crate) fn new() -> Self {
        let mut cursor = QueryCursor::new();
        cursor.set_match_limit(MAX_OPEN_MATCHES);
        cursor.set_max_start_depth(Some(MAX_NODE_DEPTH));
        Self { parser: Parser::new(), cursor }
    }

    pub(crate) fn extract(&mut self, language: SourceLanguage, bytes: &[u8]) -> FileContent {
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return FileContent::empty(ParseOutcome::TooLarge);
        }
        if bytes.contains(&0) {
            return FileContent::empty(ParseOutcome::Unreadable);
        }
        let replaced;
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => {
                replaced = replace_invalid(bytes);
                replaced.as_str()
            }
        };
        let lines = LineStarts::new(text);
        let (outcome, parts) = if is_minified(text, &lines) {
            (ParseOutcome::Minified, Builder::default())
        } else if let Some((tree, parsed)) = self.parse_without_macros(language.rules(), text) {
            let parts = self.read(language.rules(), &tree, text, &parsed, &lines);
            let outcome = match (parts.cut, tree.root_node().has_error()) {
                (true, _) => ParseOutcome::TooComplex,
                (false, true) => ParseOutcome::SyntaxErrors,
                (false, false) => ParseOutcome::Whole,
            };
            (outcome, parts)
        } else {
            (ParseOutcome::TooComplex, Builder::default())
        };
        FileContent {
            outcome,
            generated: says_generated(text),
            lines: lines.count(text),
            text: parts.text.into_boxed_str(),
            entries: parts.entries.into_boxed_slice(),
            bases: parts.bases.into_boxed_slice(),
            words: distinct_word_hashes(text.as_bytes()),
        }
    }

    fn parse_without_macros<'t>(
        &mut self,
        rules: &LanguageRules,
        text: &'t str,
    ) -> Option<(Tree, ParsedText<'t>)> {
        let parsed = without_macros(text, rules);
        self.parse(rules, &parsed.text).map(|tree| (tree, parsed))
    }

    /// `None` if the parser exceeds its limit of steps.
    pub(crate) fn parse(&mut self, rules: &LanguageRules, text: &str) -> Option<Tree> {
        self.parse_within(StepLimit::new(text.len()), rules, text)
    }

    fn parse_within(&mut self, mut steps: StepLimit, rules: &LanguageRules, text: &str) -> Option<Tree> {
        self.parser.set_language(&rules.grammar).expect("a test parses with every grammar");
        let bytes = text.as_bytes();
        let mut progress = |_: &_| steps.count();
        let mut input = |start: usize, _: Point| bytes.get(start..).unwrap_or_default();
        let options = ParseOptions::new().progress_callback(&mut progress);
        let tree = self.parser.parse_with_options(&mut input, None, Some(options));
        if tree.is_none() {
            self.parser.reset();
        }
        tree
    }

    fn read(
        &mut self,
        rules: &LanguageRules,
        tree: &Tree,
        text: &str,
        parsed: &ParsedText<'_>,
        lines: &LineStarts,
    ) -> Builder {
        let mut found = self.matches(rules, tree, text);
        found.sort_by_key(|one| {
            let node = one.declared.node;
            (node.start_byte(), Reverse(node.end_byte()), one.declared.name.start)
        });
        let nodes: Vec<Node<'_>> = found.iter().map(|one| one.declared.node).collect();
        let mut around = surroundings(tree.root_node(), &nodes, rules);
        for one in &mut around {
            one.range.start = parsed.start(text, one.range.start);
        }
        // The fields of each type, so that a constructor declares only new ones.
        let mut fields: BTreeSet<(u32, &str)> = BTreeSet::new();
        let mut builder = Builder::default();
        let mut columns = Columns { text, lines, last: (0, 0, 0) };
        // The open containers: index of the entry, and where the container ends.
        let mut open: Vec<(u32, Range<usize>)> = Vec::new();
        for (one, around) in found.iter().zip(&around) {
            if builder.entries.len() == MAX_SYMBOLS {
                builder.cut = true;
                break;
            }
            let own = one.declared.node.byte_range();
            open.retain(|(_, range)| range.end >= own.end && *range != own && range.start <= own.start);
            let mut parent = open.last().map_or(NONE, |(index, _)| *index);
            // A value inside the value of another one is its neighbour: `a = b = 1`.
            while let Some(entry) = builder.entries.get(parent as usize)
                && entry.kind.is_value()
                && entry.kind != DeclarationKind::EnumMember
                && one.declared.kind.is_value()
            {
                parent = entry.parent;
            }
            // A constructor may declare fields for the type.
            if one.declared.kind == DeclarationKind::Field
                && let Some(constructor) = builder.entries.get(parent as usize)
                && constructor.kind == DeclarationKind::Constructor
            {
                parent = constructor.parent;
                if fields.contains(&(parent, &text[one.declared.name.clone()])) {
                    continue;
                }
            }
            let parent_entry = builder.entries.get(parent as usize);
            // A variable of a function is not a declaration of the file. A property may be a function.
            let in_function =
                |entry: &SymbolEntry| entry.kind.is_callable() || entry.kind == DeclarationKind::Property;
            if (one.declared.kind.is_value() || one.declared.never_local)
                && parent_entry.is_some_and(in_function)
            {
                continue;
            }
            if one.declared.kind.is_value() {
                fields.insert((parent, &text[one.declared.name.clone()]));
            }
            let index = builder.entries.len() as u32;
            builder.add(one, around, parent, rules, &mut columns);
            if open.len() < MAX_DEPTH {
                let end = match rules.open_containers.contains(&one.declared.node.kind_id()) {
                    true => text.len(),
                    false => own.end,
                };
                open.push((index, own.start..end));
            }
        }
        builder
    }

    /// What the query found, one item for each declared name.
    fn matches<'t>(&mut self, rules: &LanguageRules, tree: &'t Tree, text: &str) -> Vec<Found<'t>> {
        let mut by_name: BTreeMap<(usize, usize), NamedParts<'t>> = BTreeMap::new();
        let mut steps = StepLimit::new(text.len());
        let mut progress = |_: &_| steps.count();
        let options = QueryCursorOptions::new().progress_callback(&mut progress);
        let mut matches =
            self.cursor.matches_with_options(&rules.query, tree.root_node(), text.as_bytes(), options);
        while let Some(one) = matches.next() {
            let mut parts = MatchParts::default();
            for capture in one.captures() {
                parts.add(rules.captures[capture.index as usize], capture.node);
            }
            let settings = rules.query.property_settings(one.pattern_index);
            let fixed = settings.iter().find(|setting| &*setting.key == "name");
            let fixed = fixed.and_then(|setting| setting.value.as_deref());
            let name = match (parts.name, parts.declaration) {
                (Some(name), _) => name.byte_range(),
                (None, Some((node, _))) if fixed.is_some() => node.start_byte()..node.start_byte(),
                _ => continue,
            };
            if parts.name.is_some() && name.is_empty() {
                continue;
            }
            let known = by_name.entry((name.start, name.end)).or_default();
            // Of several patterns for one name, the last one in the file decides.
            if let Some((node, kind)) = parts.declaration
                && known.declared.as_ref().is_none_or(|declared| declared.pattern <= one.pattern_index)
            {
                let pattern = one.pattern_index;
                let fixed_name = fixed.map(str::to_owned);
                let has = |key: &str| settings.iter().any(|setting| &*setting.key == key);
                let (is_test, never_local) = (has("test"), has("never_local"));
                known.declared =
                    Some(Declared { node, kind, pattern, name, fixed_name, is_test, never_local });
            }
            known.parts.extend(parts);
        }
        let found = |one: NamedParts<'t>| Some(Found { declared: one.declared?, parts: one.parts });
        by_name.into_values().filter_map(found).collect()
    }
}

/// Deterministic protection against input that is slow to parse.
struct StepLimit {
    left: u64,
}

impl StepLimit {
    /// Ordinary code takes less than one call of the progress function for 25 bytes.
    fn new(bytes: usize) -> Self {
        Self { left: 10_000 + bytes as u64 }
    }

    fn count(&mut self) -> ControlFlow<()> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A declared name with all that its patterns captured.
struct Found<'t> {
    declared: Declared<'t>,
    parts: MatchParts<'t>,
}

struct Declared<'t> {
    node: Node<'t>,
    kind: DeclarationKind,
    pattern: usize,
    name: Range<usize>,
    /// The declaration has no name: `export default function () {}`.
    fixed_name: Option<String>,
    /// The pattern is one for tests.
    is_test: bool,
    /// Inside a function it is something else.
    never_local: bool,
}

/// The captures for one name. Its patterns match in any order.
#[derive(Default)]
struct NamedParts<'t> {
    declared: Option<Declared<'t>>,
    parts: MatchParts<'t>,
}

#[derive(Default)]
struct MatchParts<'t> {
    declaration: Option<(Node<'t>, DeclarationKind)>,
    name: Option<Node<'t>>,
    body: Option<Node<'t>>,
    doc: Option<Node<'t>>,
    bases: Vec<Node<'t>>,
    qualifiers: Vec<Node<'t>>,
}

impl<'t> MatchParts<'t> {
    fn add(&mut self, capture: Capture, node: Node<'t>) {
        match capture {
            Capture::Declaration(kind) => self.declaration = Some((node, kind)),
            Capture::Name => self.name = Some(node),
            Capture::Body => self.body = Some(node),
            Capture::Doc => self.doc = Some(node),
            Capture::Base => self.bases.push(node),
            Capture::Qualifier => self.qualifiers.push(node),
            Capture::Unused => {}
        }
    }

    fn extend(&mut self, parts: Self) {
        self.body = parts.body.or(self.body);
        self.doc = parts.doc.or(self.doc);
        for (list, more) in [(&mut self.bases, parts.bases), (&mut self.qualifiers, parts.qualifiers)] {
            for node in more {
                if let Err(place) = list.binary_search_by_key(&node.start_byte(), Node::start_byte)
                    && list.len() < MAX_BASES
                {
                    list.insert(place, node);
                }
            }
        }
    }
}

/// The lists of a [`FileContent`] while they are filled.
#[derive(Default)]
struct Builder {
    text: String,
    entries: Vec<SymbolEntry>,
    bases: Vec<BaseEntry>,
    /// Declarations are missing.
    cut: bool,
}

impl Builder {
    fn add(
        &mut self,
        one: &Found<'_>,
        around: &Surroundings<'_>,
        parent: u32,
        rules: &LanguageRules,
        columns: &mut Columns<'_>,
    ) {
        let text = columns.text;
        let name_range = bare_name(text, one.declared.name.clone());
        let name = one.declared.fixed_name.as_deref().unwrap_or(&text[name_range.clone()]);
        let name = &*start_of(name, MAX_NAME_BYTES).split_whitespace().collect::<Vec<_>>().join(" ");
        let (inner_attributes, header) = header(around.outer, rules);
        let header_end = one.parts.body.map_or(around.range.end, |body| body.start_byte()).max(header);
        let shown_end = text.floor_char_boundary(header_end.min(header + header_text::MAX_HEADER));
        let comments = comments_between(around.outer, text, header..shown_end);
        let mut signature = header_text::signature(&text[header..shown_end], &comments);
        if let Some(body) = one.parts.body
            && name_range.start >= body.end_byte()
        {
            // `typedef struct {…} name;`
            let rest =
                header_text::signature(&text[body.end_byte()..around.range.end.max(body.end_byte())], &[]);
            signature = header_text::cut(&format!("{signature} {{…}} {rest}"), header_text::MAX_SIGNATURE);
        }

        let start = self.text.len();
        let signature = self.part(&signature);
        // Most names are in their signature: no need to store them twice.
        let name_part = match self.text[start..].find(name) {
            Some(at) if !name.is_empty() => {
                TextPart { start: (start + at) as u32, length: name.len() as u16 }
            }
            _ => self.part(name),
        };
        let doc = match (one.parts.doc, &around.doc) {
            (Some(node), _) => header_text::doc_line(&text[node.byte_range()]),
            (None, Some(comment)) => header_text::doc_line(&text[comment.clone()]),
            (None, None) => String::new(),
        };
        let doc = self.part(&doc);
        let qualifier: Vec<&str> = one
            .parts
            .qualifiers
            .iter()
            .flat_map(|node| text[node.byte_range()].split("::"))
            .flat_map(|part| without_arguments(part).split(['.', '\\', ':', '*', '&', ' ']))
            .filter(|part| {
                !part.is_empty() && !rules.ignored_qualifiers.iter().any(|ignored| ignored == part)
            })
            .collect();
        let kind = self.kind(one, name, qualifier.last().copied(), parent, rules);
        let qualifier = header_text::cut(&qualifier.join("."), MAX_NAME_BYTES);
        let qualifier = self.part(&qualifier);
        let first_base = self.bases.len() as u32;
        for base in &one.parts.bases {
            self.base(base.byte_range(), columns);
        }
        let attributes = around.attributes.iter().chain(&inner_attributes);
        let is_test = one.declared.is_test
            || (kind.is_callable() || kind.is_type()) && rules.test_names.is_match(name)
            || attributes.into_iter().any(|range| {
                rules.test_attributes.is_match(start_of(&text[range.clone()], MAX_ATTRIBUTE_BYTES))
            });
        let (body_start, body_end) =
            one.parts.body.map_or((NONE, NONE), |body| (body.start_byte() as u32, body.end_byte() as u32));
        self.entries.push(SymbolEntry {
            name: name_part,
            qualifier,
            signature,
            doc,
            kind,
            is_test,
            parent,
            range: columns.lines.range(text, around.range.clone()),
            name_position: columns.position(name_range),
            body_start,
            body_end,
            first_base,
            base_count: (self.bases.len() - first_base as usize) as u16,
        });
    }

    /// The kind that the query captured, made precise by where the declaration is.
    fn kind(
        &self,
        one: &Found<'_>,
        name: &str,
        qualifier: Option<&str>,
        parent: u32,
        rules: &LanguageRules,
    ) -> DeclarationKind {
        let parent = self.entries.get(parent as usize);
        let in_type = parent.is_some_and(|parent| parent.kind.is_type());
        let container = qualifier.or_else(|| parent.map(|parent| parent.name.text(&self.text)));
        let constructs = rules.constructors.iter().any(|known| known == name)
            || rules.constructors_named_after_type && container == Some(name);
        match one.declared.kind {
            DeclarationKind::Function | DeclarationKind::Method
                if constructs && (in_type || qualifier.is_some()) =>
            {
                DeclarationKind::Constructor
            }
            DeclarationKind::Function if in_type => DeclarationKind::Method,
            DeclarationKind::Variable
                if parent.is_some_and(|parent| parent.kind == DeclarationKind::Enum) =>
            {
                DeclarationKind::EnumMember
            }
            DeclarationKind::Variable | DeclarationKind::Field
                if rules.upper_case_is_constant && is_upper_case(name) =>
            {
                DeclarationKind::Constant
            }
            DeclarationKind::Variable if in_type => DeclarationKind::Field,
            kind => kind,
        }
    }

    fn base(&mut self, range: Range<usize>, columns: &mut Columns<'_>) {
        let written =
            without_arguments(&columns.text[range.clone()]).trim_matches(['*', '&', ' ', '\n', '\r', '\t']);
        let written = start_of(written, MAX_NAME_BYTES);
        let last = written.rfind(['.', ':', '\\']).map_or(0, |at| at + 1);
        if written[last..].is_empty() {
            return;
        }
        let start = range.start + columns.text[range].find(written).unwrap_or(0);
        let folded: String = written.split_whitespace().collect();
        let name = self.part(&folded);
        let position = columns.position(start + last..start + written.len());
        self.bases.push(BaseEntry { name, position });
    }

    fn part(&mut self, text: &str) -> TextPart {
        if text.is_empty() {
            return TextPart::EMPTY;
        }
        let start = self.text.len() as u32;
        self.text.push_str(text);
        TextPart { start, length: text.len() as u16 }
    }
}

fn start_of(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit.min(text.len()))]
}

/// Without quotes, the colon of a symbol, and the parameters of a conversion operator.
fn bare_name(text: &str, range: Range<usize>) -> Range<usize> {
    let written = &text[range.clone()];
    let bare = written.strip_prefix(':').unwrap_or(written);
    let bare = bare.trim_matches(['"', '\'', '`']);
    let bare = match bare.strip_prefix("operator ").and_then(|_| bare.split_once('(')) {
        Some((operator, _)) => operator.trim_end(),
        None => bare,
    };
    if bare.is_empty() {
        return range;
    }
    let start = range.start + written.find(bare).unwrap_or(0);
    start..start + bare.len()
}

fn is_upper_case(name: &str) -> bool {
    name.contains(|c: char| c.is_ascii_uppercase()) && !name.contains(char::is_lowercase)
}

/// `Vec` of `Vec<Box<str>>`, `Base` of `Base(1)`, `Map` of `Map[str, int]`.
fn without_arguments(written: &str) -> &str {
    written.split(['<', '(', '[', '{']).next().unwrap_or(written).trim_end()
}

/// The attributes at the start of a declaration, and where the rest starts.
fn header(outer: Node<'_>, rules: &LanguageRules) -> (Vec<Range<usize>>, usize) {
    /// Attributes are not deeper inside a declaration.
    const DEPTH: usize = 4;
    let mut attributes = Vec::new();
    let mut cursor = outer.walk();
    let mut depth = 0;
    loop {
        let node = cursor.node();
        let attribute = rules.attributes.contains(&node.kind_id());
        if attribute {
            attributes.push(node.byte_range());
        }
        if attribute || node.kind().ends_with("comment") {
            while !cursor.goto_next_sibling() {
                depth -= 1;
                if !cursor.goto_parent() || depth == 0 {
                    return (attributes, outer.start_byte());
                }
            }
        } else if depth < DEPTH && starts_with_attribute(&cursor, rules) && cursor.goto_first_child() {
            depth += 1;
        } else {
            return (attributes, node.start_byte());
        }
    }
}

fn starts_with_attribute(cursor: &TreeCursor<'_>, rules: &LanguageRules) -> bool {
    let mut first = cursor.clone();
    (0..4).any(|_| {
        first.goto_first_child()
            && (rules.attributes.contains(&first.node().kind_id())
                || first.node().kind().ends_with("comment"))
    })
}

/// The comments inside a header, relative to its start.
fn comments_between(outer: Node<'_>, text: &str, header: Range<usize>) -> Vec<Range<usize>> {
    let shown = &text[header.clone()];
    if !["#", "//", "/*", "--"].iter().any(|mark| shown.contains(mark)) {
        return Vec::new();
    }
    /// Nodes to look at: enough for any header that is written by hand.
    const LIMIT: usize = 4096;
    let mut comments = Vec::new();
    let mut cursor = outer.walk();
    for _ in 0..LIMIT {
        let node = cursor.node();
        if node.start_byte() >= header.end {
            break;
        }
        if node.is_extra() && node.kind().ends_with("comment") && node.start_byte() >= header.start {
            comments.push(node.start_byte() - header.start..node.end_byte() - header.start);
        } else if node.end_byte() > header.start && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return comments;
            }
        }
    }
    comments
}

/// The same text with `?` for each invalid byte: offsets stay valid.
fn replace_invalid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

/// Large and hardly any lines: written by a program, and of no use to read.
fn is_minified(text: &str, lines: &LineStarts) -> bool {
    const LARGE: usize = 16 * 1024;
    const MEAN_LINE: usize = 400;
    text.len() >= LARGE && text.len() / lines.starts.len() > MEAN_LINE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parser_stops_at_its_limit_of_steps_and_works_afterwards() {
        let rules = SourceLanguage::parse("python").expect("a known language").rules();
        let text = "def a(): return [1, 2, 3]\n".repeat(1000);
        let mut extractor = Extractor::new();
        assert!(extractor.parse_within(StepLimit { left: 3 }, rules, &text).is_none());
        let tree = extractor.parse(rules, "x = 1\n").expect("within the limit");
        assert_eq!(tree.root_node().named_child_count(), 1);
        assert_eq!(
            extractor.parse(rules, &text).map(|tree| tree.root_node().named_child_count()),
            Some(1000)
        );
    }

    #[test]
    fn invalid_bytes_keep_offsets() {
        assert_eq!(replace_invalid(b"a\xffb\xe4\xb8c\xe4\xb8\xad"), "a?b??c中");
    }
}
