//! Counts the files of a workspace by the server that would serve them.
//!
//! The count uses [`crate::walk`] and stops after [`MAX_FILES`] files. Two counts of one tree are equal.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use crate::registry::{Registry, ServerId};
use crate::walk::Walk;

/// Enough to know the languages of any workspace.
pub(crate) const MAX_FILES: usize = 200_000;

/// The files that one server would serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFiles {
    pub server: ServerId,
    pub files: usize,
    /// The shallowest file, then the first by name. It is opened if the server needs a file to warm up.
    pub sample: Utf8PathBuf,
}

/// The files of a workspace, by server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageCount {
    root: Utf8PathBuf,
    servers: Vec<ServerFiles>,
    /// All files seen, served or not.
    pub files: usize,
    /// Whether there are more files than were counted.
    pub truncated: bool,
}

impl LanguageCount {
    pub fn count(walk: &Walk, registry: &Registry) -> Self {
        Self::bounded(walk, registry, MAX_FILES)
    }

    fn bounded(walk: &Walk, registry: &Registry, max_files: usize) -> Self {
        let mut counts: BTreeMap<&ServerId, (usize, Utf8PathBuf)> = BTreeMap::new();
        let mut marked: Vec<&ServerId> = Vec::new();
        let mut files = 0;
        let mut truncated = false;
        for path in walk.files() {
            if files == max_files {
                truncated = true;
                break;
            }
            files += 1;
            let name = path.file_name().unwrap_or_default();
            for entry in registry.entries() {
                if entry.needs_marker
                    && entry.root_markers.iter().flatten().chain(&entry.outer_markers).any(|one| one == name)
                    && !marked.contains(&&entry.id)
                {
                    marked.push(&entry.id);
                }
                if name.starts_with('.') || entry.language_id(&path).is_none() {
                    continue;
                }
                let (count, sample) = counts.entry(&entry.id).or_insert_with(|| (0, path.clone()));
                *count += 1;
                if path.components().count() < sample.components().count() {
                    sample.clone_from(&path);
                }
            }
        }
        let needs_marker = |id: &ServerId| registry.get(id.as_str()).is_some_and(|entry| entry.needs_marker);
        let mut servers: Vec<ServerFiles> = counts
            .into_iter()
            .filter(|(id, _)| !needs_marker(id) || marked.contains(id))
            .map(|(id, (files, sample))| ServerFiles { server: id.clone(), files, sample })
            .collect();
        servers.sort_by(|a, b| b.files.cmp(&a.files).then_with(|| a.server.cmp(&b.server)));
        Self { root: walk.root().to_owned(), servers, files, truncated }
    }

    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// By number of files, most first, then by id.
    pub fn servers(&self) -> &[ServerFiles] {
        &self.servers
    }

    pub fn files_of(&self, server: &ServerId) -> usize {
        self.servers.iter().find(|one| one.server == *server).map_or(0, |one| one.files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_stops_at_the_limit_and_is_marked_truncated() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.py", "b.py", "c.py"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let walk = Walk::new(Utf8Path::from_path(folder.path()).unwrap(), &[]).unwrap();
        let languages = LanguageCount::bounded(&walk, &Registry::built_in(), 2);
        assert_eq!((languages.files, languages.truncated), (2, true));
        let languages = LanguageCount::bounded(&walk, &Registry::built_in(), 3);
        assert_eq!((languages.files, languages.truncated), (3, false));
    }
}
