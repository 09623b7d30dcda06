//! Errors by file, rule and message, and how often each occurs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// An error of a file, without its position.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) file: String,
    rule: String,
    /// The first line, without differences in white space.
    message: String,
}

impl Finding {
    pub(super) fn new(root: &Path, file: &str, rule: &str, message: &str) -> Self {
        let message = message.replace(root.to_str().unwrap_or_default(), "");
        let words: Vec<&str> = message.lines().next().unwrap_or_default().split_whitespace().collect();
        Self { file: file.to_owned(), rule: rule.to_owned(), message: words.join(" ") }
    }

    /// An error of clang or clangd. clangd names rules in another way, starts messages in upper case and mentions fixes.
    pub(super) fn of_clang(root: &Path, file: &str, message: &str) -> Self {
        let message = message.lines().next().unwrap_or_default();
        let message = message.strip_suffix(" (fix available)").unwrap_or(message);
        let message = message.strip_suffix(" (fixes available)").unwrap_or(message);
        let mut characters = message.chars();
        let first = characters.next().map(|first| first.to_ascii_lowercase());
        let message: String = first.into_iter().chain(characters).collect();
        Self::new(root, file, "", &message)
    }

    /// How clangd reports this error in a file that includes the one with the error.
    pub(super) fn in_included_file(&self, user: &str) -> Self {
        let message = format!("in included file: {}", self.message);
        Self { file: user.to_owned(), rule: self.rule.clone(), message }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.file, self.message, self.rule)
    }
}

/// How often each finding occurs.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts(BTreeMap<Finding, usize>);

impl Counts {
    pub(super) fn len(&self) -> usize {
        self.0.values().sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Finding, &usize)> {
        self.0.iter()
    }

    /// What occurs here more often than in `other`.
    pub(super) fn minus(&self, other: &Self) -> Self {
        let more = |(finding, count): (&Finding, &usize)| {
            let rest = count.saturating_sub(other.0.get(finding).copied().unwrap_or_default());
            (rest > 0).then(|| (finding.clone(), rest))
        };
        Self(self.0.iter().filter_map(more).collect())
    }

    pub(super) fn only(&self, wanted: impl Fn(&Finding) -> bool) -> Self {
        let wanted = self.0.iter().filter(|(finding, _)| wanted(finding));
        Self(wanted.map(|(finding, count)| (finding.clone(), *count)).collect())
    }
}

impl FromIterator<Finding> for Counts {
    fn from_iter<I: IntoIterator<Item = Finding>>(findings: I) -> Self {
        let mut counts = BTreeMap::new();
        for finding in findings {
            *counts.entry(finding).or_default() += 1;
        }
        Self(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_counts_repeated_findings() {
        let finding = |file: &str| Finding::new(Path::new("/r"), file, "r", "m");
        let after: Counts = [finding("a"), finding("a"), finding("b")].into_iter().collect();
        let before: Counts = [finding("a")].into_iter().collect();
        assert_eq!(after.minus(&before).len(), 2);
        assert!(before.minus(&after).is_empty());
        assert_eq!(after.only(|one| one.file == "a").len(), 2);
    }
}
