//! Finds processes by a path in their environment or arguments, so that orphans are found too.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getrlimit, kill_process, pidfd_open, prlimit,
};

/// A running process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessInfo {
    pub id: u32,
    pub parent: u32,
    pub command: Vec<String>,
}

impl ProcessInfo {
    /// Kills the process. Does nothing if it has already exited.
    pub fn kill(&self) {
        let _ = kill_process(pid(self.id), Signal::KILL);
    }

    /// Resident memory, in KiB.
    pub fn resident_kib(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The largest resident memory so far, in KiB.
    pub fn peak_kib(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0)
    }
}

/// How often a test kills a process: as often as `TENON_KILLS` says (`cargo xtask attack --kills N`), or `usual` times.
pub fn kills(usual: u64) -> u64 {
    std::env::var("TENON_KILLS").map_or(usual, |text| text.parse().expect("TENON_KILLS is a number"))
}

/// Limits how many files a child process may open from now on; those that are open stay open.
pub fn limit_open_files(id: u32, limit: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit { current: Some(limit), maximum };
    prlimit(Some(pid(id)), Resource::Nofile, limit).expect("limits of our own child can be changed");
}

/// Every other live process whose environment or arguments contain `path`. Zombies have neither and are left out.
pub fn mentioning(path: &Path) -> Vec<ProcessInfo> {
    let needle = path.as_os_str().as_bytes();
    let entries = fs::read_dir("/proc").expect("/proc is mounted");
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<ProcessInfo> =
        ids.filter(|id| *id != std::process::id()).filter_map(|id| read(id, needle)).collect();
    found.sort_by_key(|process| process.id);
    found
}

fn read(id: u32, needle: &[u8]) -> Option<ProcessInfo> {
    let (arguments, environment) = arguments_and_environment(id)?;
    let mentions = |text: &[u8]| text.windows(needle.len()).any(|window| window == needle);
    if !mentions(&arguments) && !mentions(&environment) {
        return None;
    }
    let words = arguments.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let command = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    Some(ProcessInfo { id, parent: parent_of(id)?, command })
}

/// `spawn` returns while the kernel still sets up the new program. Until it has, both files are empty although the
/// program is known; reading them then would miss a process that has just started.
fn arguments_and_environment(id: u32) -> Option<(Vec<u8>, Vec<u8>)> {
    let deadline = Instant::now() + Duration::from_millis(200);
    loop {
        let arguments = fs::read(format!("/proc/{id}/cmdline")).ok()?;
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        let has_program = || fs::read_link(format!("/proc/{id}/exe")).is_ok();
        if !arguments.is_empty() || !environment.is_empty() || !has_program() || Instant::now() > deadline {
            return Some((arguments, environment));
        }
        std::thread::yield_now();
    }
}

fn parent_of(id: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Waits until the process has exited; `false` after `patience`. Works for processes that are not our children, and does
/// not reap those that are.
pub fn wait_for_exit(id: u32, patience: Duration) -> bool {
    match pidfd_open(pid(id), PidfdFlags::empty()) {
        Ok(process) => wait_for_end(&process, Instant::now() + patience),
        // No such process: it has exited.
        Err(_) => true,
    }
}

/// Waits until `list` is empty; returns what is left after `patience`.
pub(crate) fn wait_for_none(list: impl Fn() -> Vec<ProcessInfo>, patience: Duration) -> Vec<ProcessInfo> {
    let deadline = Instant::now() + patience;
    loop {
        let left = list();
        let Some(first) = left.first() else { return left };
        if !wait_for_exit(first.id, deadline.saturating_duration_since(Instant::now())) {
            return list();
        }
    }
}

fn wait_for_end(process: &OwnedFd, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("a test's patience fits");
        match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return ready > 0,
            Err(error) => assert_eq!(error, rustix::io::Errno::INTR, "poll fails only when interrupted"),
        }
    }
}

fn pid(id: u32) -> Pid {
    let raw = i32::try_from(id).expect("process ids are small");
    Pid::from_raw(raw).expect("process ids are not zero")
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    use super::wait_for_exit;
    use crate::Sandbox;

    /// The shell leaves a background child behind and exits.
    #[test]
    fn orphans_are_found_and_their_exit_is_noticed() {
        let sandbox = Sandbox::new();
        let mut shell = sandbox.command("sh");
        shell.args(["-c", "(exec tail -f /dev/null) >/dev/null 2>&1 </dev/null & echo started"]);
        let output = shell.stderr(Stdio::null()).output().unwrap();
        assert_eq!(output.stdout, b"started\n");
        let orphans = sandbox.processes();
        assert_eq!(orphans.len(), 1, "{orphans:?}");
        // It may still be starting `tail`: it has no memory in between.
        let has_memory =
            || orphans[0].resident_kib() > 0 && orphans[0].peak_kib() >= orphans[0].resident_kib();
        let deadline = Instant::now() + Duration::from_secs(30);
        while !has_memory() {
            assert!(Instant::now() < deadline, "{:?}", orphans[0]);
        }
        orphans[0].kill();
        sandbox.assert_no_processes();
    }

    #[test]
    fn dropped_sandbox_kills_its_processes() {
        let sandbox = Sandbox::new();
        let mut child = sandbox.command("tail").args(["-f", "/dev/null"]).spawn().unwrap();
        drop(sandbox);
        let killed = wait_for_exit(child.id(), Duration::from_secs(30));
        let _ = child.kill();
        assert!(killed && !child.wait().unwrap().success());
    }
}
