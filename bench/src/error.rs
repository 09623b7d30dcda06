//! Why a bench stopped.

use std::{fmt, io};

/// A message for the person who runs the bench.
#[derive(Debug)]
pub(crate) struct BenchError(String);

impl BenchError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.0)
    }
}

impl From<io::Error> for BenchError {
    fn from(error: io::Error) -> Self {
        Self::new(error.to_string())
    }
}
