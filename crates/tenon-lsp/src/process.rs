//! Unix: child processes that never outlive us, and inherited descriptors. The only file with `unsafe` (decision 0301).
//!
//! Invariants:
//! - One thread that never ends spawns all children: Linux ties `PR_SET_PDEATHSIG` to the *thread* that spawned the child, and
//!   a worker thread that ends would kill its children.
//! - A child requests SIGKILL at its parent's death before exec, then checks that the parent is still alive.
//! - Signals only go to a child that was not reaped, so never to an unrelated process that reused its pid: the waiter notices
//!   the exit without reaping, kills the rest of the group, and reaps under the lock that signalling takes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, mpsc};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::stat::{SFlag, fstat};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, getppid};
use tenon_servers::confinement::Confinement;
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};

use crate::sandbox::Sandbox;

/// Whose process group a child belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessGroup {
    /// Its own: killing the group kills everything it started.
    Own,
    /// Ours: a host that kills our group kills it, too.
    Inherited,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildExit {
    Code(i32),
    Signal(i32),
    Unknown,
}

impl std::fmt::Display for ChildExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => match Signal::try_from(*signal) {
                Ok(signal) => write!(f, "signal {signal}"),
                Err(_) => write!(f, "signal {signal}"),
            },
            Self::Unknown => f.write_str("an unknown end"),
        }
    }
}

/// A running child with its three pipes.
pub(crate) struct ChildProcess {
    pub(crate) stdin: pipe::Sender,
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
    pub(crate) handle: ChildHandle,
}

/// Watches and ends a child. Clones share it; dropping the last one kills the child.
#[derive(Clone)]
pub(crate) struct ChildHandle(Arc<ChildState>);

struct ChildState {
    kill: Arc<Kill>,
    exit: watch::Receiver<Option<ChildExit>>,
}

impl Drop for ChildState {
    fn drop(&mut self) {
        self.kill.signal(Signal::SIGKILL);
    }
}

struct Kill {
    pid: Pid,
    group: ProcessGroup,
    /// Locked while a signal is sent and while the child is reaped.
    reaped: Mutex<bool>,
}

impl Kill {
    fn signal(&self, signal: Signal) {
        let reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        if !*reaped {
            self.send(signal);
        }
    }

    /// Call only before the child is reaped: until then no other process can have its pid or group.
    fn send(&self, signal: Signal) {
        // An error means that the process has already exited.
        let _ = match self.group {
            ProcessGroup::Own => killpg(self.pid, signal),
            ProcessGroup::Inherited => kill(self.pid, signal),
        };
    }
}

impl ChildHandle {
    pub(crate) fn pid(&self) -> u32 {
        self.0.kill.pid.as_raw().unsigned_abs()
    }

    /// How the child ended, once it has.
    pub(crate) fn exit(&self) -> Option<ChildExit> {
        *self.0.exit.borrow()
    }

    /// Waits for the end of the child.
    pub(crate) async fn ended(&self) -> ChildExit {
        let mut exit = self.0.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(ChildExit::Unknown),
            Err(_) => ChildExit::Unknown,
        }
    }

    /// Sends SIGKILL, to the child's group if it has its own.
    pub(crate) fn kill(&self) {
        self.0.kill.signal(Signal::SIGKILL);
    }

    /// Sends SIGTERM, and SIGKILL if the child still runs after `grace`.
    pub(crate) async fn terminate(&self, grace: Duration) -> ChildExit {
        self.0.kill.signal(Signal::SIGTERM);
        match tokio::time::timeout(grace, self.ended()).await {
            Ok(exit) => exit,
            Err(_) => {
                self.kill();
                self.ended().await
            }
        }
    }
}

struct SpawnRequest {
    command: Command,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// The thread that spawns children. The static holds the sender forever, so the thread never ends.
static SPAWNER: LazyLock<io::Result<mpsc::SyncSender<SpawnRequest>>> = LazyLock::new(|| {
    // More than enough for servers that start at the same time.
    let (orders, inbox) = mpsc::sync_channel::<SpawnRequest>(64);
    std::thread::Builder::new().name("spawner".to_owned()).spawn(move || {
        while let Ok(mut order) = inbox.recv() {
            if let Err(Ok(mut child)) = order.reply.send(order.command.spawn()) {
                // The caller is gone, so this child would never be ended.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    })?;
    Ok(orders)
});

/// Starts a child with pipes, confined if asked for. It is killed when we die.
pub(crate) async fn spawn(
    mut command: Command,
    group: ProcessGroup,
    confinement: Option<&Confinement>,
) -> io::Result<ChildProcess> {
    if let Some(confinement) = confinement {
        confine(&mut command, confinement)?;
    }
    spawn_with(command, group, Vec::new()).await
}

/// Like [`spawn`]; the child also gets these descriptors, under these numbers.
pub(crate) async fn spawn_with(
    mut command: Command,
    group: ProcessGroup,
    handed: Vec<(OwnedFd, RawFd)>,
) -> io::Result<ChildProcess> {
    if !handed.is_empty() {
        hand_down(&mut command, handed)?;
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if group == ProcessGroup::Own {
        command.process_group(0);
    }
    die_with_parent(&mut command);

    let spawner = SPAWNER.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
    let (reply, started) = oneshot::channel();
    spawner
        .try_send(SpawnRequest { command, reply })
        .map_err(|_| io::Error::other("too many processes are being started"))?;
    let child = started.await.map_err(|_| io::Error::other("the spawning thread is gone"))??;
    attend(child, group)
}

/// Takes the pipes and starts a thread that waits for the exit.
fn attend(mut child: Child, group: ProcessGroup) -> io::Result<ChildProcess> {
    let missing = || io::Error::other("the child has no pipe");
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let kill = Arc::new(Kill { pid, group, reaped: Mutex::new(false) });
    let (ended, exit) = watch::channel(None);
    let waiter = Arc::clone(&kill);
    std::thread::Builder::new().name(format!("wait-{pid}")).stack_size(64 * 1024).spawn(move || {
        let _ = ended.send(Some(wait(child, &waiter)));
    })?;
    Ok(ChildProcess {
        stdin: pipe::Sender::from_owned_fd(stdin.into())?,
        stdout: pipe::Receiver::from_owned_fd(stdout.into())?,
        stderr: pipe::Receiver::from_owned_fd(stderr.into())?,
        handle: ChildHandle(Arc::new(ChildState { kill, exit })),
    })
}

fn wait(mut child: Child, kill: &Kill) -> ChildExit {
    use std::os::unix::process::ExitStatusExt;

    // Notices the exit without reaping, so that the group's id stays taken.
    while waitid(Id::Pid(kill.pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)
        == Err(nix::errno::Errno::EINTR)
    {}
    let mut reaped = kill.reaped.lock().unwrap_or_else(PoisonError::into_inner);
    if kill.group == ProcessGroup::Own {
        kill.send(Signal::SIGKILL);
    }
    let status = child.wait();
    *reaped = true;
    match status {
        Ok(status) => status
            .code()
            .map(ChildExit::Code)
            .or(status.signal().map(ChildExit::Signal))
            .unwrap_or(ChildExit::Unknown),
        Err(_) => ChildExit::Unknown,
    }
}

/// Gives the child descriptors under chosen numbers. They may replace the descriptor by which the child reports that exec
/// failed; then only the text of that error is lost.
#[expect(unsafe_code, reason = "setting descriptors between fork and exec")]
fn hand_down(command: &mut Command, handed: Vec<(OwnedFd, RawFd)>) -> io::Result<()> {
    let above = handed.iter().map(|(_, number)| number + 1).max().unwrap_or(0);
    // No descriptor may have a number that another one will get.
    let lifted = handed.into_iter().map(|(descriptor, number)| {
        let raw = fcntl(&descriptor, FcntlArg::F_DUPFD_CLOEXEC(above))?;
        // SAFETY: fcntl has just created it, so it has no other owner.
        Ok((unsafe { OwnedFd::from_raw_fd(raw) }, number))
    });
    let lifted = lifted.collect::<nix::Result<Vec<_>>>()?;
    // SAFETY: the closure runs in the forked child before exec and only calls dup2, which is async-signal-safe; it neither
    // allocates nor takes a lock. The new descriptor is released at once and stays open for the program.
    unsafe {
        command.pre_exec(move || {
            for (descriptor, number) in &lifted {
                let _ = nix::unistd::dup2_raw(descriptor, *number)?.into_raw_fd();
            }
            Ok(())
        });
    }
    Ok(())
}

/// Restricts the child before its program starts.
#[expect(unsafe_code, reason = "entering the sandbox between fork and exec")]
fn confine(command: &mut Command, confinement: &Confinement) -> io::Result<()> {
    let mut sandbox = Sandbox::prepare(confinement)?;
    // SAFETY: the closure runs in the forked child before exec. `Sandbox::enter` only calls prctl, landlock_restrict_self,
    // seccomp and close, which are async-signal-safe; it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(move || sandbox.enter());
    }
    Ok(())
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "setting the parent-death signal between fork and exec")]
fn die_with_parent(command: &mut Command) {
    let parent = Pid::this();
    // SAFETY: the closure runs in the forked child before exec and only makes async-signal-safe calls, prctl and getppid; it
    // neither allocates (an `Errno` is a number, and `io::Error` from a raw number holds just that) nor takes a lock.
    unsafe {
        command.pre_exec(move || {
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            if getppid() != parent {
                // The parent died before the signal was set, so the signal will never arrive.
                return Err(io::Error::from_raw_os_error(nix::errno::Errno::ESRCH as i32));
            }
            Ok(())
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_: &mut Command) {}

/// A pipe or socket that the host passed on a descriptor, if it did.
///
/// Sets CLOEXEC, so call this before the first child is started, once per descriptor: the result owns it.
#[expect(unsafe_code, reason = "taking ownership of an inherited descriptor")]
pub fn inherited(descriptor: RawFd) -> Option<OwnedFd> {
    {
        // SAFETY: the borrow ends with this block and is only used for fstat and fcntl, which answer EBADF for a descriptor
        // that is not open.
        let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let mode = fstat(borrowed.as_fd()).ok()?.st_mode;
        let kind = SFlag::from_bits_truncate(mode) & SFlag::S_IFMT;
        if kind != SFlag::S_IFIFO && kind != SFlag::S_IFSOCK {
            return None;
        }
        // Everything this process opens has CLOEXEC; a descriptor without it came from the host.
        let flags = FdFlag::from_bits_truncate(fcntl(borrowed.as_fd(), FcntlArg::F_GETFD).ok()?);
        if flags.contains(FdFlag::FD_CLOEXEC) {
            return None;
        }
        fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    }
    // SAFETY: the descriptor is open and had no CLOEXEC, so it was inherited and has no owner in this process. It has CLOEXEC
    // now, so a second call returns `None`.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Returns freed memory to the system. The C library keeps most of what several threads allocated at once.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "calling the C library")]
pub fn return_freed_memory() {
    // SAFETY: it takes no pointer, locks the heaps itself, and returns only pages without an allocation.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn return_freed_memory() {}
