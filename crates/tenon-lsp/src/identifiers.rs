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
    find(text, word).is_some()
}

/// Where a text contains an identifier first, not just as part of a longer one.
pub(crate) fn find(text: &str, word: &str) -> Option<usize> {
    let is_alone =
        |at: usize| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part);
    text.match_indices(word).map(|(at, _)| at).find(|at| is_alone(*at))
}

/// The identifier at a byte offset, or just before it.
pub(crate) fn at(text: &str, offset: usize) -> Option<&str> {
    let start = text[..offset].rfind(|c| !is_part(c)).map_or(0, |before| text.ceil_char_boundary(before + 1));
    let end = text[offset..].find(|c| !is_part(c)).map_or(text.len(), |after| offset + after);
    (start < end).then(|| &text[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_identifiers_match() {
        assert_eq!(of("def größe_2(a, i9, 12ab): größe").collect::<Vec<_>>(), ["def", "größe_2", "größe"]);
        assert!(contains("x.total(1)", "total") && contains("total", "total"));
        let text = "a größe(x)";
        assert_eq!([at(text, 2), at(text, 9), at(text, 11)], [Some("größe"), Some("größe"), Some("x")]);
        assert_eq!((at("( )", 1), at("", 0)), (None, None));
        assert!(!contains("subtotal totals total_", "total"));
    }
}
