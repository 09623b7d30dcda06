//! Values that look like credentials never reach the store.
//!
//! Redacted are private keys, `Authorization` headers, tokens and cloud keys with a known shape, passwords in URLs, and
//! the value of a `key=value`, `key: value` or JSON member whose key ends in a word for a secret and whose value looks
//! random; neither `token_count` nor `password=changeme` match. Names of JSON members are searched like any text.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::{Captures, Regex};
use serde_json::{Map, Value};

const MARK: &str = "[redacted]";

/// Texts that are secrets wherever they occur.
static SHAPES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
        // AWS, GitHub, GitLab, Slack, Google (keys, then access tokens), Stripe, npm, PyPI, and the `sk-` keys of model providers.
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_-]{20,})",
        r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
        r"\bAIza[A-Za-z0-9_-]{35}",
        r"\bya29\.[A-Za-z0-9._-]{19,}[A-Za-z0-9_-]",
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

/// What follows `Authorization: Basic`; it may also be prose.
static BASIC: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?i)\b(authorization["']?\s*[:=]\s*["']?basic\s+)([A-Za-z0-9+/]{4,}={0,2})"#)
        .expect("a checked pattern")
});

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

/// Every pattern above matches only texts with one of these. Most texts have none, and are not searched any further.
static TRIGGER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        "-----BEGIN |AKIA|ASIA|ABIA|ACCA|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|AIza|ya29\\.|",
        "[rs]k_(?:live|test)_|npm_|pypi-|sk-|eyJ|://|",
        "(?i:bearer|authorization|secret|token|passw|passphrase|pwd|credential|key)"
    ))
    .expect("a checked pattern")
});

/// Redacts every string in a value, member names included, and returns the number of secrets. `key` is the name of the
/// member that holds the value.
pub(crate) fn redact(key: Option<&str>, value: &mut Value) -> usize {
    match value {
        Value::String(text) => {
            if key.is_some_and(|key| SECRET_KEY.is_match(key)) && looks_random(text) {
                *text = MARK.to_owned();
                return 1;
            }
            if key.is_some_and(|key| key.to_ascii_lowercase().ends_with("authorization"))
                && let Some((scheme, pair)) = text.split_once(' ')
                && scheme.eq_ignore_ascii_case("basic")
                && is_basic(pair.trim())
            {
                *text = format!("{scheme} {MARK}");
                return 1;
            }
            let Some((clean, found)) = redact_text(text) else { return 0 };
            *text = clean;
            found
        }
        Value::Array(items) => items.iter_mut().map(|item| redact(key, item)).sum(),
        Value::Object(map) => {
            let found: usize = map.iter_mut().map(|(name, item)| redact(Some(name), item)).sum();
            found + redact_names(map)
        }
        _ => 0,
    }
}

/// Members whose redacted names collide are numbered, so that none is lost.
fn redact_names(map: &mut Map<String, Value>) -> usize {
    let secret: Vec<(String, String, usize)> = map
        .keys()
        // Secrets do not consist of these letters alone, and nearly all names do.
        .filter(|name| !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'))
        .filter_map(|name| redact_text(name).map(|(clean, found)| (name.clone(), clean, found)))
        .collect();
    let mut hidden = 0;
    for (name, clean, found) in secret {
        hidden += found;
        let numbered = (2_usize..).map(|number| format!("{clean} {number}"));
        let free = std::iter::once(clean.clone()).chain(numbered).find(|name| !map.contains_key(name));
        if let (Some(value), Some(free)) = (map.remove(&name), free) {
            map.insert(free, value);
        }
    }
    hidden
}

/// The text without its secrets, and how many there were; none if there are none.
fn redact_text(text: &str) -> Option<(String, usize)> {
    if !TRIGGER.is_match(text) {
        return None;
    }
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
    replace(&BASIC, &|hit| is_basic(&hit[2]).then(|| format!("{}{MARK}", &hit[1])));
    replace(&URL_PASSWORD, &|hit| (&hit[2] != MARK).then(|| format!("{}:{MARK}@", &hit[1])));
    replace(&ASSIGNMENT, &|hit| looks_random(&hit[2]).then(|| format!("{}{MARK}", &hit[1])));
    (found > 0).then_some((clean, found))
}

/// Whether this is the base64 of `name:password`.
fn is_basic(text: &str) -> bool {
    STANDARD.decode(text).is_ok_and(|pair| pair.contains(&b':') && std::str::from_utf8(&pair).is_ok())
}

/// Whether a value looks generated: long enough, several kinds of characters, many different ones.
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

/// Shannon entropy in bits per character.
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
        redact_text(text).map_or_else(|| text.to_owned(), |(clean, _)| clean)
    }

    #[test]
    fn credentials_are_redacted_and_their_context_kept() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----";
        assert_eq!(clean(&format!("a {key} b")), "a [redacted] b");
        assert_eq!(clean("-----BEGIN PRIVATE KEY-----\ncut off"), "[redacted]");
        let key =
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQdGBF\n=aB3x\n-----END PGP PRIVATE KEY BLOCK-----";
        assert_eq!(clean(&format!("a {key} b")), "a [redacted] b");
        assert_eq!(
            clean("curl -H 'Authorization: Basic dXNlcjpwYXNz' x"),
            "curl -H 'Authorization: Basic [redacted]' x"
        );
        assert_eq!(clean(r#"{"authorization":"basic YTpi"}"#), r#"{"authorization":"basic [redacted]"}"#);
        assert_eq!(clean("use ya29.a0AfB_byC3xK-0123456789abcdef."), "use [redacted].");
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

    /// One of each kind: the texts that are searched are chosen by what all of these contain.
    #[test]
    fn every_kind_of_secret_is_found_without_context() {
        let letters = "aB3".repeat(20);
        let long = |start: &str| format!("{start}{letters}");
        for secret in [
            "-----BEGIN PRIVATE KEY-----\nMIIEow",
            "AKIAIOSFODNN7EXAMPLE",
            "ASIAIOSFODNN7EXAMPLE",
            "ABIAIOSFODNN7EXAMPLE",
            "ACCAIOSFODNN7EXAMPLE",
            &long("ghs_"),
            &long("github_pat_"),
            &long("glpat-"),
            &long("xoxb-"),
            &format!("AIza{}", &letters[..35]),
            &long("ya29."),
            &long("sk_live_"),
            &long("rk_test_"),
            &format!("npm_{}", &letters[..36]),
            &long("pypi-"),
            &long("sk-"),
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ",
            "BEARER abcdefghij0123456789",
            "Authorization: Basic dXNlcjpwYXNz",
            "ftp://me:s3cr3t@host",
        ] {
            assert!(clean(secret).contains(MARK), "{secret}");
        }
        for word in [
            "Secret",
            "token",
            "passwd",
            "PASSWORD",
            "passphrase",
            "pwd",
            "credential",
            "credentials",
            "api_key",
            "accesskey",
            "secret.key",
            "private-key",
            "account_key",
            "auth_key",
            "signing_key",
        ] {
            assert!(clean(&format!("{word}=a8F3kd02LmQ9zz")).contains(MARK), "{word}");
        }
    }

    #[test]
    fn text_without_secrets_is_unchanged() {
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
            "Authorization: Basic Authentication is what it speaks",
            "Authorization: Basic auth, then basic tests",
            "ya29.example and -----BEGIN PGP PUBLIC KEY BLOCK-----",
        ] {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn members_with_secret_names_are_redacted() {
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
        let mut headers =
            json!({"Authorization": "Basic dXNlcjpwYXNz", "Proxy-Authorization": "Basic rules apply"});
        assert_eq!(redact(None, &mut headers), 1);
        assert_eq!(
            headers,
            json!({"Authorization": "Basic [redacted]", "Proxy-Authorization": "Basic rules apply"})
        );
    }

    #[test]
    fn member_names_are_redacted_without_losing_members() {
        let token = |end: &str| format!("ghp_{}{end}", "a1".repeat(18));
        let mut value =
            json!({token("x"): 1, token("y"): {"by": token("z")}, "[redacted]": 0, "token_count": 9});
        assert_eq!(redact(None, &mut value), 3);
        let clean = json!({"[redacted]": 0, "[redacted] 2": 1, "[redacted] 3": {"by": "[redacted]"}, "token_count": 9});
        assert_eq!(value, clean);
        assert_eq!(redact(None, &mut value), 0);
    }
}
