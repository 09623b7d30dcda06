//! Reads a git repository without running anything that it configures: changed files, and texts of the index or a revision.
//!
//! Git runs in a private folder of ours with links to the repository's objects, refs and index. Its configuration is our
//! own, so filters, monitors, hooks, helpers, includes and remotes of the repository do not exist for it. Working files
//! are read and hashed here, so attributes do not matter either. Every command has a time limit.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_servers::find::SearchPath;

mod commands;
mod private_folder;
mod repository_folders;
mod working_file;

use commands::GitCommands;
use private_folder::PrivateFolder;
use repository_folders::RepositoryFolders;
use working_file::WorkingTree;

/// The largest text that is read from a repository.
const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// Why a repository cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("`git` is not installed")]
    NoGit,
    #[error("not in a git repository")]
    NotARepository,
    #[error("a bare repository has no working files")]
    Bare,
    #[error("`{link}` leads to a repository that does not belong to this folder")]
    ForeignLink { link: Utf8PathBuf },
    #[error("cannot read this kind of repository: {0}")]
    Unsupported(&'static str),
    #[error("unknown revision `{0}`")]
    UnknownRevision(String),
    #[error("cannot read `{path}`")]
    Read {
        path: Utf8PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot run `git`")]
    Run(#[source] io::Error),
    #[error("`git` took longer than {} s", .0.as_secs_f32())]
    Timeout(Duration),
    #[error("`git` failed: {0}")]
    Failed(String),
    #[error("unexpected output of `git {0}`")]
    UnexpectedOutput(&'static str),
}

/// A repository that contains the workspace. Open it for each use: it has the `HEAD` of the time when it was opened.
#[derive(Debug)]
pub struct GitRepository {
    commands: GitCommands,
    tree: WorkingTree,
    /// The workspace below the top of the repository, with a slash at the end unless it is empty.
    prefix: String,
}

/// The id of a blob.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobId(String);

/// The files of a commit. Empty for a `HEAD` without commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision(Option<String>);

/// A file that differs between a revision and the disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitChange {
    /// Relative to the workspace.
    pub path: Utf8PathBuf,
    /// The text in the revision; `None` for a new file.
    pub before: Option<BlobId>,
    /// Whether the file is on disk.
    pub exists: bool,
}

/// A file of the index or of a revision.
#[derive(Debug)]
struct Entry {
    path: Utf8PathBuf,
    blob: BlobId,
    /// The index says that the file is absent on purpose (sparse checkout).
    is_skipped: bool,
}

impl GitRepository {
    /// Opens the repository that contains `root`, a real path. `time_limit` applies to each command.
    pub async fn open(root: &Utf8Path, search: &SearchPath, time_limit: Duration) -> Result<Self, GitError> {
        let (root, search) = (root.to_owned(), search.clone());
        let opening = tokio::task::spawn_blocking(move || Self::open_now(&root, &search, time_limit));
        opening.await.map_err(|error| GitError::Run(io::Error::other(error)))?
    }

    fn open_now(root: &Utf8Path, search: &SearchPath, time_limit: Duration) -> Result<Self, GitError> {
        let program = search.which("git", Some(root)).ok_or(GitError::NoGit)?;
        let folders = RepositoryFolders::find(root)?;
        let prefix = match root.strip_prefix(&folders.top).map(Utf8Path::as_str) {
            Ok("") | Err(_) => String::new(),
            Ok(below) => format!("{below}/"),
        };
        let tree = WorkingTree::new(root.to_owned(), folders.format);
        let folder = PrivateFolder::create(&folders)?;
        let commands = GitCommands::new(program, search.join(Some(root)), folder, time_limit);
        Ok(Self { commands, tree, prefix })
    }

    /// Finds a commit by any name that needs no configuration: a hash, a branch, a tag, `HEAD~3`.
    pub async fn revision(&self, name: &str) -> Result<Revision, GitError> {
        let commit = format!("{name}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit];
        match self.commands.run(&arguments).await {
            Ok(id) => match std::str::from_utf8(&id).map(str::trim_end) {
                Ok(id) if is_object_id(id) => Ok(Revision(Some(id.to_owned()))),
                _ => Err(GitError::UnexpectedOutput("rev-parse")),
            },
            Err(GitError::Failed(_)) if name == "HEAD" && self.is_unborn().await? => Ok(Revision(None)),
            Err(GitError::Failed(_)) => Err(GitError::UnknownRevision(name.to_owned())),
            Err(error) => Err(error),
        }
    }

    /// Whether `HEAD` names a branch without commits.
    async fn is_unborn(&self) -> Result<bool, GitError> {
        match self.commands.run(&["symbolic-ref", "--quiet", "HEAD"]).await {
            Ok(branch) => {
                let branch = String::from_utf8_lossy(&branch);
                let exists =
                    self.commands.run(&["show-ref", "--verify", "--quiet", "--", branch.trim_end()]).await;
                match exists {
                    Err(GitError::Failed(_)) => Ok(true),
                    Ok(_) => Ok(false),
                    Err(error) => Err(error),
                }
            }
            Err(GitError::Failed(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The files of the workspace that differ from a revision, by path. `listed` are the files that count although the
    /// repository does not track them. Only files that are `wanted` (paths relative to the workspace) are read.
    pub async fn changes(
        &self,
        since: &Revision,
        listed: Vec<Utf8PathBuf>,
        wanted: impl Fn(&Utf8Path) -> bool,
    ) -> Result<Vec<GitChange>, GitError> {
        let mut before: BTreeMap<Utf8PathBuf, BlobId> = BTreeMap::new();
        for entry in self.tree_entries(since, None).await? {
            before.insert(entry.path, entry.blob);
        }
        let mut on_disk: BTreeSet<Utf8PathBuf> = self.tree.untracked(listed);
        for entry in self.index_entries(None).await? {
            if entry.is_skipped {
                before.remove(&entry.path);
            } else {
                on_disk.insert(entry.path);
            }
        }
        let mut candidates: BTreeMap<Utf8PathBuf, Option<BlobId>> = BTreeMap::new();
        candidates.extend(on_disk.into_iter().map(|path| (path, None)));
        candidates.extend(before.into_iter().map(|(path, blob)| (path, Some(blob))));
        candidates.retain(|path, _| wanted(path));
        let tree = self.tree.clone();
        let comparing = tokio::task::spawn_blocking(move || tree.changed(candidates));
        comparing.await.map_err(|error| GitError::Run(io::Error::other(error)))
    }

    /// The texts of blobs, in the same order. `None` if a blob is missing, too large or not UTF-8.
    pub async fn texts(&self, blobs: &[BlobId]) -> Result<Vec<Option<String>>, GitError> {
        let blobs = self.commands.blobs(blobs, MAX_TEXT_BYTES).await?;
        let text = |blob: Option<Vec<u8>>| blob.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(blobs.into_iter().map(text).collect())
    }

    /// The text of a file in the index, else in `HEAD`. `path` is relative to the workspace.
    pub async fn text_before(&self, path: &Utf8Path) -> Result<Option<String>, GitError> {
        let entries = self.index_entries(Some(path)).await?;
        match entries.is_empty() {
            true => self.text_at(&self.revision("HEAD").await?, path).await,
            false => self.text_of(entries, path).await,
        }
    }

    /// The text of a file in a revision. `path` is relative to the workspace.
    pub async fn text_at(&self, revision: &Revision, path: &Utf8Path) -> Result<Option<String>, GitError> {
        let entries = self.tree_entries(revision, Some(path)).await?;
        self.text_of(entries, path).await
    }

    async fn text_of(&self, entries: Vec<Entry>, path: &Utf8Path) -> Result<Option<String>, GitError> {
        match entries.into_iter().find(|entry| entry.path == path) {
            Some(entry) => Ok(self.texts(&[entry.blob]).await?.pop().flatten()),
            None => Ok(None),
        }
    }

    /// The regular files of the index below the workspace, or only one. A conflict counts with our side.
    async fn index_entries(&self, only: Option<&Utf8Path>) -> Result<Vec<Entry>, GitError> {
        let path = self.limit(only);
        let mut arguments = vec!["ls-files", "--stage", "-t", "-z", "--full-name", "--"];
        arguments.extend(path.as_deref());
        let listed = self.commands.run(&arguments).await?;
        let mut entries: Vec<(u8, Entry)> = Vec::new();
        for line in records(&listed) {
            // TAG MODE ID STAGE<tab>PATH
            let (head, path) = halves(line).ok_or(GitError::UnexpectedOutput("ls-files"))?;
            let mut words = head.split(' ');
            let (Some(tag), Some(mode), Some(id), Some(stage)) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                return Err(GitError::UnexpectedOutput("ls-files"));
            };
            let Some(path) = self.below_root(mode, path) else {
                continue;
            };
            let rank = match stage {
                "0" => 0,
                "2" => 1,
                _ => 2,
            };
            let blob = BlobId::parse(id).ok_or(GitError::UnexpectedOutput("ls-files"))?;
            entries.push((rank, Entry { path, blob, is_skipped: tag == "S" }));
        }
        entries.sort_by(|(a_rank, a), (b_rank, b)| (&a.path, a_rank).cmp(&(&b.path, b_rank)));
        entries.dedup_by(|(_, later), (_, first)| later.path == first.path);
        Ok(entries.into_iter().map(|(_, entry)| entry).collect())
    }

    /// The regular files of a revision below the workspace, or only one.
    async fn tree_entries(
        &self,
        revision: &Revision,
        only: Option<&Utf8Path>,
    ) -> Result<Vec<Entry>, GitError> {
        let Some(commit) = &revision.0 else {
            return Ok(Vec::new());
        };
        let path = self.limit(only);
        let mut arguments = vec!["ls-tree", "-r", "-z", "--full-tree", commit, "--"];
        arguments.extend(path.as_deref());
        let listed = self.commands.run(&arguments).await?;
        let mut entries = Vec::new();
        for line in records(&listed) {
            // MODE KIND ID<tab>PATH
            let (head, path) = halves(line).ok_or(GitError::UnexpectedOutput("ls-tree"))?;
            let mut words = head.split(' ');
            let (Some(mode), Some(_), Some(id)) = (words.next(), words.next(), words.next()) else {
                return Err(GitError::UnexpectedOutput("ls-tree"));
            };
            if let Some(path) = self.below_root(mode, path) {
                let blob = BlobId::parse(id).ok_or(GitError::UnexpectedOutput("ls-tree"))?;
                entries.push(Entry { path, blob, is_skipped: false });
            }
        }
        Ok(entries)
    }

    /// The argument that limits a list to the workspace, or to one file of it.
    fn limit(&self, only: Option<&Utf8Path>) -> Option<String> {
        match only {
            Some(path) => Some(format!("{}{path}", self.prefix)),
            None => (!self.prefix.is_empty()).then(|| self.prefix.clone()),
        }
    }

    /// The path of a regular file relative to the workspace. `None` for links, submodules and names that are not UTF-8,
    /// which language servers cannot read, and for paths that git would not check out.
    fn below_root(&self, mode: &str, path: &[u8]) -> Option<Utf8PathBuf> {
        if !mode.starts_with("100") {
            return None;
        }
        let path = std::str::from_utf8(path).ok()?.strip_prefix(&self.prefix)?;
        let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.eq_ignore_ascii_case(".git");
        path.split('/').all(is_plain).then(|| Utf8PathBuf::from(path))
    }
}

impl Revision {
    /// The state before the first commit.
    pub fn empty() -> Self {
        Self(None)
    }

    /// The id of the commit; `None` without commits.
    pub fn commit(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl BlobId {
    fn parse(text: &str) -> Option<Self> {
        is_object_id(text).then(|| Self(text.to_owned()))
    }
}

fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The records of a list that ends each with a zero byte.
fn records(listed: &[u8]) -> impl Iterator<Item = &[u8]> {
    listed.split(|&byte| byte == 0).filter(|record| !record.is_empty())
}

/// The fields before the first tab, and the path after it.
fn halves(record: &[u8]) -> Option<(&str, &[u8])> {
    let tab = record.iter().position(|&byte| byte == b'\t')?;
    Some((std::str::from_utf8(&record[..tab]).ok()?, &record[tab + 1..]))
}
