//! Where a word occurs in source files: in code, or in comments and text.

use super::project::Project;

/// An occurrence of a word.
#[derive(Debug, Clone)]
pub(super) struct Occurrence {
    pub(super) file: String,
    pub(super) line: u64,
    /// UTF-16.
    pub(super) character: u64,
    pub(super) is_code: bool,
}

impl Occurrence {
    pub(super) fn place(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.character)
    }
}

/// The texts of a project, with the parts that are comments or text.
pub(super) struct WordSearch(Vec<(String, String, Vec<bool>)>);

impl WordSearch {
    pub(super) fn new(project: &Project) -> Self {
        let read = |file: &String| {
            let text = std::fs::read_to_string(project.sandbox.tree().path(file)).ok()?;
            let code = code(&text, file);
            Some((file.clone(), text, code))
        };
        Self(project.served.iter().filter_map(read).collect())
    }

    pub(super) fn find(&self, word: &str) -> Vec<Occurrence> {
        let mut found = Vec::new();
        for (file, text, code) in &self.0 {
            for (at, _) in text.match_indices(word) {
                let is_alone =
                    !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part);
                if is_alone {
                    let start = text[..at].rfind('\n').map_or(0, |before| before + 1);
                    found.push(Occurrence {
                        file: file.clone(),
                        line: text[..at].matches('\n').count() as u64,
                        character: text[start..at].encode_utf16().count() as u64,
                        is_code: code[at],
                    });
                }
            }
        }
        found
    }
}

pub(super) fn is_part(one: char) -> bool {
    one.is_alphanumeric() || one == '_'
}

/// For each byte whether it is code. Expressions inside template and format strings count as code.
fn code(text: &str, file: &str) -> Vec<bool> {
    let is_python = file.ends_with(".py") || file.ends_with(".pyi");
    let mut code = vec![true; text.len()];
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let end = match token(rest, is_python, text[..at].chars().next_back()) {
            Some(length) => at + length,
            None => {
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            }
        };
        code[at..end].fill(false);
        let is_formatted = rest.starts_with('`') || is_python && text[..at].ends_with(['f', 'F']);
        if is_formatted {
            for (open, _) in text[at..end].match_indices('{') {
                let close = text[at + open..end].find('}').map_or(end, |close| at + open + close);
                code[at + open..close].fill(true);
            }
        }
        at = end;
    }
    code
}

/// The length of the comment or text that starts here.
fn token(rest: &str, is_python: bool, before: Option<char>) -> Option<usize> {
    let until =
        |end: &str, from: usize| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
    if is_python {
        for quotes in ["\"\"\"", "'''"] {
            if rest.starts_with(quotes) {
                return Some(until(quotes, 3));
            }
        }
        if rest.starts_with('#') {
            return Some(rest.find('\n').unwrap_or(rest.len()));
        }
    } else if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    } else if rest.starts_with("/*") {
        return Some(until("*/", 2));
    }
    let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\'' | '`'))?;
    // A digit separator, a lifetime or an apostrophe.
    if quote == '\'' && !is_python && before.is_some_and(is_part) {
        return None;
    }
    let mut escaped = false;
    for (at, one) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if one == '\\' {
            escaped = true;
        } else if one == quote {
            return Some(at + 1);
        } else if one == '\n' && quote != '`' {
            // Not a text after all, such as a lifetime or a quote in a regular expression.
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_code(text: &str, file: &str, word: &str) -> Vec<bool> {
        let code = code(text, file);
        text.match_indices(word).map(|(at, _)| code[at]).collect()
    }

    #[test]
    fn comments_and_text_are_not_code() {
        let python = "take = 'take' # take\nf'{take} take'\n\"\"\"take\n\"\"\"\ntake";
        assert_eq!(in_code(python, "a.py", "take"), [true, false, false, true, false, false, true]);
        let script = "take('take') // take\n/* take */ `take ${take}` don't take";
        assert_eq!(in_code(script, "a.ts", "take"), [true, false, false, false, false, true, true]);
    }
}
