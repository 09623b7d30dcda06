//! Durations: collecting, summarising and printing them.

use std::time::{Duration, Instant};

use crate::output::print;

/// Durations of repeated runs.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// Times `count` runs of `work`, after `count / 10` warm-up runs.
    pub(crate) fn of<E>(count: usize, mut work: impl FnMut() -> Result<(), E>) -> Result<Self, E> {
        for _ in 0..count / 10 {
            work()?;
        }
        let mut times = Self::default();
        for _ in 0..count {
            let start = Instant::now();
            work()?;
            times.add(start.elapsed());
        }
        Ok(times)
    }

    /// Times `count` runs of both, one after the other in turns, after `count / 10` warm-up runs of each: what else runs on the
    /// machine, and what is in its caches, is the same for both.
    pub(crate) fn of_both<E>(
        count: usize,
        mut one: impl FnMut() -> Result<(), E>,
        mut other: impl FnMut() -> Result<(), E>,
    ) -> Result<(Self, Self), E> {
        for _ in 0..count / 10 {
            one()?;
            other()?;
        }
        let (mut times, mut others) = (Self::default(), Self::default());
        for _ in 0..count {
            times.time(&mut one)?;
            others.time(&mut other)?;
        }
        Ok((times, others))
    }

    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub(crate) fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Adds the time of one run of `work`.
    pub(crate) fn time<T, E>(&mut self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let start = Instant::now();
        let outcome = work()?;
        self.add(start.elapsed());
        Ok(outcome)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The quantile `part`, from 0 to 1.
    pub(crate) fn within(&self, part: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        let last = sorted.len().saturating_sub(1);
        let index = (part * last as f64).round() as usize;
        sorted.get(index.min(last)).copied().unwrap_or_default()
    }

    pub(crate) fn median(&self) -> Duration {
        self.within(0.5)
    }

    /// The medians of up to ten equal parts, in the order in which they were measured.
    fn parts(&self) -> Vec<Duration> {
        let size = self.0.len().div_ceil(PARTS).max(1);
        self.0.chunks(size).map(|part| Self(part.to_vec()).median()).collect()
    }
}

/// Into how many parts two series are divided to compare them.
const PARTS: usize = 10;

/// How many times as long one series took as the other one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ratio {
    median: f64,
    lowest: f64,
    highest: f64,
}

impl Ratio {
    /// Each part of a series is compared with the part of the other one that was measured beside it: the speed of a machine
    /// may change between the first part and the last one. Series of different lengths were not measured in turns.
    fn of(ours: &Times, other: &Times) -> Self {
        let (ours, others) = match ours.len() == other.len() {
            true => (ours.parts(), other.parts()),
            false => (vec![ours.median()], vec![other.median()]),
        };
        let mut ratios: Vec<f64> =
            ours.iter().zip(&others).map(|(ours, other)| ours.as_secs_f64() / other.as_secs_f64()).collect();
        ratios.sort_by(f64::total_cmp);
        let at = |index: usize| ratios.get(index).copied().unwrap_or(f64::NAN);
        let last = ratios.len().saturating_sub(1);
        Self { median: f64::midpoint(at(last / 2), at(last.div_ceil(2))), lowest: at(0), highest: at(last) }
    }
}

/// Waits while nothing is asked: servers finish what they do by themselves, or that is what is measured.
#[expect(clippy::disallowed_methods, reason = "the time itself matters")]
pub(crate) fn idle(time: Duration) {
    std::thread::sleep(time);
}

/// A duration in microseconds or milliseconds.
pub(crate) fn shown(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        ..1000.0 => format!("{micros:.0} µs"),
        _ => format!("{:.1} ms", micros / 1e3),
    }
}

/// The median of a baseline and the ratio of ours to it: the median of the parts, and the lowest and the highest one.
pub(crate) fn beside(name: &str, ours: &Times, other: &Times) -> String {
    let Ratio { median, lowest, highest } = Ratio::of(ours, other);
    let spread = match lowest.to_bits() == highest.to_bits() {
        true => String::new(),
        false => format!(" ({lowest:.2} to {highest:.2})"),
    };
    format!("{name} {}, {median:.2}×{spread}", shown(other.median()))
}

/// Starts a table.
pub(crate) fn table(title: &str) {
    print(&format!("# {title}\n"));
    print("| what | measured | beside it | aim |");
    print("|---|---|---|---|");
}

/// Adds a row.
pub(crate) fn row(what: &str, measured: &str, beside: &str, aim: &str) {
    print(&format!("| {what} | {measured} | {beside} | {aim} |"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_computed() {
        let times = Times((1..=101).map(Duration::from_millis).collect());
        assert_eq!(times.median(), Duration::from_millis(51));
        assert_eq!(times.within(0.95), Duration::from_millis(96));
        assert_eq!(Times::default().median(), Duration::ZERO);
    }

    #[test]
    fn ratio_compares_what_was_measured_at_the_same_time() {
        let times = |all: &[u64]| Times(all.iter().copied().map(Duration::from_millis).collect());
        // The machine is three times as fast after the first two.
        let (ours, other) = (times(&[60, 60, 20, 20, 30]), times(&[30, 30, 10, 10, 10]));
        assert_eq!(beside("bare", &ours, &other), "bare 10.0 ms, 2.00× (2.00 to 3.00)");
        assert_eq!(beside("bare", &times(&[10, 10]), &times(&[10])), "bare 10.0 ms, 1.00×");
    }

    #[test]
    fn durations_are_shown_in_fitting_unit() {
        assert_eq!(shown(Duration::from_micros(42)), "42 µs");
        assert_eq!(shown(Duration::from_micros(4250)), "4.2 ms");
    }
}
