//! Exit codes, which scripts can rely on.
//!
//! `docs/exit-codes.md` documents them, and also the commands with codes of their own (`tenon context …`, `tenon check`,
//! `tenon compose`). A code never changes its meaning.

use std::process::ExitCode;

/// The exit code of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded.
    Success,
    /// The command succeeded and its answer is negative: no daemon is running, something is missing, a check has findings.
    No,
    /// The command line is invalid.
    Usage,
    /// A setting is invalid, in a file, the environment or a flag.
    Config,
    /// The workspace does not exist or cannot be read.
    Workspace,
    /// The daemon cannot be reached or started, or it exited during the session.
    Daemon,
    /// One of Tenon's own files cannot be read or written.
    Files,
    /// A bug in Tenon.
    Internal,
    /// A command-specific code.
    Contract(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::No => 1,
            Self::Usage => 2,
            Self::Config => 3,
            Self::Workspace => 4,
            Self::Daemon => 5,
            Self::Files => 6,
            Self::Internal => 70,
            Self::Contract(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_lists_every_exit_code() {
        let page = include_str!("../../../docs/exit-codes.md");
        let all = [
            Exit::Success,
            Exit::No,
            Exit::Usage,
            Exit::Config,
            Exit::Workspace,
            Exit::Daemon,
            Exit::Files,
            Exit::Internal,
        ];
        for exit in all {
            assert!(page.contains(&format!("| {} |", exit.code())), "{exit:?}");
        }
    }
}
