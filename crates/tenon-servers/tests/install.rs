//! Installing for real: one server through npm, one through pip, into a temporary folder.
//!
//! The package managers use the registries that this machine's configuration names.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_servers::find::{Finder, ProgramOrigin, SearchPath, Trust};
use tenon_servers::install::{
    InstallError, InstallProgress, Managed, PackageLock, Tools, locks_for, locks_for_workspace,
};
use tenon_servers::language_count::LanguageCount;
use tenon_servers::registry::Registry;
use tenon_servers::walk::Walk;

struct TestDirs {
    folder: tempfile::TempDir,
}

impl TestDirs {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn top(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    fn managed(&self) -> Managed {
        Managed::new(self.top().join("servers"))
    }

    fn script(&self, name: &str, text: &str) -> Utf8PathBuf {
        let folder = self.top().join("bin");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{text}\n")).unwrap();
        let runs = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.join(name), runs).unwrap();
        folder
    }

    /// Tools that are found in the `bin` folder alone.
    fn own_tools(&self) -> Tools {
        Tools::find(&SearchPath::new(self.top().join("bin").as_os_str()), None)
    }
}

fn lock(name: &str) -> &'static PackageLock {
    PackageLock::named(name).unwrap()
}

fn real_tools() -> Tools {
    Tools::find(&SearchPath::from_env(), None)
}

fn steps(events: &[InstallProgress]) -> Vec<String> {
    events
        .iter()
        .map(|event| match event {
            InstallProgress::Waiting => "waiting".to_owned(),
            InstallProgress::Step { what, .. } => (*what).to_owned(),
            InstallProgress::Installed { lock } => format!("installed {}", lock.name),
            InstallProgress::Kept { lock } => format!("kept {}", lock.name),
        })
        .collect()
}

/// Installs, finds, runs and removes one server.
fn round_trip(lock: &'static PackageLock, server: &str, version_of: &str, expected_steps: &[&str]) {
    let dirs = TestDirs::new();
    let managed = dirs.managed();
    let mut events = Vec::new();
    managed.install(lock, &real_tools(), &mut |event| events.push(event)).unwrap();
    assert_eq!(steps(&events), expected_steps);

    let installed = managed.installed();
    assert_eq!(installed.len(), 1);
    assert_eq!((installed[0].version.as_str(), installed[0].current), (lock.version, true));

    // A second installation does nothing.
    let mut events = Vec::new();
    managed.install(lock, &real_tools(), &mut |event| events.push(event)).unwrap();
    assert_eq!(steps(&events), [format!("kept {}", lock.name)]);

    let registry = Registry::built_in();
    let workspace = dirs.top().join("workspace");
    let finder = Finder::new(workspace.clone(), Trust::Untrusted, SearchPath::from_env())
        .with_managed(managed.clone());
    let found = finder.find(registry.get(server).unwrap(), &workspace).unwrap();
    assert_eq!(found.origin, ProgramOrigin::Managed);
    let program = found.path.with_file_name(version_of);
    let output = Command::new(program).arg("--version").envs(&found.env).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(lock.version), "{text}");

    assert_eq!(managed.remove(lock, &mut |_| {}).unwrap(), [lock.version]);
    assert!(managed.installed().is_empty());
    assert!(!installed[0].folder.exists());
    assert!(managed.remove(lock, &mut |_| {}).unwrap().is_empty());
}

#[test]
fn npm_installs_a_server_that_runs() {
    round_trip(lock("pyright"), "pyright", "pyright", &["fetching with npm", "installed pyright"]);
}

#[test]
fn pip_installs_a_server_that_runs() {
    let expected = ["creating a virtual environment", "fetching with pip", "installed ruff"];
    round_trip(lock("ruff"), "ruff", "ruff", &expected);
}

#[test]
fn missing_package_manager_has_an_install_hint() {
    let dirs = TestDirs::new();
    let error = dirs.managed().install(lock("pyright"), &dirs.own_tools(), &mut |_| {}).unwrap_err();
    assert_eq!(chain(&error), "cannot install `pyright`: `npm` is not installed");
    assert_eq!(error.hint().unwrap(), "install Node.js 20 or newer, for instance with `apt install npm`");
    let error = dirs.managed().install(lock("ty"), &dirs.own_tools(), &mut |_| {}).unwrap_err();
    assert_eq!(chain(&error), "cannot install `ty`: `python3` is not installed");
    assert_eq!(error.hint().unwrap(), "run `apt install python3 python3-venv`");
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

#[test]
fn python_without_venv_has_its_own_error() {
    let dirs = TestDirs::new();
    dirs.script(
        "python3",
        "echo 'The virtual environment was not created: ensurepip is not available'; exit 1",
    );
    let error = dirs.managed().install(lock("ty"), &dirs.own_tools(), &mut |_| {}).unwrap_err();
    assert_eq!(chain(&error), "cannot install `ty`: Python has no module `venv`");
    assert_eq!(error.hint().unwrap(), "run `apt install python3-venv`");
}

#[test]
fn failed_installation_leaves_no_files() {
    let dirs = TestDirs::new();
    let managed = dirs.managed();
    dirs.script("npm", "mkdir -p node_modules/.bin; echo 'npm error code ENOTFOUND' >&2; exit 1");
    let error = managed.install(lock("pyright"), &dirs.own_tools(), &mut |_| {}).unwrap_err();
    assert_eq!(chain(&error), "cannot install `pyright`: `npm ci` cannot reach its package registry");
    dirs.script("npm", "echo 'something else' >&2; exit 1");
    let error = managed.install(lock("pyright"), &dirs.own_tools(), &mut |_| {}).unwrap_err();
    assert_eq!(chain(&error), "cannot install `pyright`: `npm ci` failed: something else");
    assert!(managed.installed().is_empty());
    let left: Vec<_> =
        std::fs::read_dir(managed.folder()).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(left, [OsStr::new(".lock")]);
}

#[test]
fn interrupted_installation_is_built_again() {
    let dirs = TestDirs::new();
    let managed = dirs.managed();
    dirs.script("npm", "test ! -e leftover && mkdir -p node_modules/.bin");
    let folder = managed.install(lock("pyright"), &dirs.own_tools(), &mut |_| {}).unwrap();
    std::fs::remove_file(folder.join(".complete")).unwrap();
    std::fs::write(folder.join("leftover"), "").unwrap();
    assert!(managed.installed().is_empty());
    managed.install(lock("pyright"), &dirs.own_tools(), &mut |_| {}).unwrap();
    assert_eq!(managed.installed().len(), 1);
    assert!(!folder.join("leftover").exists());
}

#[test]
fn concurrent_installations_build_once() {
    let dirs = TestDirs::new();
    let managed = dirs.managed();
    dirs.script("npm", "echo run >> ../runs; mkdir -p node_modules/.bin");
    let tools = dirs.own_tools();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| managed.install(lock("pyright"), &tools, &mut |_| {}).unwrap());
        }
    });
    let runs = std::fs::read_to_string(managed.folder().join("runs")).unwrap();
    assert_eq!(runs, "run\n");
}

#[test]
fn package_managers_inside_the_workspace_are_not_used() {
    let dirs = TestDirs::new();
    dirs.script("npm", "touch ran");
    let search = SearchPath::new(dirs.top().join("bin").as_os_str());
    let top = dirs.top().canonicalize_utf8().unwrap();
    let tools = Tools::find(&search, Some(&top));
    let error = dirs.managed().install(lock("pyright"), &tools, &mut |_| {}).unwrap_err();
    assert_eq!(chain(&error), "cannot install `pyright`: `npm` is not installed");
}

#[test]
fn shared_locks_are_listed_once() {
    let registry = Registry::built_in();
    let names = |ids: &[&str], tools: &Tools| {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        locks_for(&registry, &ids, tools).map(|locks| locks.iter().map(|lock| lock.name).collect::<Vec<_>>())
    };
    let dirs = TestDirs::new();
    dirs.script("npm", "");
    dirs.script("python3", "");
    let both = dirs.own_tools();
    assert_eq!(names(&["json", "eslint", "pyright"], &both).unwrap(), ["vscode-langservers", "pyright"]);
    assert!(matches!(
        names(&["pyrigth"], &both).unwrap_err(),
        InstallError::UnknownServer { nearest: Some(id), .. } if id.as_str() == "pyright"
    ));
    let error = names(&["gopls"], &both).unwrap_err();
    assert_eq!(error.to_string(), "Tenon does not install `gopls`");
    assert_eq!(error.hint().unwrap(), "run `go install golang.org/x/tools/gopls@latest`");
    // Without Node.js the fallback from pip is used.
    std::fs::remove_file(dirs.top().join("bin/npm")).unwrap();
    assert_eq!(names(&["pyright"], &dirs.own_tools()).unwrap(), ["basedpyright"]);
}

#[test]
fn workspace_needs_missing_servers_for_existing_files() {
    let dirs = TestDirs::new();
    let bin =
        dirs.script("npm", "mkdir -p node_modules/.bin; touch node_modules/.bin/vscode-css-language-server");
    dirs.script("python3", "");
    let workspace = dirs.top().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    for file in ["a.py", "b.ts", "c.css", "d.go"] {
        std::fs::write(workspace.join(file), "").unwrap();
    }
    let registry = Registry::built_in();
    let languages = LanguageCount::count(&Walk::new(&workspace, &[]).unwrap(), &registry);
    let search = SearchPath::new(bin.as_os_str());
    let needed = || {
        locks_for_workspace(&registry, &languages, &dirs.managed(), &search, &dirs.own_tools())
            .iter()
            .map(|lock| lock.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(needed(), ["pyright", "ruff", "typescript-language-server", "vscode-langservers"]);
    // Another server of the group, or an earlier installation, is enough.
    dirs.script("ty", "");
    dirs.managed().install(lock("vscode-langservers"), &dirs.own_tools(), &mut |_| {}).unwrap();
    assert_eq!(needed(), ["ruff", "typescript-language-server"]);
}
