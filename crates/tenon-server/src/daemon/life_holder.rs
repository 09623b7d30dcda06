//! Unix: which process holds the life lock of a workspace, and where its socket is.
//!
//! The note in the lock file is written by the holder, so it is current while the lock is held.

use std::io;
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};

use super::file_lock::FileLock;

/// The daemon that holds a life lock. The note may be missing for a moment after it took the lock.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LifeHolder {
    pub(super) pid: Option<i32>,
    pub(super) socket: Option<Utf8PathBuf>,
}

impl LifeHolder {
    /// The holder of the lock, or `None` if it is free.
    pub(super) fn find(life: &Utf8Path) -> io::Result<Option<Self>> {
        if FileLock::try_take(life)?.is_some() {
            return Ok(None);
        }
        let note = std::fs::read_to_string(life).unwrap_or_default();
        let mut lines = note.lines();
        let pid = lines.next().and_then(|line| line.parse().ok());
        Ok(Some(Self { pid, socket: lines.next().map(Utf8PathBuf::from) }))
    }

    /// The note of this process.
    pub(super) fn note(socket: &Utf8Path) -> String {
        format!("{}\n{socket}\n", std::process::id())
    }

    /// The pid, if that process has the lock file open. A pid of another container does not.
    pub(super) fn verified_pid(&self, life: &Utf8Path) -> Option<i32> {
        let lock = life.metadata().ok()?;
        let descriptors = std::fs::read_dir(format!("/proc/{}/fd", self.pid?)).ok()?.flatten();
        let mut open = descriptors.filter_map(|descriptor| std::fs::metadata(descriptor.path()).ok());
        let is_open = open.any(|file| (file.dev(), file.ino()) == (lock.dev(), lock.ino()));
        self.pid.filter(|_| is_open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holder_is_known_while_the_lock_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let life = Utf8PathBuf::from_path_buf(folder.path().join("x.life")).unwrap();
        assert_eq!(LifeHolder::find(&life).unwrap(), None);
        let mut held = FileLock::try_take(&life).unwrap().unwrap();
        assert_eq!(LifeHolder::find(&life).unwrap(), Some(LifeHolder::default()));
        held.note(&LifeHolder::note(Utf8Path::new("/run/x.sock"))).unwrap();
        let holder = LifeHolder::find(&life).unwrap().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(holder, LifeHolder { pid: Some(own), socket: Some("/run/x.sock".into()) });
        if cfg!(target_os = "linux") {
            assert_eq!(holder.verified_pid(&life), Some(own));
            let parent = LifeHolder { pid: Some(nix::unistd::getppid().as_raw()), socket: None };
            assert_eq!(parent.verified_pid(&life), None);
        }
        drop(held);
        assert_eq!(LifeHolder::find(&life).unwrap(), None);
    }
}
