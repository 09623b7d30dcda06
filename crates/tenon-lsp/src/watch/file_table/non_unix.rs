//! The parts of a file stamp on systems other than Unix: size and times.

use std::fs::Metadata;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// Unknown times count as zero.
pub(super) fn parts(metadata: &Metadata) -> [u64; 5] {
    let time = |found: io::Result<SystemTime>| {
        let since = found.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        [since.as_secs(), u64::from(since.subsec_nanos())]
    };
    let ([written, written_nanos], [made, made_nanos]) =
        (time(metadata.modified()), time(metadata.created()));
    [metadata.len(), written, written_nanos, made, made_nanos]
}

/// Unknown; the time of creation must do.
pub(super) fn folder(_: &Metadata) -> (u64, u64) {
    (0, 0)
}
