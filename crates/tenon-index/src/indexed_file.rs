//! One indexed file: its declarations in source order, and what is known about it.
//!
//! All texts of a file are in one string, and entries are offsets into it: an index of thousands of files stays small.

use std::ops::Range;
use std::sync::Arc;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use crate::file_reader;
use crate::view::SymbolId;
use crate::words::word_hashes;
use crate::{DeclarationKind, FileClass, SourceLanguage};

/// No parent, no body, no text.
pub(crate) const NONE: u32 = u32::MAX;

/// Size and time of change, as the file system reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    pub size: u64,
    /// Nanoseconds since 1970; negative before.
    pub modified: i64,
}

/// How far a file could be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ParseOutcome {
    Whole,
    /// Some declarations may be missing.
    SyntaxErrors,
    /// Above the limit of 4 MiB; not parsed.
    TooLarge,
    /// Machine-written code in very long lines; not parsed.
    Minified,
    /// The parser exceeded its limit of steps, or there are more than 65,536 declarations; the rest is missing.
    TooComplex,
    /// Binary content, no permission, or changing faster than it can be read.
    Unreadable,
}

impl ParseOutcome {
    /// The declarations are known, at least in part.
    #[must_use]
    pub const fn is_parsed(self) -> bool {
        matches!(self, Self::Whole | Self::SyntaxErrors)
    }
}

/// A source file of the workspace.
#[derive(Clone, Debug)]
pub struct IndexedFile {
    /// Distinguishes versions of files within one process.
    pub(crate) number: u32,
    pub(crate) path: Box<str>,
    pub(crate) language: SourceLanguage,
    pub(crate) hash: ContentHash,
    pub(crate) stamp: FileStamp,
    /// Content and stamp belong together. Otherwise the next check reads the file again.
    pub(crate) settled: bool,
    pub(crate) class: FileClass,
    pub(crate) content: Arc<FileContent>,
}

/// The first 128 bits of SHA-256: a repository must not be able to prepare two texts with one hash.
pub(crate) type ContentHash = [u8; 16];

/// What depends on the language and the bytes of a file alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileContent {
    pub outcome: ParseOutcome,
    /// The text says that it is generated.
    pub generated: bool,
    pub lines: u32,
    pub text: Box<str>,
    /// In source order; a parent is before its children.
    pub entries: Box<[SymbolEntry]>,
    pub bases: Box<[BaseEntry]>,
    /// Hashes of the distinct words, sorted.
    pub words: Box<[u32]>,
}

/// A part of [`FileContent::text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TextPart {
    pub start: u32,
    pub length: u16,
}

impl TextPart {
    pub(crate) const EMPTY: Self = Self { start: 0, length: 0 };

    pub(crate) fn text(self, text: &str) -> &str {
        let start = self.start as usize;
        text.get(start..start + usize::from(self.length)).unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SymbolEntry {
    pub name: TextPart,
    /// Containers that the declaration itself names: `ns.Type` of `void ns::Type::run() {}`.
    pub qualifier: TextPart,
    pub signature: TextPart,
    pub doc: TextPart,
    pub kind: DeclarationKind,
    pub is_test: bool,
    pub parent: u32,
    pub range: SourceRange,
    pub name_position: NamePosition,
    pub body_start: u32,
    pub body_end: u32,
    pub first_base: u32,
    pub base_count: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BaseEntry {
    pub name: TextPart,
    pub position: NamePosition,
}

/// Where a declaration is. Bytes count from 0 and the end is excluded, lines count from 1 and the last is included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRange {
    pub start: u32,
    pub end: u32,
    pub first_line: u32,
    pub last_line: u32,
}

impl SourceRange {
    #[must_use]
    pub fn bytes(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Where a name is. Lines count from 1, columns and bytes from 0; columns are UTF-16 units, as language servers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamePosition {
    pub start: u32,
    pub end: u32,
    pub line: u32,
    pub column: u32,
}

impl IndexedFile {
    /// Relative to the root, with `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    #[must_use]
    pub fn language(&self) -> SourceLanguage {
        self.language
    }

    #[must_use]
    pub fn stamp(&self) -> FileStamp {
        self.stamp
    }

    /// Identifies the content: 128 bits of SHA-256 over the bytes. All zero if they were not read.
    #[must_use]
    pub fn content_hash(&self) -> [u8; 16] {
        self.hash
    }

    #[must_use]
    pub fn class(&self) -> FileClass {
        self.class
    }

    #[must_use]
    pub fn outcome(&self) -> ParseOutcome {
        self.content.outcome
    }

    /// The number of lines; 0 if the file was not read.
    #[must_use]
    pub fn line_count(&self) -> u32 {
        self.content.lines
    }

    /// All declarations in source order.
    pub fn symbols(&self) -> impl DoubleEndedIterator<Item = SymbolRef<'_>> + ExactSizeIterator + Clone {
        (0..self.content.entries.len()).map(|index| self.symbol_at(index as u32))
    }

    /// The declarations that are not inside another one.
    pub fn top_level(&self) -> impl Iterator<Item = SymbolRef<'_>> {
        self.symbols().filter(|symbol| symbol.entry().parent == NONE)
    }

    #[must_use]
    pub fn symbol(&self, index: u32) -> Option<SymbolRef<'_>> {
        ((index as usize) < self.content.entries.len()).then(|| self.symbol_at(index))
    }

    /// The innermost declaration whose lines contain `line`, counted from 1.
    #[must_use]
    pub fn enclosing(&self, line: u32) -> Option<SymbolRef<'_>> {
        let contains = |symbol: &SymbolRef<'_>| {
            let range = symbol.range();
            (range.first_line..=range.last_line).contains(&line)
        };
        // Children are after their parents. Of neighbours on one line, the first is taken.
        let mut found: Option<SymbolRef<'_>> = None;
        for symbol in self.symbols().filter(contains) {
            if found.is_none_or(|outer| symbol.is_inside(outer)) {
                found = Some(symbol);
            }
        }
        found
    }

    /// The innermost declaration that contains a byte of the file.
    #[must_use]
    pub fn enclosing_byte(&self, byte: u32) -> Option<SymbolRef<'_>> {
        self.symbols().rfind(|symbol| (symbol.range().start..symbol.range().end).contains(&byte))
    }

    /// Whether every word of `name` occurs somewhere in the file. Answers from hashes: a wrong "yes" is possible, but rare.
    #[must_use]
    pub fn mentions(&self, name: &str) -> bool {
        let mut hashes = word_hashes(name.as_bytes()).peekable();
        hashes.peek().is_some() && hashes.all(|hash| self.mentions_hash(hash))
    }

    pub(crate) fn mentions_hash(&self, hash: u32) -> bool {
        self.content.words.binary_search(&hash).is_ok()
    }

    /// Whether the file on disk has the size and time of this version.
    pub(crate) fn is_current(&self, absolute: &Utf8Path) -> bool {
        self.settled && file_reader::stamp(absolute) == Some(self.stamp)
    }

    fn symbol_at(&self, index: u32) -> SymbolRef<'_> {
        SymbolRef { file: self, index }
    }
}

/// A declaration of an [`IndexedFile`].
#[derive(Clone, Copy, Debug)]
pub struct SymbolRef<'f> {
    file: &'f IndexedFile,
    index: u32,
}

impl<'f> SymbolRef<'f> {
    /// Finds the declaration again in the same [`crate::View`], and in later ones while the file is unchanged.
    #[must_use]
    pub fn id(self) -> SymbolId {
        SymbolId { file: self.file.number, index: self.index }
    }

    #[must_use]
    pub fn file(self) -> &'f IndexedFile {
        self.file
    }

    /// Relative to the root, with `/`.
    #[must_use]
    pub fn path(self) -> &'f str {
        &self.file.path
    }

    #[must_use]
    pub fn kind(self) -> DeclarationKind {
        self.entry().kind
    }

    #[must_use]
    pub fn name(self) -> &'f str {
        self.text(self.entry().name)
    }

    /// The names of all containers and its own, with dots: `QuerySet.filter`.
    #[must_use]
    pub fn name_path(self) -> String {
        let mut segments: Vec<&str> = self.segments_upward().collect();
        segments.reverse();
        segments.join(".")
    }

    /// The segments of the name path, the own name first.
    pub(crate) fn segments_upward(self) -> impl Iterator<Item = &'f str> {
        std::iter::successors(Some(self), |symbol| symbol.parent()).flat_map(|symbol| {
            let qualifier = symbol.text(symbol.entry().qualifier);
            std::iter::once(symbol.name()).chain(qualifier.rsplit('.').filter(|segment| !segment.is_empty()))
        })
    }

    /// The text of the declaration up to its body on one line, at most 200 bytes, cut with `…`.
    #[must_use]
    pub fn signature(self) -> &'f str {
        self.text(self.entry().signature)
    }

    /// The first line of the doc comment or docstring, at most 160 bytes, cut with `…`.
    #[must_use]
    pub fn doc(self) -> Option<&'f str> {
        Some(self.text(self.entry().doc)).filter(|doc| !doc.is_empty())
    }

    /// The declaration with decorators, attributes and modifiers such as `export`, without comments before it.
    #[must_use]
    pub fn range(self) -> SourceRange {
        self.entry().range
    }

    #[must_use]
    pub fn name_position(self) -> NamePosition {
        self.entry().name_position
    }

    /// The bytes of the body, with its braces where the language has them.
    #[must_use]
    pub fn body(self) -> Option<Range<usize>> {
        let entry = self.entry();
        (entry.body_start != NONE).then_some(entry.body_start as usize..entry.body_end as usize)
    }

    /// Base classes, implemented interfaces and traits, embedded types: as written, without type arguments.
    pub fn bases(self) -> impl Iterator<Item = BaseRef<'f>> {
        let entry = self.entry();
        let first = entry.first_base as usize;
        let bases = self.file.content.bases.get(first..first + usize::from(entry.base_count));
        bases.unwrap_or_default().iter().map(move |base| BaseRef {
            name: base.name.text(&self.file.content.text),
            position: base.position,
        })
    }

    #[must_use]
    pub fn is_test(self) -> bool {
        self.entry().is_test
    }

    #[must_use]
    pub fn parent(self) -> Option<Self> {
        let parent = self.entry().parent;
        (parent != NONE).then_some(Self { file: self.file, index: parent })
    }

    /// Number of declarations around this one.
    #[must_use]
    pub fn depth(self) -> usize {
        std::iter::successors(self.parent(), |symbol| symbol.parent()).count()
    }

    /// The declarations directly inside this one, in source order.
    pub fn children(self) -> impl Iterator<Item = Self> {
        let Self { file, index } = self;
        // A namespace without a body contains the rest of the file.
        let open = self.kind() == DeclarationKind::Namespace && self.body().is_none();
        let end = if open { u32::MAX } else { self.range().end };
        file.symbols()
            .skip(index as usize + 1)
            .take_while(move |symbol| symbol.range().start < end)
            .filter(move |symbol| symbol.entry().parent == index)
    }

    fn is_inside(self, outer: Self) -> bool {
        std::iter::successors(self.parent(), |symbol| symbol.parent())
            .any(|parent| parent.index == outer.index)
    }

    /// All declarations of the same name path in this file, itself included, in source order: overloads, a declaration
    /// and its definition, variants for several platforms. More than one means: treat them as one symbol.
    #[must_use]
    pub fn same_name_path(self) -> Vec<Self> {
        let path = self.name_path();
        let same = |other: &Self| {
            other.name() == self.name()
                && (other.kind() == DeclarationKind::Impl) == (self.kind() == DeclarationKind::Impl)
                && other.name_path() == path
        };
        self.file.symbols().filter(same).collect()
    }

    pub(crate) fn entry(self) -> &'f SymbolEntry {
        &self.file.content.entries[self.index as usize]
    }

    fn text(self, part: TextPart) -> &'f str {
        part.text(&self.file.content.text)
    }
}

/// A base of a type as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseRef<'f> {
    /// With its qualifiers, without type arguments: `models.Model`.
    pub name: &'f str,
    /// Where its last segment is: the place for a definition request.
    pub position: NamePosition,
}

impl<'f> BaseRef<'f> {
    /// `Model` of `models.Model`.
    #[must_use]
    pub fn last_segment(self) -> &'f str {
        self.name.rsplit(['.', ':', '\\']).next().unwrap_or(self.name)
    }
}

impl FileContent {
    /// A file without known declarations.
    pub(crate) fn empty(outcome: ParseOutcome) -> Self {
        Self {
            outcome,
            generated: false,
            lines: 0,
            text: Box::default(),
            entries: Box::default(),
            bases: Box::default(),
            words: Box::default(),
        }
    }

    /// Whether all offsets are in range. A store on disk may hold anything.
    pub(crate) fn is_valid(&self) -> bool {
        let part = |part: TextPart| {
            let start = part.start as usize;
            self.text.get(start..start + usize::from(part.length)).is_some()
        };
        let entry = |(index, entry): (usize, &SymbolEntry)| {
            [entry.name, entry.qualifier, entry.signature, entry.doc].into_iter().all(part)
                && (entry.parent == NONE || (entry.parent as usize) < index)
                && entry.range.start <= entry.range.end
                && (entry.body_start == NONE || entry.body_start <= entry.body_end)
                && entry.first_base as usize + usize::from(entry.base_count) <= self.bases.len()
        };
        self.entries.len() < NONE as usize
            && self.entries.iter().enumerate().all(entry)
            && self.bases.iter().all(|base| part(base.name))
            && self.words.is_sorted_by(|a, b| a < b)
    }
}
