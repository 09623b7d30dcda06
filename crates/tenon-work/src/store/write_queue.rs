//! A queue for the writers of one SQLite file, across processes: first come, first served.
//!
//! SQLite has no queue for its write lock. A waiting process polls, and one that has just released the lock is always
//! faster. So every writer takes a ticket first: it locks the byte of a file whose offset is the ticket's number, and
//! waits until no lower byte is locked. The kernel wakes it then, and releases the bytes of a process that ends.
//!
//! Invariant: the queue only orders. SQLite's own lock decides who writes, so a writer without a ticket harms nothing but
//! the order.

use std::path::Path;
use std::time::Duration;

/// How long a writer waits for its turn. Afterwards it polls SQLite's lock: a suspended process in the queue must not stop
/// the others.
const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(target_os = "linux")]
pub(super) use linux::Ticket;

/// There is no queue.
#[cfg(not(target_os = "linux"))]
pub(super) enum Ticket {}

/// Takes a ticket for the queue of a store and waits for its turn. None if there is no queue: the system has no such
/// locks, or the file cannot be opened.
pub(super) async fn enter(store: &Path) -> Option<Ticket> {
    #[cfg(target_os = "linux")]
    match Ticket::take(&file_of(store)).await {
        Ok(ticket) => {
            ticket.wait(PATIENCE).await;
            return Some(ticket);
        }
        Err(error) => tracing::debug!(%error, "cannot queue for the store"),
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (store, PATIENCE);
    None
}

/// The file of the queue, next to the store.
#[cfg(target_os = "linux")]
fn file_of(store: &Path) -> std::path::PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push("-queue");
    name.into()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;
    use tokio::sync::oneshot;

    /// The byte that is locked while a ticket is issued.
    const ISSUING: i64 = 0;
    const ISSUING_ATTEMPTS: u32 = 500;
    const ISSUING_PAUSE: Duration = Duration::from_millis(1);
    /// The rest of the file, as the length of a lock.
    const REST: i64 = 0;

    /// A place in the queue, until it is dropped.
    pub(in super::super) struct Ticket {
        file: Arc<File>,
        number: i64,
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Wait {
        Yes,
        No,
    }

    /// Locks a range for an open file. False if another one holds it.
    fn lock(file: &File, kind: libc::c_int, start: i64, length: i64, wait: Wait) -> io::Result<bool> {
        let range = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: start,
            l_len: length,
            l_pid: 0,
        };
        loop {
            let locked = match wait {
                Wait::Yes => fcntl(file, FcntlArg::F_OFD_SETLKW(&range)),
                Wait::No => fcntl(file, FcntlArg::F_OFD_SETLK(&range)),
            };
            match locked {
                Ok(_) => return Ok(true),
                Err(Errno::EAGAIN | Errno::EACCES) => return Ok(false),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    impl Ticket {
        /// Takes the next ticket.
        pub(super) async fn take(path: &Path) -> io::Result<Self> {
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
            // Others hold it for three system calls, unless they are suspended meanwhile.
            let mut attempts = 0;
            while !lock(&file, libc::F_WRLCK, ISSUING, 1, Wait::No)? {
                attempts += 1;
                if attempts > ISSUING_ATTEMPTS {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                tokio::time::sleep(ISSUING_PAUSE).await;
            }
            Self::next_of(file)
        }

        /// The next ticket of a file that is locked for issuing.
        fn next_of(file: File) -> io::Result<Self> {
            let mut last = [0; 8];
            let known = file.read_at(&mut last, 0)? == last.len();
            let mut number = if known { i64::from_le_bytes(last).clamp(0, i64::MAX / 2) } else { 0 } + 1;
            // The number of a damaged file may be in use.
            while !lock(&file, libc::F_WRLCK, number, 1, Wait::No)? {
                number += 1;
            }
            file.write_all_at(&number.to_le_bytes(), 0)?;
            lock(&file, libc::F_UNLCK, ISSUING, 1, Wait::No)?;
            Ok(Self { file: Arc::new(file), number })
        }

        /// Whether every lower ticket is returned.
        pub(super) fn is_first(&self) -> bool {
            self.lock_lower(Wait::No)
        }

        /// A shared lock of all lower numbers, which waiting writers do not keep from each other. A failure counts as success:
        /// SQLite's lock follows.
        fn lock_lower(&self, wait: Wait) -> bool {
            lower(&self.file, self.number, wait)
        }

        /// Returns when it is this ticket's turn or the time is up.
        pub(super) async fn wait(&self, patience: Duration) {
            if self.is_first() {
                return;
            }
            // The system call cannot be cancelled, so it has a thread. It ends with the tickets before this one.
            let (turn, came) = oneshot::channel();
            let (file, number) = (Arc::clone(&self.file), self.number);
            let waiting = std::thread::Builder::new().name("tenon-queue".into()).spawn(move || {
                lower(&file, number, Wait::Yes);
                // The writer may have lost its patience.
                let _ = turn.send(());
            });
            if waiting.is_ok() {
                let _ = tokio::time::timeout(patience, came).await;
            }
        }
    }

    fn lower(file: &File, number: i64, wait: Wait) -> bool {
        // Byte 0 is the one for issuing.
        number == 1 || lock(file, libc::F_RDLCK, 1, number - 1, wait).unwrap_or(true)
    }

    impl Drop for Ticket {
        /// Unlocks explicitly: a thread that still waits keeps the file open.
        fn drop(&mut self) {
            let _ = lock(&self.file, libc::F_UNLCK, 0, REST, Wait::No);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        const LONG: Duration = Duration::from_secs(3600);

        async fn tickets(path: &Path, count: usize) -> Vec<Ticket> {
            let mut tickets = Vec::new();
            for _ in 0..count {
                tickets.push(Ticket::take(path).await.unwrap());
            }
            tickets
        }

        #[tokio::test]
        async fn turns_follow_the_order_of_tickets() {
            let folder = tempfile::TempDir::new().unwrap();
            let path = folder.path().join("queue");
            let mut queue = tickets(&path, 5).await;
            let first = |queue: &[Ticket]| queue.iter().map(Ticket::is_first).collect::<Vec<_>>();
            assert_eq!(first(&queue), [true, false, false, false, false]);
            // The first keeps its place when another one leaves.
            drop(queue.remove(2));
            assert_eq!(first(&queue), [true, false, false, false]);
            drop(queue.remove(0));
            assert_eq!(first(&queue), [true, false, false]);
            drop(queue.remove(0));
            assert_eq!(first(&queue), [true, false]);
            // A new ticket is the last.
            queue.extend(tickets(&path, 1).await);
            drop(queue.remove(0));
            assert_eq!(first(&queue), [true, false]);
        }

        #[tokio::test]
        async fn waiting_ends_with_the_ticket_before_and_with_patience() {
            let folder = tempfile::TempDir::new().unwrap();
            let path = folder.path().join("queue");
            let [one, two, three] = <[Ticket; 3]>::try_from(tickets(&path, 3).await).ok().unwrap();
            three.wait(Duration::ZERO).await;
            let mut waiting = Box::pin(two.wait(LONG));
            assert!(futures::poll!(&mut waiting).is_pending());
            drop(one);
            waiting.await;
            // Its thread still waits, but the place of a dropped ticket is free.
            drop(three);
            let four = tickets(&path, 1).await.remove(0);
            assert!(!four.is_first());
            drop(two);
            four.wait(LONG).await;
        }

        #[tokio::test]
        async fn damaged_file_is_used() {
            let folder = tempfile::TempDir::new().unwrap();
            let path = folder.path().join("queue");
            for content in [&b"abc"[..], &[255; 8], &[127; 8], b""] {
                std::fs::write(&path, content).unwrap();
                let two = tickets(&path, 2).await;
                assert!(two[0].is_first() && !two[1].is_first(), "{content:?}");
            }
        }
    }
}
