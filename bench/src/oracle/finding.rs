//! Errors by file, rule and message, and how often each occurs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// An error of a file, without its position.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) file: String,
    rule: String,
    /// The first line, without differences in white space.
    message: String,
}

impl Finding {
    pub(crate) fn new(root: &Path, file: &str, rule: &str, message: &str) -> Self {
        let message = message.replace(root.to_str().unwrap_or_default(), "");
        let words: Vec<&str> = message.lines().next().unwrap_or_default().split_whitespace().collect();
        Self { file: file.to_owned(), rule: rule.to_owned(), message: words.join(" ") }
    }

    pub(crate) fn rule(&self) -> &str {
        &self.rule
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// An error of clang or clangd. clangd names rules in another way, starts messages in upper case and mentions fixes.
    pub(crate) fn of_clang(root: &Path, file: &str, message: &str) -> Self {
        let message = message.lines().next().unwrap_or_default();
        let message = message.strip_suffix(" (fix available)").unwrap_or(message);
        let message = message.strip_suffix(" (fixes available)").unwrap_or(message);
        let mut characters = message.chars();
        let first = characters.next().map(|first| first.to_ascii_lowercase());
        let message: String = first.into_iter().chain(characters).collect();
        Self::new(root, file, "", &message)
    }

    /// Only the names in the message: TypeScript suggests another name only some times per process, with another rule and text.
    /// The order of a union's members depends on the process, too.
    pub(crate) fn without_suggestion(&self) -> Self {
        let message = self.message.split(" Did you mean ").next().unwrap_or_default();
        let sorted = |name: &str| {
            let mut members: Vec<&str> = name.split(" | ").collect();
            members.sort_unstable();
            members.join(" | ")
        };
        let names: Vec<String> = message.split('\'').skip(1).step_by(2).map(sorted).collect();
        let message = if names.is_empty() { message.to_owned() } else { names.join(" ") };
        Self { file: self.file.clone(), rule: String::new(), message }
    }

    /// How clangd reports this error in a file that includes the one with the error.
    pub(crate) fn in_included_file(&self, user: &str) -> Self {
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
pub(crate) struct Counts(BTreeMap<Finding, usize>);

impl Counts {
    pub(crate) fn len(&self) -> usize {
        self.0.values().sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Finding, &usize)> {
        self.0.iter()
    }

    /// What occurs here more often than in `other`.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        let more = |(finding, count): (&Finding, &usize)| {
            let rest = count.saturating_sub(other.0.get(finding).copied().unwrap_or_default());
            (rest > 0).then(|| (finding.clone(), rest))
        };
        Self(self.0.iter().filter_map(more).collect())
    }

    /// The same number of other findings.
    pub(crate) fn map(&self, other: impl Fn(&Finding) -> Finding) -> Self {
        let all = self.0.iter().flat_map(|(finding, count)| std::iter::repeat_n(finding, *count));
        all.map(other).collect()
    }

    pub(crate) fn only(&self, wanted: impl Fn(&Finding) -> bool) -> Self {
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
        let suggestion =
            Finding::new(Path::new("/r"), "a", "2552", "Cannot find name 'x'. Did you mean 'y'?");
        let plain = Finding::new(Path::new("/r"), "a", "2304", "Cannot find name 'x'.");
        assert_eq!(suggestion.without_suggestion(), plain.without_suggestion());
        let shorthand = "No value exists in scope for the shorthand property 'x'. Either declare one.";
        let shorthand = Finding::new(Path::new("/r"), "a", "18004", shorthand);
        assert_eq!(shorthand.without_suggestion(), plain.without_suggestion());
        assert_eq!(after.map(Finding::without_suggestion).len(), 3);
        let union =
            |text: &str| Finding::new(Path::new("/r"), "a", "2322", &format!("Type '{text}' is not 'C'."));
        assert_eq!(union("A | B").without_suggestion(), union("B | A").without_suggestion());
    }
}
