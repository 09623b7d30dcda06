//! Language servers as commands need them: the registry, the finder, the workspace walk, and their errors.

use std::ffi::OsStr;

use camino::Utf8Path;
use tenon_code::git::GitError;
use tenon_contract::root::GateError;
use tenon_lsp::workspace_check::files::FilesError;
use tenon_server::workspace::Workspace;
use tenon_servers::find::SearchPath;
use tenon_servers::install::{InstallError, Managed};
use tenon_servers::registry::{LibrarySource, OverrideError, Registry};
use tenon_servers::walk::{BadPattern, Walk};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// The server registry with the workspace's settings applied.
pub(crate) fn registry(workspace: &Workspace) -> Result<Registry, Failure> {
    Ok(Registry::configured(&workspace.config().servers)?)
}

pub(crate) fn managed(workspace: &Workspace) -> Managed {
    Managed::new(workspace.dirs().servers())
}

pub(crate) fn search_path(workspace: &Workspace) -> SearchPath {
    SearchPath::new(OsStr::new(workspace.environment().get("PATH").unwrap_or_default()))
}

pub(crate) fn walk(workspace: &Workspace) -> Result<Walk, Failure> {
    Ok(Walk::new(workspace.root(), &workspace.config().workspace.ignore)?)
}

/// A server's toolchain lacks the source of the standard library.
pub(crate) fn missing_library(library: &LibrarySource) -> String {
    format!("the standard library's source is missing: run `{}`", library.install)
}

/// Says that a folder has no source files that a language server reads.
pub(crate) fn say_no_source(root: &Utf8Path, invocation: &mut Invocation) {
    invocation.eprint(format!("source files: none in {root} that a language server reads"));
    invocation.eprint("  hint: run it in the folder of a project, or pass that folder");
}

impl From<OverrideError> for Failure {
    fn from(error: OverrideError) -> Self {
        Self::of(Exit::Config, &error).hint("see `servers` in `tenon config show`")
    }
}

impl From<BadPattern> for Failure {
    fn from(error: BadPattern) -> Self {
        Self::of(Exit::Config, &error).hint("see `workspace.ignore` in `tenon config show`")
    }
}

impl From<FilesError> for Failure {
    fn from(error: FilesError) -> Self {
        let failure = Self::of(Exit::Workspace, &error);
        match error.source {
            GateError::Denied => failure.hint("pass another workspace with `--root DIR`"),
            _ => failure,
        }
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        let failure = Self::of(Exit::Workspace, &error);
        match error {
            GitError::NoGit => failure.hint("install git, or pass the files to check"),
            GitError::UnknownRevision(_) => {
                failure.hint("pass a commit, branch or tag; names such as `@{upstream}` are not supported")
            }
            _ => failure.hint("pass the files to check"),
        }
    }
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        let exit = match &error {
            InstallError::UnknownServer { .. } | InstallError::NotManaged { .. } => Exit::Usage,
            InstallError::Tool { .. } => Exit::No,
            InstallError::Folder(_) => Exit::Files,
        };
        let failure = Self::of(exit, &error);
        match (error.hint(), &error) {
            (Some(hint), _) => failure.hint(hint),
            (None, InstallError::UnknownServer { .. }) => {
                failure.hint("run `tenon servers list` to see all servers")
            }
            (None, _) => failure,
        }
    }
}
