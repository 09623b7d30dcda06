//! Masks what looks like a secret before it is shown or written.
//!
//! Four patterns: a bearer token, a password in a URL, a value next to a telling name (`API_KEY=…`, `"token": "…"`), and a
//! token that its issuer marks with a prefix (`ghp_…`, `sk-…`, a JSON web token).
//! Names that only count tokens (`max_tokens`, `token_count`) are not masked.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// The replacement for a secret.
pub(crate) const MASK: &str = "[redacted]";

static SHAPES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?xi)
        (?P<bearer> \b (?:bearer|basic) \s+ ) [a-z0-9._~+/=-]{8,}
        | (?P<url> \b [a-z][a-z0-9+.-]* :// [^\s:/@"']* : ) [^\s@/"']+ (?P<at> @ )
        | (?P<name> \b [a-z0-9_.-]*
            (?: secret | passw(?:or)?d | api[_-]?key | access[_-]?key | private[_-]?key | credential s? | auth[_-]?token
              | (?: [_.-] | \b ) (?:token|key) )
            (?: \\? ["'] )? \s* [=:] \s* (?: \\? ["'] )? )
          (?P<value> [^\s"'\\,;&}\])]{4,} )
        | \b (?P<issued>
            (?: gh[opsur]_ | github_pat_ | glpat- | sk- | xox[abeprs]- | npm_ | pypi- | aiza | akia | asia ) [a-z0-9_-]{16,}
            | eyj[a-z0-9_-]{8,} \. [a-z0-9_-]{8,} \. [a-z0-9_-]{8,} )
        "#,
    )
    .expect("the pattern is fixed and a test uses it")
});

/// `text` with its secrets masked.
pub(crate) fn redact(text: &str) -> Cow<'_, str> {
    SHAPES.replace_all(text, |found: &Captures<'_>| {
        let part = |name| found.name(name).map_or("", |part| part.as_str());
        let value = part("value");
        // The pattern of a value ends before the bracket of a mask.
        let is_masked = MASK.strip_suffix(']') == Some(value);
        let harmless = is_masked || matches!(value, "true" | "false" | "null" | "None");
        if harmless || (!value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())) {
            return found[0].to_owned();
        }
        // A long name with such a prefix has no digits.
        if found.name("issued").is_some_and(|token| !token.as_str().bytes().any(|b| b.is_ascii_digit())) {
            return found[0].to_owned();
        }
        format!("{}{}{}{MASK}{}", part("bearer"), part("url"), part("name"), part("at"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        let cases = [
            "Authorization: Bearer 0123456789abcdef",
            "postgres://ada:hunter2@db/plans",
            "OPENAI_API_KEY=sk-abcdef123456",
            r#"{"token":"0123456789abcdef","a":1}"#,
            r#"{"message":"env {\"GITHUB_TOKEN\": \"ghp_abcdef\"}"}"#,
            "password: correct-horse",
            "aws_secret_access_key = AKIAabcdefgh",
            "client-secret=abcd1234&x=y",
            "cloned with ghp_0123456789abcdefABCDEF0123456789abcd",
            "Error: sk-ant-api03-0123456789abcdef is invalid",
            "AKIA0123456789ABCDEF",
            "cookie eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP5mB92K27",
        ];
        for case in cases {
            let masked = redact(case);
            assert!(masked.contains(MASK), "{case} → {masked}");
            assert_eq!(redact(&masked), masked, "masked twice");
            for secret in [
                "0123456789abcdef",
                "0123456789ABCDEF",
                "dBjftJeZ",
                "hunter2",
                "sk-abc",
                "ghp_",
                "correct-horse",
                "AKIA",
                "abcd1234",
            ] {
                assert!(!masked.contains(secret), "{case} → {masked}");
            }
        }
    }

    #[test]
    fn other_text_is_unchanged() {
        let cases = [
            "max_tokens: 4096",
            r#"{"token_count":12,"key":17}"#,
            "tokens used: many",
            "https://example.org/path",
            "keyboard=qwerty",
            "monkey: banana",
            "npm_config_registry_of_the_project",
            "sk-learn_model_selection_tests",
            r#"{"level":"INFO","fields":{"message":"client connected","surfaces":"code"}}"#,
        ];
        for case in cases {
            assert_eq!(redact(case), case);
        }
    }
}
