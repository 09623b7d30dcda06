//! How a symbol is named in a question.
//!
//! | text | meaning |
//! |---|---|
//! | `filter` | declarations of this name |
//! | `QuerySet.filter`, `QuerySet/filter`, `QuerySet::filter` | the end of a name path |
//! | `query.py#QuerySet.filter` | in files whose path ends so |
//! | `query.py:1475` | the innermost declaration at a line |
//! | `User#save` | the end of a name path: the part before `#` is a path only if it contains `/` or names a source file |
//!
//! A trailing `()` is ignored.

use std::fmt;

use crate::SourceLanguage;

const MAX_BYTES: usize = 1024;

/// A parsed question for a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolQuery {
    /// Files whose path ends so, at a folder boundary.
    pub(crate) path: Option<String>,
    pub(crate) target: QueryTarget,
    text: String,
    /// Where the name starts in `text`.
    name_start: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QueryTarget {
    /// The segments of a name path; at least one.
    Name(Vec<String>),
    /// A line, counted from 1.
    Line(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("symbol name is empty")]
    Empty,
    #[error("symbol name exceeds {MAX_BYTES} bytes")]
    TooLong,
    #[error("symbol name contains a control character")]
    ControlCharacter,
    #[error("symbol name has an empty part: `{0}`")]
    EmptyPart(String),
    #[error("line numbers start at 1 and have at most nine digits")]
    Line,
}

impl SymbolQuery {
    /// # Errors
    /// See [`QueryError`].
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(QueryError::Empty);
        }
        if text.len() > MAX_BYTES {
            return Err(QueryError::TooLong);
        }
        if text.contains(char::is_control) {
            return Err(QueryError::ControlCharacter);
        }
        let mut name_start = 0;
        let (path, target) = match split_line(text) {
            Some((path, line)) => {
                let line = line.parse().ok().filter(|line| *line > 0 && *line < 1_000_000_000);
                (Some(path), QueryTarget::Line(line.ok_or(QueryError::Line)?))
            }
            None => {
                let (path, name) = split_path(text);
                name_start = text.len() - name.len();
                (path, QueryTarget::Name(segments(name)?))
            }
        };
        let path = path.map(|path| path.trim_start_matches("./").trim_start_matches('/').to_owned());
        Ok(Self { path, target, text: text.to_owned(), name_start })
    }

    /// The part of a path that the question names.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// The line of a question such as `query.py:1475`.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        match self.target {
            QueryTarget::Line(line) => Some(line),
            QueryTarget::Name(_) => None,
        }
    }

    /// The name as it was asked, for names that contain separators.
    pub(crate) fn undivided_name(&self) -> &str {
        &self.text[self.name_start..]
    }

    /// The last segment of the name; `None` if the question names a line.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.target {
            QueryTarget::Name(segments) => segments.last().map(String::as_str),
            QueryTarget::Line(_) => None,
        }
    }
}

/// As it was asked.
impl fmt::Display for SymbolQuery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// `query.py` and `1475` of `query.py:1475`.
fn split_line(text: &str) -> Option<(&str, &str)> {
    let (path, line) = text.rsplit_once(':')?;
    let digits = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    (digits && !path.is_empty() && !path.ends_with(':')).then_some((path, line))
}

fn split_path(text: &str) -> (Option<&str>, &str) {
    let Some((path, name)) = text.split_once('#') else { return (None, text) };
    let is_path = path.contains('/') || SourceLanguage::of_path(path).is_some();
    if is_path && !name.is_empty() { (Some(path), name) } else { (None, text) }
}

fn segments(name: &str) -> Result<Vec<String>, QueryError> {
    let name = match name.strip_suffix("()") {
        Some(bare) if !bare.ends_with("operator") => bare,
        _ => name,
    };
    let mut segments: Vec<String> = Vec::new();
    let mut rest = name.trim_start_matches("::");
    if rest.is_empty() {
        return Err(QueryError::Empty);
    }
    loop {
        // An operator is a name as a whole: `operator/`, `operator()`.
        let end = if rest.starts_with("operator") { None } else { separator(rest) };
        let (segment, next) = match end {
            Some((at, length)) => (&rest[..at], Some(&rest[at + length..])),
            None => (rest, None),
        };
        if segment.trim().is_empty() {
            return Err(QueryError::EmptyPart(name.to_owned()));
        }
        segments.push(segment.trim().to_owned());
        match next {
            Some(next) => rest = next,
            None => return Ok(segments),
        }
    }
}

/// Where the first separator is, and how long it is. A sign at the start belongs to the name: `#secret`.
fn separator(text: &str) -> Option<(usize, usize)> {
    let at = text.char_indices().skip(1).find(|(_, c)| matches!(c, '.' | '/' | '#' | ':' | '\\'));
    let first_is_separator = text.starts_with(['.', '/', ':', '\\']);
    let at = if first_is_separator { 0 } else { at?.0 };
    let rest = &text[at..];
    Some((at, if rest.starts_with("::") { 2 } else { 1 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Option<String>, String) {
        let query = SymbolQuery::parse(text).unwrap();
        let target = match query.target {
            QueryTarget::Name(segments) => segments.join("|"),
            QueryTarget::Line(line) => line.to_string(),
        };
        (query.path, target)
    }

    #[test]
    fn every_form_is_parsed() {
        for (text, path, target) in [
            ("filter", None, "filter"),
            (" filter() ", None, "filter"),
            ("QuerySet.filter", None, "QuerySet|filter"),
            ("QuerySet/filter", None, "QuerySet|filter"),
            ("QuerySet::filter()", None, "QuerySet|filter"),
            ("::std::sort", None, "std|sort"),
            ("App\\Models\\User", None, "App|Models|User"),
            ("User#save!", None, "User|save!"),
            ("Admin::User#save", None, "Admin|User|save"),
            ("org.example.User#save", None, "org|example|User|save"),
            ("Foo.#secret", None, "Foo|#secret"),
            ("#secret", None, "#secret"),
            ("operator()", None, "operator()"),
            ("Point::operator==", None, "Point|operator=="),
            ("Path::operator/", None, "Path|operator/"),
            ("operator bool", None, "operator bool"),
            ("query.py#QuerySet.filter", Some("query.py"), "QuerySet|filter"),
            ("django/db/models/query.py#filter", Some("django/db/models/query.py"), "filter"),
            ("./lib/user#save", Some("lib/user"), "save"),
            ("query.py:1475", Some("query.py"), "1475"),
        ] {
            assert_eq!(parsed(text), (path.map(str::to_owned), target.to_owned()), "{text}");
        }
    }

    #[test]
    fn invalid_query_is_rejected_with_its_reason() {
        for (text, error) in [
            ("", QueryError::Empty),
            ("  ", QueryError::Empty),
            ("::", QueryError::Empty),
            ("a..b", QueryError::EmptyPart("a..b".into())),
            ("a.", QueryError::EmptyPart("a.".into())),
            (".a", QueryError::EmptyPart(".a".into())),
            ("a\nb", QueryError::ControlCharacter),
            ("a.py:0", QueryError::Line),
            ("a.py:9999999999999", QueryError::Line),
        ] {
            assert_eq!(SymbolQuery::parse(text).unwrap_err(), error, "{text:?}");
        }
        assert_eq!(SymbolQuery::parse(&"a".repeat(2000)).unwrap_err(), QueryError::TooLong);
    }
}
