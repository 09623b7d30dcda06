//! One source of time and one of randomness, both of which a test can fix.
//!
//! Nothing else in the product asks the operating system for either. Both are cheap to clone, and clones share
//! their state: a test that turns the hands of a clock turns them for everyone who holds it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use crate::id::hex;

/// Where the time comes from.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System { started: Instant },
    Manual(ClockHands),
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System { started: Instant::now() })
    }

    /// A clock that stands at `start` until its hands are turned.
    #[must_use]
    pub fn fixed(start: Timestamp) -> (Self, ClockHands) {
        Self::stepping(start, Duration::ZERO)
    }

    /// A clock that starts at `start` and moves on by `step` after each reading of the wall time.
    #[must_use]
    pub fn stepping(start: Timestamp, step: Duration) -> (Self, ClockHands) {
        let hands = ClockHands { start, step, elapsed: Arc::default() };
        (Self(Source::Manual(hands.clone())), hands)
    }

    /// The wall time.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the wall clock")]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System { .. } => Timestamp::now(),
            Source::Manual(hands) => hands.read(),
        }
    }

    /// The wall time as RFC 3339 in UTC, to the millisecond: `2026-01-02T03:04:05.678Z`.
    #[must_use]
    pub fn rfc3339(&self) -> String {
        rfc3339(self.now())
    }

    /// The wall time as milliseconds since 1970, zero before.
    #[must_use]
    pub fn unix_millis(&self) -> u64 {
        u64::try_from(self.now().as_millisecond()).unwrap_or(0)
    }

    /// Time since this clock was made; never goes back, whatever happens to the wall time.
    #[must_use]
    pub fn monotonic(&self) -> Duration {
        match &self.0 {
            Source::System { started } => started.elapsed(),
            Source::Manual(hands) => hands.elapsed(),
        }
    }
}

/// RFC 3339 in UTC, to the millisecond: the one way timestamps are written.
#[must_use]
pub fn rfc3339(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// Turns the hands of a [`Clock`] that does not move by itself.
#[derive(Clone, Debug)]
pub struct ClockHands {
    start: Timestamp,
    step: Duration,
    elapsed: Arc<Mutex<Duration>>,
}

impl ClockHands {
    /// Moves wall time and monotonic time on together.
    pub fn advance(&self, by: Duration) {
        let mut elapsed = self.elapsed.lock().unwrap_or_else(PoisonError::into_inner);
        *elapsed = elapsed.saturating_add(by);
    }

    fn elapsed(&self) -> Duration {
        *self.elapsed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> Timestamp {
        let mut elapsed = self.elapsed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SignedDuration::try_from(*elapsed)
            .ok()
            .and_then(|elapsed| self.start.checked_add(elapsed).ok())
            .unwrap_or(Timestamp::MAX);
        *elapsed = elapsed.saturating_add(self.step);
        now
    }
}

/// Where random ids and tokens come from.
#[derive(Clone, Debug)]
pub struct Entropy(Generator);

#[derive(Clone, Debug)]
enum Generator {
    System,
    Seeded(Arc<Mutex<Stream>>),
}

#[derive(Debug)]
struct Stream {
    seed: u64,
    block: u64,
}

impl Entropy {
    /// The operating system's random generator.
    #[must_use]
    pub fn system() -> Self {
        Self(Generator::System)
    }

    /// A sequence that is the same for the same seed. For tests: anyone who knows the seed knows the tokens.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Generator::Seeded(Arc::new(Mutex::new(Stream { seed, block: 0 }))))
    }

    /// `N` random bytes.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that asks the system for randomness"
    )]
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        match &self.0 {
            Generator::System => {
                getrandom::fill(&mut bytes).expect("a system that runs a daemon has a random generator");
            }
            Generator::Seeded(stream) => {
                let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
                for chunk in bytes.chunks_mut(32) {
                    let block =
                        Sha256::digest([stream.seed.to_le_bytes(), stream.block.to_le_bytes()].concat());
                    stream.block += 1;
                    chunk.copy_from_slice(&block[..chunk.len()]);
                }
            }
        }
        bytes
    }

    /// 128 random bits in hex: an id that nobody else will pick.
    #[must_use]
    pub fn id(&self) -> String {
        hex(&self.bytes::<16>())
    }

    /// 256 random bits in hex: a secret that nobody will guess.
    #[must_use]
    pub fn token(&self) -> String {
        hex(&self.bytes::<32>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noon() -> Timestamp {
        "2026-01-02T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_fixed_clock_stands_until_turned() {
        let (clock, hands) = Clock::fixed(noon());
        let shared = clock.clone();
        assert_eq!(clock.rfc3339(), "2026-01-02T12:00:00.000Z");
        assert_eq!(clock.rfc3339(), "2026-01-02T12:00:00.000Z");
        assert_eq!(clock.monotonic(), Duration::ZERO);
        hands.advance(Duration::from_millis(61_001));
        assert_eq!(shared.rfc3339(), "2026-01-02T12:01:01.001Z");
        assert_eq!(shared.monotonic(), Duration::from_millis(61_001));
        assert_eq!(shared.unix_millis(), 1_767_355_261_001);
    }

    #[test]
    fn a_stepping_clock_gives_each_reader_another_time() {
        let (clock, _) = Clock::stepping(noon(), Duration::from_secs(1));
        assert_eq!(clock.now(), noon());
        assert_eq!(clock.rfc3339(), "2026-01-02T12:00:01.000Z");
        assert_eq!(clock.monotonic(), Duration::from_secs(2));
    }

    #[test]
    fn hands_turned_past_the_end_of_time_stay_there() {
        let (clock, hands) = Clock::fixed(noon());
        hands.advance(Duration::MAX);
        hands.advance(Duration::MAX);
        assert_eq!(clock.now(), Timestamp::MAX);
    }

    #[test]
    fn the_system_clock_is_monotonic() {
        let clock = Clock::system();
        let first = clock.monotonic();
        assert!(clock.clone().monotonic() >= first);
        assert!(clock.unix_millis() > 1_700_000_000_000);
    }

    #[test]
    fn seeded_entropy_repeats_and_never_stands_still() {
        let (one, two, other) = (Entropy::seeded(7), Entropy::seeded(7), Entropy::seeded(8));
        let first = one.token();
        assert_eq!(first, two.token());
        assert_ne!(first, one.clone().token());
        assert_ne!(first, other.token());
        assert_eq!(first.len(), 64);
        assert_eq!(one.bytes::<100>().len(), 100);
    }

    #[test]
    fn system_entropy_does_not_repeat() {
        assert_ne!(Entropy::system().id(), Entropy::system().id());
        assert_eq!(Entropy::system().id().len(), 32);
    }
}
