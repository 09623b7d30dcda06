//! A hermetic environment: a workspace and all folders that a program uses, below one short path.
//!
//! Programs started in a sandbox do not see this machine's configuration: the environment is cleared, `HOME`, `XDG_*`
//! and `TMPDIR` lie in the sandbox, and only `PATH` is inherited, with the installed tools first. The path is short
//! because unix socket paths are limited. Dropping a sandbox kills the processes that still run in it; a test that
//! expects none calls [`Sandbox::assert_no_processes`].

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::file_tree::FileTree;
use crate::processes::{self, ProcessInfo};
use crate::real_project::RealProject;
use crate::{PATIENCE, program};

/// The unprivileged user and group, the same on every Linux.
const UNPRIVILEGED_ID: u32 = 65534;

/// A hermetic environment; see the module documentation.
#[derive(Debug)]
pub struct Sandbox {
    folder: TempDir,
    tree: FileTree,
    /// Programs run as an unprivileged user although the test runs as root.
    unprivileged: bool,
    /// Programs see the machine's Rust toolchain and its downloaded crates.
    rust: bool,
}

impl Sandbox {
    /// A sandbox with an empty workspace.
    #[expect(clippy::new_without_default, reason = "a default should not create folders")]
    pub fn new() -> Self {
        let folder =
            tempfile::Builder::new().prefix("tn").tempdir_in("/tmp").expect("/tmp can be written to");
        let tree = FileTree::at(folder.path().join("w"));
        for name in ["home", "config", "data", "state", "cache", "run", "tmp"] {
            let path = folder.path().join(name);
            fs::create_dir(&path).expect("a new folder is empty");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("our own folder");
        }
        Self { folder, tree, unprivileged: false, rust: false }
    }

    /// A sandbox whose workspace has the files of `description` (see [`crate::file_tree`]).
    pub fn with_tree(description: &str) -> Self {
        let sandbox = Self::new();
        sandbox.tree.fill(description);
        sandbox
    }

    /// A sandbox with a copy of `examples/<name>` as its workspace.
    pub fn with_example(name: &str) -> Self {
        let sandbox = Self::new();
        sandbox.tree.copy_from(&crate::repository_root().join("examples").join(name));
        sandbox
    }

    /// A sandbox with a copy of a real project as its workspace.
    pub fn with_project(source: RealProject) -> Self {
        let sandbox = Self::new();
        source.copy_to(&sandbox.tree);
        sandbox
    }

    /// Lets programs use the machine's Rust toolchain and the crates that cargo has downloaded, without the network.
    pub fn with_rust(mut self) -> Self {
        self.rust = true;
        self
    }

    /// Runs programs as an unprivileged user, for tests of permissions and for programs that do not run as root. That
    /// user gets all files in the sandbox. No effect unless the test runs as root.
    pub fn unprivileged(mut self) -> Self {
        self.unprivileged = rustix::process::geteuid().is_root();
        if self.unprivileged {
            chown_recursively(self.folder.path());
        }
        self
    }

    /// The sandbox's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The workspace.
    pub fn tree(&self) -> &FileTree {
        &self.tree
    }

    /// The workspace's root.
    pub fn root(&self) -> &Path {
        self.tree.root()
    }

    /// One of the folders `home`, `config`, `data`, `state`, `cache`, `run` and `tmp`.
    pub fn dir(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the user's configuration file.
    pub fn write_user_config(&self, toml: &str) {
        let folder = self.dir("config").join("tenon");
        fs::create_dir_all(&folder).expect("the sandbox can be written to");
        fs::write(folder.join("config.toml"), toml).expect("the sandbox can be written to");
    }

    /// The environment of programs in this sandbox.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let dir = |name: &str| self.dir(name).into_os_string();
        let mut environment = vec![
            ("PATH", program::search_path()),
            ("HOME", dir("home")),
            ("XDG_CONFIG_HOME", dir("config")),
            ("XDG_DATA_HOME", dir("data")),
            ("XDG_STATE_HOME", dir("state")),
            ("XDG_CACHE_HOME", dir("cache")),
            ("XDG_RUNTIME_DIR", dir("run")),
            ("TMPDIR", dir("tmp")),
            ("LANG", "C.UTF-8".into()),
            ("TZ", "UTC".into()),
        ];
        if self.rust {
            let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
            let folder = |name, default: &str| {
                std::env::var_os(name).unwrap_or_else(|| home.join(default).into_os_string())
            };
            environment.extend([
                ("CARGO_HOME", folder("CARGO_HOME", ".cargo")),
                ("RUSTUP_HOME", folder("RUSTUP_HOME", ".rustup")),
                ("CARGO_NET_OFFLINE", "true".into()),
            ]);
        }
        environment
    }

    /// A command that runs in the workspace and sees this sandbox only.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.environment()).current_dir(self.root());
        if self.unprivileged {
            command.uid(UNPRIVILEGED_ID).gid(UNPRIVILEGED_ID);
        }
        command
    }

    /// The built `tenon` as a command in this sandbox.
    pub fn tenon(&self) -> Command {
        let built = program::tenon();
        if !self.unprivileged {
            return self.command(built);
        }
        // The unprivileged user may not have access to the build folder.
        let reachable = self.folder.path().join("tenon");
        if !reachable.exists() {
            let linked =
                fs::hard_link(&built, &reachable).or_else(|_| fs::copy(&built, &reachable).map(drop));
            linked.expect("the sandbox can be written to");
        }
        self.command(reachable)
    }

    /// The processes that run in this sandbox now, orphans included.
    pub fn processes(&self) -> Vec<ProcessInfo> {
        processes::mentioning(self.folder.path())
    }

    /// Waits until nothing runs in this sandbox; returns what is left after [`PATIENCE`].
    pub fn wait_for_no_processes(&self) -> Vec<ProcessInfo> {
        processes::wait_for_none(|| self.processes(), PATIENCE)
    }

    /// Asserts that every process in this sandbox exits within [`PATIENCE`].
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

/// Makes the unprivileged user the owner of a folder and everything in it.
fn chown_recursively(path: &Path) {
    chown(path, Some(UNPRIVILEGED_ID), Some(UNPRIVILEGED_ID)).expect("root may change owners");
    for entry in fs::read_dir(path).expect("our own folder can be listed") {
        let entry = entry.expect("our own folder can be listed");
        let kind = entry.file_type().expect("our own entries have a kind");
        if kind.is_dir() {
            chown_recursively(&entry.path());
        } else if kind.is_file() {
            chown(entry.path(), Some(UNPRIVILEGED_ID), Some(UNPRIVILEGED_ID))
                .expect("root may change owners");
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
    fn environment_is_cleared_except_for_the_path() {
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
        let longest = sandbox.dir("run").join("tenon").join("0".repeat(64));
        assert!(longest.as_os_str().len() < 104, "{}", longest.display());
    }

    #[test]
    fn unprivileged_program_is_not_root() {
        let sandbox = Sandbox::with_tree("//- secret\nx\n").unprivileged();
        let user = output(sandbox.command("id").arg("-u"));
        assert_ne!(user.trim(), "0");
        output(sandbox.command("sh").args(["-c", "echo y > secret && touch new"]));
        assert_eq!(sandbox.tree().read("secret"), "y\n");
    }
}
