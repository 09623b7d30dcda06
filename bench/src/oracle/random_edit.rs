//! Random single edits of source files: renames, parameters, deleted lines, wrong lines.

use std::fmt;

use tenon_testkit::Sandbox;

use crate::source_sample::{self, Random, is_comment};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditKind {
    /// One use of a name gets another name.
    RenameUse,
    /// A declaration gets another name.
    RenameDeclaration,
    /// A function gets one more required parameter.
    AddParameter,
    DeleteLine,
    /// A line that is wrong in any file.
    WrongLine,
}

const KINDS: [EditKind; 5] = [
    EditKind::RenameUse,
    EditKind::RenameDeclaration,
    EditKind::AddParameter,
    EditKind::DeleteLine,
    EditKind::WrongLine,
];

/// What the edits of a file look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// Python and TypeScript.
    Dynamic,
    Rust,
    Cpp,
}

impl Syntax {
    fn of(file: &str) -> Self {
        match file.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "rs" => Self::Rust,
            "cc" | "cpp" | "h" | "hpp" => Self::Cpp,
            _ => Self::Dynamic,
        }
    }

    fn keywords(self) -> &'static str {
        match self {
            Self::Dynamic => "",
            Self::Rust => {
                " crate dyn else extern impl loop match mod move mut pub ref self static struct super trait union \
                 unsafe use where "
            }
            Self::Cpp => {
                " auto char constexpr double explicit extern final friend include inline int long mutable namespace \
                 noexcept nullptr operator override short signed sizeof struct template typename union unsigned using \
                 virtual volatile "
            }
        }
    }

    /// The names in a line, as byte ranges.
    fn names(self, line: &str) -> Vec<(usize, usize)> {
        let mut names = source_sample::names(line);
        names.retain(|(start, end)| !self.keywords().contains(&format!(" {} ", &line[*start..*end])));
        names
    }

    /// The name that a line declares.
    fn declared(self, line: &str) -> Option<(usize, usize)> {
        match self {
            Self::Dynamic => source_sample::declared(line),
            Self::Rust => {
                let names = self.names(line);
                names.into_iter().find(|(start, _)| {
                    ["fn ", "struct ", "enum ", "trait ", "const ", "static ", "type ", "let ", "let mut "]
                        .iter()
                        .any(|word| line[..*start].ends_with(word))
                })
            }
            Self::Cpp => {
                let is_declared = |(start, _): &(usize, usize)| {
                    ["class ", "struct ", "enum "].iter().any(|word| line[..*start].ends_with(word))
                };
                self.names(line).into_iter().find(is_declared).or_else(|| function(line))
            }
        }
    }

    /// The byte after the `(` of a declared function.
    fn parameters(self, line: &str) -> Option<usize> {
        match self {
            Self::Dynamic => {
                let is_function = line.trim_start().starts_with("def ") || line.contains("function ");
                is_function.then(|| line.find('(')).flatten()
            }
            Self::Rust => line.contains("fn ").then(|| line.find('(')).flatten(),
            Self::Cpp => function(line).map(|(_, end)| end),
        }
        .map(|at| at + 1)
    }

    fn parameter(self) -> &'static str {
        match self {
            Self::Dynamic => "added",
            Self::Rust => "added: u8",
            Self::Cpp => "int added",
        }
    }

    /// A line that is wrong in any file: an unknown name, or a value of the wrong type where types are declared.
    fn wrong_line(self) -> &'static str {
        match self {
            Self::Dynamic => "undefined_name",
            Self::Rust => "let wrong: u8 = \"text\";",
            Self::Cpp => "int wrong = \"text\";",
        }
    }
}

/// The name of a C++ function that a line declares: a word after a type and before `(`.
fn function(line: &str) -> Option<(usize, usize)> {
    const STATEMENTS: [&str; 8] = ["return", "else", "delete", "new", "throw", "case", "goto", "#"];
    let trimmed = line.trim_start();
    if STATEMENTS.iter().any(|word| trimmed.starts_with(word)) || trimmed.contains('=') {
        return None;
    }
    let end = line.find('(')?;
    let (start, _) = *source_sample::names(&line[..end]).last().filter(|(_, last)| *last == end)?;
    let before =
        line[..start].trim_end_matches(|one: char| one == ':' || one == '_' || one.is_alphanumeric());
    let has_type = before.ends_with([' ', '*', '&']) && before.contains(|one: char| one.is_alphabetic());
    has_type.then_some((start, end))
}

/// One edit: in `file`, `old` occurs once and becomes `new`, which then occurs once.
#[derive(Debug, Clone)]
pub(crate) struct RandomEdit {
    pub(crate) file: String,
    pub(crate) old: String,
    pub(crate) new: String,
    kind: EditKind,
    line: usize,
}

impl fmt::Display for RandomEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in {}:{}", self.kind, self.file, self.line + 1)
    }
}

impl RandomEdit {
    /// Chooses until an edit fits.
    pub(crate) fn choose(random: &mut Random, sandbox: &Sandbox, files: &[String]) -> Self {
        loop {
            let (Some(file), Some(kind)) = (random.choose(files), random.choose(&KINDS)) else {
                continue;
            };
            let text = sandbox.tree().read(file);
            if let Some(edit) = Self::in_text(random, file, &text, *kind) {
                return edit;
            }
        }
    }

    fn in_text(random: &mut Random, file: &str, text: &str, kind: EditKind) -> Option<Self> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let syntax = Syntax::of(file);
        let fitting: Vec<usize> = (0..lines.len()).filter(|line| fits(lines[*line], kind, syntax)).collect();
        let line = *random.choose(&fitting)?;
        let changed = changed(random, lines[line], kind, syntax)?;
        // Lines around it make the text unique.
        for around in 0..40 {
            let (start, end) = (line.saturating_sub(around), (line + around + 1).min(lines.len()));
            let old = lines[start..end].concat();
            let new = [&lines[start..line].concat(), &changed, &lines[line + 1..end].concat()]
                .map(String::as_str)
                .concat();
            let after = text.replacen(&old, &new, 1);
            let once = |text: &str, part: &str| !part.is_empty() && text.match_indices(part).count() == 1;
            if old != new && once(text, &old) && once(&after, &new) {
                return Some(Self { file: file.to_owned(), old, new, kind, line });
            }
        }
        None
    }
}

fn fits(line: &str, kind: EditKind, syntax: Syntax) -> bool {
    if is_comment(line) || !line.is_ascii() {
        return false;
    }
    match kind {
        EditKind::RenameUse => !syntax.names(line).is_empty(),
        EditKind::RenameDeclaration => syntax.declared(line).is_some(),
        EditKind::AddParameter => syntax.parameters(line).is_some(),
        EditKind::DeleteLine | EditKind::WrongLine => true,
    }
}

/// The line with the edit.
fn changed(random: &mut Random, line: &str, kind: EditKind, syntax: Syntax) -> Option<String> {
    let renamed = |at: (usize, usize)| format!("{}{}x{}", &line[..at.0], &line[at.0..at.1], &line[at.1..]);
    Some(match kind {
        EditKind::RenameUse => renamed(*random.choose(&syntax.names(line))?),
        EditKind::RenameDeclaration => renamed(syntax.declared(line)?),
        EditKind::AddParameter => {
            let (before, after) = line.split_at(syntax.parameters(line)?);
            let added = syntax.parameter();
            let receivers = ["self", "cls", "&self", "&mut self", "mut self"];
            let is_end = |rest: &str| rest.starts_with([',', ')']);
            let receiver = receivers.into_iter().find(|one| after.strip_prefix(one).is_some_and(is_end));
            match receiver {
                Some(receiver) => format!("{before}{receiver}, {added}{}", &after[receiver.len()..]),
                None if after.starts_with(')') => format!("{before}{added}{after}"),
                None => format!("{before}{added}, {after}"),
            }
        }
        EditKind::DeleteLine => String::new(),
        EditKind::WrongLine => {
            let indent = &line[..line.len() - line.trim_start().len()];
            format!("{indent}{}\n{line}", syntax.wrong_line())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_change_the_line_they_choose() {
        let mut random = Random::new(7);
        let text = "def area(width, height):\n    return width * height\n";
        let edit = RandomEdit::in_text(&mut random, "a.py", text, EditKind::AddParameter).unwrap();
        assert_eq!(edit.new, "def area(added, width, height):\n");
        let edit = RandomEdit::in_text(&mut random, "a.py", text, EditKind::RenameDeclaration).unwrap();
        assert_eq!(edit.new, "def areax(width, height):\n");
        let edit = RandomEdit::in_text(&mut random, "a.py", text, EditKind::DeleteLine).unwrap();
        assert_eq!(text.replacen(&edit.old, &edit.new, 1).lines().count(), 1);
    }

    #[test]
    fn declarations_are_found_in_each_syntax() {
        let declared =
            |syntax: Syntax, line: &'static str| syntax.declared(line).map(|(start, end)| &line[start..end]);
        assert_eq!(declared(Syntax::Rust, "    pub(crate) fn parse(&mut self) {"), Some("parse"));
        assert_eq!(declared(Syntax::Rust, "        let mut found = Vec::new();"), Some("found"));
        assert_eq!(declared(Syntax::Rust, "        found.push(one);"), None);
        assert_eq!(declared(Syntax::Cpp, "Status DBImpl::Recover(VersionEdit* edit) {"), Some("Recover"));
        assert_eq!(declared(Syntax::Cpp, "  const char* data() const { return data_; }"), Some("data"));
        assert_eq!(declared(Syntax::Cpp, "  return Recover(edit);"), None);
        assert_eq!(declared(Syntax::Cpp, "class LEVELDB_EXPORT Slice {"), Some("LEVELDB_EXPORT"));
    }

    #[test]
    fn parameter_follows_a_receiver() {
        let mut random = Random::new(7);
        let mut add = |line: &str, syntax| changed(&mut random, line, EditKind::AddParameter, syntax);
        assert_eq!(add("fn a(&self) {", Syntax::Rust).as_deref(), Some("fn a(&self, added: u8) {"));
        assert_eq!(add("fn a(b: u8) {", Syntax::Rust).as_deref(), Some("fn a(added: u8, b: u8) {"));
        assert_eq!(add("void Add() {", Syntax::Cpp).as_deref(), Some("void Add(int added) {"));
        assert_eq!(add("def a(self, b):", Syntax::Dynamic).as_deref(), Some("def a(self, added, b):"));
    }
}
