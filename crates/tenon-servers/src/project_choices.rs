//! Which server of each group the projects of a workspace have, why, and what that server does not support there.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::root::RootGate;

use crate::find::{Finder, GroupChoice, MissedPackage};
use crate::language_count::MAX_FILES;
use crate::project_files::ProjectSearch;
use crate::registry::{Registry, ServerEntry};
use crate::walk::Walk;

/// The largest configuration file that is read.
const MAX_CONFIG_BYTES: u64 = 8 * 1024 * 1024;

/// The server of a group in one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectChoice {
    /// Relative to the root; empty for the root itself.
    pub project: Utf8PathBuf,
    /// What the servers of the group serve.
    pub language: String,
    pub choice: GroupChoice,
    /// What people should know about it, one sentence each.
    pub notes: Vec<String>,
}

/// The choices for every project with files for a group that has several servers, by group and project.
pub fn of_workspace(
    walk: &Walk,
    gate: &RootGate,
    registry: &Registry,
    finder: &Finder,
) -> Vec<ProjectChoice> {
    let files: Vec<Utf8PathBuf> = walk.files().take(MAX_FILES).collect();
    let mut members: BTreeMap<&str, Vec<&ServerEntry>> = BTreeMap::new();
    for entry in registry.entries() {
        if let Some(group) = entry.group.as_deref() {
            members.entry(group).or_default().push(entry);
        }
    }
    let mut choices = Vec::new();
    for (group, members) in members.into_iter().filter(|(_, members)| members.len() > 1) {
        for project in projects(walk.root(), &files, members[0]) {
            for choice in finder.group_choice(registry, group, &project) {
                let mut notes: Vec<String> = choice.missed.iter().map(missed_note).collect();
                if let Some(entry) = registry.get(choice.server.as_str()) {
                    notes.extend(unsupported(gate, walk.root(), &files, entry, &project));
                }
                let project = project.strip_prefix(walk.root()).unwrap_or(&project).to_owned();
                choices.push(ProjectChoice { project, language: members[0].language.clone(), choice, notes });
            }
        }
    }
    choices
}

/// The projects with files for a server.
fn projects(root: &Utf8Path, files: &[Utf8PathBuf], entry: &ServerEntry) -> BTreeSet<Utf8PathBuf> {
    let mut by_folder: BTreeMap<&Utf8Path, Option<Utf8PathBuf>> = BTreeMap::new();
    for file in files {
        let name = file.file_name().unwrap_or_default();
        if let Some(folder) = file.parent()
            && !name.starts_with('.')
            && entry.language_id(file).is_some()
        {
            by_folder.entry(folder).or_insert_with(|| entry.root_for(root, file));
        }
    }
    by_folder.into_values().flatten().collect()
}

fn missed_note(missed: &MissedPackage) -> String {
    let MissedPackage { package, server, fix } = missed;
    format!("the project has {package}, which `{server}` would use: {fix}")
}

/// What a server does not support in the configuration of a project.
fn unsupported(
    gate: &RootGate,
    root: &Utf8Path,
    files: &[Utf8PathBuf],
    entry: &ServerEntry,
    project: &Utf8Path,
) -> Option<String> {
    let kind = entry.projects.filter(|_| !entry.removed_options.is_empty())?;
    let search = ProjectSearch {
        root: project,
        files,
        serves: &|file| entry.language_id(file).is_some(),
        owns: &|file| entry.root_for(root, file).is_some_and(|found| found == project),
        read: &|path| gate.read_to_string(&gate.admit_path(path).ok()?, MAX_CONFIG_BYTES).ok(),
    };
    search.run(kind).refused_options(entry).note(entry, root)
}
