//! Standard input and output of a server: asynchronous where the system allows it.
//!
//! Otherwise a thread reads, and another one writes: each message then wakes further threads.

use tokio::io::{AsyncRead, AsyncWrite};

#[cfg(unix)]
mod unix;

pub type Input = Box<dyn AsyncRead + Unpin + Send>;
pub type Output = Box<dyn AsyncWrite + Unpin + Send>;

/// Standard input. Must be called in the context of a runtime.
pub fn stdin() -> Input {
    #[cfg(unix)]
    if let Some(input) = unix::input() {
        return input;
    }
    Box::new(tokio::io::stdin())
}

/// Standard output. Must be called in the context of a runtime.
pub fn stdout() -> Output {
    #[cfg(unix)]
    if let Some(output) = unix::output() {
        return output;
    }
    Box::new(tokio::io::stdout())
}
