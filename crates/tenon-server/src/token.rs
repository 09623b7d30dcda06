//! Bearer tokens for HTTP: 256 random bits each, several valid at once so that they can be rotated.
//!
//! They are stored in one JSON file that only its owner can read, never in configuration, logs or process
//! arguments. A change of the file (rotation, revocation) takes effect with the next request. A token is
//! compared with all stored ones in constant time, so timing reveals neither a prefix nor a count.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use subtle::{Choice, ConstantTimeEq};
use tenon_contract::clock::{Clock, Entropy};

use crate::http::{Authority, Principal};

/// One stored token.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Identifies the token without revealing it.
    pub id: String,
    pub secret: String,
    pub created_at: String,
    /// The surfaces it allows; absent means the read-only ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surfaces: Option<Vec<String>>,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("id", &self.id).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("cannot use the token file {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("the token file {} is damaged", path.display())]
    Malformed { path: PathBuf, source: serde_json::Error },
    #[error("the token file {} can be read by others; make it private with `chmod 600`", .0.display())]
    Exposed(PathBuf),
    #[error("another process has been changing the token file {} for {seconds} s", path.display())]
    Locked { path: PathBuf, seconds: u64 },
    #[error("there is no token `{0}`")]
    Unknown(String),
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    tokens: Vec<Token>,
}

/// How long a change waits for a change by another process, which takes milliseconds.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// Detects a changed file: two writes within one clock tick differ in the inode.
type Stamp = (Option<SystemTime>, u64, u64);

pub struct TokenFile {
    path: PathBuf,
    clock: Clock,
    entropy: Entropy,
    cached: Mutex<Option<(Stamp, Arc<[Token]>)>>,
    /// How long a change waits for another process.
    patience: Duration,
}

impl TokenFile {
    pub fn new(path: PathBuf, clock: Clock, entropy: Entropy) -> Self {
        Self { path, clock, entropy, cached: Mutex::new(None), patience: LOCK_PATIENCE }
    }

    #[cfg(test)]
    fn path(&self) -> &Path {
        &self.path
    }

    /// All valid tokens, oldest first.
    pub fn list(&self) -> Result<Vec<Token>, TokenError> {
        self.shared().map(|tokens| tokens.to_vec())
    }

    /// As `list`, without copying: every request calls this, and the file seldom changes.
    fn shared(&self) -> Result<Arc<[Token]>, TokenError> {
        let io = |source| self.io(source);
        let stamp = match std::fs::metadata(&self.path) {
            Ok(metadata) => {
                refuse_exposed(&self.path, &metadata)?;
                (metadata.modified().ok(), metadata.len(), inode(&metadata))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Arc::new([])),
            Err(error) => return Err(io(error)),
        };
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((seen, tokens)) = &*cached
            && *seen == stamp
        {
            return Ok(Arc::clone(tokens));
        }
        let text = std::fs::read_to_string(&self.path).map_err(io)?;
        let stored: Stored = serde_json::from_str(&text)
            .map_err(|source| TokenError::Malformed { path: self.path.clone(), source })?;
        let tokens: Arc<[Token]> = stored.tokens.into();
        *cached = Some((stamp, Arc::clone(&tokens)));
        Ok(tokens)
    }

    /// The newest token; creates one if no token exists.
    pub fn current(&self) -> Result<Token, TokenError> {
        match self.list()?.pop() {
            Some(newest) => Ok(newest),
            None => self.rotate(None),
        }
    }

    /// Adds a token. Older ones stay valid until they are revoked.
    pub fn rotate(&self, surfaces: Option<Vec<String>>) -> Result<Token, TokenError> {
        self.change(|tokens| {
            let token = Token {
                id: self.entropy.id(),
                secret: self.entropy.token(),
                created_at: self.clock.rfc3339(),
                surfaces,
            };
            tokens.push(token.clone());
            Ok(token)
        })
    }

    /// Revokes a token immediately.
    pub fn revoke(&self, id: &str) -> Result<(), TokenError> {
        self.change(|tokens| {
            let at = tokens.iter().position(|token| token.id == id);
            tokens.remove(at.ok_or_else(|| TokenError::Unknown(id.to_owned()))?);
            Ok(())
        })
    }

    /// Reads, changes and replaces the file under a lock shared with other processes.
    fn change<T>(
        &self,
        edit: impl FnOnce(&mut Vec<Token>) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let io = |source| self.io(source);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(io)?;
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        let changed = edit(&mut tokens)?;
        // A temporary file is private from its creation.
        let mut next = tempfile::NamedTempFile::new_in(folder).map_err(io)?;
        let text = serde_json::to_vec_pretty(&Stored { tokens }).expect("strings serialise");
        next.write_all(&text).map_err(io)?;
        next.as_file().sync_all().map_err(io)?;
        next.persist(&self.path).map_err(|error| io(error.error))?;
        Ok(changed)
    }

    /// Takes the lock shared with other processes, waiting at most [`Self::patience`].
    fn lock(&self) -> Result<File, TokenError> {
        let io = |source| self.io(source);
        let file = open_private(&self.path.with_extension("lock")).map_err(io)?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        // The kernel has no lock call with a deadline. A thread that waits too long ends with the process; if it gets the
        // lock after all, it releases it at once.
        let (sender, taken) = mpsc::sync_channel(1);
        let waiting = std::thread::Builder::new().name("token lock".to_owned()).spawn(move || {
            let _ = sender.send(file.lock().map(|()| file));
        });
        waiting.map_err(io)?;
        match taken.recv_timeout(self.patience) {
            Ok(locked) => locked.map_err(io),
            Err(_) => Err(TokenError::Locked { path: self.path.clone(), seconds: self.patience.as_secs() }),
        }
    }

    fn io(&self, source: io::Error) -> TokenError {
        TokenError::Io { path: self.path.clone(), source }
    }
}

impl Authority for TokenFile {
    fn principal(&self, presented: Option<&str>) -> Option<Principal> {
        let presented = presented?;
        let tokens = self.shared().unwrap_or_else(|error| {
            tracing::error!(%error, "cannot check tokens");
            Arc::new([])
        });
        let mut known = None;
        for token in &*tokens {
            let equal: Choice = token.secret.as_bytes().ct_eq(presented.as_bytes());
            if bool::from(equal) {
                known = Some(token);
            }
        }
        known.map(|token| Principal { id: token.id.clone(), surfaces: token.surfaces.clone() })
    }
}

/// Opens a lock file that only its owner can read and lock, also one that was created before with other permissions.
#[cfg(unix)]
fn open_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

#[cfg(not(unix))]
fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

#[cfg(unix)]
fn refuse_exposed(path: &Path, metadata: &std::fs::Metadata) -> Result<(), TokenError> {
    use std::os::unix::fs::PermissionsExt;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(TokenError::Exposed(path.to_owned()));
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_exposed(_: &Path, _: &std::fs::Metadata) -> Result<(), TokenError> {
    Ok(())
}

#[cfg(unix)]
fn inode(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &tempfile::TempDir) -> TokenFile {
        TokenFile::new(folder.path().join("tokens.json"), Clock::system(), Entropy::seeded(1))
    }

    fn opens(file: &TokenFile, secret: &str) -> bool {
        file.principal(Some(secret)).is_some()
    }

    #[test]
    fn rotated_tokens_stay_valid_until_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(&folder);
        assert!(file.list().unwrap().is_empty());
        let old = file.current().unwrap();
        assert_eq!(old.secret.len(), 64, "256 bits in hex");
        let new = file.rotate(Some(vec!["code".into()])).unwrap();
        assert!(opens(&file, &old.secret) && opens(&file, &new.secret));
        assert_eq!(file.current().unwrap().id, new.id);
        file.revoke(&old.id).unwrap();
        assert!(!opens(&file, &old.secret) && opens(&file, &new.secret));
        assert!(matches!(file.revoke(&old.id), Err(TokenError::Unknown(_))));
    }

    #[test]
    fn change_by_another_process_takes_effect() {
        let folder = tempfile::tempdir().unwrap();
        let (serving, command) = (file(&folder), file(&folder));
        let token = command.current().unwrap();
        assert!(opens(&serving, &token.secret));
        command.revoke(&token.id).unwrap();
        assert!(!opens(&serving, &token.secret));
    }

    #[test]
    fn incomplete_secret_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(&folder);
        let token = file.current().unwrap();
        assert!(file.principal(None).is_none());
        for wrong in ["", "x", &token.secret[..63], &format!("{}0", token.secret), &token.id] {
            assert!(!opens(&file, wrong), "{wrong}");
        }
        assert!(!format!("{token:?}").contains(&token.secret));
    }

    #[test]
    fn held_lock_is_an_error_at_the_deadline() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile { patience: Duration::from_millis(20), ..file(&folder) };
        let lock = open_private(&folder.path().join("tokens.lock")).unwrap();
        lock.lock().unwrap();
        assert!(matches!(file.rotate(None), Err(TokenError::Locked { .. })));
        assert!(file.list().unwrap().is_empty(), "a rejected change writes nothing");
        drop(lock);
        TokenFile { patience: LOCK_PATIENCE, ..file }.rotate(None).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn lock_file_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("tokens.lock");
        std::fs::write(&lock, "").unwrap();
        std::fs::set_permissions(&lock, std::fs::Permissions::from_mode(0o644)).unwrap();
        file(&folder).current().unwrap();
        assert_eq!(std::fs::metadata(&lock).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[cfg(unix)]
    #[test]
    fn file_readable_by_others_is_rejected() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = file(&folder);
        let token = file.current().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(file.path()), 0o600);
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(file.list(), Err(TokenError::Exposed(_))));
        assert!(!opens(&file, &token.secret));
    }
}
