//! Cuts a file into passages: sections of documents, declarations of code, paragraphs of other texts.
//!
//! Passages of one file do not overlap. A section above the limit is cut at described objects and blank lines; a
//! declaration is one passage whatever its size, because half a function answers nothing.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;
use tenon_index::{DeclarationKind, IndexedFile, SymbolRef};

use super::section::{self, Section, described_objects, lines};
use super::text_format::{PassageKind, TextFormat};

/// A longer section is cut: about 500 tokens.
const SECTION_BYTES: usize = 2000;

/// A shorter rest stays with the part before it.
const REST_BYTES: usize = 400;

/// The most passages of one file.
const MAX_PASSAGES: usize = 5000;

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CutPassage {
    pub bytes: Range<usize>,
    /// Counted from 1, both included.
    pub lines: Range<u32>,
    /// What answers name it by: the heading path, or kind and name path of a symbol.
    pub place: String,
    /// Its own name: the last heading, or the name of the symbol.
    pub name: String,
    /// What it is part of: headings above it, containers of a symbol.
    pub heading: String,
    pub declares: Option<DeclarationKind>,
    pub is_test: bool,
    /// Where the declaration begins, after the comment above it; the start of the passage if it has none.
    pub declaration: usize,
}

/// The passages of a text, in order.
pub(crate) fn cut(format: TextFormat, text: &str, symbols: Option<&IndexedFile>) -> Vec<CutPassage> {
    let mut passages = match (format, symbols) {
        (TextFormat::Code(_), Some(file)) => code(text, file),
        (TextFormat::Notebook, _) => notebook(text).unwrap_or_else(|| paragraphs(text)),
        (TextFormat::Code(_) | TextFormat::Other, _) => paragraphs(text),
        _ => section::sections(format, text)
            .iter()
            .flat_map(|section| cut_section(format, text, section))
            .collect(),
    };
    passages.truncate(MAX_PASSAGES);
    let starts = LineNumbers::new(text);
    for passage in &mut passages {
        passage.lines = starts.of(text, &passage.bytes);
    }
    passages
}

/// The first heading of a document.
pub(crate) fn title(format: TextFormat, text: &str) -> String {
    let is_document = format.kind() == PassageKind::Docs && format != TextFormat::Notebook;
    let headings = || {
        section::sections(format, text).into_iter().find_map(|section| section.headings.into_iter().next())
    };
    if is_document { headings().unwrap_or_default() } else { String::new() }
}

fn passage(bytes: Range<usize>, headings: &[String]) -> CutPassage {
    let (name, above) = headings.split_last().map_or(("", &[][..]), |(name, above)| (name.as_str(), above));
    CutPassage {
        declaration: bytes.start,
        bytes,
        lines: 0..0,
        place: headings.join(" > "),
        name: name.to_owned(),
        heading: above.join(" "),
        declares: None,
        is_test: false,
    }
}

fn cut_section(format: TextFormat, text: &str, section: &Section) -> Vec<CutPassage> {
    let whole = &text[section.bytes.clone()];
    if whole.len() <= SECTION_BYTES {
        return vec![passage(section.bytes.clone(), &section.headings)];
    }
    let objects = match format {
        TextFormat::ReStructuredText | TextFormat::Plain => described_objects(whole),
        _ => Vec::new(),
    };
    let mut parts = Vec::new();
    let mut start = 0;
    let mut headings = section.headings.clone();
    for (at, name) in objects.into_iter().chain([(whole.len(), String::new())]) {
        for bytes in pieces(&whole[start..at]) {
            let offset = section.bytes.start + start;
            parts.push(passage(offset + bytes.start..offset + bytes.end, &headings));
        }
        start = at;
        headings.truncate(section.headings.len());
        headings.push(name);
    }
    parts
}

/// Parts of at most about [`SECTION_BYTES`], cut at blank lines that are not followed by an indented line.
fn pieces(text: &str) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let (mut start, mut last_blank, mut fenced) = (0, None, false);
    let mut before_blank = false;
    for (at, line) in lines(text) {
        let bare = line.trim_start();
        fenced ^= bare.starts_with("```") || bare.starts_with("~~~");
        if before_blank
            && !bare.is_empty()
            && !fenced
            && (at - start > SECTION_BYTES || !line.starts_with([' ', '\t']))
        {
            if at - start > SECTION_BYTES
                && let Some(cut) = last_blank
            {
                cuts.push(start..cut);
                start = cut;
            }
            last_blank = Some(at);
        }
        before_blank = bare.is_empty();
        // A list or table without blank lines.
        if at + line.len() - start > 2 * SECTION_BYTES && at > start {
            let cut = last_blank.filter(|blank| *blank > start).unwrap_or(at);
            cuts.push(start..cut);
            start = cut;
            last_blank = None;
        }
    }
    if text.len() - start < REST_BYTES
        && let Some(last) = cuts.last_mut()
    {
        last.end = text.len();
    } else {
        cuts.push(start..text.len());
    }
    cuts.retain(|bytes| !text[bytes.clone()].trim().is_empty());
    cuts
}

fn paragraphs(text: &str) -> Vec<CutPassage> {
    pieces(text).into_iter().map(|bytes| passage(bytes, &[])).collect()
}

/// The cells of a notebook. `None` if it is not one.
fn notebook(text: &str) -> Option<Vec<CutPassage>> {
    #[derive(Deserialize)]
    struct Notebook<'t> {
        #[serde(borrow)]
        cells: Vec<&'t RawValue>,
    }
    let notebook: Notebook<'_> = serde_json::from_str(text).ok()?;
    let cell = |(number, cell): (usize, &RawValue)| {
        let start = cell.get().as_ptr() as usize - text.as_ptr() as usize;
        passage(start..start + cell.get().len(), &[format!("cell {}", number + 1)])
    };
    Some(notebook.cells.into_iter().enumerate().map(cell).collect())
}

/// What a cell says, from its JSON. `None` if it is not a cell.
pub(crate) fn cell_text(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Cell {
        source: serde_json::Value,
    }
    let cell: Cell = serde_json::from_str(json).ok()?;
    match cell.source {
        serde_json::Value::String(text) => Some(text),
        serde_json::Value::Array(lines) => Some(lines.iter().filter_map(serde_json::Value::as_str).collect()),
        _ => None,
    }
}

/// The declarations of a source file, and what comes before the first one.
fn code(text: &str, file: &IndexedFile) -> Vec<CutPassage> {
    let mut passages: Vec<CutPassage> = Vec::new();
    for symbol in file.symbols().filter(|symbol| is_passage(*symbol)) {
        let range = symbol.range().bytes();
        if range.end > text.len() || !text.is_char_boundary(range.start) || !text.is_char_boundary(range.end)
        {
            return paragraphs(text);
        }
        let earliest = passages.last().map_or(0, |last| last.bytes.end);
        let start = with_comments(text, range.start).max(earliest);
        let end = members(symbol)
            .map(|member| with_comments(text, member.range().bytes().start))
            .min()
            .unwrap_or(range.end);
        let name_path = symbol.name_path();
        let place = format!("{} {name_path}", symbol.kind());
        // Overloads are one symbol.
        if let Some(last) = passages.last_mut().filter(|last| last.place == place) {
            last.bytes.end = end.max(last.bytes.end);
            continue;
        }
        if start >= end {
            continue;
        }
        passages.push(CutPassage {
            bytes: start..end,
            lines: 0..0,
            place,
            name: symbol.name().to_owned(),
            heading: name_path.strip_suffix(symbol.name()).unwrap_or_default().to_owned(),
            declares: Some(symbol.kind()),
            is_test: symbol.is_test(),
            declaration: range.start.max(start),
        });
    }
    let head = passages.first().map_or(text.len(), |first| first.bytes.start);
    if text[..head].trim().len() > 40 {
        passages.splice(0..0, pieces(&text[..head]).into_iter().take(1).map(|bytes| passage(bytes, &[])));
    }
    passages
}

/// Types, callables and top-level values. What is inside a function belongs to it.
fn is_passage(symbol: SymbolRef<'_>) -> bool {
    let in_callable = std::iter::successors(symbol.parent(), |parent| parent.parent())
        .any(|parent| parent.kind().is_callable());
    let kind = symbol.kind();
    let is_top_level = || {
        symbol.parent().is_none_or(|parent| {
            matches!(parent.kind(), DeclarationKind::Module | DeclarationKind::Namespace)
        })
    };
    !in_callable && kind != DeclarationKind::Impl && (!kind.is_value() || is_top_level())
}

/// The declarations inside a type that are passages of their own.
fn members(symbol: SymbolRef<'_>) -> impl Iterator<Item = SymbolRef<'_>> {
    let is_container = symbol.kind().is_type()
        || matches!(symbol.kind(), DeclarationKind::Module | DeclarationKind::Namespace);
    symbol.children().filter(move |child| is_container && is_passage(*child))
}

/// Where the comment directly above a declaration begins.
fn with_comments(text: &str, start: usize) -> usize {
    let mut begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
    if !text[begin..start].trim().is_empty() {
        return start;
    }
    while begin > 0 {
        let line_start = text[..begin - 1].rfind('\n').map_or(0, |at| at + 1);
        let line = text[line_start..begin].trim();
        let comment =
            ["//", "/*", "*", "#", "--"].iter().any(|mark| line.starts_with(mark)) && !line.starts_with("#!");
        if !comment {
            break;
        }
        begin = line_start;
    }
    begin
}

/// Line numbers of bytes.
struct LineNumbers(Vec<usize>);

impl LineNumbers {
    fn new(text: &str) -> Self {
        Self(lines(text).map(|(start, _)| start).collect())
    }

    fn line(&self, byte: usize) -> u32 {
        self.0.partition_point(|start| *start <= byte) as u32
    }

    /// The lines of a passage, without blank ones at its end.
    fn of(&self, text: &str, bytes: &Range<usize>) -> Range<u32> {
        let trimmed = text[bytes.clone()].trim_end().len().max(1);
        self.line(bytes.start)..self.line(bytes.start + trimmed - 1)
    }
}

#[cfg(test)]
mod tests {
    use tenon_contract::clock::Clock;
    use tenon_index::{IndexOptions, SyntaxIndex};

    use super::*;

    fn places(format: TextFormat, text: &str) -> Vec<String> {
        let shown =
            |passage: &CutPassage| format!("{}-{} {}", passage.lines.start, passage.lines.end, passage.place);
        cut(format, text, None).iter().map(shown).collect()
    }

    fn code_places(path: &str, text: &str) -> Vec<String> {
        let options = IndexOptions { root: "/nowhere".into(), store: None, clock: Clock::system() };
        let file = SyntaxIndex::open(options).parse(path.into(), text).unwrap();
        let format = TextFormat::of_path(path).unwrap();
        let shown =
            |passage: &CutPassage| format!("{}-{} {}", passage.lines.start, passage.lines.end, passage.place);
        cut(format, text, Some(&file)).iter().map(shown).collect()
    }

    #[test]
    fn long_sections_are_cut_at_described_objects_and_blank_lines() {
        let filler = "word ".repeat(100);
        let text = format!(
            "Title\n=====\n\n{filler}\n\n{filler}\n\n.. method:: first()\n\n   {filler}\n\n   {filler}\n\n.. method:: second()\n\n   {filler}\n"
        );
        assert_eq!(
            places(TextFormat::ReStructuredText, &text),
            ["1-6 Title", "8-12 Title > first()", "14-16 Title > second()"]
        );
        let long: String = (0..12).map(|n| format!("paragraph {n} {filler}\n\n")).collect();
        let parts = cut(TextFormat::Markdown, &format!("# T\n{long}"), None);
        assert!(
            parts.len() > 2 && parts.iter().all(|part| part.bytes.len() <= 2 * SECTION_BYTES),
            "{}",
            parts.len()
        );
    }

    #[test]
    fn code_is_cut_by_declaration_with_its_comment() {
        let text = "\"\"\"Tools for dates, written for the tests of this file.\"\"\"\nimport re\n\nLIMIT = 3\n\n\nclass Parser:\n    \"\"\"Parses.\"\"\"\n\n    # How to parse.\n    def parse(self):\n        def inner():\n            pass\n        return inner\n\n\ndef run():\n    pass\n";
        assert_eq!(
            code_places("a.py", text),
            [
                "1-2 ",
                "4-4 constant LIMIT",
                "7-8 class Parser",
                "10-14 method Parser.parse",
                "17-18 function run"
            ]
        );
        let text = "/** Maps. */\nexport function map(a: number): number;\nexport function map(a: string): string;\nexport function map(a: any) { return a; }\n";
        assert_eq!(code_places("a.ts", text), ["1-4 function map"]);
    }

    #[test]
    fn notebook_is_cut_by_cell() {
        let text = "{\"cells\": [\n {\"cell_type\": \"markdown\", \"source\": [\"# Load\\n\", \"data\"]},\n {\"cell_type\": \"code\",\n  \"source\": \"x = 1\"}\n]}";
        assert_eq!(places(TextFormat::Notebook, text), ["2-2 cell 1", "3-4 cell 2"]);
        let cell = &text[cut(TextFormat::Notebook, text, None)[0].bytes.clone()];
        assert_eq!(cell_text(cell).unwrap(), "# Load\ndata");
        assert_eq!(places(TextFormat::Notebook, "no notebook\n"), ["1-1 "]);
    }

    #[test]
    fn passages_do_not_overlap_and_have_text() {
        for format in [
            TextFormat::Markdown,
            TextFormat::ReStructuredText,
            TextFormat::AsciiDoc,
            TextFormat::Plain,
            TextFormat::Other,
        ] {
            for text in
                ["", "\n", "# a", "a\r\n# b\r\n", "\u{feff}# a\n", "===\n===\n===\n", "a\n=\n", "```\n# a"]
            {
                let passages = cut(format, text, None);
                assert!(
                    passages.windows(2).all(|pair| pair[0].bytes.end <= pair[1].bytes.start),
                    "{format:?} {text:?}"
                );
                assert!(
                    passages.iter().all(|passage| !text[passage.bytes.clone()].trim().is_empty()),
                    "{format:?} {text:?}"
                );
            }
        }
    }
}
