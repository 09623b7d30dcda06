//! Makes a server's answers cover the same files whatever was asked before: loads all its projects, and opens the files
//! outside of them that a question may be about.
//!
//! A server knows files outside its projects only while they are open (decision 0331). For references and implementations
//! these are the files that contain the name and can refer to the symbol; for workspace symbols all of them, up to a limit.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use futures::future::join_all;
use serde_json::json;
use tenon_contract::epoch::Epoch;
use tenon_contract::regular_file;
use tenon_contract::root::WorkspacePath;
use tokio::task::spawn_blocking;

use super::instance::ServerInstance;
use super::{Candidate, Inner, Key, Orchestrator, lock};
use crate::call_context::CallContext;
use crate::client::{Client, Synced};
use crate::identifiers;
use crate::model::{Doubt, GapReason};
use crate::transport::RequestError;
use tenon_servers::project_files::{ImportGraph, ImportSearch, ProjectFiles, ProjectKind, ProjectSearch};
use tenon_servers::registry::ServerEntry;

/// The most projects that one server keeps loaded. A tree of a thousand small packages must not fill the memory.
const MAX_LOADED: usize = 64;
/// The most files to search for a name, and their largest size.
const MAX_SEARCHED: usize = 20_000;
const MAX_SEARCHED_BYTES: u64 = 1024 * 1024;
/// The largest configuration file.
const MAX_CONFIG_BYTES: u64 = 8 * 1024 * 1024;
/// The most names whose files are remembered.
const MAX_NAMES: usize = 256;

/// The files that a question needs open in one server.
#[derive(Default)]
pub(super) struct NeededFiles {
    files: Arc<ProjectFiles>,
    /// Files outside the projects, to open while the question runs.
    opened: Arc<Vec<WorkspacePath>>,
    /// Whether more files would be needed than are opened.
    pub(super) gap: Option<GapReason>,
}

impl NeededFiles {
    /// The opened files to ask about so that every project is searched. Files that no project contains are all in one
    /// project; JavaScript can be in another one only if a project allows it.
    pub(super) fn asked<'f>(&self, opened: &'f OpenedFiles<'_>) -> Vec<&'f WorkspacePath> {
        let paths = |synced: &'f [Synced<'_>]| synced.iter().map(Synced::path);
        let is_alone =
            |path: &&WorkspacePath| opened.projects.is_empty() || self.files.is_in_no_project(path.as_path());
        let outside: Vec<&WorkspacePath> = match paths(&opened.outside).find(is_alone) {
            Some(path) => vec![path],
            None => paths(&opened.outside).collect(),
        };
        paths(&opened.projects).chain(outside).collect()
    }

    /// Whether an answer may name a file: it belongs to a project or is opened for this question. Without any project, the
    /// server also searches what the opened files import.
    pub(super) fn covers(&self, path: &WorkspacePath) -> bool {
        self.files.all_outside
            || self.files.outside.binary_search_by(|file| file.as_path().cmp(path.as_path())).is_err()
            || self.opened.contains(path)
    }
}

/// What [`Orchestrator::cover`] opened. The documents stay open until this is dropped.
pub(super) struct OpenedFiles<'c> {
    /// One document of each loaded project.
    pub(super) projects: Vec<Synced<'c>>,
    pub(super) outside: Vec<Synced<'c>>,
}

/// The known projects of one server, and where names were found.
pub(super) struct KnownProjects {
    epoch: u64,
    /// Whether the configuration may have changed since.
    is_outdated: bool,
    /// The files of the workspace and the configuration that the projects were found with.
    workspace: Vec<Utf8PathBuf>,
    configuration: BTreeMap<Utf8PathBuf, Option<String>>,
    files: Arc<ProjectFiles>,
    /// The files outside that contain a name.
    names: BTreeMap<String, Arc<Vec<Utf8PathBuf>>>,
    /// Those to open for a question about a name in a file.
    opened: BTreeMap<AskedName, Arc<Vec<WorkspacePath>>>,
    imports: ImportGraph,
    /// Files of other servers that import files of this one, and whether a name occurs in them.
    components: Arc<Vec<Utf8PathBuf>>,
    used_by_components: BTreeMap<String, bool>,
}

/// The name that a question is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AskedName {
    pub(super) name: String,
    /// The file with the position.
    pub(super) file: Utf8PathBuf,
}

impl Candidate {
    /// Whether the projects are known only once the server is ready.
    pub(super) fn stores_index(&self) -> bool {
        self.entry.projects.is_some_and(ProjectKind::stores_index)
    }
}

impl Orchestrator {
    /// The files that a question about a name needs; without a name, only the projects.
    pub(super) async fn needed_for_name(
        &self,
        candidate: &Candidate,
        asked: Option<AskedName>,
    ) -> NeededFiles {
        let Some(kind) = candidate.entry.projects else {
            return NeededFiles::default();
        };
        let (inner, candidate) = (Arc::clone(&self.0), candidate.clone());
        let work = move || {
            let files = inner.files_now(&candidate, kind);
            let is_doubtful = asked.as_ref().is_some_and(|asked| {
                files.doubtful.iter().take(MAX_SEARCHED).any(|file| contains_name(file, &asked.name))
            });
            let opened = asked
                .as_ref()
                .map(|asked| inner.files_to_open(&candidate, kind, &files, asked))
                .unwrap_or_default();
            let is_used_elsewhere =
                asked.as_ref().is_some_and(|asked| inner.is_used_by_components(&candidate, asked));
            let is_cut = is_used_elsewhere
                || is_doubtful
                || opened.len() > kind.most_opened()
                || files.outside.len() > MAX_SEARCHED;
            NeededFiles { gap: gap(&files, is_cut), files, opened }
        };
        spawn_blocking(work).await.unwrap_or_default()
    }

    /// The files that a search for symbols needs.
    pub(super) async fn needed_for_symbols(&self, candidate: &Candidate) -> NeededFiles {
        let Some(kind) = candidate.entry.projects else {
            return NeededFiles::default();
        };
        let (inner, candidate) = (Arc::clone(&self.0), candidate.clone());
        let work = move || {
            let files = inner.files_now(&candidate, kind);
            // Another server with a nested root has the rest.
            let own: Vec<Utf8PathBuf> =
                files.outside.iter().filter(|file| inner.owns(&candidate, file)).cloned().collect();
            let most = if kind.lists_open_files() { kind.most_opened() } else { 0 };
            let own = match files.all_outside && own.len() > most {
                true => inner.loading(&candidate, kind, &files, own),
                false => own,
            };
            let is_too_much = own.len() > most;
            // A few of many are worth their cost only if there is nothing else to search.
            let most = if is_too_much && !files.all_outside { 0 } else { most };
            let opened: Vec<WorkspacePath> =
                own.into_iter().take(most).filter_map(|file| inner.gate.admit_path(file).ok()).collect();
            NeededFiles { opened: Arc::new(opened), gap: gap(&files, is_too_much), files }
        };
        spawn_blocking(work).await.unwrap_or_default()
    }

    /// Those of these files that a server's projects leave out, if it has any project.
    pub(super) async fn outside_projects(
        &self,
        candidate: &Candidate,
        mut paths: BTreeSet<WorkspacePath>,
    ) -> BTreeSet<WorkspacePath> {
        let Some(kind) = candidate.entry.projects.filter(|_| !paths.is_empty()) else {
            return BTreeSet::new();
        };
        let (inner, candidate) = (Arc::clone(&self.0), candidate.clone());
        let work = move || {
            let files = inner.project_files(&candidate, kind);
            let is_outside = |path: &WorkspacePath| {
                files.outside.binary_search_by(|file| file.as_path().cmp(path.as_path()))
            };
            paths.retain(|path| !files.all_outside && is_outside(path).is_ok());
            paths
        };
        spawn_blocking(work).await.unwrap_or_default()
    }

    /// Loads the projects of a server and opens the other needed files.
    pub(super) async fn cover<'c>(
        &self,
        client: &'c Client,
        needed: &NeededFiles,
        call: &CallContext,
    ) -> Result<OpenedFiles<'c>, RequestError> {
        let Some(kind) = client.entry().projects else {
            return Ok(OpenedFiles { projects: Vec::new(), outside: Vec::new() });
        };
        let projects = self.load_projects(client, &needed.files, call).await?;
        let mut outside = Vec::new();
        for path in needed.opened.iter().take(kind.most_opened()) {
            outside.extend(self.pinned(client, path, call).await?);
        }
        if kind == ProjectKind::CompileCommands {
            // It indexes an opened file before it answers the next request about that file.
            let indexed = outside.iter().map(|synced| {
                let document = json!({ "textDocument": { "uri": synced.path().uri().as_str() } });
                async move { client.ask(call, "textDocument/documentSymbol", &document).await }
            });
            join_all(indexed).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        }
        client.await_indexed(call).await?;
        Ok(OpenedFiles { projects, outside })
    }

    /// Opens a file of every project and keeps it open, since a server unloads a project with its last document.
    async fn load_projects<'c>(
        &self,
        client: &'c Client,
        files: &ProjectFiles,
        call: &CallContext,
    ) -> Result<Vec<Synced<'c>>, RequestError> {
        let mut open = Vec::new();
        for samples in files.projects.iter().take(MAX_LOADED) {
            let samples: Vec<WorkspacePath> =
                samples.iter().filter_map(|file| self.0.gate.admit_path(file).ok()).collect();
            let mut pinned = samples.iter().find_map(|path| client.pin(path));
            for path in &samples {
                if pinned.is_none() {
                    pinned = self.pinned(client, path, call).await?;
                }
            }
            open.extend(pinned);
        }
        let held: BTreeSet<&str> = open.iter().map(|synced| synced.path().as_str()).collect();
        client.hold_only(&held);
        Ok(open)
    }

    /// An open document, opened if necessary; `None` if the file cannot be read.
    async fn pinned<'c>(
        &self,
        client: &'c Client,
        path: &WorkspacePath,
        call: &CallContext,
    ) -> Result<Option<Synced<'c>>, RequestError> {
        if let Some(pinned) = client.pin(path) {
            return Ok(Some(pinned));
        }
        match self.read(path).await {
            Ok(lines) => client.sync(call, path, &lines, true).await.map(Some),
            Err(_) => Ok(None),
        }
    }
}

impl Orchestrator {
    /// What running servers do not support in the configuration of their projects, one sentence each.
    pub async fn configuration_notes(&self) -> Vec<String> {
        let candidates = {
            let instances = lock(&self.0.instances);
            let running = instances.values().filter(|instance| instance.live().is_some());
            let candidate = |instance: &Arc<ServerInstance>| Candidate {
                entry: Arc::clone(&instance.entry),
                place: Ok(instance.root.clone()),
            };
            running.map(candidate).collect()
        };
        self.unsupported(candidates).await
    }

    /// What these servers do not support in the configuration of their projects.
    pub(super) async fn unsupported(&self, mut candidates: Vec<Candidate>) -> Vec<String> {
        candidates.retain(|candidate| !candidate.entry.removed_options.is_empty());
        if candidates.is_empty() {
            return Vec::new();
        }
        let inner = Arc::clone(&self.0);
        let work = move || {
            let note = |candidate: &Candidate| {
                let files = inner.project_files(candidate, candidate.entry.projects?);
                let root = candidate.place.as_ref().ok()?.as_path();
                let root = inner.workspace_of(root).unwrap_or(root);
                files.refused_options(&candidate.entry).note(&candidate.entry, root)
            };
            candidates.iter().filter_map(note).collect()
        };
        spawn_blocking(work).await.unwrap_or_default()
    }
}

impl Inner {
    /// The projects of a server, which is ready if its index is needed to know them.
    fn files_now(&self, candidate: &Candidate, kind: ProjectKind) -> Arc<ProjectFiles> {
        let files = self.project_files(candidate, kind);
        match &candidate.place {
            Ok(root) if kind.stores_index() && !files.headers.is_empty() => {
                let key: Key = (candidate.entry.id.clone(), root.as_path().to_owned());
                let instance = lock(&self.instances).get(&key).cloned();
                let index = instance.as_ref().map_or(root.as_path(), |instance| instance.index_folder());
                Arc::new(files.with_unindexed_headers(index))
            }
            _ => files,
        }
    }

    /// The projects of a server, found again only if a file appeared or went, or the configuration changed.
    fn project_files(&self, candidate: &Candidate, kind: ProjectKind) -> Arc<ProjectFiles> {
        let (Some(_), Ok(root)) = (&self.watch, &candidate.place) else {
            return Arc::default();
        };
        let key: Key = (candidate.entry.id.clone(), root.as_path().to_owned());
        let epoch = self.epochs.get(Epoch::Fs);
        let mut known = lock(&self.projects);
        if let Some(found) = known.get(&key).filter(|found| found.epoch == epoch && !found.is_outdated) {
            return Arc::clone(&found.files);
        }
        let workspace = self.files();
        let read = |path: &Utf8Path| {
            let path = self.gate.admit_path(path).ok()?;
            self.gate.read_to_string(&path, MAX_CONFIG_BYTES).ok()
        };
        if let Some(found) = known.get_mut(&key)
            && found.workspace == workspace
            && found.configuration.iter().all(|(path, text)| read(path) == *text)
        {
            found.epoch = epoch;
            found.is_outdated = false;
            found.names.clear();
            found.opened.clear();
            found.used_by_components.clear();
            found.imports.check_again();
            return Arc::clone(&found.files);
        }
        let configuration = RefCell::new(BTreeMap::new());
        let search = ProjectSearch {
            root: root.as_path(),
            files: &workspace,
            serves: &|file| candidate.entry.language_id(file).is_some(),
            owns: &|file| self.owns(candidate, file),
            read: &|path| {
                let text = read(path);
                configuration.borrow_mut().insert(path.to_owned(), text.clone());
                text
            },
        };
        let files = Arc::new(search.run(kind));
        let found = KnownProjects {
            epoch,
            is_outdated: false,
            components: Arc::new(self.components(candidate, &workspace)),
            used_by_components: BTreeMap::new(),
            workspace,
            configuration: configuration.into_inner(),
            files: Arc::clone(&files),
            names: BTreeMap::new(),
            opened: BTreeMap::new(),
            imports: ImportGraph::default(),
        };
        known.insert(key, found);
        files
    }

    /// A changed file may be configuration that projects were found with: then they are found again.
    pub(super) fn note_configuration_change(&self, path: &WorkspacePath) {
        for known in lock(&self.projects).values_mut() {
            if known.configuration.contains_key(path.as_path()) {
                known.is_outdated = true;
            }
        }
    }

    /// Whether a name occurs in files that import the asked one and that this server does not read: uses of a TypeScript
    /// function in Vue's components.
    fn is_used_by_components(&self, candidate: &Candidate, asked: &AskedName) -> bool {
        let known = self.known_projects(candidate, |known| {
            let is_used = known.used_by_components.get(&asked.name).copied();
            (Arc::clone(&known.components), is_used)
        });
        let Some((components, None)) = known else {
            return known.is_some_and(|(_, is_used)| is_used == Some(true));
        };
        let is_used = components.iter().take(MAX_SEARCHED).any(|file| contains_name(file, &asked.name));
        self.known_projects(candidate, |known| {
            if known.used_by_components.len() == MAX_NAMES {
                known.used_by_components.clear();
            }
            known.used_by_components.insert(asked.name.clone(), is_used);
        });
        is_used
    }

    /// The files that other servers read and that import files of this one.
    fn components(&self, candidate: &Candidate, workspace: &[Utf8PathBuf]) -> Vec<Utf8PathBuf> {
        let servers = Arc::clone(&*lock(&self.servers));
        let imports_it = |entry: &&ServerEntry| {
            entry.imports.iter().any(|ending| candidate.entry.extensions.contains_key(ending))
        };
        let importing: Vec<&ServerEntry> =
            servers.iter().map(|found| &*found.entry).filter(imports_it).collect();
        let is_component = |file: &&Utf8PathBuf| {
            candidate.entry.language_id(file).is_none()
                && importing.iter().any(|entry| entry.language_id(file).is_some())
        };
        match importing.is_empty() {
            true => Vec::new(),
            false => workspace.iter().filter(is_component).cloned().collect(),
        }
    }

    /// Whether a file belongs to a server with this root, not to one with a nested root.
    fn owns(&self, candidate: &Candidate, file: &Utf8Path) -> bool {
        let root = self.root_for(&candidate.entry, file);
        root.is_some_and(|root| candidate.place.as_ref().is_ok_and(|place| *place == root))
    }

    /// The files outside a server's projects to open for a question.
    fn files_to_open(
        &self,
        candidate: &Candidate,
        kind: ProjectKind,
        files: &ProjectFiles,
        asked: &AskedName,
    ) -> Arc<Vec<WorkspacePath>> {
        if let Some(Some(opened)) = self.known_projects(candidate, |known| known.opened.get(asked).cloned()) {
            return opened;
        }
        let known = self.known_projects(candidate, |known| known.names.get(&asked.name).cloned());
        let found = known.flatten().unwrap_or_else(|| {
            let outside = files.outside.iter().take(MAX_SEARCHED);
            Arc::new(outside.filter(|file| contains_name(file, &asked.name)).cloned().collect())
        });
        let is_outside = files.outside.binary_search(&asked.file).is_ok();
        let needed = self.with_imports(candidate, kind, files, |graph, search| {
            let related = graph.related(search, &asked.file, is_outside, &found);
            graph.loading(search, &related)
        });
        let needed = needed.unwrap_or_else(|| found.to_vec());
        let opened = needed.iter().filter_map(|file| self.gate.admit_path(file).ok()).collect();
        let opened: Arc<Vec<WorkspacePath>> = Arc::new(opened);
        self.known_projects(candidate, |known| {
            if known.opened.len() == MAX_NAMES {
                known.names.clear();
                known.opened.clear();
            }
            known.names.insert(asked.name.clone(), found);
            known.opened.insert(asked.clone(), Arc::clone(&opened));
        });
        opened
    }

    /// The files whose imports load all of these.
    fn loading(
        &self,
        candidate: &Candidate,
        kind: ProjectKind,
        files: &ProjectFiles,
        all: Vec<Utf8PathBuf>,
    ) -> Vec<Utf8PathBuf> {
        let loading = self.with_imports(candidate, kind, files, |graph, search| graph.loading(search, &all));
        loading.unwrap_or(all)
    }

    /// Uses what is known about imports between files, if the server's language has such imports.
    fn with_imports<T>(
        &self,
        candidate: &Candidate,
        kind: ProjectKind,
        files: &ProjectFiles,
        work: impl FnOnce(&mut ImportGraph, &ImportSearch<'_>) -> T,
    ) -> Option<T> {
        if kind != ProjectKind::Tsconfig {
            return None;
        }
        let search = ImportSearch {
            packages: &files.packages,
            exists: &|path| path.is_file(),
            read: &|path| read_text(path),
        };
        let mut graph = self.known_projects(candidate, |known| std::mem::take(&mut known.imports))?;
        let done = work(&mut graph, &search);
        self.known_projects(candidate, |known| known.imports = graph);
        Some(done)
    }

    /// What is known about a server's projects now.
    fn known_projects<T>(
        &self,
        candidate: &Candidate,
        use_it: impl FnOnce(&mut KnownProjects) -> T,
    ) -> Option<T> {
        let root = candidate.place.as_ref().ok()?;
        let key: Key = (candidate.entry.id.clone(), root.as_path().to_owned());
        let epoch = self.epochs.get(Epoch::Fs);
        lock(&self.projects)
            .get_mut(&key)
            .filter(|known| known.epoch == epoch && !known.is_outdated)
            .map(use_it)
    }
}

/// What an answer lacks: projects that are not loaded, or files outside of them that are not opened.
fn gap(files: &ProjectFiles, is_cut: bool) -> Option<GapReason> {
    match files.projects.len() > MAX_LOADED {
        true => Some(GapReason::Limit),
        false => is_cut.then_some(GapReason::Unproven(Doubt::UnreadFiles)),
    }
}

/// Whether a file contains an identifier. A file that is too large for a server to open is not searched.
fn contains_name(file: &Utf8Path, name: &str) -> bool {
    read_text(file).is_some_and(|text| identifiers::contains(&text, name))
}

/// The text of a file, up to a limit.
fn read_text(file: &Utf8Path) -> Option<String> {
    let bytes = regular_file::read_start(file, MAX_SEARCHED_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
