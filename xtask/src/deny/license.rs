//! SPDX licence expressions: `OR`, `AND`, `WITH`, parentheses, and `/` as an old form of `OR`.

use std::collections::BTreeSet;

/// The allowed licences that satisfy an expression, or `None` if it cannot be satisfied.
pub(super) fn allowed(expression: &str, allowed: &BTreeSet<String>) -> Option<BTreeSet<String>> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut parser = Parser { words: spaced.split_whitespace().collect(), allowed };
    parser.words.reverse();
    let found = parser.any();
    found.filter(|_| parser.words.is_empty())
}

struct Parser<'a> {
    /// The words that are left, last first.
    words: Vec<&'a str>,
    allowed: &'a BTreeSet<String>,
}

impl Parser<'_> {
    fn take(&mut self, word: &str) -> bool {
        self.words.pop_if(|next| *next == word).is_some()
    }

    fn any(&mut self) -> Option<BTreeSet<String>> {
        let mut found = self.all();
        while self.take("OR") {
            let other = self.all();
            found = match (found, other) {
                (Some(one), Some(other)) => Some(one.union(&other).cloned().collect()),
                (one, other) => one.or(other),
            };
        }
        found
    }

    fn all(&mut self) -> Option<BTreeSet<String>> {
        let mut found = self.one();
        while self.take("AND") {
            let other = self.one();
            found = found.zip(other).map(|(one, other)| one.union(&other).cloned().collect());
        }
        found
    }

    fn one(&mut self) -> Option<BTreeSet<String>> {
        if self.take("(") {
            let found = self.any();
            return found.filter(|_| self.take(")"));
        }
        let mut license = self.words.pop()?.to_owned();
        if self.take("WITH") {
            license = format!("{license} WITH {}", self.words.pop()?);
        }
        self.allowed.contains(&license).then(|| [license].into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn satisfied(expression: &str) -> bool {
        let list = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        allowed(expression, &list.into()).is_some()
    }

    #[test]
    fn expressions_are_evaluated() {
        for fine in ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "MIT AND ISC", "(MIT OR GPL-3.0) AND ISC"] {
            assert!(satisfied(fine), "{fine}");
        }
        assert!(satisfied("Apache-2.0 WITH LLVM-exception OR GPL-3.0"));
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "(MIT", "MIT MIT"] {
            assert!(!satisfied(bad), "{bad}");
        }
    }
}
