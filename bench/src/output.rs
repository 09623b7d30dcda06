//! Results on stdout, progress on stderr.

use std::io::{self, Write};

/// Reports progress.
pub(crate) fn log(text: &str) {
    eprintln!("{text}");
}

/// Prints a line of a result.
pub(crate) fn print(line: &str) {
    // stdout may be closed; the exit code still reports the outcome.
    let _ = writeln!(io::stdout(), "{line}");
}
