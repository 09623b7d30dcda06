//! Unix: the folder for sockets and locks, and the file names in it.
//!
//! Policy: a process that can write to this folder can impersonate the daemon, so the folder must be private. It is created
//! with mode 0700. A folder that is a link, belongs to another user or is open to others is rejected, not repaired: its
//! files may already be another user's.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::id::sha256_hex;

use super::{DaemonError, FolderProblem, file_lock};
use crate::config::{Environment, env};
use crate::dirs::Dirs;

/// The longest socket path that works on every Unix, without the trailing NUL.
const MAX_SOCKET_PATH: usize = 103;

/// The socket and lock files of one workspace's daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonPaths {
    root: Utf8PathBuf,
    environment: Environment,
    folder: Utf8PathBuf,
    name: String,
    life_lock: Utf8PathBuf,
}

impl DaemonPaths {
    /// The paths for the canonical `root`. Creates and checks the folder.
    pub fn of(root: &Utf8Path, environment: &Environment) -> Result<Self, DaemonError> {
        let folder = runtime_folder(environment);
        prepare(&folder)?;
        let name = sha256_hex(root.as_str())[..16].to_owned();
        let life_lock = life_lock(environment, &name).unwrap_or_else(|| folder.join(format!("{name}.life")));
        let (root, environment) = (root.to_owned(), environment.clone());
        let paths = Self { root, environment, folder, name, life_lock };
        let socket = paths.socket();
        match socket.as_str().len() > MAX_SOCKET_PATH {
            true => Err(DaemonError::PathTooLong { path: socket }),
            false => Ok(paths),
        }
    }

    /// The paths for the same root after the folder was removed. The folder may be another one now.
    pub(super) fn renewed(&self) -> Result<Self, DaemonError> {
        Self::of(&self.root, &self.environment)
    }

    pub(crate) fn socket(&self) -> Utf8PathBuf {
        self.folder.join(format!("{}.sock", self.name))
    }

    /// Held by the daemon while it runs.
    pub(crate) fn life_lock(&self) -> &Utf8Path {
        &self.life_lock
    }

    /// Held by the process that starts a daemon, until that daemon accepts connections.
    pub fn start_lock(&self) -> Utf8PathBuf {
        self.folder.join(format!("{}.start", self.name))
    }
}

/// The life lock is in the state folder: the folder for sockets may be removed while the daemon runs, at the end of a
/// login for example. `None` if the state folder cannot be written to.
fn life_lock(environment: &Environment, name: &str) -> Option<Utf8PathBuf> {
    let folder = Dirs::of(environment).ok()?.daemons();
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    let file = folder.join(format!("{name}.life"));
    file_lock::open(&file).is_ok().then_some(file)
}

/// The folder that the environment selects; it may not exist yet.
pub(crate) fn runtime_folder(environment: &Environment) -> Utf8PathBuf {
    if let Some(given) = environment.get(env::RUNTIME_DIR) {
        return given.into();
    }
    // After `su` or `sudo`, the variable names a folder that is missing or belongs to another user.
    let session = environment.get("XDG_RUNTIME_DIR").map(Utf8Path::new);
    if let Some(session) = session.filter(|folder| folder.is_absolute() && is_ours(folder)) {
        return session.join("tenon");
    }
    let temporary = environment.get("TMPDIR").unwrap_or("/tmp");
    Utf8Path::new(temporary).join(format!("tenon-{}", nix::unistd::geteuid()))
}

fn is_ours(folder: &Utf8Path) -> bool {
    folder.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == own_uid())
}

pub(super) fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// Creates the folder if needed, and rejects it unless it is private.
fn prepare(folder: &Utf8Path) -> Result<(), DaemonError> {
    let io = |source| DaemonError::FolderIo { folder: folder.to_owned(), source };
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io(error)),
        _ => {}
    }
    let metadata = folder.symlink_metadata().map_err(io)?;
    let problem = if metadata.is_symlink() {
        FolderProblem::Link
    } else if !metadata.is_dir() {
        FolderProblem::NotAFolder
    } else if metadata.uid() != own_uid() {
        FolderProblem::OtherOwner
    } else if metadata.permissions().mode() & 0o077 != 0 {
        FolderProblem::OpenToOthers
    } else {
        return Ok(());
    };
    Err(DaemonError::Folder { folder: folder.to_owned(), problem })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::symlink;

    use super::*;

    fn temporary() -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        (folder, path)
    }

    fn problem(folder: &Utf8Path) -> FolderProblem {
        match prepare(folder) {
            Err(DaemonError::Folder { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn new_folder_is_private() {
        let (_guard, base) = temporary();
        let folder = base.join("tenon");
        prepare(&folder).unwrap();
        prepare(&folder).unwrap();
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn folder_that_is_not_private_is_rejected() {
        let (_guard, base) = temporary();
        let real = base.join("real");
        prepare(&real).unwrap();
        symlink(&real, base.join("link")).unwrap();
        assert_eq!(problem(&base.join("link")), FolderProblem::Link);
        symlink(base.join("nowhere"), base.join("dangling")).unwrap();
        assert_eq!(problem(&base.join("dangling")), FolderProblem::Link);
        fs::write(base.join("file"), "").unwrap();
        assert_eq!(problem(&base.join("file")), FolderProblem::NotAFolder);
        fs::set_permissions(&real, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(problem(&real), FolderProblem::OpenToOthers);
        if own_uid() == 0 {
            fs::set_permissions(&real, Permissions::from_mode(0o700)).unwrap();
            std::os::unix::fs::chown(&real, Some(65_534), None).unwrap();
            assert_eq!(problem(&real), FolderProblem::OtherOwner);
        }
    }

    #[test]
    fn session_folder_is_used_if_it_exists_and_is_own() {
        let (_guard, base) = temporary();
        let uid = own_uid();
        let folder = |session: &str| {
            runtime_folder(&Environment::from([("XDG_RUNTIME_DIR", session), ("TMPDIR", base.as_str())]))
        };
        assert_eq!(folder(base.as_str()), base.join("tenon"));
        assert_eq!(folder(base.join("gone").as_str()), base.join(format!("tenon-{uid}")));
        assert_eq!(folder("relative"), base.join(format!("tenon-{uid}")));
        assert_eq!(runtime_folder(&Environment::default()), format!("/tmp/tenon-{uid}"));
    }

    #[test]
    fn socket_path_that_is_too_long_is_rejected() {
        let (_guard, base) = temporary();
        let long = base.join("x".repeat(100));
        let environment = Environment::from([("TENON_RUNTIME_DIR", long.as_str())]);
        let refused = DaemonPaths::of(Utf8Path::new("/w"), &environment);
        assert!(matches!(refused, Err(DaemonError::PathTooLong { .. })));
    }
}
