//! Unix: a lock on an open file: the kernel releases it with the process, so it cannot become stale.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::Duration;

use camino::Utf8Path;
use tokio::sync::oneshot;

/// A held lock, released on drop or when the process ends.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Takes the lock if it is free.
    pub(crate) fn try_take(path: &Utf8Path) -> io::Result<Option<Self>> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Takes the lock, waiting at most `patience`; `None` on timeout.
    pub async fn take(path: &Utf8Path, patience: Duration) -> io::Result<Option<Self>> {
        if let Some(lock) = Self::try_take(path)? {
            return Ok(Some(lock));
        }
        let file = open(path)?;
        let (sender, taken) = oneshot::channel();
        // The kernel has no lock call with a deadline. A thread that waits too long stays until the process ends; if it
        // gets the lock after all, it releases it at once.
        std::thread::Builder::new().name("lock".to_owned()).spawn(move || {
            let _ = sender.send(file.lock().map(|()| file));
        })?;
        match tokio::time::timeout(patience, taken).await {
            Ok(Ok(locked)) => locked.map(|file| Some(Self(file))),
            Ok(Err(_)) => Err(io::Error::other("the thread that waits for a lock ended")),
            Err(_) => Ok(None),
        }
    }

    /// Whether the file at `path` is the locked one.
    pub(crate) fn is_at(&self, path: &Utf8Path) -> bool {
        let (Ok(own), Ok(there)) = (self.0.metadata(), path.symlink_metadata()) else { return false };
        (own.dev(), own.ino()) == (there.dev(), there.ino())
    }

    /// Writes a note into the file.
    pub(crate) fn note(&mut self, text: &str) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.write_all(text.as_bytes())
    }
}

pub(super) fn open(path: &Utf8Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn released_lock_wakes_the_next_waiter() {
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(folder.path().join("x.life")).unwrap();
        let mut held = FileLock::try_take(&path).unwrap().unwrap();
        held.note("42\n").unwrap();
        assert!(FileLock::try_take(&path).unwrap().is_none());
        assert!(FileLock::take(&path, Duration::from_millis(1)).await.unwrap().is_none());
        let waiting = tokio::spawn({
            let path = path.clone();
            async move { FileLock::take(&path, Duration::from_secs(60)).await.unwrap().is_some() }
        });
        drop(held);
        assert!(waiting.await.unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "42\n");
    }
}
