//! Unix: children that never outlive us, and the descriptors that a host hands down. The only file with `unsafe`.
//!
//! Invariants:
//! - All children are started by one thread that never ends: Linux ties `PR_SET_PDEATHSIG` to the *thread* that made the
//!   child, and a worker thread that retires would take its children with it.
//! - A child asks for SIGKILL at its parent's death before it runs anything, then checks that the parent still lives.
//! - A signal is only ever sent to a child that has not been reaped, so never to a stranger that got its number: the waiter
//!   notices the end without reaping, clears what is left of the group, and reaps under the lock that signalling takes.

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
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};

/// Whose process group a child belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessGroup {
    /// Its own: ending it ends all that it started.
    Own,
    /// Ours: a host that kills our group reaches it.
    Inherited,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildExit {
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
pub struct ChildProcess {
    pub stdin: pipe::Sender,
    pub stdout: pipe::Receiver,
    pub stderr: pipe::Receiver,
    pub handle: ChildHandle,
}

/// Watches and ends a child. Clones share it; the last one to go ends the child.
#[derive(Clone)]
pub struct ChildHandle(Arc<ChildState>);

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

    /// Only while the child is not reaped: its number, and its group's, are then its own.
    fn send(&self, signal: Signal) {
        // An error means that nobody is left to receive it.
        let _ = match self.group {
            ProcessGroup::Own => killpg(self.pid, signal),
            ProcessGroup::Inherited => kill(self.pid, signal),
        };
    }
}

impl ChildHandle {
    pub fn pid(&self) -> u32 {
        self.0.kill.pid.as_raw().unsigned_abs()
    }

    /// How the child ended, once it has.
    pub fn exit(&self) -> Option<ChildExit> {
        *self.0.exit.borrow()
    }

    /// Waits for the end of the child.
    pub async fn ended(&self) -> ChildExit {
        let mut exit = self.0.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(ChildExit::Unknown),
            Err(_) => ChildExit::Unknown,
        }
    }

    /// Ends the child now: SIGKILL, to its group where it has one.
    pub fn kill(&self) {
        self.0.kill.signal(Signal::SIGKILL);
    }

    /// Ends the child with SIGTERM, and with SIGKILL when it still runs after `grace`.
    pub async fn terminate(&self, grace: Duration) -> ChildExit {
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

/// The one thread that starts children. It holds its own sender's other end for ever, so it never ends.
static SPAWNER: LazyLock<io::Result<mpsc::SyncSender<SpawnRequest>>> = LazyLock::new(|| {
    // A few servers start at once; more wait in their callers.
    let (orders, inbox) = mpsc::sync_channel::<SpawnRequest>(64);
    std::thread::Builder::new().name("spawner".to_owned()).spawn(move || {
        while let Ok(mut order) = inbox.recv() {
            if let Err(Ok(mut child)) = order.reply.send(order.command.spawn()) {
                // The caller is gone: nobody will ever end this child.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    })?;
    Ok(orders)
});

/// Starts a child with its pipes. It dies when we do.
pub async fn spawn(command: Command, group: ProcessGroup) -> io::Result<ChildProcess> {
    spawn_with(command, group, Vec::new()).await
}

/// As [`spawn`]; the child also gets these descriptors, under these numbers.
pub async fn spawn_with(
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

/// Takes the pipes and sets a thread to wait for the end.
fn attend(mut child: Child, group: ProcessGroup) -> io::Result<ChildProcess> {
    let missing = || io::Error::other("a pipe of the child is missing");
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

    // Notices the end and leaves the child unreaped, so that its group's number stays taken.
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

/// Gives the child descriptors under numbers of our choice. Its own, for reporting that a program cannot be run, may have one
/// of them when ours are all taken up below; then all that is lost is the words of that report.
#[expect(unsafe_code, reason = "setting descriptors between fork and exec")]
fn hand_down(command: &mut Command, handed: Vec<(OwnedFd, RawFd)>) -> io::Result<()> {
    let above = handed.iter().map(|(_, number)| number + 1).max().unwrap_or(0);
    // None may sit on a number that another is to get.
    let lifted = handed.into_iter().map(|(descriptor, number)| {
        let raw = fcntl(&descriptor, FcntlArg::F_DUPFD_CLOEXEC(above))?;
        // SAFETY: fcntl has just made it, and nobody else knows of it.
        Ok((unsafe { OwnedFd::from_raw_fd(raw) }, number))
    });
    let lifted = lifted.collect::<nix::Result<Vec<_>>>()?;
    // SAFETY: the closure runs in the forked child before exec and only calls dup2, which is async-signal-safe; it neither
    // allocates nor takes a lock. What dup2 makes is given up at once and stays open for the program.
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
                // The parent died before the signal was set, so it will never come.
                return Err(io::Error::from_raw_os_error(nix::errno::Errno::ESRCH as i32));
            }
            Ok(())
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_: &mut Command) {}

/// What a host gave us on a descriptor that it may or may not have opened: a pipe or a socket, else nothing.
///
/// It gets CLOEXEC, so call this before the first child is started. Once per descriptor: the result owns it.
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
        // Whatever this process opened itself is closed at exec; what survived an exec came from the host.
        let flags = FdFlag::from_bits_truncate(fcntl(borrowed.as_fd(), FcntlArg::F_GETFD).ok()?);
        if flags.contains(FdFlag::FD_CLOEXEC) {
            return None;
        }
        fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    }
    // SAFETY: the descriptor is open, and it was so when this program began, since it had no CLOEXEC: no one else in this
    // process owns it. It has CLOEXEC now, so a second call for it returns `None`.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
