//! Values that look like credentials never reach the store.
//!
//! Redacted are private keys, bearer tokens, tokens and cloud keys with a known shape, passwords in URLs, and the
//! value of a `key=value`, `key: value` or JSON member whose key ends in a word for a secret and whose value
//! looks random. `token_count` is no such key, and `password=changeme` no such value.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

const MARK: &str = "[redacted]";

/// Things that are secrets wherever they stand.
static SHAPES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)",
        // AWS, GitHub, GitLab, Slack, Google, Stripe, npm, PyPI, and the `sk-` keys of model providers.
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_-]{20,})",
        r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
        r"\bAIza[A-Za-z0-9_-]{35}",
        r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
        r"\b(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,})",
        r"\bsk-[A-Za-z0-9_-]{20,}",
        // JSON web tokens.
        r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    ]
    .iter()
    .map(|shape| Regex::new(shape).expect("a checked pattern"))
    .collect()
});

static BEARER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)\b(bearer)(\s+)([A-Za-z0-9._~+/=-]{16,})").expect("a checked pattern"));

static URL_PASSWORD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"([a-z][a-z0-9+.-]*://[^\s/:@]+):([^\s/@]+)@").expect("a checked pattern"));

/// A key that ends in a word for a secret, and its value, quoted or bare.
static ASSIGNMENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(
        r#"(?i)\b((?:[a-z0-9]+[_.-])*?(?:[a-z0-9]*?{WORDS})["']?\s*(?::=|=>|[=:])\s*["']?)([^\s"',;]{{8,}})"#
    ))
    .expect("a checked pattern")
});

static SECRET_KEY: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!(r"(?i){WORDS}$")).expect("a checked pattern"));

const WORDS: &str = "(?:secret|token|passwd|password|passphrase|pwd|credentials?|api[_.-]?key|access[_.-]?key|\
                     secret[_.-]?key|private[_.-]?key|account[_.-]?key|auth[_.-]?key|signing[_.-]?key)";

/// Redacts every string inside, and says how many secrets it found. `key` is what the value is a member of.
pub(crate) fn redact(key: Option<&str>, value: &mut Value) -> usize {
    match value {
        Value::String(text) => {
            if key.is_some_and(|key| SECRET_KEY.is_match(key)) && looks_random(text) {
                *text = MARK.to_owned();
                return 1;
            }
            let (clean, found) = redact_text(text);
            if found > 0 {
                *text = clean;
            }
            found
        }
        Value::Array(items) => items.iter_mut().map(|item| redact(key, item)).sum(),
        Value::Object(map) => map.iter_mut().map(|(name, item)| redact(Some(name), item)).sum(),
        _ => 0,
    }
}

fn redact_text(text: &str) -> (String, usize) {
    let mut clean = text.to_owned();
    let mut found = 0;
    for shape in SHAPES.iter() {
        let hits = shape.find_iter(&clean).count();
        if hits > 0 {
            found += hits;
            clean = shape.replace_all(&clean, MARK).into_owned();
        }
    }
    let mut replace = |pattern: &Regex, keep: &dyn Fn(&Captures<'_>) -> Option<String>| {
        let mut hits = 0;
        let next = pattern.replace_all(&clean, |captures: &Captures<'_>| match keep(captures) {
            Some(text) => {
                hits += 1;
                text
            }
            None => captures[0].to_owned(),
        });
        if hits > 0 {
            clean = next.into_owned();
            found += hits;
        }
    };
    replace(&BEARER, &|hit| Some(format!("{}{}{MARK}", &hit[1], &hit[2])));
    replace(&URL_PASSWORD, &|hit| (&hit[2] != MARK).then(|| format!("{}:{MARK}@", &hit[1])));
    replace(&ASSIGNMENT, &|hit| looks_random(&hit[2]).then(|| format!("{}{MARK}", &hit[1])));
    (clean, found)
}

/// Whether a value was rather made by a generator than by a person: long enough, of several kinds of
/// characters, and with many different ones for its length.
fn looks_random(value: &str) -> bool {
    let length = value.chars().count();
    if length < 8 || value.contains(char::is_whitespace) || value.contains(MARK) {
        return false;
    }
    let kinds = [
        value.chars().any(|c| c.is_ascii_lowercase()),
        value.chars().any(|c| c.is_ascii_uppercase()),
        value.chars().any(|c| c.is_ascii_digit()),
        value.chars().any(|c| c.is_ascii_punctuation()),
    ];
    let kinds = kinds.iter().filter(|kind| **kind).count();
    kinds >= 2 && entropy(value) >= if length >= 20 { 3.0 } else { 2.75 }
}

/// Bits per character of the value's own distribution.
fn entropy(value: &str) -> f64 {
    let mut counts = std::collections::BTreeMap::new();
    for character in value.chars() {
        *counts.entry(character).or_insert(0_u32) += 1;
    }
    let length = f64::from(counts.values().sum::<u32>());
    counts.values().map(|&count| f64::from(count) / length).map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn clean(text: &str) -> String {
        redact_text(text).0
    }

    #[test]
    fn credentials_are_hidden_and_their_surroundings_kept() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----";
        assert_eq!(clean(&format!("a {key} b")), "a [redacted] b");
        assert_eq!(clean("-----BEGIN PRIVATE KEY-----\ncut off"), "[redacted]");
        assert_eq!(clean("Authorization: Bearer abcdefghij0123456789"), "Authorization: Bearer [redacted]");
        assert_eq!(clean("id AKIAIOSFODNN7EXAMPLE."), "id [redacted].");
        assert_eq!(clean(&format!("push with ghp_{}", "a1".repeat(18))), "push with [redacted]");
        assert_eq!(clean("postgres://app:s3cr3t@db/x"), "postgres://app:[redacted]@db/x");
        assert_eq!(
            clean("export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCY"),
            "export AWS_SECRET_ACCESS_KEY=[redacted]"
        );
        assert_eq!(clean(r#"{"api_key": "a8F3kd02LmQ9zz"}"#), r#"{"api_key": "[redacted]"}"#);
        assert_eq!(clean("password: hunter2-Xy91"), "password: [redacted]");
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "token_count=1234567890abc",
            "max_tokens: 4096000A",
            "password=changeme",
            "the token is required",
            "secret: yes",
            "sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "see https://example.com/a:b@c and git@host:owner/repo",
            "sk-ip this",
            "tokens: alpha, beta, gamma",
        ] {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn members_of_objects_are_judged_by_their_names() {
        let mut value = json!({"client_secret": "q8ZrT2mW", "token_count": "q8ZrT2mW",
            "deep": [{"note": "Bearer abcdefghij0123456789"}], "passwords": 3});
        assert_eq!(redact(None, &mut value), 2);
        assert_eq!(
            value,
            json!({"client_secret": "[redacted]", "token_count": "q8ZrT2mW",
            "deep": [{"note": "Bearer [redacted]"}], "passwords": 3})
        );
        let again = value.clone();
        assert_eq!(redact(None, &mut value), 0);
        assert_eq!(value, again);
    }
}
