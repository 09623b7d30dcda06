//! Identifiers in a text of any language.

/// Whether a character can be part of an identifier.
pub(crate) fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The identifiers of a text with at least three characters: shorter ones match too much.
pub(crate) fn of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_part(c))
        .filter(|word| word.chars().nth(2).is_some() && !word.starts_with(|c: char| c.is_numeric()))
}

/// Whether a text contains an identifier, not just as part of a longer one.
pub(crate) fn contains(text: &str, word: &str) -> bool {
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_identifiers_match() {
        assert_eq!(of("def größe_2(a, i9, 12ab): größe").collect::<Vec<_>>(), ["def", "größe_2", "größe"]);
        assert!(contains("x.total(1)", "total") && contains("total", "total"));
        assert!(!contains("subtotal totals total_", "total"));
    }
}
