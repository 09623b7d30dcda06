//! Which servers run for a file, and where: its project for each server, and one server of each group for that project.
//!
//! Both need the file system, so they are kept until a file is created or removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, MutexGuard};

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::epoch::Epoch;
use tenon_contract::root::WorkspacePath;

use super::{Candidate, Inner, Key, ServerAvailability, lock};
use tenon_servers::find::Availability;
use tenon_servers::registry::{ServerEntry, ServerId, Switch};

/// The most files whose servers are kept.
const MAX_FILES: usize = 1024;

/// Projects and choices, valid for one file-system epoch.
#[derive(Default)]
pub(super) struct ProjectCache {
    at: u64,
    /// The servers of files, and the list that they were chosen from.
    files: BTreeMap<WorkspacePath, Vec<Candidate>>,
    servers: Arc<Vec<ServerAvailability>>,
    /// Project roots by server and folder.
    roots: BTreeMap<Key, Option<WorkspacePath>>,
    /// The servers that run, by group and project.
    chosen: BTreeMap<(String, Utf8PathBuf), Arc<BTreeSet<ServerId>>>,
}

impl ProjectCache {
    /// Drops what was found before an epoch.
    fn renew(&mut self, at: u64) {
        if self.at != at {
            *self = Self { at, ..Self::default() };
        }
    }

    /// The kept servers of a file, if they were chosen from these.
    fn candidates(
        &self,
        servers: &Arc<Vec<ServerAvailability>>,
        path: &WorkspacePath,
    ) -> Option<Vec<Candidate>> {
        Arc::ptr_eq(&self.servers, servers).then(|| self.files.get(path).cloned()).flatten()
    }

    fn keep(&mut self, servers: Arc<Vec<ServerAvailability>>, path: &WorkspacePath, found: Vec<Candidate>) {
        if self.files.len() == MAX_FILES || !Arc::ptr_eq(&self.servers, &servers) {
            self.files.clear();
        }
        self.servers = servers;
        self.files.insert(path.clone(), found);
    }
}

impl Inner {
    /// The servers of a file, if everything that decides about them is cached.
    pub(super) fn known_candidates(&self, path: &WorkspacePath) -> Option<Vec<Candidate>> {
        let servers = Arc::clone(&*lock(&self.servers));
        let at = {
            let cache = self.valid_cache()?;
            if let Some(known) = cache.candidates(&servers, path) {
                return Some(known);
            }
            cache.at
        };
        let mut candidates = Vec::new();
        for (_, found) in by_name(&servers, path.as_path()) {
            let Some(root) = self.known_root(&found.entry, path.as_path())? else {
                continue;
            };
            let chosen = match self.chosen_group(found) {
                Some(group) => Some(self.known_choice(group, root.as_path())?),
                None => None,
            };
            candidates.extend(found.candidate(root, chosen.as_deref()));
        }
        let mut cache = self.valid_cache()?;
        // Another call may have renewed the cache meanwhile; then some of these are outdated.
        if cache.at != at {
            return None;
        }
        cache.keep(servers, path, candidates.clone());
        Some(candidates)
    }

    pub(super) fn find_candidates(&self, path: &WorkspacePath) -> Vec<Candidate> {
        let servers = Arc::clone(&*lock(&self.servers));
        self.serving(&servers, path.as_path()).into_iter().map(|(_, candidate)| candidate).collect()
    }

    /// The servers for a file with their index in the registry, without those that do not run for it.
    pub(super) fn serving(&self, servers: &[ServerAvailability], file: &Utf8Path) -> Vec<(usize, Candidate)> {
        let candidate = |(index, found): (usize, &ServerAvailability)| {
            let root = self.root_for(&found.entry, file)?;
            let chosen = self.chosen_group(found).map(|group| self.choice(group, root.as_path()));
            Some((index, found.candidate(root, chosen.as_deref())?))
        };
        by_name(servers, file).filter_map(candidate).collect()
    }

    /// The cache, if it is still valid.
    fn valid_cache(&self) -> Option<MutexGuard<'_, ProjectCache>> {
        let cache = lock(&self.project_cache);
        (self.watch.is_some() && cache.at == self.epochs.get(Epoch::Fs)).then_some(cache)
    }

    /// The cached project root for a file, if it is still valid.
    fn known_root(&self, entry: &ServerEntry, file: &Utf8Path) -> Option<Option<WorkspacePath>> {
        self.valid_cache()?.roots.get(&(entry.id.clone(), file.parent()?.to_owned())).cloned()
    }

    /// The project root for a file. Reads the file system if it is not cached.
    pub(super) fn root_for(&self, entry: &ServerEntry, file: &Utf8Path) -> Option<WorkspacePath> {
        if let Some(known) = self.known_root(entry, file) {
            return known;
        }
        let at = self.epochs.get(Epoch::Fs);
        let root = self
            .workspace_of(file)
            .and_then(|workspace| entry.root_for(workspace, file))
            .and_then(|root| self.gate.admit_folder(root).ok());
        let mut cache = lock(&self.project_cache);
        cache.renew(at);
        cache.roots.insert((entry.id.clone(), file.parent()?.to_owned()), root.clone());
        root
    }

    /// The group of a server, if a project may choose another one of it than the workspace does.
    fn chosen_group<'f>(&self, found: &'f ServerAvailability) -> Option<&'f str> {
        let group = found.entry.group.as_deref()?;
        let mut members = self.registry.entries().iter().filter(|one| one.group.as_deref() == Some(group));
        members.any(|one| one.older_package.is_some()).then_some(group)
    }

    fn known_choice(&self, group: &str, project: &Utf8Path) -> Option<Arc<BTreeSet<ServerId>>> {
        self.valid_cache()?.chosen.get(&(group.to_owned(), project.to_owned())).cloned()
    }

    /// The servers of a group that run in a project. Reads the file system if it is not cached.
    fn choice(&self, group: &str, project: &Utf8Path) -> Arc<BTreeSet<ServerId>> {
        if let Some(known) = self.known_choice(group, project) {
            return known;
        }
        let at = self.epochs.get(Epoch::Fs);
        let chosen = self.finder.group_choice(&self.registry, group, project);
        let chosen: Arc<BTreeSet<ServerId>> =
            Arc::new(chosen.into_iter().map(|choice| choice.server).collect());
        let mut cache = lock(&self.project_cache);
        cache.renew(at);
        cache.chosen.insert((group.to_owned(), project.to_owned()), Arc::clone(&chosen));
        chosen
    }
}

impl ServerAvailability {
    /// The server in a project; `None` if it does not run there. `chosen` has the group's servers that do, if that
    /// depends on the project.
    fn candidate(&self, root: WorkspacePath, chosen: Option<&BTreeSet<ServerId>>) -> Option<Candidate> {
        let chosen = chosen.filter(|chosen| !chosen.is_empty());
        let place = match (&self.availability, chosen.map(|chosen| chosen.contains(&self.entry.id))) {
            (_, Some(true)) | (Availability::Found(_), None) => Ok(root),
            (Availability::Unavailable(why), is_chosen)
                if is_chosen.is_none() || self.entry.enabled == Switch::On =>
            {
                Err(why.reason.to_string())
            }
            (_, Some(false) | None) => return None,
        };
        Some(Candidate { entry: Arc::clone(&self.entry), place })
    }
}

/// The servers for a file name, with their index in the registry.
fn by_name<'a>(
    servers: &'a [ServerAvailability],
    file: &'a Utf8Path,
) -> impl Iterator<Item = (usize, &'a ServerAvailability)> {
    let servers = servers.iter().enumerate();
    servers.filter(move |(_, found)| found.entry.language_id(file).is_some())
}
