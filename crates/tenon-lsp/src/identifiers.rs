//! Identifiers in a text of whatever language: the words that a renamed thing was called by.

/// Whether a character can be part of an identifier.
pub(crate) fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The identifiers of a text, too short ones left out: nobody finds anything by `i`.
pub(crate) fn of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_part(c))
        .filter(|word| word.chars().nth(2).is_some() && !word.starts_with(|c: char| c.is_numeric()))
}

/// Whether a text has a word, not just as a part of another.
pub(crate) fn contains(text: &str, word: &str) -> bool {
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole() {
        assert_eq!(of("def größe_2(a, i9, 12ab): größe").collect::<Vec<_>>(), ["def", "größe_2", "größe"]);
        assert!(contains("x.total(1)", "total") && contains("total", "total"));
        assert!(!contains("subtotal totals total_", "total"));
    }
}
