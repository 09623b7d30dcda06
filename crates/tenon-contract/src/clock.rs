//! The only sources of time and randomness; tests can replace both with deterministic ones.
//!
//! No other code asks the operating system for either. Both are cheap to clone, and clones share their state: a test
//! that advances a clock advances it for every holder of a clone.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use crate::id::hex;

/// A source of wall time and monotonic time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System { started: Instant },
    Manual(ClockControl),
}

impl Clock {
    /// The operating system's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System { started: Instant::now() })
    }

    /// A clock that stays at `start` until the control advances it.
    #[must_use]
    pub fn fixed(start: Timestamp) -> (Self, ClockControl) {
        Self::stepping(start, Duration::ZERO)
    }

    /// A clock that starts at `start` and advances by `step` after each reading of the wall time.
    #[must_use]
    pub fn stepping(start: Timestamp, step: Duration) -> (Self, ClockControl) {
        let control = ClockControl { start, step, elapsed: Arc::default() };
        (Self(Source::Manual(control.clone())), control)
    }

    /// The wall time.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the only code that reads the wall clock")]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System { .. } => saturating(SystemTime::now()),
            Source::Manual(control) => control.read().min(LAST_TIME),
        }
    }

    /// The wall time as RFC 3339 in UTC, to the millisecond: `2026-01-02T03:04:05.678Z`.
    #[must_use]
    pub fn rfc3339(&self) -> String {
        rfc3339(self.now())
    }

    /// The wall time as milliseconds since 1970; zero for earlier times.
    #[must_use]
    pub fn unix_millis(&self) -> u64 {
        u64::try_from(self.now().as_millisecond()).unwrap_or(0)
    }

    /// Time since this clock was created. Never goes back, even if the wall time does.
    #[must_use]
    pub fn monotonic(&self) -> Duration {
        match &self.0 {
            Source::System { started } => started.elapsed(),
            Source::Manual(control) => control.elapsed(),
        }
    }
}

/// The last time of a [`Clock`]: the last one, in the year 9999, that survives a conversion to milliseconds and back.
pub const LAST_TIME: Timestamp = Timestamp::constant(253_402_207_200, 0);

/// The nearest time that a [`Timestamp`] can hold: the years -9999 to 9999.
fn saturating(time: SystemTime) -> Timestamp {
    let limit = if time < SystemTime::UNIX_EPOCH { Timestamp::MIN } else { LAST_TIME };
    Timestamp::try_from(time).unwrap_or(limit).min(LAST_TIME)
}

/// RFC 3339 in UTC, to the millisecond: the only format for timestamps.
#[must_use]
pub fn rfc3339(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// Milliseconds since 1970 of a time in RFC 3339.
#[must_use]
pub fn unix_millis_of(time: &str) -> Option<i64> {
    time.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// Advances a manual [`Clock`].
#[derive(Clone, Debug)]
pub struct ClockControl {
    start: Timestamp,
    step: Duration,
    elapsed: Arc<Mutex<Duration>>,
}

impl ClockControl {
    /// Advances wall time and monotonic time together.
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

/// A source of random ids and tokens.
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

    /// A deterministic sequence per seed. For tests only: the seed reveals all tokens.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Generator::Seeded(Arc::new(Mutex::new(Stream { seed, block: 0 }))))
    }

    /// `N` random bytes.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the only code that asks the system for randomness")]
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        match &self.0 {
            Generator::System => {
                getrandom::fill(&mut bytes).expect("the system provides a random generator");
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

    /// 128 random bits in hex: a unique id.
    #[must_use]
    pub fn id(&self) -> String {
        hex(&self.bytes::<16>())
    }

    /// 256 random bits in hex: an unguessable secret.
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
    fn fixed_clock_changes_only_when_advanced() {
        let (clock, control) = Clock::fixed(noon());
        let shared = clock.clone();
        assert_eq!(clock.rfc3339(), "2026-01-02T12:00:00.000Z");
        assert_eq!(clock.rfc3339(), "2026-01-02T12:00:00.000Z");
        assert_eq!(clock.monotonic(), Duration::ZERO);
        control.advance(Duration::from_millis(61_001));
        assert_eq!(shared.rfc3339(), "2026-01-02T12:01:01.001Z");
        assert_eq!(shared.monotonic(), Duration::from_millis(61_001));
        assert_eq!(shared.unix_millis(), 1_767_355_261_001);
    }

    #[test]
    fn stepping_clock_advances_on_each_reading() {
        let (clock, _) = Clock::stepping(noon(), Duration::from_secs(1));
        assert_eq!(clock.now(), noon());
        assert_eq!(clock.rfc3339(), "2026-01-02T12:00:01.000Z");
        assert_eq!(clock.monotonic(), Duration::from_secs(2));
    }

    #[test]
    fn clock_advanced_past_the_maximum_stays_there() {
        let (clock, control) = Clock::fixed(noon());
        control.advance(Duration::MAX);
        control.advance(Duration::MAX);
        assert_eq!(clock.now(), LAST_TIME);
    }

    #[test]
    fn time_outside_the_representable_years_is_the_nearest_one() {
        let year = Duration::from_secs(366 * 24 * 60 * 60);
        assert_eq!(saturating(SystemTime::UNIX_EPOCH + year * 9000), LAST_TIME);
        assert_eq!(saturating(SystemTime::UNIX_EPOCH - year * 13_000), Timestamp::MIN);
        assert_eq!(saturating(SystemTime::UNIX_EPOCH), Timestamp::UNIX_EPOCH);
        assert_eq!(rfc3339(LAST_TIME), "9999-12-30T22:00:00.000Z");
        assert_eq!(Timestamp::from_millisecond(LAST_TIME.as_millisecond()).unwrap(), LAST_TIME);
    }

    #[test]
    fn the_system_clock_is_monotonic() {
        let clock = Clock::system();
        let first = clock.monotonic();
        assert!(clock.clone().monotonic() >= first);
        assert!(clock.unix_millis() > 1_700_000_000_000);
    }

    #[test]
    fn seeded_entropy_repeats_per_seed_and_varies_per_call() {
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
