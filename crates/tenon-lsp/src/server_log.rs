//! The last lines that a language server wrote to stderr and log messages, for troubleshooting.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Lines kept per server, and how much of each.
const MAX_LINES: usize = 400;
const MAX_LINE_BYTES: usize = 512;

/// A ring of lines. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerLog {
    lines: Arc<Mutex<VecDeque<String>>>,
    /// Part of a line to remember, and whether such a line came.
    awaited: Option<Arc<str>>,
    was_seen: Arc<AtomicBool>,
}

impl ServerLog {
    /// A log that remembers whether a line with this text came.
    pub(crate) fn awaiting(text: Option<&str>) -> Self {
        Self { awaited: text.map(Arc::from), ..Self::default() }
    }

    /// Whether a line with the awaited text came.
    pub(crate) fn was_seen(&self) -> bool {
        self.was_seen.load(Ordering::Relaxed)
    }

    pub(crate) fn push(&self, text: &str) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if self.awaited.as_deref().is_some_and(|awaited| line.contains(awaited)) {
                self.was_seen.store(true, Ordering::Relaxed);
            }
            if lines.len() == MAX_LINES {
                lines.pop_front();
            }
            lines.push_back(line[..line.floor_char_boundary(MAX_LINE_BYTES)].to_owned());
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }

    /// The last line. A failing server usually prints the reason there.
    pub(crate) fn last(&self) -> Option<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.back().cloned()
    }

    /// Reads a stream to its end, so that its writer never blocks on a full pipe. Keeps only the last lines.
    pub(crate) async fn drain(&self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = [0; 8 * 1024];
        let mut line = Vec::new();
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            for piece in buffer[..read].split_inclusive(|&byte| byte == b'\n') {
                let room = MAX_LINE_BYTES.saturating_sub(line.len());
                line.extend_from_slice(&piece[..piece.len().min(room)]);
                if piece.ends_with(b"\n") {
                    self.push(&String::from_utf8_lossy(&line));
                    line.clear();
                }
            }
        }
        self.push(&String::from_utf8_lossy(&line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_last_lines_are_kept() {
        let log = ServerLog::default();
        let flood: String = (0..10_000).map(|number| format!("line {number}\n")).collect();
        log.drain(flood.as_bytes()).await;
        assert_eq!(log.lines().len(), MAX_LINES);
        assert_eq!(log.last().as_deref(), Some("line 9999"));
    }

    #[tokio::test]
    async fn awaited_line_is_remembered_after_it_was_dropped() {
        let log = ServerLog::awaiting(Some("no library"));
        log.push("starting");
        assert!(!log.was_seen());
        log.drain("ERROR no library here\n".as_bytes()).await;
        log.drain("line\n".repeat(2 * MAX_LINES).as_bytes()).await;
        assert!(log.was_seen() && !log.lines().iter().any(|line| line.contains("library")));
    }

    #[tokio::test]
    async fn long_lines_are_cut() {
        let log = ServerLog::default();
        log.drain(&[b'x'; 100_000][..]).await;
        assert_eq!(log.lines(), ["x".repeat(MAX_LINE_BYTES)]);
    }
}
