//! Selects the files of a check.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::root::{GateError, RootGate, WorkspacePath};
use tokio::process::Command;

use tenon_servers::find::SearchPath;
use tenon_servers::registry::{Capability, Registry};
use tenon_servers::walk::Walk;

/// How long git may take to list changed files.
const GIT_DEADLINE: Duration = Duration::from_secs(60);

/// Why the files cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("cannot check `{path}`")]
    Refused {
        path: Utf8PathBuf,
        #[source]
        source: GateError,
    },
    #[error("`git` is not installed")]
    NoGit,
    #[error("cannot run `git`")]
    Spawn(#[source] io::Error),
    #[error("`git` took longer than {} s", GIT_DEADLINE.as_secs())]
    SlowGit,
    #[error("`git` failed: {0}")]
    Git(String),
}

/// The files below these paths that some server serves; without paths, of the whole workspace. Files given by name are
/// checked even if they are ignored.
pub fn of_paths(
    paths: &[Utf8PathBuf],
    walk: &Walk,
    gate: &RootGate,
    registry: &Registry,
) -> Result<Vec<WorkspacePath>, FilesError> {
    let root = walk.root().to_owned();
    let paths = if paths.is_empty() { std::slice::from_ref(&root) } else { paths };
    let mut files = Vec::new();
    for path in paths {
        let refused = |source| FilesError::Refused { path: path.clone(), source };
        if path.is_dir() {
            let folder = gate.admit_folder(path).map_err(refused)?;
            files.extend(
                walk.files_below(folder.as_path())
                    .filter(|file| !is_hidden(file) && is_served(registry, file))
                    .filter_map(|file| gate.admit_path(file).ok()),
            );
        } else {
            files.push(gate.admit_path(path).map_err(refused)?);
        }
    }
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

/// The files that differ from the last commit, new ones included, that some server serves.
pub async fn changed(
    walk: &Walk,
    gate: &RootGate,
    registry: &Registry,
    search: &SearchPath,
) -> Result<Vec<WorkspacePath>, FilesError> {
    let root = walk.root();
    let git = Git { program: search.which("git", Some(root)).ok_or(FilesError::NoGit)?, root, search };
    let top = git.run(&["rev-parse", "--show-toplevel"]).await?;
    let top = Utf8PathBuf::from(String::from_utf8_lossy(&top).trim_end().to_owned());
    let harmless = git.without_filters().await?;
    let mut arguments: Vec<&str> = harmless.iter().map(String::as_str).collect();
    arguments.extend([
        "status",
        "--porcelain=v1",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules=all",
        "--",
        ".",
    ]);
    let status = git.run(&arguments).await?;
    let mut files: Vec<WorkspacePath> = status
        .split(|&byte| byte == 0)
        // Two letters for the state and a space, then the path from the top of the repository.
        .filter_map(|line| line.get(3..))
        .filter_map(|path| Some(Utf8PathBuf::from(std::str::from_utf8(path).ok()?)))
        .map(|path| top.join(path))
        .filter(|path| path.is_file() && !walk.excludes(path) && is_served(registry, path))
        .filter_map(|path| gate.admit_path(path).ok())
        .collect();
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

fn is_served(registry: &Registry, file: &Utf8Path) -> bool {
    registry.for_file(file).any(|entry| entry.has(Capability::Diagnostics))
}

fn is_hidden(file: &Utf8Path) -> bool {
    file.file_name().is_some_and(|name| name.starts_with('.'))
}

/// git, without the programs that the repository's configuration names: file monitors, filters, transports.
struct Git<'a> {
    program: Utf8PathBuf,
    root: &'a Utf8Path,
    search: &'a SearchPath,
}

impl Git<'_> {
    /// The settings that disable all configured filters. Listing filters does not run them.
    async fn without_filters(&self) -> Result<Vec<String>, FilesError> {
        let names = ["config", "--name-only", "-z", "--get-regexp", r"^filter\."];
        let listed = match self.run(&names).await {
            Ok(listed) => listed,
            // git fails silently when nothing matches.
            Err(FilesError::Git(words)) if words.is_empty() => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let listed = String::from_utf8_lossy(&listed);
        let mut drivers: Vec<&str> =
            listed.split('\0').filter_map(|name| Some(name.rsplit_once('.')?.0)).collect();
        drivers.sort_unstable();
        drivers.dedup();
        let off = |driver: &&str| {
            ["clean=", "smudge=", "process=", "required=false"]
                .iter()
                .flat_map(|setting| ["-c".to_owned(), format!("{driver}.{setting}")])
                .collect::<Vec<_>>()
        };
        Ok(drivers.iter().flat_map(off).collect())
    }

    async fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, FilesError> {
        let running = Command::new(&self.program)
            .args([
                "-c",
                "core.fsmonitor=false",
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "protocol.allow=never",
            ])
            .args(arguments)
            .current_dir(self.root)
            .env("PATH", self.search.join(Some(self.root)))
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(GIT_DEADLINE, running)
            .await
            .map_err(|_| FilesError::SlowGit)?
            .map_err(FilesError::Spawn)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let words = String::from_utf8_lossy(&output.stderr);
        Err(FilesError::Git(words.lines().next().unwrap_or_default().to_owned()))
    }
}
