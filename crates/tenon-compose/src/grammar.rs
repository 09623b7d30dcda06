//! The grammar of names: instance ids, built-in owner ids, local ids, canonical keys, route paths, renderer claims.
//!
//! Every check returns the first reason that applies, in the contract's order, so that an invalid name has one stable
//! reason. Names are never repaired: no trimming, lowercasing, decoding or suffixing.

use crate::kind::{ContributionKind, RendererKind};

/// A stable reason code of a diagnostic.
pub type ReasonCode = &'static str;

/// The prefix reserved for built-in owner ids.
pub const BUILTIN_PREFIX: &str = "builtin-";

/// The default text renderers, which cannot be claimed.
pub const DEFAULT_RENDERERS: [&str; 2] = ["assistant-text", "user-text"];

/// Checks the id of a module instance.
pub fn instance_id(value: &str) -> Result<(), ReasonCode> {
    name(value, 3..=64, false)?;
    if value.starts_with(BUILTIN_PREFIX) {
        return Err("reserved-prefix");
    }
    random_suffix(value)
}

/// Checks the id of a built-in owner.
pub fn builtin_id(value: &str) -> Result<(), ReasonCode> {
    name(value, 3..=64, false)?;
    if !value.starts_with(BUILTIN_PREFIX) {
        return Err("missing-builtin-prefix");
    }
    random_suffix(value)
}

/// Checks the id of a contribution inside its owner and kind.
pub fn local_id(value: &str) -> Result<(), ReasonCode> {
    name(value, 1..=80, true)?;
    random_suffix(value)
}

fn name(value: &str, length: std::ops::RangeInclusive<usize>, dots: bool) -> Result<(), ReasonCode> {
    let count = value.chars().count();
    if count < *length.start() {
        return Err("too-short");
    }
    if count > *length.end() {
        return Err("too-long");
    }
    if !value.starts_with(lower_alnum) {
        return Err("invalid-start");
    }
    let allowed = |c: char| lower_alnum(c) || c == '-' || (dots && c == '.');
    if !value.chars().all(allowed) {
        return Err("invalid-character");
    }
    Ok(())
}

fn lower_alnum(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

/// Rejects a UUID or long hex suffix: a generated id makes the name different at every start.
fn random_suffix(value: &str) -> Result<(), ReasonCode> {
    let hex = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let last = value.rsplit(['-', '.']).next().unwrap_or(value);
    let ends_in_uuid = || {
        let start = value.len().checked_sub(36)?;
        let after_separator = start == 0 || value[..start].ends_with(['-', '.']);
        let groups: Vec<&str> = value[start..].split('-').collect();
        let shaped = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]);
        (after_separator && shaped && groups.into_iter().all(hex)).then_some(())
    };
    if (last.len() >= 16 && hex(last)) || ends_in_uuid().is_some() {
        return Err("random-suffix");
    }
    Ok(())
}

/// Checks the grammar of a route path. Which owner may use `/` is checked in `pipeline::routes`.
pub fn route_path(value: &str) -> Result<(), ReasonCode> {
    if is_canonical_path(value) {
        return Ok(());
    }
    let segments = || value.split('/').skip(1);
    if has_scheme(value) {
        Err("absolute-url")
    } else if value.contains('\\') {
        Err("backslash")
    } else if value.contains('%') {
        Err("percent-encoding")
    } else if value.contains(['?', '#']) {
        Err("query-or-hash")
    } else if value.contains([':', '*', '[', ']', '{', '}', '<', '>', '(', ')', '$']) {
        Err("dynamic-segment")
    } else if !value.starts_with('/') {
        Err("missing-leading-slash")
    } else if value.contains("//") {
        Err("repeated-slash")
    } else if value.len() > 1 && value.ends_with('/') {
        Err("trailing-slash")
    } else if segments().any(|segment| segment == "." || segment == "..") {
        Err("dot-segment")
    } else if !value.chars().all(|c| lower_alnum(c) || matches!(c, '-' | '_' | '/')) {
        Err("invalid-character")
    } else {
        Err("invalid-start")
    }
}

/// True for `/`, or segments that each follow a slash and begin with a letter or a digit.
fn is_canonical_path(value: &str) -> bool {
    let segment = |segment: &str| {
        segment.starts_with(lower_alnum) && segment.chars().all(|c| lower_alnum(c) || matches!(c, '-' | '_'))
    };
    match value.strip_prefix('/') {
        Some(rest) => rest.is_empty() || rest.split('/').all(segment),
        None => false,
    }
}

/// True for `https:`, `mailto:` and other schemes: a letter, then letters, digits and `+-.`, then a colon.
fn has_scheme(value: &str) -> bool {
    let Some((scheme, _)) = value.split_once(':') else {
        return false;
    };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Checks a renderer claim and returns its renderer kind.
pub fn claim(value: &str) -> Result<RendererKind, ReasonCode> {
    let (kind, rest) = value.split_once(':').ok_or("unknown-kind")?;
    let kind = RendererKind::parse(kind).ok_or("unknown-kind")?;
    if rest.is_empty() {
        return Err("empty-value");
    }
    if rest.contains('*') {
        return Err("wildcard");
    }
    let allowed = |c: char| lower_alnum(c) || matches!(c, '-' | '_' | '.' | '/');
    if !rest.starts_with(lower_alnum) || !rest.chars().all(allowed) {
        return Err("invalid-character");
    }
    Ok(kind)
}

/// The protected default renderer that a claim names, if any.
pub fn default_renderer(claim: &str) -> Option<&'static str> {
    let value = claim.strip_prefix("message:")?;
    DEFAULT_RENDERERS.into_iter().find(|protected| *protected == value)
}

/// The parts of a canonical contribution key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyParts<'a> {
    pub owner_id: &'a str,
    pub kind: ContributionKind,
    pub local_id: &'a str,
}

impl KeyParts<'_> {
    #[must_use]
    pub fn is_builtin(&self) -> bool {
        self.owner_id.starts_with(BUILTIN_PREFIX)
    }
}

/// Formats a canonical contribution key.
pub fn canonical_key(owner_id: &str, kind: ContributionKind, local_id: &str) -> String {
    let kind = kind.as_str();
    let mut key = String::with_capacity(owner_id.len() + kind.len() + local_id.len() + 2);
    key.push_str(owner_id);
    key.push(':');
    key.push_str(kind);
    key.push('/');
    key.push_str(local_id);
    key
}

/// Parses a canonical contribution key.
pub fn parse_key(key: &str) -> Option<KeyParts<'_>> {
    let parts = key_splits(key).next()?;
    let owner = if parts.is_builtin() { builtin_id } else { instance_id };
    (owner(parts.owner_id).is_ok() && local_id(parts.local_id).is_ok()).then_some(parts)
}

/// Every split of `key` into owner, kind and local id. Neither id has to be valid.
pub(crate) fn key_splits(key: &str) -> impl Iterator<Item = KeyParts<'_>> {
    key.match_indices(':').filter_map(|(colon, _)| {
        let (kind, local_id) = key[colon + 1..].split_once('/')?;
        Some(KeyParts { owner_id: &key[..colon], kind: ContributionKind::parse(kind)?, local_id })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_ids() {
        for good in
            ["data-lab-prod", "github-staging", "mcp2", "a--", "0aa", &"a".repeat(15), "x-0123456789abcde"]
        {
            assert_eq!(instance_id(good), Ok(()), "{good}");
        }
        for (bad, reason) in [
            ("", "too-short"),
            ("dl", "too-short"),
            ("DL", "too-short"),
            (&"z".repeat(65), "too-long"),
            ("DataLab", "invalid-start"),
            ("-data", "invalid-start"),
            ("data/lab", "invalid-character"),
            ("data:lab", "invalid-character"),
            ("data.lab", "invalid-character"),
            ("data lab", "invalid-character"),
            ("dataLab", "invalid-character"),
            ("données", "invalid-character"),
            ("builtin-chat", "reserved-prefix"),
            ("lab-0123456789abcdef", "random-suffix"),
            ("0123456789abcdef0", "random-suffix"),
            ("lab-123e4567-e89b-12d3-a456-426614174000", "random-suffix"),
            ("123e4567-e89b-12d3-a456-426614174000", "random-suffix"),
        ] {
            assert_eq!(instance_id(bad), Err(reason), "{bad}");
        }
        assert_eq!(instance_id("lab123e4567-e89b-12d3-a456-426614174000"), Ok(()));
        assert_eq!(builtin_id("builtin-claude-chat"), Ok(()));
        assert_eq!(builtin_id("claude-chat"), Err("missing-builtin-prefix"));
        assert_eq!(builtin_id("builtin-0123456789abcdef"), Err("random-suffix"));
    }

    #[test]
    fn local_ids() {
        for good in ["home", "connection", "tool.query-result", "a", "0"] {
            assert_eq!(local_id(good), Ok(()), "{good}");
        }
        for (bad, reason) in [
            ("", "too-short"),
            (&"z".repeat(81), "too-long"),
            ("ToolCard", "invalid-start"),
            (".home", "invalid-start"),
            ("settings/panel", "invalid-character"),
            ("home.0123456789abcdef", "random-suffix"),
        ] {
            assert_eq!(local_id(bad), Err(reason), "{bad}");
        }
    }

    #[test]
    fn route_paths() {
        for good in ["/", "/data-lab", "/data-lab/runs", "/github-staging", "/a_b/0"] {
            assert_eq!(route_path(good), Ok(()), "{good}");
        }
        for (bad, reason) in [
            ("", "missing-leading-slash"),
            ("data-lab", "missing-leading-slash"),
            ("/DataLab", "invalid-character"),
            ("/data-lab/", "trailing-slash"),
            ("//", "repeated-slash"),
            ("/data-lab?tab=runs", "query-or-hash"),
            ("/data-lab#top", "query-or-hash"),
            ("/projects/:id", "dynamic-segment"),
            ("/projects/[id]", "dynamic-segment"),
            ("/projects/*", "dynamic-segment"),
            ("/data//lab", "repeated-slash"),
            ("/data.lab", "invalid-character"),
            ("/data/../lab", "dot-segment"),
            ("/./lab", "dot-segment"),
            ("/data/%6cabs", "percent-encoding"),
            ("/data\\lab", "backslash"),
            ("https://example.com/data-lab", "absolute-url"),
            ("javascript:alert(1)", "absolute-url"),
            ("//example.com/lab", "repeated-slash"),
            ("/-a", "invalid-start"),
            ("/a/_b", "invalid-start"),
            ("/data lab", "invalid-character"),
        ] {
            assert_eq!(route_path(bad), Err(reason), "{bad}");
        }
    }

    #[test]
    fn claims() {
        for (good, kind) in [
            ("message:data-lab.result", RendererKind::Message),
            ("tool:data_lab.query", RendererKind::Tool),
            ("activity:data-lab.query.started", RendererKind::Activity),
            ("tool:a/b", RendererKind::Tool),
        ] {
            assert_eq!(claim(good), Ok(kind), "{good}");
        }
        for (bad, reason) in [
            ("", "unknown-kind"),
            ("tool", "unknown-kind"),
            ("Tool:x", "unknown-kind"),
            ("page:x", "unknown-kind"),
            ("activity:", "empty-value"),
            ("tool:*", "wildcard"),
            ("tool:A*", "wildcard"),
            ("tool:Query", "invalid-character"),
            ("tool:-query", "invalid-character"),
            ("tool:a:b", "invalid-character"),
            ("tool:a b", "invalid-character"),
        ] {
            assert_eq!(claim(bad), Err(reason), "{bad}");
        }
        assert_eq!(default_renderer("message:assistant-text"), Some("assistant-text"));
        assert_eq!(default_renderer("message:user-text"), Some("user-text"));
        assert_eq!(default_renderer("tool:user-text"), None);
        assert_eq!(default_renderer("message:user-text2"), None);
    }

    #[test]
    fn keys() {
        let key = canonical_key("data-lab-prod", ContributionKind::ToolRenderers, "query.card");
        assert_eq!(key, "data-lab-prod:tool-renderers/query.card");
        let parts = parse_key(&key).unwrap();
        assert_eq!((parts.owner_id, parts.local_id), ("data-lab-prod", "query.card"));
        for bad in
            ["", "a", "data-lab-prod:routes", "data-lab-prod:pages/home", "dl:routes/home", "x:*/y", "*"]
        {
            assert_eq!(parse_key(bad), None, "{bad}");
        }
        let loose: Vec<_> =
            key_splits("a:routes/b:routes/c").map(|parts| (parts.owner_id, parts.local_id)).collect();
        assert_eq!(loose, [("a", "b:routes/c"), ("a:routes/b", "c")]);
    }
}
