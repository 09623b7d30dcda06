//! The daemon's log: JSON lines in the user's state folder, never on stdout.
//!
//! Invariants: the file does not exceed its limit (old files are rotated, then deleted), nor do the lines per second; a
//! secret in a log line is masked before it is written; a log that cannot be written never stops the daemon: lost lines
//! are counted, and the count is the first line once writing works again.

use std::fmt;
use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::clock::Clock;
use tenon_contract::visible::visible;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub(crate) mod redact;
mod rotating_file;

pub use rotating_file::RotatingFile;

use crate::config::{LogLevel, LogSection};

/// Sends all tracing of this process to `file`. Once per process.
pub fn to_file(file: RotatingFile, level: LogLevel, clock: Clock) {
    let layer = tracing_subscriber::fmt::layer()
        .json()
        .with_current_span(false)
        .with_timer(Timer(clock))
        .with_writer(file);
    install(tracing_subscriber::registry().with(filter(level)).with(layer));
}

/// Sends warnings to stderr, for a process without a log file.
pub fn to_stderr() {
    let layer = tracing_subscriber::fmt::layer()
        .without_time()
        .with_ansi(false)
        .with_writer(|| VisibleLines(std::io::stderr()));
    install(tracing_subscriber::registry().with(LevelFilter::WARN).with(layer));
}

/// The log file of the workspace at `root`. Rotated files add a number: `…-1a2b3c4d.jsonl`, `….jsonl.1`.
pub(crate) fn path(folder: &Utf8Path, root: &Utf8Path) -> Utf8PathBuf {
    let hash = tenon_contract::id::sha256_hex(root.as_str());
    folder.join(format!("{}-{}.jsonl", root.file_name().unwrap_or("root"), &hash[..8]))
}

/// A rotating file with the configured limits.
pub fn open(path: Utf8PathBuf, settings: &LogSection, clock: Clock) -> RotatingFile {
    RotatingFile::new(path, settings.max_bytes, settings.keep, clock)
}

fn install(subscriber: impl SubscriberInitExt) {
    // Fails only if this process already has a log, which then stays.
    let _ = subscriber.try_init();
    std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a task panicked")));
}

fn filter(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    // `rmcp` logs whole messages as warnings, and every session several times.
    let chatty = if level >= LevelFilter::DEBUG { level } else { level.min(LevelFilter::ERROR) };
    Targets::new().with_default(level).with_target("rmcp", chatty)
}

/// Writes lines with visible control characters; an event is one write.
struct VisibleLines<W>(W);

impl<W: Write> Write for VisibleLines<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let shown: String = text.lines().flat_map(|line| [visible(line), "\n".into()]).collect();
        self.0.write_all(shown.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

struct Timer(Clock);

impl FormatTime for Timer {
    fn format_time(&self, w: &mut format::Writer<'_>) -> fmt::Result {
        w.write_str(&self.0.rfc3339())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_for_a_terminal_are_visible() {
        let mut lines = VisibleLines(Vec::new());
        lines.write_all("WARN message=a\u{9b}2J\u{202e}\n  at b\u{1b}[2J\n".as_bytes()).unwrap();
        let shown = String::from_utf8(lines.0).unwrap();
        assert_eq!(shown, "WARN message=a<U+009B>2J<U+202E>\n  at b␛[2J\n");
    }
}
