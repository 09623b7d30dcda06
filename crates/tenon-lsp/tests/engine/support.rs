//! What the modules share.

use nix::unistd::Pid;

/// Whether a process has ended; a zombie counts as ended.
pub(crate) fn is_gone(pid: Pid) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
        Err(_) => true,
    }
}
