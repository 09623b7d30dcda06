//! Splits the text of a passage into prose and code, because a word of prose says more about the subject.
//!
//! In documents, code is what is in fences and literal blocks. In source files, prose is what is in comments and doc
//! strings, without the examples in them. The lead is the start of the prose: that says what a passage is about.

use super::section::lines;
use super::text_format::TextFormat;

/// The lead ends with the paragraph that reaches this length.
const LEAD_BYTES: usize = 200;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct BodyParts {
    pub prose: String,
    pub code: String,
    /// Where the lead ends, once that is known.
    lead: Option<usize>,
}

impl BodyParts {
    pub(crate) fn of(format: TextFormat, text: &str) -> Self {
        let mut parts = Self::default();
        match format {
            TextFormat::Code(_) => parts.split_source(text),
            TextFormat::Other => parts.code = text.to_owned(),
            TextFormat::ReStructuredText | TextFormat::Plain => parts.split_indented(text),
            TextFormat::AsciiDoc => parts.split_fenced(text, &["----", "...."]),
            TextFormat::Markdown | TextFormat::Notebook => parts.split_fenced(text, &["```", "~~~"]),
        }
        parts
    }

    /// The start of the prose.
    pub(crate) fn lead(&self) -> &str {
        &self.prose[..self.lead.unwrap_or(self.prose.len())]
    }

    fn add_prose(&mut self, line: &str) {
        let is_blank = !line.contains(char::is_alphanumeric);
        if is_blank && self.prose.len() >= LEAD_BYTES {
            self.end_lead();
        }
        if !is_blank {
            self.prose.push_str(line);
            self.prose.push('\n');
        }
    }

    fn add_code(&mut self, line: &str) {
        if self.prose.len() >= LEAD_BYTES {
            self.end_lead();
        }
        self.code.push_str(line);
        self.code.push('\n');
    }

    fn end_lead(&mut self) {
        self.lead.get_or_insert(self.prose.len());
    }

    fn split_fenced(&mut self, text: &str, marks: &[&str]) {
        let mut fence: Option<&str> = None;
        for (_, line) in lines(text) {
            let bare = line.trim();
            let mark = marks.iter().copied().find(|mark| bare.starts_with(mark));
            match (fence, mark) {
                (None, Some(mark)) => fence = Some(mark),
                (Some(open), Some(mark)) if open == mark => fence = None,
                (Some(_), _) => self.add_code(line),
                (None, None) => self.add_prose(line),
            }
        }
    }

    /// Literal blocks are indented below a line that ends with `::`.
    fn split_indented(&mut self, text: &str) {
        let mut block: Option<usize> = None;
        for (_, line) in lines(text) {
            let bare = line.trim();
            let indent = line.len() - line.trim_start().len();
            if block.is_some_and(|block| !bare.is_empty() && indent <= block) {
                block = None;
            }
            let directive = bare.strip_prefix(".. ").and_then(|rest| rest.split_once("::"));
            match (block, directive) {
                (Some(_), _) => self.add_code(line),
                (None, Some((name, argument))) => {
                    if CODE_DIRECTIVES.contains(&name) {
                        block = Some(indent);
                    } else {
                        self.add_prose(argument);
                    }
                }
                (None, None) => {
                    if bare.ends_with("::") {
                        block = Some(indent);
                    }
                    // Labels and comments.
                    if !bare.starts_with(".. ") {
                        self.add_prose(line);
                    }
                }
            }
        }
    }

    fn split_source(&mut self, text: &str) {
        let mut string: Option<&str> = None;
        let (mut comment, mut example) = (false, false);
        for (_, line) in lines(text) {
            let bare = line.trim();
            if let Some(quotes) = string {
                self.add_comment(bare, &mut example);
                if bare.ends_with(quotes) {
                    (string, example) = (None, false);
                }
            } else if let Some(quotes) = doc_string(bare) {
                self.add_comment(bare, &mut example);
                if bare.matches(quotes).count() < 2 {
                    string = Some(quotes);
                }
            } else if comment || bare.starts_with("/*") {
                // A comment inside the code says nothing about the whole.
                if !self.code.is_empty() && !comment {
                    self.end_lead();
                }
                comment = !bare.contains("*/");
                self.add_comment(bare.trim_start_matches(['/', '*', ' ']), &mut example);
                example &= comment;
            } else if is_line_comment(bare) {
                if !self.code.is_empty() {
                    self.end_lead();
                }
                self.add_comment(bare.trim_start_matches(['/', '#', '-', '!', ' ']), &mut example);
            } else {
                example = false;
                if !self.prose.is_empty() {
                    self.end_lead();
                }
                self.add_code(line);
            }
        }
    }

    fn add_comment(&mut self, line: &str, example: &mut bool) {
        if line.starts_with("```") {
            *example = !*example;
        } else if *example || line.starts_with(">>>") {
            self.add_code(line);
        } else {
            self.add_prose(line);
        }
    }
}

const CODE_DIRECTIVES: &[&str] =
    &["code", "code-block", "console", "highlight", "parsed-literal", "sourcecode"];

fn doc_string(line: &str) -> Option<&'static str> {
    let line = line.trim_start_matches(['r', 'R', 'u', 'U']);
    ["\"\"\"", "'''"].into_iter().find(|quotes| line.starts_with(quotes))
}

fn is_line_comment(line: &str) -> bool {
    let is_hash =
        || line == "#" || line.starts_with("# ") || line.starts_with("##") || line.starts_with("#:");
    line.starts_with("//") || line.starts_with("-- ") || is_hash()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str, text: &str) -> (String, String) {
        let parts = BodyParts::of(TextFormat::of_path(path).unwrap(), text);
        (parts.prose, parts.code)
    }

    #[test]
    fn comments_and_doc_strings_are_prose_and_their_examples_code() {
        let python =
            "def f(a):\n    \"\"\"Adds.\n\n    >>> f(1)\n    \"\"\"\n    # why\n    return a  # end\n";
        assert_eq!(parts("a.py", python).0, "\"\"\"Adds.\nwhy\n");
        assert_eq!(BodyParts::of(TextFormat::of_path("a.py").unwrap(), python).lead(), "\"\"\"Adds.\n");
        let inside = "def f(a):\n    # why\n    return a\n";
        assert_eq!(BodyParts::of(TextFormat::of_path("a.py").unwrap(), inside).lead(), "");
        let script = "/**\n * Maps.\n * ```ts\n * map(1);\n * ```\n */\nexport function map() {}\n";
        assert_eq!(parts("a.ts", script), ("Maps.\n".into(), "map(1);\nexport function map() {}\n".into()));
        assert_eq!(parts("a.rs", "/// Reads.\n#[test]\nfn read() {}\n").0, "Reads.\n");
    }

    #[test]
    fn fences_and_literal_blocks_are_code() {
        assert_eq!(parts("a.md", "Run:\n```sh\nls\n```\nthen\n"), ("Run:\nthen\n".into(), "ls\n".into()));
        let text = ".. _label:\n\nRun::\n\n    ls\n\nthen\n\n.. code-block:: sh\n\n   cd\n\n.. note:: end\n";
        assert_eq!(parts("a.rst", text).0, "Run::\nthen\n end\n");
        assert_eq!(parts("a.toml", "a = 1\n"), (String::new(), "a = 1\n".into()));
    }

    #[test]
    fn lead_ends_with_a_paragraph() {
        let long = "word ".repeat(50);
        let text = format!("# T\n\nshort\n\n{long}\n\nmore\n");
        let parts = BodyParts::of(TextFormat::Markdown, &text);
        assert!(parts.lead().ends_with("word \n") && parts.prose.ends_with("more\n"), "{parts:?}");
        assert_eq!(BodyParts::of(TextFormat::Markdown, "one").lead(), "one\n");
    }
}
