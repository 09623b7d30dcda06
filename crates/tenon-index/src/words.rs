//! The words of a text: what tells which files mention a name, without reading them.
//!
//! A word is a run of letters, digits, `_` and bytes outside ASCII, in code, comments and strings alike. Signs such as
//! `$` and `?` separate, so a name has the same words in every language.

/// FNV-1a, folded to 32 bits. Fixed, because hashes are stored; a collision only makes a file look worth reading.
pub(crate) fn hash(word: &[u8]) -> u32 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in word {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    (hash >> 32) as u32 ^ hash as u32
}

const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !is_word_byte(*byte))
        // Numbers are not names.
        .filter(|word| word.first().is_some_and(|first| !first.is_ascii_digit()))
}

/// The hashes of the words in order, with repetitions.
pub(crate) fn word_hashes(text: &[u8]) -> impl Iterator<Item = u32> {
    words(text).map(hash)
}

/// The hashes of the distinct words, sorted.
pub(crate) fn distinct_word_hashes(text: &[u8]) -> Box<[u32]> {
    let mut hashes: Vec<u32> = word_hashes(text).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_identifiers_without_signs_and_numbers() {
        let found: Vec<&[u8]> = words("$a.b_c(0x1f, größe?) // d-e 12".as_bytes()).collect();
        let expected = ["a", "b_c", "größe", "d", "e"].map(str::as_bytes);
        assert_eq!(found, expected);
        assert_eq!(distinct_word_hashes(b"a b a").len(), 2);
    }
}
