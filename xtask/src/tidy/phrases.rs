//! Phrases that make the reader decode a sentence, with what to write instead.
//!
//! A phrase also matches across a line break in a comment and inside a `snake_case` name.

use super::{Offence, SourceFile};

/// Phrase and advice. `|` is removed, so that this file does not contain the phrases.
const PHRASES: [(&str, &str); 41] = [
    ("no|body", "name who: no client, no caller, no one"),
    ("some|body", "name who: a client, a caller, a user"),
    ("any|body", "name who: a client, a caller, a user"),
    ("who|ever", "name who: the client that, the caller that"),
    ("whom|ever", "name who: the client that, the caller that"),
    ("me|nd", "fix"),
    ("me|nds", "fixes"),
    ("me|nded", "fixed"),
    ("me|nding", "fixing"),
    ("sta|nds", "is, applies, contains"),
    ("sta|nd behind", "follow"),
    ("sta|nd so", "are"),
    ("sta|nd there", "are there"),
    ("cannot be to|ld", "cannot determine"),
    ("of it|s", "use a possessive or name the owner"),
    ("is n|o", "is not a, is invalid"),
    ("are n|o", "are not, are invalid"),
    ("is non|e", "is invalid"),
    ("to be h|ad", "available"),
    ("at leis|ure", "later"),
    ("an|ew", "again"),
    ("there|of", "of it, or name it"),
    ("as it should b|e", "unchanged, correct"),
    ("come to its e|nd", "complete"),
    ("comes to its e|nd", "completes"),
    ("came to its e|nd", "completed"),
    ("goes o|n", "continues"),
    ("says n|o", "rejects, is missing"),
    ("has its s|ay", "decides"),
    ("take ba|ck", "cancel, roll back"),
    ("takes ba|ck", "cancels, rolls back"),
    ("taken ba|ck", "cancelled, rolled back"),
    ("took ba|ck", "cancelled, rolled back"),
    ("tell o|f", "report"),
    ("tells o|f", "reports"),
    ("told o|f", "reported, notified of"),
    ("telling o|f", "reporting"),
    ("asked ab|out", "requested, queried"),
    ("so that no list o|f", "say what may be incomplete"),
    ("the like o|f", "such as"),
    ("a way o|n", "a next step"),
];

/// Texts that we may not change.
const EXCEPTIONS: [(&str, &str); 1] = [("LICENSE-APACHE", "the text of the licence")];

pub(super) fn check(files: &[SourceFile], offences: &mut Vec<Offence>) {
    let phrases: Vec<Phrase> = PHRASES.iter().map(|(text, advice)| Phrase::new(text, advice)).collect();
    for file in files {
        if EXCEPTIONS.iter().any(|(path, _)| *path == file.path) {
            continue;
        }
        let words = words(&file.text);
        for (start, word) in words.iter().enumerate() {
            let Some(initial) = word.text.bytes().next() else { continue };
            // Most words differ in the first letter, so this keeps the check fast.
            let candidates = phrases.iter().filter(|phrase| phrase.initial == initial.to_ascii_lowercase());
            let found = candidates.filter(|phrase| phrase.matches(&words, start));
            offences.extend(found.map(|phrase| file.offence(word.line, phrase.rule())));
        }
    }
}

struct Phrase {
    /// The first letter.
    initial: u8,
    words: Vec<String>,
    advice: &'static str,
}

impl Phrase {
    fn new(text: &str, advice: &'static str) -> Self {
        let text = text.replace('|', "");
        Self { initial: text.as_bytes()[0], words: text.split(' ').map(str::to_owned).collect(), advice }
    }

    fn rule(&self) -> String {
        format!("\"{}\": {}", self.words.join(" "), self.advice)
    }

    fn matches(&self, words: &[Word<'_>], start: usize) -> bool {
        let Some(found) = words.get(start..start + self.words.len()) else { return false };
        let same = |(word, expected): (&Word<'_>, &String)| word.text.eq_ignore_ascii_case(expected);
        if !found.iter().zip(&self.words).all(same) || !found[1..].iter().all(|word| word.joined) {
            return false;
        }
        let before = start.checked_sub(1).map_or("", |index| words[index].text);
        let after = words.get(start + self.words.len()).map_or("", |word| word.text);
        match self.words.last().map(String::as_str) {
            // "There is no X", "is no longer" and `is_none` are fine.
            Some("no" | "none") if found.len() == 2 && self.words[0] != "says" => {
                let longer = after.eq_ignore_ascii_case("longer");
                let method = self.words[1] == "none" && found[1].underscore;
                !(before.eq_ignore_ascii_case("there") || longer || method)
            }
            _ => true,
        }
    }
}

/// A run of letters and digits.
struct Word<'a> {
    text: &'a str,
    line: usize,
    /// Only white space, a comment marker or an underscore separates it from the word before.
    joined: bool,
    /// An underscore separates it from the word before.
    underscore: bool,
}

fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let content = line.trim_start().trim_start_matches(['/', '!', '#', '*', '>']);
        let mut rest = content;
        while let Some(start) = rest.find(|c: char| c.is_alphanumeric()) {
            let separator = &rest[..start];
            let length = rest[start..].find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len() - start);
            let joined = separator.chars().all(char::is_whitespace) || separator == "_";
            let word = &rest[start..start + length];
            words.push(Word { text: word, line: index + 1, joined, underscore: separator == "_" });
            rest = &rest[start + length..];
        }
        // Punctuation at the end of a line separates.
        if !rest.trim().is_empty() || content.is_empty() {
            words.push(Word { text: "", line: index + 1, joined: false, underscore: false });
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        let mut offences = Vec::new();
        check(&[SourceFile { path: "a.md".into(), text: text.replace('|', "") }], &mut offences);
        offences.len()
    }

    #[test]
    fn phrases_are_found() {
        for text in
            ["N|obody asks.", "the end o|f its line", "it is n|o file", "fn no|body_asks()", "is n|o_file"]
        {
            assert_eq!(found(text), 1, "{text}");
        }
        assert_eq!(found("/// at the end o|f\n/// its line"), 1);
    }

    #[test]
    fn other_uses_are_allowed() {
        for text in [
            "There is no file.",
            "it is no longer there",
            "understands",
            "value.is_none()",
            "the end o|f. Its line",
            "the end o|f\n\nits line",
            "recommend",
        ] {
            assert_eq!(found(text), 0, "{text}");
        }
    }
}
