//! What a reference does with its symbol, by the text around it.
//!
//! Language servers give places, not roles. The characters around a name tell calls, imports and writes apart in all languages
//! that the index knows; the places themselves are the server's.

/// What a reference does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReferenceRole {
    Call,
    Import,
    Write,
    Other,
}

/// Words with which an import begins.
const IMPORT_WORDS: [&str; 9] =
    ["import", "from", "use", "using", "include", "#include", "require", "require_once", "require_relative"];

/// Words that may precede an import, or that make a statement with `from` a re-export.
const BEFORE_IMPORT: [&str; 3] = ["pub", "export", "static"];

/// How far back the opening bracket of an import is searched.
const MAX_BACK: usize = 8 * 1024;

/// The most bytes of type arguments between a name and its arguments.
const MAX_TYPE_ARGUMENTS: usize = 300;

impl ReferenceRole {
    /// The role in a language in which a name alone is a call.
    pub(crate) fn or_call(self) -> Self {
        if self == Self::Other { Self::Call } else { self }
    }

    /// The role of the name at these bytes. Offsets that are not on character boundaries give [`Self::Other`].
    pub(crate) fn of(text: &str, start: usize, end: usize) -> Self {
        let (Some(before), Some(after)) = (text.get(..start), text.get(end..)) else {
            return Self::Other;
        };
        match () {
            () if is_import(before, after) => Self::Import,
            () if is_call(before, after) => Self::Call,
            () if is_write(before, after) => Self::Write,
            () => Self::Other,
        }
    }
}

fn is_import(before: &str, after: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    starts_import(line, after) || bracket_line(before).is_some_and(|line| starts_import(line, after))
}

/// The beginning of the line with the bracket that is open before the end of a text.
fn bracket_line(before: &str) -> Option<&str> {
    let from = before.ceil_char_boundary(before.len().saturating_sub(MAX_BACK));
    let mut depth = 0usize;
    for (at, byte) in before.bytes().enumerate().skip(from).rev() {
        match byte {
            b')' | b'}' => depth += 1,
            b'(' | b'{' if depth == 0 => return before[..at].rsplit('\n').next(),
            b'(' | b'{' => depth -= 1,
            // A statement ended before the bracket.
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn starts_import(line: &str, after: &str) -> bool {
    let is_before = |word: &&str| BEFORE_IMPORT.contains(word) || word.starts_with("pub(");
    let first = line.split_whitespace().find(|word| !is_before(word));
    // `require('./a')`
    let first = first.map(|word| word.split('(').next().unwrap_or(word));
    match first {
        Some(word) if IMPORT_WORDS.contains(&word) => true,
        // `export { a } from './a'`
        _ => {
            let statement = after.split(['\n', ';']).next().unwrap_or_default();
            line.trim_start().starts_with("export") && statement.contains(" from ")
        }
    }
}

fn is_call(before: &str, after: &str) -> bool {
    let rest = after.trim_start_matches([' ', '\t']);
    let rest = rest.strip_prefix("?.").or_else(|| rest.strip_prefix('!')).unwrap_or(rest);
    let rest = rest.strip_prefix("::").filter(|rest| rest.starts_with('<')).unwrap_or(rest);
    let rest = if rest.starts_with('<') { after_type_arguments(rest) } else { rest };
    if rest.starts_with('(') || (after.starts_with('!') && rest.starts_with(['[', '{'])) {
        return true;
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let chain = before.trim_end_matches(is_name);
    chain.ends_with('@') || chain.trim_end().ends_with("new") && chain.ends_with(char::is_whitespace)
}

/// What follows type arguments in angle brackets; nothing if they are not closed.
fn after_type_arguments(text: &str) -> &str {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate().take(MAX_TYPE_ARGUMENTS) {
        match byte {
            b'<' => depth += 1,
            b'>' => depth -= 1,
            b';' | b'\n' => return "",
            _ => {}
        }
        if depth == 0 {
            return text[at + 1..].trim_start_matches([' ', '\t']);
        }
    }
    ""
}

fn is_write(before: &str, after: &str) -> bool {
    let rest = after.trim_start_matches([' ', '\t']);
    if rest.starts_with("++") || rest.starts_with("--") || before.ends_with("++") || before.ends_with("--") {
        return true;
    }
    // A declared type may stand between: `let x: T = …` declares, but `x: T = …` in Python writes.
    let operator = rest.trim_start_matches(['+', '-', '*', '/', '%', '&', '|', '^', '?', '<', '>', ':', '@']);
    let skipped = &rest[..rest.len() - operator.len()];
    let compares = operator.starts_with("==") || operator.starts_with("=>") || operator.starts_with("=~");
    let is_comparison = matches!(skipped, "<" | ">");
    operator.starts_with('=') && !compares && !is_comparison && skipped.len() <= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The role of `NAME` in a text.
    fn role(text: &str) -> ReferenceRole {
        let start = text.find("NAME").unwrap();
        ReferenceRole::of(text, start, start + 4)
    }

    #[test]
    fn roles_are_told_by_the_text_around() {
        use ReferenceRole::{Call, Import, Other, Write};
        let cases = [
            ("x = NAME(1)", Call),
            ("x = NAME (1)", Call),
            ("a.NAME?.(1)", Call),
            ("NAME::<Vec<u8>>(x)", Call),
            ("const x = NAME<string>(y);", Call),
            ("NAME!(x)", Call),
            ("NAME![1]", Call),
            ("@NAME\ndef f(): pass", Call),
            ("@app.NAME\ndef f(): pass", Call),
            ("let x = new NAME;", Call),
            ("from a import NAME", Import),
            ("from a import (\n    b,\n    NAME,\n)", Import),
            ("import { a,\n  NAME } from './x';", Import),
            ("import NAME from './x';", Import),
            ("use crate::a::{b, NAME};", Import),
            ("pub(crate) use a::NAME;", Import),
            ("export { NAME } from './x';", Import),
            ("using NAME = Foo.Bar;", Import),
            ("self.NAME = 1", Write),
            ("NAME += 1", Write),
            ("NAME ||= 1", Write),
            ("NAME := 1", Write),
            ("NAME++;", Write),
            ("if NAME == 1:", Other),
            ("if (NAME <= 1) {}", Other),
            ("NAME => 1", Other),
            ("x: NAME[int]", Other),
            ("f(NAME)", Other),
            ("a < NAME && b > (c)", Other),
            ("newNAME", Other),
            ("while (x) {\n  y = NAME;\n}", Other),
        ];
        for (text, expected) in cases {
            assert_eq!(role(text), expected, "{text}");
        }
    }

    #[test]
    fn offsets_inside_a_character_are_harmless() {
        for start in 0..6 {
            for end in start..6 {
                let _ = ReferenceRole::of("ß(ß)", start, end);
            }
        }
    }
}
