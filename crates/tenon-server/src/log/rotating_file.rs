//! A log file with rotation that survives a full disk, and a limit on lines per second, whatever causes them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use tenon_contract::clock::Clock;
use tracing_subscriber::fmt::MakeWriter;

use super::redact::redact;

/// The most lines at once, and the lines per second after that. More are counted as lost.
const BURST: u64 = 1000;
const PER_SECOND: u64 = 100;

/// Appends whole lines to a file of bounded size. Never fails: lines that cannot be written are counted.
#[derive(Debug)]
pub struct RotatingFile {
    path: Utf8PathBuf,
    max_bytes: u64,
    keep: usize,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<File>,
    bytes: u64,
    lost: u64,
    /// Lines that count against [`BURST`], in thousandths, and when that was known.
    recent: u64,
    at: Duration,
}

impl State {
    /// Whether there is room for another line now.
    fn admits(&mut self, now: Duration) -> bool {
        let passed = u64::try_from(now.saturating_sub(self.at).as_millis()).unwrap_or(u64::MAX);
        self.recent = self.recent.saturating_sub(passed.saturating_mul(PER_SECOND));
        self.at = now;
        let admits = self.recent < BURST * 1000;
        self.recent += if admits { 1000 } else { 0 };
        admits
    }
}

impl RotatingFile {
    /// Opens nothing before the first line.
    pub(crate) fn new(path: Utf8PathBuf, max_bytes: u64, keep: usize, clock: Clock) -> Self {
        Self { path, max_bytes, keep, clock, state: Mutex::default() }
    }

    fn append(&self, line: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.admits(self.clock.monotonic()) {
            state.lost += 1;
            return;
        }
        let text = String::from_utf8_lossy(line);
        let clean = redact(&text);
        if state.lost > 0 {
            let note =
                format!("{{\"level\":\"WARN\",\"fields\":{{\"message\":\"{} lines lost\"}}}}\n", state.lost);
            if self.write(&mut state, note.as_bytes()).is_ok() {
                state.lost = 0;
            }
        }
        if self.write(&mut state, clean.as_bytes()).is_err() {
            state.lost += 1;
            // Reopen next time: the folder may have been removed or the disk remounted.
            state.file = None;
        }
    }

    fn write(&self, state: &mut State, line: &[u8]) -> io::Result<()> {
        let length = line.len() as u64;
        if state.file.is_some() && state.bytes > 0 && state.bytes + length > self.max_bytes {
            state.file = None;
            self.set_aside()?;
        }
        let file = match &mut state.file {
            Some(file) => file,
            none => {
                let (file, bytes) = self.open()?;
                state.bytes = bytes;
                none.insert(file)
            }
        };
        let written = file.write_all(line);
        // Removes a line that a full disk truncated, so that the next one starts a line.
        if written.is_err() {
            let _ = file.set_len(state.bytes);
        } else {
            state.bytes += length;
        }
        written
    }

    fn open(&self) -> io::Result<(File, u64)> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&self.path)?;
        let bytes = file.metadata()?.len();
        if bytes >= self.max_bytes {
            self.set_aside()?;
            return Ok((options.open(&self.path)?, 0));
        }
        Ok((file, bytes))
    }

    /// `log` becomes `log.1`, `log.1` becomes `log.2`, and so on; the last one is deleted.
    fn set_aside(&self) -> io::Result<()> {
        let numbered = |number: usize| Utf8PathBuf::from(format!("{}.{number}", self.path));
        if self.keep == 0 {
            return fs::remove_file(&self.path);
        }
        for number in (1..self.keep).rev() {
            match fs::rename(numbered(number), numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, numbered(1))
    }
}

/// One log event: collected, then written at once.
#[derive(Debug)]
pub struct LogLine<'a> {
    file: &'a RotatingFile,
    bytes: Vec<u8>,
}

impl Write for LogLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogLine<'_> {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            self.file.append(&self.bytes);
        }
    }
}

impl<'a> MakeWriter<'a> for RotatingFile {
    type Writer = LogLine<'a>;

    fn make_writer(&'a self) -> LogLine<'a> {
        LogLine { file: self, bytes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(folder: &tempfile::TempDir, max_bytes: u64, keep: usize) -> RotatingFile {
        let folder = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        RotatingFile::new(folder.join("deep").join("x.jsonl"), max_bytes, keep, Clock::system())
    }

    fn say(log: &RotatingFile, text: &str) {
        let mut line = log.make_writer();
        line.write_all(text.as_bytes()).unwrap();
        line.write_all(b"\n").unwrap();
    }

    fn read(log: &RotatingFile, suffix: &str) -> String {
        fs::read_to_string(format!("{}{suffix}", log.path)).unwrap_or_default()
    }

    #[test]
    fn full_file_is_rotated_and_the_oldest_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let log = log(&folder, 10, 2);
        for text in ["one", "two", "three", "four", "five", "six"] {
            say(&log, text);
        }
        assert_eq!(read(&log, ""), "six\n");
        assert_eq!(read(&log, ".1"), "four\nfive\n");
        assert_eq!(read(&log, ".2"), "three\n");
        assert_eq!(read(&log, ".3"), "");
    }

    #[test]
    fn second_process_appends_to_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        say(&log(&folder, 100, 1), "one");
        let second = log(&folder, 100, 1);
        say(&second, "two");
        assert_eq!(read(&second, ""), "one\ntwo\n");
    }

    #[test]
    fn secrets_are_masked_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let log = log(&folder, 1000, 1);
        say(&log, "Authorization: Bearer 0123456789abcdef");
        assert_eq!(read(&log, ""), "Authorization: Bearer [redacted]\n");
    }

    #[test]
    fn flood_of_lines_is_cut_off_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let (clock, control) = Clock::fixed("2026-01-02T03:04:05Z".parse().unwrap());
        let log = RotatingFile { clock, ..log(&folder, 1 << 20, 1) };
        for _ in 0..100_000 {
            say(&log, "flood");
        }
        assert_eq!(read(&log, "").lines().count() as u64, BURST);
        control.advance(Duration::from_millis(20));
        say(&log, "later");
        say(&log, "later");
        say(&log, "too soon");
        let text = read(&log, "");
        let last: Vec<&str> = text.lines().skip(usize::try_from(BURST).unwrap()).collect();
        let note =
            format!("{{\"level\":\"WARN\",\"fields\":{{\"message\":\"{} lines lost\"}}}}", 100_000 - BURST);
        assert_eq!(last, [note.as_str(), "later", "later"]);
    }

    #[test]
    fn lost_lines_are_counted_and_reported() {
        let folder = tempfile::tempdir().unwrap();
        let log = log(&folder, 1000, 1);
        let blocked = folder.path().join("deep");
        fs::write(&blocked, "a file where the folder should be").unwrap();
        say(&log, "one");
        say(&log, "two");
        fs::remove_file(&blocked).unwrap();
        say(&log, "three");
        assert_eq!(read(&log, ""), "{\"level\":\"WARN\",\"fields\":{\"message\":\"2 lines lost\"}}\nthree\n");
    }
}
