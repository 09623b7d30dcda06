//! JSON with comments and trailing commas, as configuration files use it.

use serde_json::Value;

/// The value of a text, or `None` if it is invalid.
pub(super) fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(&plain(text.trim_start_matches('\u{feff}'))).ok()
}

/// The text without comments and trailing commas.
fn plain(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '"' => string_length(rest),
            '/' if rest.starts_with("//") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '/' if rest.starts_with("/*") => {
                rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
                continue;
            }
            ']' | '}' => {
                let kept = result.trim_end().len();
                if result[..kept].ends_with(',') {
                    result.truncate(kept - 1);
                }
                1
            }
            other => other.len_utf8(),
        };
        result.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    result
}

/// The length of the string literal that a text begins with.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_removed_outside_of_strings() {
        let text =
            "\u{feff}// first\n{\"a\": [1, /* two */ 2, ], \"b\": \"// no \\\" /* comment */,]\", // last\n}";
        assert_eq!(parse(text), Some(json!({ "a": [1, 2], "b": "// no \" /* comment */,]" })));
        assert_eq!(parse("{"), None);
        assert_eq!(parse("\"open"), None);
        assert_eq!(parse("/* open"), None);
    }
}
