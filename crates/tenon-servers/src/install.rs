//! Servers that Tenon installs: pinned versions through npm, pip and cargo, into the managed folder.
//!
//! The managed folder holds one folder per installed lock, `<lock>-<version>-<hash>`. The hash covers the lock files, so the
//! contents of a folder never change. A folder is complete once it has the file [`COMPLETE`], which is written last; the
//! next installation removes incomplete folders. Virtualenvs contain their own path, so they are built in place
//! (decision 0312). An exclusive lock on `.lock` keeps two installations apart; the programs that install hold it, too.
//!
//! All three check the hashes in the lock files, which name no registry: the user's own configuration decides where
//! packages come from. npm skips install scripts and pip uses wheels only, so nothing that they download runs during the
//! installation. cargo compiles, which runs the build scripts of the packages (decision 0360).

use std::fs::File;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use crate::find::{Fix, how_to_install};
use crate::registry::{Install, Registry, ServerEntry, ServerId};

mod compiler;
mod in_use;
mod lock;
mod plan;
mod system;
mod tool;

pub use compiler::CompilerVersion;
pub use lock::{PackageLock, PackageManager};
pub use plan::{InstallPlan, PlannedLock, ServedFiles, SkipReason, SkippedServer};
use tool::ToolStep;
pub use tool::{ToolError, Tools};

const COMPLETE: &str = ".complete";

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("no language server is called `{id}`")]
    UnknownServer { id: String, nearest: Option<ServerId> },
    #[error("Tenon does not install `{id}`")]
    NotManaged { id: ServerId, how: Fix },
    #[error("cannot install `{lock}`")]
    Tool {
        lock: &'static str,
        #[source]
        source: ToolError,
    },
    #[error("cannot use the folder of installed servers")]
    Folder(#[from] io::Error),
}

impl InstallError {
    /// What the user can do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownServer { nearest, .. } => nearest.as_ref().map(|id| format!("did you mean `{id}`?")),
            Self::NotManaged { how, .. } => Some(how.to_string()),
            Self::Tool { source, .. } => source.hint(),
            Self::Folder(_) => None,
        }
    }
}

/// The progress of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallProgress {
    /// Another installation is running.
    Waiting,
    /// A step of this lock's installation begins.
    Step {
        lock: &'static PackageLock,
        what: &'static str,
    },
    /// So many packages are compiled or about to be.
    Built {
        lock: &'static PackageLock,
        packages: usize,
    },
    Installed {
        lock: &'static PackageLock,
    },
    /// It was already installed.
    Kept {
        lock: &'static PackageLock,
    },
}

/// A lock that is installed completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub lock: &'static PackageLock,
    pub version: String,
    pub folder: Utf8PathBuf,
    /// Whether it is what this version of Tenon would install.
    pub current: bool,
}

/// What became of the outdated versions of a lock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovedVersions {
    pub removed: Vec<String>,
    /// Kept, since a running server would lose files that it has not read yet.
    pub in_use: Vec<String>,
}

/// The folder of servers that Tenon installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Managed {
    folder: Utf8PathBuf,
}

impl Managed {
    pub fn new(folder: Utf8PathBuf) -> Self {
        Self { folder }
    }

    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// Where a lock is or would be installed.
    pub fn folder_of(&self, lock: &PackageLock) -> Utf8PathBuf {
        self.folder.join(lock.folder_name())
    }

    /// All complete installations, by lock, the current one of each first.
    pub fn installed(&self) -> Vec<Installed> {
        let mut names: Vec<String> = match self.folder.read_dir_utf8() {
            Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.file_name().to_owned())).collect(),
            Err(_) => Vec::new(),
        };
        names.sort();
        let mut installed: Vec<Installed> = names
            .into_iter()
            .filter_map(|name| {
                let folder = self.folder.join(&name);
                let (lock, version) = PackageLock::of_folder(&name)?;
                folder.join(COMPLETE).is_file().then(|| Installed {
                    lock,
                    version: version.to_owned(),
                    current: name == lock.folder_name(),
                    folder,
                })
            })
            .collect();
        installed.sort_by_key(|one| (one.lock.name, !one.current));
        installed
    }

    /// The folders with the programs of these locks, in their order.
    pub(crate) fn bins(&self, locks: &[String]) -> Vec<Utf8PathBuf> {
        let installed = if locks.is_empty() { Vec::new() } else { self.installed() };
        locks
            .iter()
            .flat_map(|name| installed.iter().filter(move |one| one.lock.name == name))
            .map(|one| one.folder.join(one.lock.manager.bin()))
            .collect()
    }

    /// Installs one lock, unless it is installed already.
    pub fn install(
        &self,
        lock: &'static PackageLock,
        tools: &Tools,
        report: &mut dyn FnMut(InstallProgress),
    ) -> Result<Utf8PathBuf, InstallError> {
        let guard = self.guard(report)?;
        self.remove_incomplete()?;
        let folder = self.folder_of(lock);
        if folder.join(COMPLETE).is_file() {
            report(InstallProgress::Kept { lock });
            return Ok(folder);
        }
        fs_err::create_dir_all(&folder)?;
        let built = tools.build(lock, &folder, &guard, &mut |step| {
            report(match step {
                ToolStep::Begins(what) => InstallProgress::Step { lock, what },
                ToolStep::Built(packages) => InstallProgress::Built { lock, packages },
            });
        });
        if let Err(source) = built {
            clear(&folder)?;
            return Err(InstallError::Tool { lock: lock.name, source });
        }
        fs_err::write(folder.join(COMPLETE), "")?;
        report(InstallProgress::Installed { lock });
        Ok(folder)
    }

    /// Removes every version of a lock and returns the removed versions.
    pub fn remove(
        &self,
        lock: &'static PackageLock,
        report: &mut dyn FnMut(InstallProgress),
    ) -> Result<Vec<String>, InstallError> {
        let _guard = self.guard(report)?;
        let mut removed = Vec::new();
        for one in self.installed() {
            if one.lock == lock {
                // The marker goes first, so that a half-removed folder is not used.
                fs_err::remove_file(one.folder.join(COMPLETE))?;
                clear(&one.folder)?;
                removed.push(one.version);
            }
        }
        Ok(removed)
    }

    /// Removes every outdated version that no process uses, and returns those that were removed and those that were kept.
    pub fn remove_outdated(
        &self,
        lock: &'static PackageLock,
        report: &mut dyn FnMut(InstallProgress),
    ) -> Result<RemovedVersions, InstallError> {
        let _guard = self.guard(report)?;
        let mut versions = RemovedVersions::default();
        for one in self.installed().into_iter().filter(|one| one.lock == lock && !one.current) {
            if in_use::is_in_use(&one.folder) {
                versions.in_use.push(one.version);
                continue;
            }
            fs_err::remove_file(one.folder.join(COMPLETE))?;
            clear(&one.folder)?;
            versions.removed.push(one.version);
        }
        Ok(versions)
    }

    /// Removes what interrupted installations left behind.
    fn remove_incomplete(&self) -> io::Result<()> {
        for entry in self.folder.read_dir_utf8()? {
            let entry = entry?;
            if PackageLock::of_folder(entry.file_name()).is_some() && !entry.path().join(COMPLETE).is_file() {
                clear(entry.path())?;
            }
        }
        Ok(())
    }

    fn guard(&self, report: &mut dyn FnMut(InstallProgress)) -> Result<File, InstallError> {
        fs_err::create_dir_all(&self.folder)?;
        let mut options = fs_err::OpenOptions::new();
        // Readable, since it is the standard input of the programs that install.
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(self.folder.join(".lock"))?.into_file();
        if file.try_lock().is_err() {
            report(InstallProgress::Waiting);
            file.lock()?;
        }
        Ok(file)
    }
}

fn clear(folder: &Utf8Path) -> io::Result<()> {
    match fs_err::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Every lock that may have installed one of these servers, without duplicates.
pub fn all_locks_of(registry: &Registry, ids: &[String]) -> Result<Vec<&'static PackageLock>, InstallError> {
    let mut locks = Vec::new();
    for id in ids {
        let entry = entry_of(registry, id)?;
        let Install::Managed { locks: names, .. } = &entry.install else {
            return Err(InstallError::NotManaged { id: entry.id.clone(), how: how_to_install(entry) });
        };
        for lock in names.iter().filter_map(|name| PackageLock::named(name)) {
            if !locks.contains(&lock) {
                locks.push(lock);
            }
        }
    }
    Ok(locks)
}

fn entry_of<'r>(registry: &'r Registry, id: &str) -> Result<&'r ServerEntry, InstallError> {
    registry.get(id).ok_or_else(|| InstallError::UnknownServer {
        id: id.to_owned(),
        nearest: registry.nearest_id(id).cloned(),
    })
}
