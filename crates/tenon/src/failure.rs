//! How a command reports an error: `error:`, its causes, and a hint.
//!
//! This file maps every library error that reaches the command line to a hint and an exit code. A problem in a settings
//! file is shown with its line.

use std::error::Error;
use std::fmt;
use std::io;

use annotate_snippets::{AnnotationKind, Level, Snippet};
use tenon_contract::error_chain;
use tenon_contract::visible::visible;
use tenon_server::config::{ConfigError, ConfigLocation, ConfigProblem};
use tenon_server::daemon::protocol::RejectionCode;
use tenon_server::daemon::{DaemonError, FolderProblem};
use tenon_server::dirs::DirsError;
use tenon_server::surfaces::work::LinkError;
use tenon_server::token::TokenError;
use tenon_server::trust::TrustError;
use tenon_server::workspace::WorkspaceError;
use tenon_work::StoreError;

use crate::commands::context;
use crate::exit::Exit;
use crate::styled_text::{Colour, StyledText};

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
    problems: Vec<ConfigProblem>,
    /// Stdout is a broken pipe: exit without a message.
    silent: bool,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { exit, message, causes: vec![], hints: vec![], problems: vec![], silent: false }
    }

    /// A library error with all its causes.
    pub(crate) fn of(exit: Exit, error: &dyn Error) -> Self {
        let mut messages = error_chain::messages(error).into_iter();
        let mut failure = Self::new(exit, messages.next().unwrap_or_default());
        failure.causes.extend(messages);
        failure
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same failure with a command-specific exit code.
    pub(crate) fn with_exit(self, exit: Exit) -> Self {
        if self.silent { self } else { Self { exit, ..self } }
    }

    pub(crate) fn no_current_folder(error: io::Error) -> Self {
        Self::new(Exit::Workspace, "cannot determine the current folder")
            .caused_by(error.to_string())
            .hint("pass the workspace with `--root DIR`")
    }

    pub(crate) fn caused_by(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    pub(crate) fn first_hint(&self) -> Option<String> {
        let problems = self.problems.iter().filter_map(|problem| problem.hint.as_ref());
        self.hints.iter().chain(problems).next().cloned()
    }

    /// The message for a terminal, with colours.
    pub(crate) fn render(&self) -> StyledText {
        let mut text = StyledText::default();
        if self.silent {
            return text;
        }
        for problem in &self.problems {
            render_problem(&mut text, problem);
        }
        if self.problems.is_empty() {
            text.labelled("", Colour::Red, "error", &self.message);
        }
        for cause in &self.causes {
            text.line(&format!("  caused by: {cause}"));
        }
        for hint in &self.hints {
            text.labelled("  ", Colour::Blue, "hint", hint);
        }
        text
    }
}

/// Renders a problem with its source line.
fn render_problem(text: &mut StyledText, problem: &ConfigProblem) {
    let title = Level::ERROR.primary_title(problem.message.as_str());
    let ConfigLocation::Text { source, span } = &problem.location else {
        text.labelled("", Colour::Red, "error", &problem.to_string());
        if let Some(hint) = &problem.hint {
            text.labelled("  ", Colour::Blue, "hint", hint);
        }
        return;
    };
    let snippet = Snippet::source(source.text.as_ref())
        .path(visible(source.path.as_str()))
        .annotation(AnnotationKind::Primary.span(span.clone()));
    let mut group = title.element(snippet);
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.with_name("hint").message(hint.as_str()));
    }
    text.snippets(group);
}

impl fmt::Display for Failure {
    /// Everything on one line, for a log or another process.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.causes.iter().try_for_each(|cause| write!(f, ": {cause}"))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let silent = error.kind() == io::ErrorKind::BrokenPipe;
        let exit = if silent { Exit::Success } else { Exit::Files };
        Self { silent, ..Self::of(exit, &error) }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let failure = Self::of(Exit::Config, &error);
        match error {
            ConfigError::Invalid(problems) => Self { problems, ..failure },
            ConfigError::TooLarge { .. }
            | ConfigError::NotText { .. }
            | ConfigError::NotAFile { .. }
            | ConfigError::Outside { .. }
            | ConfigError::Unreadable { .. } => failure,
        }
    }
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        match error {
            WorkspaceError::Config(error) => error.into(),
            WorkspaceError::Missing { .. } => Self::of(Exit::Workspace, &error),
            WorkspaceError::Unreadable { .. } => Self::of(Exit::Workspace, &error),
            WorkspaceError::NotUtf8(_) => Self::of(Exit::Workspace, &error),
            WorkspaceError::Roots(_) => {
                Self::of(Exit::Workspace, &error).hint("see `workspace.roots` in `tenon config show`")
            }
        }
    }
}

impl From<tenon_context::Error> for Failure {
    fn from(error: tenon_context::Error) -> Self {
        let failure = Self::of(context::exit(error.code()), &error);
        match error {
            tenon_context::Error::TargetExists { .. } => failure.hint("pass `--force` to replace it"),
            tenon_context::Error::CacheInvalid { .. } => {
                failure.hint("run `tenon context verify` to list every problem")
            }
            _ => failure,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let exit = match error {
            StoreError::Stream(error) => return error.into(),
            StoreError::Import { .. } | StoreError::WorkspaceExists(_) => Exit::No,
            _ => Exit::Files,
        };
        let hint = error.hint();
        let failure = Self::of(exit, &error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Store(error) => error.into(),
            LinkError::Io(_) => Self::of(Exit::Files, &error),
        }
    }
}

impl From<DirsError> for Failure {
    fn from(error: DirsError) -> Self {
        let failure = Self::of(Exit::Config, &error);
        match error {
            DirsError::NoHome => failure.hint("set `HOME`"),
            DirsError::NotUtf8(_) | DirsError::Relative { .. } => failure,
        }
    }
}

impl From<TrustError> for Failure {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::Config(error) => {
                Self::from(error).hint("fix `tenon.toml`, then run `tenon trust` again")
            }
            TrustError::Servers(error) => error.into(),
            TrustError::Store { .. } => Self::of(Exit::Files, &error)
                .hint("check the permissions of the folder, or set `TENON_STATE_DIR` to another one"),
            TrustError::Pin { .. } => Self::of(Exit::Files, &error),
        }
    }
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        let failure = Self::of(Exit::Files, &error);
        match error {
            TokenError::Locked { .. } => failure.hint("run the command again"),
            TokenError::Unknown(_) => {
                Self { exit: Exit::No, ..failure }.hint("run `tenon token show --all` to list the tokens")
            }
            _ => failure,
        }
    }
}

impl From<DaemonError> for Failure {
    fn from(error: DaemonError) -> Self {
        let failure = Self::of(Exit::Daemon, &error);
        match error {
            DaemonError::NotRunning => failure.hint("run `tenon up` to start it"),
            DaemonError::Folder { folder, problem } => {
                let fix = match problem {
                    FolderProblem::OpenToOthers => format!("run `chmod 700 {folder}`"),
                    FolderProblem::Link | FolderProblem::NotAFolder | FolderProblem::OtherOwner => {
                        format!("remove `{folder}`")
                    }
                };
                failure
                    .hint(format!("{fix}, or set `TENON_RUNTIME_DIR` to another folder"))
                    .hint("`tenon mcp --no-daemon` works without a daemon")
            }
            DaemonError::FolderIo { .. } | DaemonError::PathTooLong { .. } => {
                failure.hint("set `TENON_RUNTIME_DIR` to another folder")
            }
            DaemonError::OtherOwner { .. } => failure.hint("`tenon mcp --no-daemon` works without a daemon"),
            DaemonError::Timeout { .. } | DaemonError::Locked { .. } | DaemonError::NoSocket { .. } => {
                failure.hint("run `tenon stop --force` to kill it")
            }
            DaemonError::Rejected(refusal) => match refusal.code {
                RejectionCode::Surface => Self { exit: Exit::Usage, ..failure },
                RejectionCode::Protocol | RejectionCode::Malformed => {
                    failure.hint("run `tenon stop`; the next client starts a new daemon")
                }
                RejectionCode::Settings => Self { exit: Exit::Config, ..failure }
                    .hint("run `tenon stop` when its other clients are done; the next client starts a daemon with these settings")
                    .hint("or unset them here; `tenon mcp --no-daemon` serves from its own process"),
                RejectionCode::Leaving | RejectionCode::Http => failure,
            },
            DaemonError::InvalidResponse => {
                failure.hint("run `tenon stop --force`; the next client starts a new daemon")
            }
            DaemonError::AlreadyServed => {
                failure.hint("run `tenon stop` first, or connect to it with `tenon mcp`")
            }
            DaemonError::Start(_) => failure.hint("run `tenon doctor` to find the cause"),
            DaemonError::Mcp(_) | DaemonError::Io(_) => failure,
        }
    }
}
