//! An error with its causes, as texts.

use std::error::Error;

/// The messages of an error and all causes, outermost first. Equal messages in a row count once.
#[must_use]
pub fn messages(error: &dyn Error) -> Vec<String> {
    let mut messages = vec![error.to_string()];
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if messages.last() != Some(&text) {
            messages.push(text);
        }
        source = cause.source();
    }
    messages
}

/// The messages of an error and all causes in one line.
#[must_use]
pub fn one_line(error: &dyn Error) -> String {
    messages(error).join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Outer {
        #[error("cannot read the file")]
        Read(#[source] std::io::Error),
        #[error(transparent)]
        Same(std::io::Error),
    }

    #[test]
    fn causes_follow_and_repeated_messages_count_once() {
        let cause = || std::io::Error::other("disk on fire");
        assert_eq!(one_line(&Outer::Read(cause())), "cannot read the file: disk on fire");
        assert_eq!(messages(&Outer::Same(cause())), ["disk on fire"]);
    }
}
