//! Finds the projects of the workspace and starts their servers before the first request.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use futures::future::join_all;
use tenon_contract::root::WorkspacePath;
use tokio::task::spawn_blocking;

use super::{Candidate, Inner, Orchestrator, lock};
use crate::call_context::CallContext;
use crate::client::{Client, gap_reason};
use crate::model::GapReason;
use tenon_servers::registry::{Capability, ServerId};

/// The most projects per server that a warm-up starts. A tree of a hundred small packages must not start a hundred servers.
const MAX_PROJECTS: usize = 16;

/// A project with files for a server.
#[derive(Clone)]
pub(super) struct Project {
    pub(super) candidate: Candidate,
    /// The shallowest file, then the first by name. It is opened if the server needs a file.
    pub(super) sample: WorkspacePath,
}

/// The files that servers cover.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Every file that some found server serves, in byte order, without ignored files.
    pub files: Vec<WorkspacePath>,
    /// Servers that have files here but are not installed or may not run.
    pub unavailable: Vec<ServerId>,
}

/// The result of warming up one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmUpResult {
    pub server: ServerId,
    pub project: WorkspacePath,
    /// `None` when it is ready.
    pub why: Option<GapReason>,
}

impl Orchestrator {
    /// Starts the servers for all files of the workspace and waits until they have loaded their projects. Calls `report` for each
    /// as it is done.
    pub async fn warm_up(&self, call: &CallContext, report: impl Fn(&WarmUpResult)) -> Vec<WarmUpResult> {
        let (projects, _) = self.projects(call).await;
        join_all(projects.iter().map(|project| async {
            let why = match self.client(&project.candidate, call).await {
                Ok(client) => {
                    let needed = self.needed_for_name(&project.candidate, None).await;
                    match self.cover(&client, &needed, call).await {
                        Ok(_) => self.settle(&client, &project.sample, call).await.err().or(needed.gap),
                        Err(error) => Some(gap_reason(&error)),
                    }
                }
                Err(why) => Some(why),
            };
            let root = project.candidate.place.as_ref().unwrap_or(&project.sample).clone();
            let warmth = WarmUpResult { server: project.candidate.entry.id.clone(), project: root, why };
            report(&warmth);
            warmth
        }))
        .await
    }

    /// The files that servers with a capability cover, independent of earlier requests.
    pub async fn covered(&self, capability: Capability, call: &CallContext) -> Coverage {
        self.catch_up(call).await;
        let inner = Arc::clone(&self.0);
        spawn_blocking(move || inner.find_covered(capability)).await.unwrap_or_default()
    }

    /// The files of the workspace that are not ignored, without hidden ones, in byte order. All are known after
    /// [`Orchestrator::catch_up`].
    pub fn files(&self) -> Vec<Utf8PathBuf> {
        self.0.files()
    }

    /// The servers for a file, or for the whole workspace, that are available but not ready.
    pub async fn unready(&self, path: Option<&WorkspacePath>) -> Vec<ServerId> {
        let candidates = match path {
            Some(path) => self.candidates(path).await,
            None => {
                let inner = Arc::clone(&self.0);
                let projects = spawn_blocking(move || inner.find_projects().0).await.unwrap_or_default();
                projects.into_iter().map(|project| project.candidate).collect()
            }
        };
        let instances = lock(&self.0.instances);
        let mut unready: Vec<ServerId> = candidates
            .into_iter()
            .filter_map(|candidate| {
                let key = (candidate.entry.id.clone(), candidate.place.ok()?.as_path().to_owned());
                let instance = instances.get(&key);
                let settled = instance.is_some_and(|instance| {
                    instance.is_broken() || instance.live().is_some_and(|one| one.is_ready())
                });
                (!settled).then_some(key.0)
            })
            .collect();
        unready.dedup();
        unready
    }

    /// Waits until a server is ready, with a document open if it needs one.
    pub(super) async fn settle(
        &self,
        client: &Client,
        sample: &WorkspacePath,
        call: &CallContext,
    ) -> Result<(), GapReason> {
        let wants_file = client.entry().warm_up_opens_file && client.open_documents().is_empty();
        if (wants_file || !client.is_ready())
            && let Ok(lines) = self.read(sample).await
        {
            client.open_to_load(call, sample, &lines).await.map_err(|error| gap_reason(&error))?;
        }
        match client.ready(call).await {
            true => Ok(()),
            false if client.is_alive() => Err(GapReason::Indexing),
            false => Err(GapReason::Broken),
        }
    }

    /// The projects of all found servers, in registry order, then by path; and the servers with more projects than the limit.
    pub(super) async fn projects(&self, call: &CallContext) -> (Vec<Project>, Vec<ServerId>) {
        self.catch_up(call).await;
        let inner = Arc::clone(&self.0);
        spawn_blocking(move || inner.find_projects()).await.unwrap_or_default()
    }
}

impl Inner {
    /// The files of the workspace without hidden ones.
    pub(super) fn files(&self) -> Vec<Utf8PathBuf> {
        let mut files = self.watch.as_ref().map(|watch| watch.files()).unwrap_or_default();
        files.retain(|file| file.file_name().is_some_and(|name| !name.starts_with('.')));
        files
    }

    fn find_covered(&self, capability: Capability) -> Coverage {
        let servers = Arc::clone(&*lock(&self.servers));
        let mut unavailable = std::collections::BTreeSet::new();
        let mut files = Vec::new();
        for file in self.files() {
            let mut covered = false;
            for (index, candidate) in self.serving(&servers, &file) {
                match candidate.place {
                    _ if !candidate.entry.has(capability) => {}
                    Ok(_) => covered = true,
                    Err(_) => {
                        unavailable.insert(index);
                    }
                }
            }
            if covered {
                files.extend(self.gate.admit_path(&file));
            }
        }
        let unavailable = unavailable.into_iter().map(|index| servers[index].entry.id.clone()).collect();
        Coverage { files, unavailable }
    }

    fn find_projects(&self) -> (Vec<Project>, Vec<ServerId>) {
        let servers = Arc::clone(&*lock(&self.servers));
        let files = self.files();
        let mut samples: Vec<BTreeMap<Utf8PathBuf, &Utf8Path>> = vec![BTreeMap::new(); servers.len()];
        for file in &files {
            for (index, candidate) in self.serving(&servers, file) {
                let Ok(root) = candidate.place else {
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
        for (found, samples) in servers.iter().zip(samples) {
            if samples.len() > MAX_PROJECTS {
                more.push(found.entry.id.clone());
            }
            for (root, sample) in samples.into_iter().take(MAX_PROJECTS) {
                let (Ok(root), Ok(sample)) = (self.gate.admit_folder(root), self.gate.admit_path(sample))
                else {
                    continue;
                };
                let candidate = Candidate { entry: Arc::clone(&found.entry), place: Ok(root) };
                projects.push(Project { candidate, sample });
            }
        }
        (projects, more)
    }
}

fn depth(path: &Utf8Path) -> usize {
    path.components().count()
}
