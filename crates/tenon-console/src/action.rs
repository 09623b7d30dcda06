//! What a form did, and where the browser goes next.

use serde::Serialize;
use tenon_server::web::PREFIX;

use crate::tool_answer::ToolFailure;

/// How an action went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NoticeKind {
    Done,
    Failed,
    /// Another change came first, and nothing was overwritten.
    Conflict,
}

/// A message that the next page shows once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Notice {
    pub(crate) kind: NoticeKind,
    pub(crate) text: String,
    /// More lines, for example the output of a command.
    pub(crate) detail: String,
}

/// The outcome of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActionOutcome {
    pub(crate) notice: Notice,
    /// The path of the next page, with its query.
    pub(crate) next: String,
    /// Ends the daemon: there is no next page to go to.
    pub(crate) stops: bool,
}

impl ActionOutcome {
    /// Goes to `path`, which is relative to the console.
    pub(crate) fn new(kind: NoticeKind, text: impl Into<String>, path: &str) -> Self {
        let notice = Notice { kind, text: text.into(), detail: String::new() };
        Self { notice, next: format!("{PREFIX}{path}"), stops: false }
    }

    pub(crate) fn done(text: impl Into<String>, path: &str) -> Self {
        Self::new(NoticeKind::Done, text, path)
    }

    pub(crate) fn failed(text: impl Into<String>, path: &str) -> Self {
        Self::new(NoticeKind::Failed, text, path)
    }

    /// Ends the daemon after the answer.
    pub(crate) fn stop(text: impl Into<String>) -> Self {
        Self { stops: true, ..Self::done(text, "/") }
    }

    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.notice.detail = detail.into();
        self
    }

    /// The outcome of a tool call.
    pub(crate) fn of_call<T>(called: Result<T, ToolFailure>, done: &str, path: &str) -> Self {
        match called {
            Ok(_) => Self::done(done, path),
            Err(failure) if failure.is_conflict() => {
                let text = "Not saved: another user or agent changed this in the meantime. The page shows the newer state.";
                Self::new(NoticeKind::Conflict, text, path).with_detail(failure.message)
            }
            Err(failure) => Self::failed(failure.message, path),
        }
    }
}
