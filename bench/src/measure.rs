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

    /// Times `count` runs of both, in ten alternating rounds, so that other load on the machine affects both.
    pub(crate) fn of_both<E>(
        count: usize,
        mut one: impl FnMut() -> Result<(), E>,
        mut other: impl FnMut() -> Result<(), E>,
    ) -> Result<(Self, Self), E> {
        let (mut times, mut others) = (Self::default(), Self::default());
        for _ in 0..10 {
            times.0.extend(Self::of(count / 10, &mut one)?.0);
            others.0.extend(Self::of(count / 10, &mut other)?.0);
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
}

/// A duration in microseconds or milliseconds.
pub(crate) fn shown(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        ..1000.0 => format!("{micros:.0} µs"),
        _ => format!("{:.1} ms", micros / 1e3),
    }
}

/// The median of a baseline and the ratio of ours to it.
pub(crate) fn beside(name: &str, ours: &Times, other: &Times) -> String {
    let ratio = ours.median().as_secs_f64() / other.median().as_secs_f64();
    format!("{name} {}, {ratio:.2}×", shown(other.median()))
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
    fn durations_are_shown_in_fitting_unit() {
        assert_eq!(shown(Duration::from_micros(42)), "42 µs");
        assert_eq!(shown(Duration::from_micros(4250)), "4.2 ms");
    }
}
