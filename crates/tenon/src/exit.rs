//! Exit codes: what a script can tell from how a command ended.
//!
//! The list is also `docs/exit-codes.md`. A code is never reused for something else. Commands with a contract of their
//! own (`tenon context …`, `tenon check`, `tenon compose`) say on that page what theirs mean.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked.
    Success,
    /// It did what was asked, and the answer is no: no daemon runs, something is missing, there are findings.
    No,
    /// The command line is wrong.
    Usage,
    /// A setting is wrong, in a file, the environment or a flag.
    Config,
    /// The workspace does not exist or cannot be read.
    Workspace,
    /// The daemon cannot be reached, started or kept.
    Daemon,
    /// A file of Tenon's own cannot be read or written.
    Files,
    /// A bug.
    Internal,
    /// A code of a command's own contract.
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
    fn the_page_lists_every_code() {
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
