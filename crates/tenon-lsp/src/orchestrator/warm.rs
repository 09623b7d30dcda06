//! The projects that servers would serve here, and getting servers ready before anyone asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use futures::future::join_all;
use tenon_contract::root::WorkspacePath;
use tokio::task::spawn_blocking;

use super::{Candidate, Inner, Orchestrator, lock, serving};
use crate::call::Call;
use crate::client::{Client, gap};
use crate::model::Why;
use tenon_servers::find::Availability;
use tenon_servers::registry::{Capability, ServerId};

/// Projects of one server that are started without being asked about. A tree of a hundred small packages must not
/// start a hundred servers.
const MAX_PROJECTS: usize = 16;

/// A project with files for a server.
#[derive(Clone)]
pub(super) struct Project {
    pub(super) candidate: Candidate,
    /// The shallowest file, then the first by name: one to open when the server needs that.
    pub(super) sample: WorkspacePath,
}

/// The files that servers are there for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Every file that some found server serves, in byte order; ignored files are none.
    pub files: Vec<WorkspacePath>,
    /// Servers that have files here but are not installed or may not run.
    pub unavailable: Vec<ServerId>,
}

/// How far a server got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warmth {
    pub server: ServerId,
    pub project: WorkspacePath,
    /// `None` when it is ready.
    pub why: Option<Why>,
}

impl Orchestrator {
    /// Starts the servers for all files of the workspace and waits until they have loaded their projects.
    /// `report` hears of each as it is done.
    pub async fn warm_up(&self, call: &Call, report: impl Fn(&Warmth)) -> Vec<Warmth> {
        let (projects, _) = self.projects(call).await;
        join_all(projects.iter().map(|project| async {
            let why = match self.client(&project.candidate, call).await {
                Ok(client) => self.settle(&client, &project.sample, call).await.err(),
                Err(why) => Some(why),
            };
            let root = project.candidate.place.as_ref().unwrap_or(&project.sample).clone();
            let warmth = Warmth { server: project.candidate.entry.id.clone(), project: root, why };
            report(&warmth);
            warmth
        }))
        .await
    }

    /// The files that servers with a capability are there for: the same whoever asked what before.
    pub async fn covered(&self, capability: Capability, call: &Call) -> Coverage {
        self.catch_up(call).await;
        let inner = Arc::clone(&self.0);
        spawn_blocking(move || inner.find_covered(capability)).await.unwrap_or_default()
    }

    /// The servers for a file, or for the whole workspace, that run here or should and are not ready.
    pub async fn unready(&self, path: Option<&WorkspacePath>) -> Vec<ServerId> {
        let candidates = match path {
            Some(path) => self.candidates(path).await,
            None => {
                let inner = Arc::clone(&self.0);
                let projects = spawn_blocking(move || inner.find_projects().0).await.unwrap_or_default();
                projects.into_iter().map(|project| project.candidate).collect()
            }
        };
        let slots = lock(&self.0.slots);
        let mut unready: Vec<ServerId> = candidates
            .into_iter()
            .filter_map(|candidate| {
                let key = (candidate.entry.id.clone(), candidate.place.ok()?.as_path().to_owned());
                let slot = slots.get(&key);
                let settled = slot
                    .is_some_and(|slot| slot.is_broken() || slot.live().is_some_and(|one| one.is_ready()));
                (!settled).then_some(key.0)
            })
            .collect();
        unready.dedup();
        unready
    }

    /// Waits until a server is ready, with a document open where it needs one.
    pub(super) async fn settle(
        &self,
        client: &Client,
        sample: &WorkspacePath,
        call: &Call,
    ) -> Result<(), Why> {
        let wants_file = client.entry().warm_up_opens_file && client.open_documents().is_empty();
        if (wants_file || !client.is_ready())
            && let Ok(lines) = self.read(sample).await
        {
            client.settle_in(call, sample, &lines).await.map_err(|error| gap(&error))?;
        }
        match client.ready(call).await {
            true => Ok(()),
            false if client.is_alive() => Err(Why::Indexing),
            false => Err(Why::Broken),
        }
    }

    /// The projects of all found servers, in registry order, then by path; and the servers that have more than are listed.
    pub(super) async fn projects(&self, call: &Call) -> (Vec<Project>, Vec<ServerId>) {
        self.catch_up(call).await;
        let inner = Arc::clone(&self.0);
        spawn_blocking(move || inner.find_projects()).await.unwrap_or_default()
    }
}

impl Inner {
    /// The files of the workspace that are anyone's work: configuration in hidden files is not.
    pub(super) fn files(&self) -> Vec<Utf8PathBuf> {
        let mut files = self.watch.as_ref().map(|watch| watch.files()).unwrap_or_default();
        files.retain(|file| file.file_name().is_some_and(|name| !name.starts_with('.')));
        files
    }

    fn find_covered(&self, capability: Capability) -> Coverage {
        let survey = Arc::clone(&*lock(&self.survey));
        let mut unavailable = std::collections::BTreeSet::new();
        let mut files = Vec::new();
        for file in self.files() {
            let mut covered = false;
            for (index, surveyed) in serving(&survey, &file) {
                if !surveyed.entry.has(capability) || self.root_for(&surveyed.entry, &file).is_none() {
                    continue;
                }
                match surveyed.availability {
                    Availability::Found(_) => covered = true,
                    _ => {
                        unavailable.insert(index);
                    }
                }
            }
            if covered {
                files.extend(self.gate.admit_path(&file));
            }
        }
        let unavailable = unavailable.into_iter().map(|index| survey[index].entry.id.clone()).collect();
        Coverage { files, unavailable }
    }

    fn find_projects(&self) -> (Vec<Project>, Vec<ServerId>) {
        let survey = Arc::clone(&*lock(&self.survey));
        let files = self.files();
        let mut samples: Vec<BTreeMap<Utf8PathBuf, &Utf8Path>> = vec![BTreeMap::new(); survey.len()];
        for file in &files {
            for (index, surveyed) in serving(&survey, file) {
                if !matches!(surveyed.availability, Availability::Found(_)) {
                    continue;
                }
                let Some(root) = self.root_for(&surveyed.entry, file) else {
                    continue;
                };
                let sample = samples[index].entry(root.as_path().to_owned()).or_insert(file);
                if (depth(file), file.as_str()) < (depth(sample), sample.as_str()) {
                    *sample = file;
                }
            }
        }
        let mut projects = Vec::new();
        let mut more = Vec::new();
        for (surveyed, samples) in survey.iter().zip(samples) {
            if samples.len() > MAX_PROJECTS {
                more.push(surveyed.entry.id.clone());
            }
            for (root, sample) in samples.into_iter().take(MAX_PROJECTS) {
                let (Ok(root), Ok(sample)) = (self.gate.admit_folder(root), self.gate.admit_path(sample))
                else {
                    continue;
                };
                let candidate = Candidate { entry: Arc::clone(&surveyed.entry), place: Ok(root) };
                projects.push(Project { candidate, sample });
            }
        }
        (projects, more)
    }
}

fn depth(path: &Utf8Path) -> usize {
    path.components().count()
}
