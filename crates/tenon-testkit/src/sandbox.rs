//! A hermetic environment: a workspace and all the folders a program may touch, below one short path.
//!
//! Programs started from a sandbox see none of this machine's configuration: the environment is
//! cleared, `HOME`, `XDG_*` and `TMPDIR` lie in the sandbox, and of the rest only `PATH` stays, with
//! the installed tools first. The path is short because paths of unix sockets must be. When a sandbox is
//! dropped, what still runs in it is killed; a test that claims that nothing does calls
//! [`Sandbox::assert_no_processes`].

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::processes::{self, Process};
use crate::source::Source;
use crate::tree::Tree;
use crate::{PATIENCE, program};

/// `nobody` and `nogroup`, the same on every Linux.
const NOBODY: u32 = 65534;

/// See the module.
#[derive(Debug)]
pub struct Sandbox {
    folder: TempDir,
    tree: Tree,
    /// Programs run as `nobody`, because we are root and the test is about somebody who is not.
    unprivileged: bool,
}

impl Sandbox {
    /// A sandbox with an empty workspace.
    #[expect(clippy::new_without_default, reason = "making folders is no default")]
    pub fn new() -> Self {
        let folder =
            tempfile::Builder::new().prefix("tn").tempdir_in("/tmp").expect("/tmp can be written to");
        let tree = Tree::at(folder.path().join("w"));
        for name in ["home", "config", "data", "state", "cache", "run", "tmp"] {
            let path = folder.path().join(name);
            fs::create_dir(&path).expect("a new folder is empty");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("our own folder");
        }
        Self { folder, tree, unprivileged: false }
    }

    /// A sandbox whose workspace holds what `description` says (see [`crate::tree`]).
    pub fn with_tree(description: &str) -> Self {
        let sandbox = Self::new();
        sandbox.tree.fill(description);
        sandbox
    }

    /// A sandbox with a copy of `examples/<name>` as its workspace.
    pub fn with_example(name: &str) -> Self {
        let sandbox = Self::new();
        sandbox.tree.copy_from(&crate::tree::repository().join("examples").join(name));
        sandbox
    }

    /// A sandbox with a copy of real code as its workspace.
    pub fn with_source(source: Source) -> Self {
        let sandbox = Self::new();
        source.copy_to(&sandbox.tree);
        sandbox
    }

    /// Makes programs run without root's powers, for tests on permissions and for programs that refuse
    /// to be root. Everything in the sandbox so far becomes theirs. Changes nothing for other users.
    pub fn unprivileged(mut self) -> Self {
        self.unprivileged = rustix::process::geteuid().is_root();
        if self.unprivileged {
            give_away(self.folder.path());
        }
        self
    }

    /// The sandbox's own folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The workspace.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The workspace's root.
    pub fn root(&self) -> &Path {
        self.tree.root()
    }

    /// One of `home`, `config`, `data`, `state`, `cache`, `run` and `tmp`.
    pub fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The whole environment of programs in this sandbox.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let place = |name: &str| self.place(name).into_os_string();
        vec![
            ("PATH", program::search_path()),
            ("HOME", place("home")),
            ("XDG_CONFIG_HOME", place("config")),
            ("XDG_DATA_HOME", place("data")),
            ("XDG_STATE_HOME", place("state")),
            ("XDG_CACHE_HOME", place("cache")),
            ("XDG_RUNTIME_DIR", place("run")),
            ("TMPDIR", place("tmp")),
            ("LANG", "C.UTF-8".into()),
            ("TZ", "UTC".into()),
        ]
    }

    /// A program that will run in the workspace and see this sandbox only.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.environment()).current_dir(self.root());
        if self.unprivileged {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// The built `tenon`, to be run in this sandbox.
    pub fn tenon(&self) -> Command {
        let built = program::tenon();
        if !self.unprivileged {
            return self.command(built);
        }
        // Others may not be able to reach the folder it was built in.
        let reachable = self.folder.path().join("tenon");
        if !reachable.exists() {
            let linked =
                fs::hard_link(&built, &reachable).or_else(|_| fs::copy(&built, &reachable).map(drop));
            linked.expect("the sandbox can be written to");
        }
        self.command(reachable)
    }

    /// What runs in this sandbox now, whoever started it and however it hid.
    pub fn processes(&self) -> Vec<Process> {
        processes::that_mention(self.folder.path())
    }

    /// Waits until nothing runs in this sandbox any more; what still does when patience ends.
    pub fn wait_for_no_processes(&self) -> Vec<Process> {
        processes::wait_for_all(|| self.processes(), PATIENCE)
    }

    /// As [`Self::wait_for_no_processes`], for a test that claims it.
    pub fn assert_no_processes(&self) {
        let left = self.wait_for_no_processes();
        assert!(left.is_empty(), "still running: {left:#?}");
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        for process in self.processes() {
            process.kill();
        }
    }
}

/// Makes `nobody` the owner of a folder and all below it.
fn give_away(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).expect("root may change owners");
    for entry in fs::read_dir(path).expect("our own folder can be listed") {
        let entry = entry.expect("our own folder can be listed");
        let kind = entry.file_type().expect("our own entries have a kind");
        if kind.is_dir() {
            give_away(&entry.path());
        } else if kind.is_file() {
            chown(entry.path(), Some(NOBODY), Some(NOBODY)).expect("root may change owners");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(command: &mut Command) -> String {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn nothing_of_this_machine_shows_but_the_path() {
        let sandbox = Sandbox::new();
        let variables = output(&mut sandbox.command("env"));
        let names: Vec<&str> = variables.lines().filter_map(|line| line.split('=').next()).collect();
        let expected: Vec<&str> = sandbox.environment().iter().map(|(name, _)| *name).collect();
        let unexpected: Vec<_> =
            names.iter().filter(|name| !expected.contains(name) && **name != "PWD").collect();
        assert!(unexpected.is_empty(), "{unexpected:?}");
    }

    #[test]
    fn socket_paths_fit() {
        let sandbox = Sandbox::new();
        let longest = sandbox.place("run").join("tenon").join("0".repeat(64));
        assert!(longest.as_os_str().len() < 104, "{}", longest.display());
    }

    #[test]
    fn an_unprivileged_program_is_not_root() {
        let sandbox = Sandbox::with_tree("//- secret\nx\n").unprivileged();
        let user = output(sandbox.command("id").arg("-u"));
        assert_ne!(user.trim(), "0");
        output(sandbox.command("sh").args(["-c", "echo y > secret && touch new"]));
        assert_eq!(sandbox.tree().read("secret"), "y\n");
    }
}
