//! Random single edits of source files: renames, parameters, deleted lines, wrong lines.

use std::fmt;

use tenon_testkit::Sandbox;

use crate::source_sample::{Random, declared, is_comment, names};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditKind {
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

/// One edit: in `file`, `old` occurs once and becomes `new`, which then occurs once.
#[derive(Debug, Clone)]
pub(super) struct RandomEdit {
    pub(super) file: String,
    pub(super) old: String,
    pub(super) new: String,
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
    pub(super) fn choose(random: &mut Random, sandbox: &Sandbox, files: &[String]) -> Self {
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
        let fitting: Vec<usize> = (0..lines.len()).filter(|line| fits(lines[*line], kind)).collect();
        let line = *random.choose(&fitting)?;
        let changed = changed(random, lines[line], kind)?;
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

fn fits(line: &str, kind: EditKind) -> bool {
    if is_comment(line) || !line.is_ascii() {
        return false;
    }
    match kind {
        EditKind::RenameUse => !names(line).is_empty(),
        EditKind::RenameDeclaration => declared(line).is_some(),
        EditKind::AddParameter => {
            line.contains('(') && (line.trim_start().starts_with("def ") || line.contains("function "))
        }
        EditKind::DeleteLine | EditKind::WrongLine => true,
    }
}

/// The line with the edit.
fn changed(random: &mut Random, line: &str, kind: EditKind) -> Option<String> {
    let renamed = |at: (usize, usize)| format!("{}{}x{}", &line[..at.0], &line[at.0..at.1], &line[at.1..]);
    Some(match kind {
        EditKind::RenameUse => renamed(*random.choose(&names(line))?),
        EditKind::RenameDeclaration => renamed(declared(line)?),
        EditKind::AddParameter => {
            let at = line.find('(')? + 1;
            let (before, after) = line.split_at(at);
            let first = ["self, ", "cls, "].into_iter().find(|first| after.starts_with(first));
            match first {
                Some(first) => format!("{before}{first}added, {}", &after[first.len()..]),
                None if after.starts_with("self)") => format!("{before}self, added{}", &after[4..]),
                None if after.starts_with(')') => format!("{before}added{after}"),
                None => format!("{before}added, {after}"),
            }
        }
        EditKind::DeleteLine => String::new(),
        EditKind::WrongLine => {
            let indent = &line[..line.len() - line.trim_start().len()];
            format!("{indent}undefined_name\n{line}")
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
}
