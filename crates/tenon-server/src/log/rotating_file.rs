//! A log file with rotation that survives a full disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use camino::Utf8PathBuf;
use tracing_subscriber::fmt::MakeWriter;

use super::redact::redact;

/// Appends whole lines to a file of bounded size. Never fails: lines that cannot be written are counted.
#[derive(Debug)]
pub struct RotatingFile {
    path: Utf8PathBuf,
    max_bytes: u64,
    keep: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<File>,
    bytes: u64,
    lost: u64,
}

impl RotatingFile {
    /// Opens nothing before the first line.
    pub(crate) fn new(path: Utf8PathBuf, max_bytes: u64, keep: usize) -> Self {
        Self { path, max_bytes, keep, state: Mutex::default() }
    }

    fn append(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let clean = redact(&text);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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
        RotatingFile::new(folder.join("deep").join("x.jsonl"), max_bytes, keep)
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
