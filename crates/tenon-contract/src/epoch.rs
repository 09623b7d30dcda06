//! Epochs: counters that advance with each change of the workspace, and the tuples that go into snapshot keys.
//!
//! Invariant: an epoch value is never used twice for one root, not even by another daemon. Counters start at the
//! wall time in microseconds, so a daemon would need a million changes a second to reach its successor's start. If the
//! wall clock is set back between two daemons, their roots counters still differ, since that counter hardly ever
//! advances. Microseconds stay exact in a float until the year 2255.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::Clock;
use crate::root::RootGate;

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Epoch {
    /// The set of allowed roots or their configuration.
    Roots,
    /// The text that a language server sees for some path.
    Text,
    /// The set of files: created, deleted or renamed.
    Fs,
    /// The diagnostics of some file.
    Diagnostics,
}

/// Which epochs a result depends on. All results depend on the roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochSet {
    text: bool,
    fs: bool,
    diagnostics: bool,
}

impl EpochSet {
    /// For results computed from the code: references and workspace symbols.
    pub const CODE: Self = Self { text: true, fs: true, diagnostics: false };
    /// For results that language servers push: workspace diagnostics.
    pub const DIAGNOSTICS: Self = Self { text: false, fs: true, diagnostics: true };

    const fn contains(self, epoch: Epoch) -> bool {
        match epoch {
            Epoch::Roots => true,
            Epoch::Text => self.text,
            Epoch::Fs => self.fs,
            Epoch::Diagnostics => self.diagnostics,
        }
    }
}

/// The counters of one workspace. They only grow.
#[derive(Debug)]
pub struct Epochs {
    roots: AtomicU64,
    text: AtomicU64,
    fs: AtomicU64,
    diagnostics: AtomicU64,
}

impl Epochs {
    /// Counters that start above any value an earlier daemon can have reached.
    #[must_use]
    pub fn starting_now(clock: &Clock) -> Self {
        let start = u64::try_from(clock.now().as_microsecond()).unwrap_or(0);
        let counter = || AtomicU64::new(start);
        Self { roots: counter(), text: counter(), fs: counter(), diagnostics: counter() }
    }

    /// Records a change and returns the new value.
    pub fn advance(&self, epoch: Epoch) -> u64 {
        self.counter(epoch).fetch_add(1, Ordering::SeqCst) + 1
    }

    #[must_use]
    pub fn get(&self, epoch: Epoch) -> u64 {
        self.counter(epoch).load(Ordering::SeqCst)
    }

    /// The current values of the epochs in `set`, with the roots of `gate`.
    #[must_use]
    pub fn tuple(&self, set: EpochSet, gate: &RootGate) -> EpochTuple {
        // The contract fixes this order.
        let epochs: Vec<u64> = [Epoch::Roots, Epoch::Text, Epoch::Fs, Epoch::Diagnostics]
            .into_iter()
            .filter(|&epoch| set.contains(epoch))
            .map(|epoch| self.get(epoch))
            .collect();
        EpochTuple::new(gate.key(), &epochs)
    }

    fn counter(&self, epoch: Epoch) -> &AtomicU64 {
        match epoch {
            Epoch::Roots => &self.roots,
            Epoch::Text => &self.text,
            Epoch::Fs => &self.fs,
            Epoch::Diagnostics => &self.diagnostics,
        }
    }
}

/// One state of the workspace: `roots:<key>|epochs:<n>,<n>,…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochTuple(String);

impl EpochTuple {
    pub(crate) fn new(roots_key: &str, epochs: &[u64]) -> Self {
        let epochs: Vec<String> = epochs.iter().map(u64::to_string).collect();
        Self(format!("roots:{roots_key}|epochs:{}", epochs.join(",")))
    }
}

impl fmt::Display for EpochTuple {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn gate() -> RootGate {
        RootGate::new(Vec::<&str>::new()).unwrap()
    }

    #[test]
    fn tuples_list_epochs_in_contract_order() {
        let (clock, _) = Clock::fixed(jiff::Timestamp::UNIX_EPOCH);
        let epochs = Epochs::starting_now(&clock);
        for (epoch, times) in [(Epoch::Roots, 1), (Epoch::Text, 2), (Epoch::Fs, 3), (Epoch::Diagnostics, 4)] {
            (0..times).for_each(|_| {
                epochs.advance(epoch);
            });
        }
        let key = crate::id::sha256_hex("[]");
        assert_eq!(epochs.tuple(EpochSet::CODE, &gate()).to_string(), format!("roots:{key}|epochs:1,2,3"));
        assert_eq!(
            epochs.tuple(EpochSet::DIAGNOSTICS, &gate()).to_string(),
            format!("roots:{key}|epochs:1,3,4")
        );
    }

    #[test]
    fn change_affects_only_tuples_that_depend_on_it() {
        let epochs = Epochs::starting_now(&Clock::system());
        let before = (epochs.tuple(EpochSet::CODE, &gate()), epochs.tuple(EpochSet::DIAGNOSTICS, &gate()));
        epochs.advance(Epoch::Text);
        assert_ne!(epochs.tuple(EpochSet::CODE, &gate()), before.0);
        assert_eq!(epochs.tuple(EpochSet::DIAGNOSTICS, &gate()), before.1);
    }

    #[test]
    fn later_daemon_starts_above_an_earlier_one() {
        let (clock, control) = Clock::fixed("2026-01-02T12:00:00Z".parse().unwrap());
        let earlier = Epochs::starting_now(&clock);
        let reached = (0..1000).map(|_| earlier.advance(Epoch::Fs)).last().unwrap();
        control.advance(Duration::from_millis(2));
        let later = Epochs::starting_now(&clock);
        assert!(later.get(Epoch::Fs) > reached);
        assert!(later.get(Epoch::Roots) < 1 << 53);
    }
}
