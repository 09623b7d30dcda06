//! What an installation would do, before it does anything: which locks, for which servers and files, and which servers have
//! to come from elsewhere.

use std::fmt;

use super::lock::PackageLock;
use super::tool::{ToolError, Tools};
use super::{InstallError, entry_of};
use crate::find::{Finder, Fix, Trust, how_to_install};
use crate::language_count::LanguageCount;
use crate::registry::{Install, Registry, ServerEntry, ServerId, Switch};

/// A lock to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedLock {
    pub lock: &'static PackageLock,
    /// The servers that it is installed for, with their languages and the number of their files; zero if they were asked for.
    pub servers: Vec<ServedFiles>,
    /// Another command that installs the server.
    pub instead: Option<String>,
}

/// A server with the files that it would serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedFiles {
    pub id: ServerId,
    pub language: String,
    pub files: usize,
}

impl fmt::Display for ServedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.files {
            0 => f.write_str(&self.language),
            1 => write!(f, "1 {} file", self.language),
            files => write!(f, "{files} {} files", self.language),
        }
    }
}

/// A server that is not installed with the others.
#[derive(Debug)]
pub struct SkippedServer {
    pub served: ServedFiles,
    pub why: SkipReason,
    /// Another command that installs the server.
    pub instead: Option<String>,
}

/// Why a server is not installed.
#[derive(Debug)]
pub enum SkipReason {
    /// Tenon does not install it.
    NotManaged(Fix),
    /// A program that installs it is missing.
    Tool(ToolError),
    /// It is built from source, and would not run here before the root is trusted.
    Untrusted,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotManaged(_) => f.write_str("Tenon does not install it"),
            Self::Tool(error) => write!(f, "{error}"),
            Self::Untrusted => f.write_str("it is built from source and runs only in trusted workspaces"),
        }
    }
}

impl SkippedServer {
    /// What the user can do.
    pub fn fix(&self) -> String {
        match &self.why {
            SkipReason::NotManaged(fix) => fix.to_string(),
            SkipReason::Tool(error) => {
                let instead = self.instead.iter().map(|command| format!("run `{command}`"));
                error.hint().into_iter().chain(instead).collect::<Vec<_>>().join("; or ")
            }
            SkipReason::Untrusted => {
                format!("run `tenon trust`, then `tenon servers install {}`", self.served.id)
            }
        }
    }
}

/// The locks to install, without duplicates, and the servers that are skipped.
#[derive(Debug, Default)]
pub struct InstallPlan {
    pub locks: Vec<PlannedLock>,
    pub skipped: Vec<SkippedServer>,
}

impl InstallPlan {
    /// For servers that the user names, in that order.
    pub fn for_servers(registry: &Registry, ids: &[String], tools: &Tools) -> Result<Self, InstallError> {
        let entries: Vec<&ServerEntry> =
            ids.iter().map(|id| entry_of(registry, id)).collect::<Result<_, _>>()?;
        let mut plan = Self::default();
        for entry in entries {
            match choose(entry, Trust::Trusted, tools) {
                Ok(lock) => plan.add(lock, entry, 0),
                Err(why) => plan.skipped.push(skipped(entry, 0, why)),
            }
        }
        Ok(plan)
    }

    /// For what a workspace's languages need and the machine does not have, in registry order.
    pub fn for_workspace(
        registry: &Registry,
        languages: &LanguageCount,
        finder: &Finder,
        tools: &Tools,
    ) -> Self {
        let mut plan = Self::default();
        let entries = registry.entries();
        let mut served: Vec<&str> = entries
            .iter()
            .filter(|entry| entry.enabled != Switch::Off && finder.is_installed(entry))
            .filter_map(|entry| entry.group.as_deref())
            .collect();
        // The first server of a group that cannot be installed, which is reported if none can.
        let mut postponed: Vec<(&str, SkippedServer)> = Vec::new();
        for entry in entries {
            let group = entry.group.as_deref();
            let wanted = match entry.enabled {
                Switch::Off => false,
                Switch::On => true,
                Switch::Auto => group.is_none_or(|group| !served.contains(&group)),
            };
            let files = languages.files_of(&entry.id);
            if !wanted || files == 0 || finder.is_installed(entry) {
                continue;
            }
            let trust = finder.trust();
            match (choose(entry, trust, tools), group) {
                (Ok(lock), group) => {
                    plan.add(lock, entry, files);
                    served.extend(group);
                }
                (Err(why), Some(group)) if entry.enabled == Switch::Auto => {
                    if !postponed.iter().any(|(other, _)| *other == group) {
                        postponed.push((group, skipped(entry, files, why)));
                    }
                }
                (Err(why), _) => plan.skipped.push(skipped(entry, files, why)),
            }
        }
        postponed.retain(|(group, _)| !served.contains(group));
        plan.skipped.extend(postponed.into_iter().map(|(_, skipped)| skipped));
        let order = |one: &SkippedServer| entries.iter().position(|entry| entry.id == one.served.id);
        plan.skipped.sort_by_key(order);
        plan
    }

    pub fn is_empty(&self) -> bool {
        self.locks.is_empty() && self.skipped.is_empty()
    }

    fn add(&mut self, lock: &'static PackageLock, entry: &ServerEntry, files: usize) {
        let served = served_files(entry, files);
        match self.locks.iter_mut().find(|planned| planned.lock == lock) {
            Some(planned) => planned.servers.push(served),
            None => self.locks.push(PlannedLock { lock, servers: vec![served], instead: instead(entry) }),
        }
    }
}

/// The lock to install for a server: the first that this machine can install.
fn choose(entry: &ServerEntry, trust: Trust, tools: &Tools) -> Result<&'static PackageLock, SkipReason> {
    let Install::Managed { locks, .. } = &entry.install else {
        return Err(SkipReason::NotManaged(how_to_install(entry)));
    };
    let mut failure = None;
    for lock in locks.iter().filter_map(|name| PackageLock::named(name)) {
        if lock.is_built_from_source() && entry.runs_workspace_code && trust == Trust::Untrusted {
            return Err(SkipReason::Untrusted);
        }
        match tools.check(lock) {
            Ok(()) => return Ok(lock),
            Err(error) => {
                failure.get_or_insert(error);
            }
        }
    }
    Err(failure.map_or_else(|| SkipReason::NotManaged(how_to_install(entry)), SkipReason::Tool))
}

fn instead(entry: &ServerEntry) -> Option<String> {
    match &entry.install {
        Install::Managed { instead, .. } => instead.clone(),
        Install::Command { .. } | Install::Manual { .. } => None,
    }
}

fn skipped(entry: &ServerEntry, files: usize, why: SkipReason) -> SkippedServer {
    SkippedServer { served: served_files(entry, files), why, instead: instead(entry) }
}

fn served_files(entry: &ServerEntry, files: usize) -> ServedFiles {
    ServedFiles { id: entry.id.clone(), language: entry.language.clone(), files }
}
