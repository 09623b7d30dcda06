//! Which server of a group runs in a project, and why.

use std::fmt;

use camino::Utf8Path;

use super::{Finder, Fix, FoundProgram, Trust, npm_package};
use crate::registry::{OlderPackage, Registry, ServerEntry, ServerId, Switch};

/// The server of a group that runs in a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupChoice {
    pub server: ServerId,
    pub why: ChoiceReason,
    /// The project has an older version of a package, but its server cannot run now.
    pub missed: Option<MissedPackage>,
}

/// Why a server of a group runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChoiceReason {
    /// The user enabled it.
    Enabled,
    /// The project has this version, which the preferred server is not for.
    OlderPackage(InstalledPackage),
    /// It is preferred.
    Preferred,
    /// This preferred one is not found.
    Instead(ServerId),
}

impl fmt::Display for ChoiceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enabled => f.write_str("enabled in the configuration"),
            Self::OlderPackage(package) => write!(f, "the project has {package}"),
            Self::Preferred => f.write_str("the default"),
            Self::Instead(id) => write!(f, "`{id}` is not available"),
        }
    }
}

/// A package that a project has installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledPackage {
    pub name: String,
    pub version: String,
}

impl fmt::Display for InstalledPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.name, self.version)
    }
}

/// An older version of a package whose server cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissedPackage {
    pub package: InstalledPackage,
    /// The server for it.
    pub server: ServerId,
    /// What makes the server run.
    pub fix: Fix,
}

impl Finder {
    /// The servers of a group that run in a project: those that the user enabled, else one. Without those that are not found.
    pub fn group_choice(&self, registry: &Registry, group: &str, project: &Utf8Path) -> Vec<GroupChoice> {
        let finder = self.with_current_trust();
        let chosen = finder.choose(&finder.path(), registry, group, project);
        chosen.into_iter().filter(|(_, program)| program.is_some()).map(|(choice, _)| choice).collect()
    }

    /// As [`Finder::group_choice`], with the programs; `None` for an enabled server that is not found.
    pub(super) fn choose(
        &self,
        path: &[&Utf8Path],
        registry: &Registry,
        group: &str,
        project: &Utf8Path,
    ) -> Vec<(GroupChoice, Option<FoundProgram>)> {
        let members = || registry.entries().iter().filter(|entry| entry.group.as_deref() == Some(group));
        let enabled: Vec<_> = members()
            .filter(|entry| entry.enabled == Switch::On)
            .map(|entry| {
                let why = ChoiceReason::Enabled;
                let choice = GroupChoice { server: entry.id.clone(), why, missed: None };
                (choice, self.find_in(path, entry, project).ok())
            })
            .collect();
        if !enabled.is_empty() {
            return enabled;
        }
        let mut preferred: Option<&ServerEntry> = None;
        for entry in members().filter(|entry| entry.enabled == Switch::Auto) {
            let older = entry.older_package.as_ref();
            let older = older.and_then(|older| Some((older, self.installed_older(older, project)?)));
            let mut missed = None;
            if let Some((older, package)) = older {
                match self.find_older(path, registry, older, project) {
                    Ok((server, program)) => {
                        let why = ChoiceReason::OlderPackage(package);
                        return vec![(GroupChoice { server, why, missed: None }, Some(program))];
                    }
                    Err(fix) => {
                        missed = fix.map(|fix| MissedPackage { package, server: older.server.clone(), fix });
                    }
                }
            }
            if let Ok(program) = self.find_in(path, entry, project) {
                let why = match preferred {
                    None => ChoiceReason::Preferred,
                    Some(other) => ChoiceReason::Instead(other.id.clone()),
                };
                return vec![(GroupChoice { server: entry.id.clone(), why, missed }, Some(program))];
            }
            preferred = preferred.or(Some(entry));
        }
        Vec::new()
    }

    /// The older version of a package that a project has installed.
    fn installed_older(&self, older: &OlderPackage, project: &Utf8Path) -> Option<InstalledPackage> {
        let version = npm_package::installed_version(&older.name, project, &self.root)?;
        let is_older = npm_package::major(&version).is_some_and(|major| major < older.below);
        is_older.then(|| InstalledPackage { name: older.name.clone(), version })
    }

    /// The server for an older package; else what makes it run, unless the user disabled it.
    fn find_older(
        &self,
        path: &[&Utf8Path],
        registry: &Registry,
        older: &OlderPackage,
        project: &Utf8Path,
    ) -> Result<(ServerId, FoundProgram), Option<Fix>> {
        let entry = registry.get(older.server.as_str()).filter(|entry| entry.enabled != Switch::Off);
        let entry = entry.ok_or(None)?;
        match self.find_in(path, entry, project) {
            // It would not use the project's package.
            Ok(_) if self.trust == Trust::Untrusted => Err(Some(Fix::Run("tenon trust".to_owned()))),
            Ok(program) => Ok((entry.id.clone(), program)),
            Err(unavailable) => Err(Some(unavailable.fix)),
        }
    }
}
