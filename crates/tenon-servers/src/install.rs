//! Servers that Tenon installs: pinned versions through npm and pip, into the managed folder.
//!
//! The managed folder holds one folder per installed lock, `<lock>-<version>-<hash>`. The hash covers the lock files, so the
//! contents of a folder never change. A folder is complete once it has the file [`COMPLETE`], which is written last; the
//! next installation removes incomplete folders. Virtualenvs contain their own path, so they are built in place
//! (decision 0312). An exclusive lock on `.lock` keeps two installations apart.
//!
//! Nothing that is downloaded runs during installation: npm skips install scripts, pip uses wheels only. Both check the
//! hashes in the lock files, which name no registry: the user's npm and pip configuration decides where packages come from.

use std::fs::File;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use crate::find::{Fix, SearchPath, how_to_install};
use crate::language_count::LanguageCount;
use crate::registry::{Install, Registry, ServerEntry, ServerId, Switch};

mod lock;
mod tool;

pub use lock::{PackageLock, PackageManager};
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
            Self::Tool { source, .. } => source.hint().map(str::to_owned),
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
        let _guard = self.guard(report)?;
        let folder = self.folder.join(lock.folder_name());
        if folder.join(COMPLETE).is_file() {
            report(InstallProgress::Kept { lock });
            return Ok(folder);
        }
        clear(&folder)?;
        fs_err::create_dir_all(&folder)?;
        let built = tools.build(lock, &folder, &mut |what| {
            report(InstallProgress::Step { lock, what });
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

    fn guard(&self, report: &mut dyn FnMut(InstallProgress)) -> Result<File, InstallError> {
        fs_err::create_dir_all(&self.folder)?;
        let file = fs_err::File::create(self.folder.join(".lock"))?.into_file();
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

/// The locks to install for these servers, without duplicates, in the given order.
pub fn locks_for(
    registry: &Registry,
    ids: &[String],
    tools: &Tools,
) -> Result<Vec<&'static PackageLock>, InstallError> {
    let mut locks = Vec::new();
    for id in ids {
        let entry = entry_of(registry, id)?;
        let lock = lock_of(entry, tools).ok_or_else(|| not_managed(entry))?;
        if !locks.contains(&lock) {
            locks.push(lock);
        }
    }
    Ok(locks)
}

/// Every lock that may have installed one of these servers, without duplicates.
pub fn all_locks_of(registry: &Registry, ids: &[String]) -> Result<Vec<&'static PackageLock>, InstallError> {
    let mut locks = Vec::new();
    for id in ids {
        let entry = entry_of(registry, id)?;
        let Install::Managed { locks: names } = &entry.install else {
            return Err(not_managed(entry));
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

fn not_managed(entry: &ServerEntry) -> InstallError {
    InstallError::NotManaged { id: entry.id.clone(), how: how_to_install(entry) }
}

/// The locks that a workspace's languages need and the machine does not have, in registry order.
pub fn locks_for_workspace(
    registry: &Registry,
    languages: &LanguageCount,
    managed: &Managed,
    search: &SearchPath,
    tools: &Tools,
) -> Vec<&'static PackageLock> {
    let present = |entry: &ServerEntry| {
        let locks = match &entry.install {
            Install::Managed { locks } => locks.as_slice(),
            Install::Command { .. } | Install::Manual { .. } => &[],
        };
        let bins = managed.bins(locks);
        entry.launches().any(|launch| {
            search.which(&launch.command, Some(languages.root())).is_some()
                || bins.iter().any(|bin| bin.join(&launch.command).exists())
        })
    };
    let mut locks = Vec::new();
    let mut served: Vec<&str> = registry
        .entries()
        .iter()
        .filter(|entry| entry.enabled != Switch::Off && present(entry))
        .filter_map(|entry| entry.group.as_deref())
        .collect();
    for entry in registry.entries() {
        let group = entry.group.as_deref();
        let wanted = match entry.enabled {
            Switch::Off => false,
            Switch::On => true,
            Switch::Auto => group.is_none_or(|group| !served.contains(&group)),
        };
        if !wanted || languages.files_of(&entry.id) == 0 || present(entry) {
            continue;
        }
        if let Some(lock) = lock_of(entry, tools) {
            served.extend(group);
            if !locks.contains(&lock) {
                locks.push(lock);
            }
        }
    }
    locks
}

/// The first lock of an entry whose package manager is available; else the first lock, for its error message.
fn lock_of(entry: &ServerEntry, tools: &Tools) -> Option<&'static PackageLock> {
    let Install::Managed { locks } = &entry.install else {
        return None;
    };
    let known: Vec<&'static PackageLock> = locks.iter().filter_map(|name| PackageLock::named(name)).collect();
    known.iter().find(|lock| tools.has(lock.manager)).or(known.first()).copied()
}
