//! Counts of passed and failed tests, read from the output of each runner.

use std::ops::AddAssign;

/// A sum of test results.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: u64,
    pub(super) failed: u64,
    /// Names of the failed tests.
    pub(super) failures: Vec<String>,
}

impl Tally {
    /// The result of a check that passes or fails as a whole.
    pub(super) fn one(name: &str, passed: bool) -> Self {
        match passed {
            true => Self { passed: 1, ..Self::default() },
            false => Self { failed: 1, failures: vec![name.to_owned()], ..Self::default() },
        }
    }

    fn counts(passed: u64, failed: u64) -> Self {
        Self { passed, failed, failures: Vec::new() }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.failures.extend(other.failures);
    }
}

/// A line of `cargo test`: `test result: ok. 3 passed; 0 failed; …` or `test name ... FAILED`.
pub(super) fn libtest(line: &str) -> Option<Tally> {
    if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
        return Some(Tally { failures: vec![name.to_owned()], ..Tally::default() });
    }
    let counts = line.strip_prefix("test result: ")?;
    Some(Tally::counts(number_before(counts, "passed"), number_before(counts, "failed")))
}

/// A line of nextest: `Summary [ 1.2s] 5 tests run: 3 passed (1 slow), 2 failed, …` or
/// `FAIL [ 0.1s] crate test`. A test that timed out or could not be started counts as failed.
pub(super) fn nextest(line: &str) -> Option<Tally> {
    let line = line.trim_start();
    for kind in ["FAIL [", "TIMEOUT [", "SIGNAL ["] {
        if let Some(rest) = line.strip_prefix(kind) {
            let name = rest.split_once(']')?.1.trim();
            // Newer releases add a counter: `(3/9) crate test`.
            let name =
                name.strip_prefix('(').and_then(|rest| rest.split_once(") ")).map_or(name, |(_, name)| name);
            return Some(Tally { failures: vec![name.to_owned()], ..Tally::default() });
        }
    }
    let counts = line.strip_prefix("Summary [")?;
    let failed = ["failed", "timed out", "exec failed"];
    let failed = failed.iter().map(|word| number_before(counts, word)).sum();
    Some(Tally::counts(number_before(counts, "passed"), failed))
}

/// The number right before `word` in a list such as `3 passed (1 slow), 2 exec failed`.
fn number_before(counts: &str, word: &str) -> u64 {
    let parts = counts.split([',', ';', ':', '.', '(']);
    let numbers = parts.filter_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok());
    numbers.into_iter().next().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libtest_results_are_read() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.1s";
        assert_eq!(libtest(line), Some(Tally::counts(12, 3)));
        assert_eq!(libtest("test a::b ... ok"), None);
        assert_eq!(libtest("test a::b ... FAILED").unwrap().failures, ["a::b"]);
    }

    #[test]
    fn nextest_results_are_read() {
        let clean = "     Summary [   1.201s] 45 tests run: 45 passed (2 slow), 1 skipped";
        assert_eq!(nextest(clean), Some(Tally::counts(45, 0)));
        let broken =
            "     Summary [  61.201s] 9 tests run: 4 passed, 2 failed, 2 timed out, 1 exec failed, 0 skipped";
        assert_eq!(nextest(broken), Some(Tally::counts(4, 5)));
        let one = "        FAIL [   0.004s] (3/9) tenon-lsp::codec header_is_read";
        assert_eq!(nextest(one).unwrap().failures, ["tenon-lsp::codec header_is_read"]);
        assert_eq!(nextest("   Compiling tenon v0.1.0"), None);
    }

    #[test]
    fn tallies_add_up() {
        let mut total = Tally::one("fmt", true);
        total += Tally::one("clippy", false);
        total += Tally::counts(3, 0);
        assert_eq!((total.passed, total.failed, total.failures), (4, 1, vec!["clippy".to_owned()]));
    }
}
