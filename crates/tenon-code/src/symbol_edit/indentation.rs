//! Adapts the indentation of a text to its place in a file.
//!
//! A text is shifted as a whole, and its tabs or spaces become those of the file. Lines inside a string of several lines are
//! content and stay as they are, except in docstrings.

/// How a file is indented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndentStyle {
    Tabs,
    Spaces(usize),
}

impl IndentStyle {
    /// The style of most lines; four spaces if no line says.
    pub(super) fn of(text: &str) -> Self {
        Self::found(text.lines().filter(|line| !line.trim().is_empty())).unwrap_or(Self::Spaces(4))
    }

    fn found<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Self> {
        let (mut tabs, mut spaces, mut last) = (0, 0, 0);
        let mut steps = [0usize; 9];
        for line in lines.take(10_000) {
            let width = line.len() - line.trim_start_matches(' ').len();
            tabs += usize::from(line.starts_with('\t'));
            spaces += usize::from(width > 1);
            if let Some(count) =
                width.checked_sub(last).filter(|step| *step > 1).and_then(|step| steps.get_mut(step))
            {
                *count += 1;
            }
            last = width;
        }
        match (tabs, spaces) {
            (0, 0) => None,
            (tabs, spaces) if tabs > spaces => Some(Self::Tabs),
            _ => {
                let most = (2..steps.len()).rev().max_by_key(|step| steps[*step]);
                Some(Self::Spaces(most.filter(|step| steps[*step] > 0).unwrap_or(4)))
            }
        }
    }

    /// How deep a line is indented, and the spaces that are left for alignment.
    fn depth(self, indent: &str) -> (usize, usize) {
        let tabs = indent.chars().take_while(|c| *c == '\t').count();
        let spaces = indent.len() - tabs;
        match self {
            Self::Tabs => (tabs, spaces),
            Self::Spaces(unit) => (tabs + spaces / unit, spaces % unit),
        }
    }

    fn indent(self, (depth, align): (usize, usize)) -> String {
        match self {
            Self::Tabs => "\t".repeat(depth) + &" ".repeat(align),
            Self::Spaces(unit) => " ".repeat(unit * depth + align),
        }
    }
}

/// A text for a place with this indentation, which all lines get. Without blank lines around it, with `\n`.
pub(super) fn adapted(text: &str, indent: &str, style: IndentStyle, language: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let all: Vec<&str> = text.split('\n').collect();
    let is_code = |line: &&str| !line.trim().is_empty();
    let (Some(first), Some(last)) = (all.iter().position(is_code), all.iter().rposition(is_code)) else {
        return indent.to_owned();
    };
    let lines = &all[first..=last];
    let is_content = content_lines(lines, language);
    let code: Vec<&str> = lines
        .iter()
        .zip(&is_content)
        .filter(|(line, content)| !**content && is_code(line))
        .map(|(line, _)| *line)
        .collect();
    let is_cut = first_line_is_cut(&code, indent);
    let base = code.iter().map(|line| indent_of(line).len()).min().unwrap_or_default();
    let own = IndentStyle::found(code.iter().copied()).unwrap_or(style);
    let adapt = |at: usize, line: &str| {
        let found = indent_of(line);
        let code = line[found.len()..].trim_end();
        if code.is_empty() {
            return String::new();
        }
        if is_cut {
            return if at == 0 { format!("{indent}{code}") } else { line.trim_end().to_owned() };
        }
        let left = &found[base..];
        let left = if own == style { left.to_owned() } else { style.indent(own.depth(left)) };
        format!("{indent}{left}{code}")
    };
    let adapted: Vec<String> = lines
        .iter()
        .zip(&is_content)
        .enumerate()
        .map(|(at, (line, content))| if *content { (*line).to_owned() } else { adapt(at, line) })
        .collect();
    adapted.join("\n")
}

fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Whether a text was quoted from the file without the indentation of the first line: the other lines have the indentation of the
/// place already.
fn first_line_is_cut(code: &[&str], indent: &str) -> bool {
    let [first, rest @ ..] = code else {
        return false;
    };
    let (Some(least), Some(last)) = (rest.iter().map(|line| indent_of(line).len()).min(), rest.last()) else {
        return false;
    };
    let closes = last.trim_start().starts_with(['}', ')', ']']) || last.trim() == "end";
    indent_of(first).is_empty()
        && !indent.is_empty()
        && (least > indent.len() || least == indent.len() && closes)
}

/// Which lines begin inside a string of several lines.
fn content_lines(lines: &[&str], language: &str) -> Vec<bool> {
    let (delimiters, comment): (&[&str], &str) = match language {
        "python" => (&["\"\"\"", "'''"], "#"),
        "javascript" | "typescript" | "tsx" | "go" => (&["`"], "//"),
        _ => return vec![false; lines.len()],
    };
    let mut open: Option<(&str, bool)> = None;
    let mut found = Vec::with_capacity(lines.len());
    for line in lines {
        found.push(open.is_some_and(|(_, is_doc)| !is_doc));
        let mut rest = *line;
        while !rest.is_empty() {
            if let Some((delimiter, _)) = open {
                match rest.find(delimiter) {
                    Some(at) => {
                        rest = &rest[at + delimiter.len()..];
                        open = None;
                    }
                    None => break,
                }
                continue;
            }
            if rest.starts_with(comment) {
                break;
            }
            if let Some(delimiter) = delimiters.iter().find(|delimiter| rest.starts_with(**delimiter)) {
                let before = line[..line.len() - rest.len()].trim();
                let is_doc =
                    language == "python" && before.len() <= 2 && before.chars().all(char::is_alphabetic);
                open = Some((delimiter, is_doc));
                rest = &rest[delimiter.len()..];
                continue;
            }
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            rest = match quote {
                Some(quote) => after_string(&rest[1..], quote),
                None => &rest[rest.chars().next().map_or(0, char::len_utf8)..],
            };
        }
    }
    found
}

/// The rest of a line after a string that has begun.
fn after_string(text: &str, quote: char) -> &str {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            c if c == quote => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spaces(text: &str, indent: &str) -> String {
        adapted(text, indent, IndentStyle::Spaces(4), "python")
    }

    #[test]
    fn style_of_most_lines_counts() {
        assert_eq!(IndentStyle::of("a\n  b\n    c\n  d\n"), IndentStyle::Spaces(2));
        assert_eq!(IndentStyle::of("a\n\tb\n\t\tc\n"), IndentStyle::Tabs);
        assert_eq!(IndentStyle::of("a\nb\n"), IndentStyle::Spaces(4));
        assert_eq!(IndentStyle::of("/**\n * a\n */\nf() {\n    x\n}\n"), IndentStyle::Spaces(4));
    }

    #[test]
    fn text_is_shifted_as_a_whole() {
        assert_eq!(spaces("def f():\n    return 1\n", "    "), "    def f():\n        return 1");
        assert_eq!(
            spaces("\n        def f():\n\n            return 1  \n\n", "    "),
            "    def f():\n\n        return 1"
        );
        assert_eq!(spaces("x = 1", ""), "x = 1");
        assert_eq!(spaces("", "    "), "    ");
    }

    #[test]
    fn lines_that_have_the_indentation_of_the_place_are_kept() {
        assert_eq!(spaces("def f():\n        return 1", "    "), "    def f():\n        return 1");
        let braces = adapted("f() {\n    x();\n  }", "  ", IndentStyle::Spaces(2), "typescript");
        assert_eq!(braces, "  f() {\n    x();\n  }");
        let relative = adapted("f() {\n  x();\n}", "  ", IndentStyle::Spaces(2), "typescript");
        assert_eq!(relative, "  f() {\n    x();\n  }");
    }

    #[test]
    fn tabs_and_spaces_become_those_of_the_file() {
        let tabs = adapted("func f() {\n    if x {\n        y()\n    }\n}", "\t", IndentStyle::Tabs, "go");
        assert_eq!(tabs, "\tfunc f() {\n\t\tif x {\n\t\t\ty()\n\t\t}\n\t}");
        let two = adapted("f() {\n\tx()\n}", "  ", IndentStyle::Spaces(2), "typescript");
        assert_eq!(two, "  f() {\n    x()\n  }");
    }

    #[test]
    fn content_of_strings_is_kept_and_docstrings_are_shifted() {
        let text = "def f():\n    \"\"\"Doc.\n\n    more\n    \"\"\"\n    return \"\"\"a\n  b\n\"\"\"";
        let expected = "    def f():\n        \"\"\"Doc.\n\n        more\n        \"\"\"\n        return \"\"\"a\n  b\n\"\"\"";
        assert_eq!(spaces(text, "    "), expected);
        let template = adapted("f() {\n  return `a\nb`;\n}", "  ", IndentStyle::Spaces(2), "typescript");
        assert_eq!(template, "  f() {\n    return `a\nb`;\n  }");
        // A quote in a comment or a string begins nothing.
        assert_eq!(spaces("x = 1  # \"\"\"\ny = '`\\''\n", "  "), "  x = 1  # \"\"\"\n  y = '`\\''");
    }
}
