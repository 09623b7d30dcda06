//! Installing for real: one server through npm, one through pip, into a temporary folder; and with scripted package managers
//! what goes wrong.
//!
//! The package managers use the registries that this machine's configuration names.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use tenon_servers::find::{Finder, ProgramOrigin, SearchPath, Trust};
use tenon_servers::install::{
    InstallError, InstallPlan, InstallProgress, Managed, PackageLock, SkipReason, Tools,
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
            InstallProgress::Built { packages, .. } => format!("built {packages}"),
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
    let fix = "install Node.js 20 or newer with npm with your system's package manager";
    assert_eq!(error.hint().unwrap(), fix);
    dirs.script("apt-get", "");
    let error = dirs.managed().install(lock("pyright"), &dirs.own_tools(), &mut |_| {}).unwrap_err();
    assert_eq!(error.hint().unwrap(), "run `apt install npm` to install Node.js 20 or newer with npm");
    dirs.script("sudo", "");
    let error = dirs.managed().install(lock("ty"), &dirs.own_tools(), &mut |_| {}).unwrap_err();
    assert_eq!(chain(&error), "cannot install `ty`: `python3` is not installed");
    let fix = "run `sudo apt install python3 python3-venv` to install Python 3.9 or newer with venv";
    assert_eq!(error.hint().unwrap(), fix);
    let error = dirs.managed().install(lock("rust-analyzer"), &dirs.own_tools(), &mut |_| {}).unwrap_err();
    assert_eq!(chain(&error), "cannot install `rust-analyzer`: `cargo` is not installed");
    assert_eq!(error.hint().unwrap(), "install Rust with rustup: see https://rustup.rs");
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
    let fix = "install Python's module `venv` with your system's package manager";
    assert_eq!(error.hint().unwrap(), fix);
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

/// A scripted compiler of this version, and a cargo.
fn script_rust(dirs: &TestDirs, version: &str, cargo: &str) {
    dirs.script("rustc", &format!("echo 'host: x86_64-unknown-linux-gnu'; echo 'release: {version}'"));
    dirs.script("cargo", cargo);
}

const CARGO: &str = "echo \"$@\" >> ../calls
test $1 = fetch && exit
mkdir -p target bin
echo '   Compiling one v1.0.0' >&2
echo '   Compiling two v1.0.0' >&2
touch bin/rust-analyzer
chmod +x bin/rust-analyzer";

#[test]
fn cargo_fetches_what_the_lock_names_and_builds_it() {
    let dirs = TestDirs::new();
    let managed = dirs.managed();
    script_rust(&dirs, "1.95.0", CARGO);
    let mut events = Vec::new();
    let folder =
        managed.install(lock("rust-analyzer"), &dirs.own_tools(), &mut |event| events.push(event)).unwrap();
    let expected = [
        "fetching with cargo",
        "building with cargo, which takes minutes",
        "built 1",
        "built 2",
        "installed rust-analyzer",
    ];
    assert_eq!(steps(&events), expected);
    assert!(folder.join("bin/rust-analyzer").is_file() && !folder.join("target").exists());
    let calls = std::fs::read_to_string(managed.folder().join("calls")).unwrap();
    let version = lock("rust-analyzer").version;
    assert_eq!(
        calls,
        format!(
            "fetch --locked --target x86_64-unknown-linux-gnu\n\
             install ra_ap_rust-analyzer --version {version} --locked --no-track --root {folder} \
             --target-dir {folder}/target\n"
        )
    );
    let registry = Registry::built_in();
    let workspace = dirs.top().join("workspace");
    let finder = Finder::new(workspace.clone(), Trust::Trusted, SearchPath::default()).with_managed(managed);
    let found = finder.find(registry.get("rust-analyzer").unwrap(), &workspace).unwrap();
    assert_eq!((found.path, found.origin), (folder.join("bin/rust-analyzer"), ProgramOrigin::Managed));
}

#[test]
fn compiler_that_is_too_old_or_missing_is_named() {
    let dirs = TestDirs::new();
    script_rust(&dirs, "1.80.1", CARGO);
    let install = || {
        let error =
            dirs.managed().install(lock("rust-analyzer"), &dirs.own_tools(), &mut |_| {}).unwrap_err();
        (chain(&error), error.hint().unwrap())
    };
    let old = "cannot install `rust-analyzer`: Rust 1.80 cannot build it; it needs 1.95 or newer";
    assert_eq!(install(), (old.to_owned(), "run `rustup update`".to_owned()));
    std::fs::remove_file(dirs.top().join("bin/rustc")).unwrap();
    let none = "cannot install `rust-analyzer`: `rustc` is missing or does not work";
    assert_eq!(install(), (none.to_owned(), "install Rust with rustup: see https://rustup.rs".to_owned()));
}

/// Ids of servers and names of locks.
fn planned(plan: &InstallPlan) -> (Vec<&str>, Vec<String>) {
    let skipped = plan.skipped.iter().map(|one| format!("{}: {}", one.served.id, one.why)).collect();
    (plan.locks.iter().map(|one| one.lock.name).collect(), skipped)
}

#[test]
fn shared_locks_are_listed_once_and_other_servers_are_skipped() {
    let registry = Registry::built_in();
    let plan = |ids: &[&str], tools: &Tools| {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        InstallPlan::for_servers(&registry, &ids, tools)
    };
    let dirs = TestDirs::new();
    dirs.script("npm", "");
    dirs.script("python3", "");
    let both = dirs.own_tools();
    let found = plan(&["json", "eslint", "gopls", "pyright", "rust-analyzer"], &both).unwrap();
    let (locks, skipped) = planned(&found);
    assert_eq!(locks, ["vscode-langservers", "pyright"]);
    assert_eq!(skipped, ["gopls: Tenon does not install it", "rust-analyzer: `cargo` is not installed"]);
    let fixes: Vec<String> = found.skipped.iter().map(|one| one.fix()).collect();
    assert_eq!(
        fixes,
        [
            "run `go install golang.org/x/tools/gopls@latest`",
            "install Rust with rustup: see https://rustup.rs; or run `rustup component add rust-analyzer`"
        ]
    );
    assert!(matches!(
        plan(&["json", "pyrigth"], &both).unwrap_err(),
        InstallError::UnknownServer { nearest: Some(id), .. } if id.as_str() == "pyright"
    ));
    // Without Node.js the fallback from pip is used.
    std::fs::remove_file(dirs.top().join("bin/npm")).unwrap();
    assert_eq!(planned(&plan(&["pyright"], &dirs.own_tools()).unwrap()).0, ["basedpyright"]);
}

#[test]
fn workspace_needs_missing_servers_for_existing_files() {
    let dirs = TestDirs::new();
    let bin = dirs.script(
        "npm",
        "mkdir -p node_modules/.bin; touch node_modules/.bin/vscode-css-language-server
        chmod +x node_modules/.bin/vscode-css-language-server",
    );
    dirs.script("python3", "");
    script_rust(&dirs, "1.95.0", "");
    let workspace = dirs.top().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    for file in ["a.py", "b.ts", "c.css", "d.go", "e.rs"] {
        std::fs::write(workspace.join(file), "").unwrap();
    }
    let registry = Registry::built_in();
    let languages = LanguageCount::count(&Walk::new(&workspace, &[]).unwrap(), &registry);
    let plan = |trust: Trust| {
        let search = SearchPath::new(bin.as_os_str());
        let finder = Finder::new(workspace.clone(), trust, search).with_managed(dirs.managed());
        InstallPlan::for_workspace(&registry, &languages, &finder, &dirs.own_tools())
    };
    let names =
        |plan: &InstallPlan| planned(plan).0.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let first = plan(Trust::Untrusted);
    assert_eq!(names(&first), ["pyright", "ruff", "typescript-native", "vscode-langservers"]);
    assert_eq!(first.locks[0].servers[0].to_string(), "1 Python file");
    // It would not run before trust, and its build takes minutes.
    assert_eq!(
        planned(&first).1,
        [
            "rust-analyzer: it is built from source and runs only in trusted workspaces",
            "gopls: Tenon does not install it"
        ]
    );
    assert!(matches!(first.skipped[0].why, SkipReason::Untrusted));
    assert_eq!(first.skipped[0].fix(), "run `tenon trust`, then `tenon servers install rust-analyzer`");
    assert_eq!(names(&plan(Trust::Trusted))[0], "rust-analyzer");
    // Another server of the group, or an earlier installation, is enough.
    dirs.script("ty", "");
    dirs.managed().install(lock("vscode-langservers"), &dirs.own_tools(), &mut |_| {}).unwrap();
    assert_eq!(names(&plan(Trust::Untrusted)), ["ruff", "typescript-native"]);
    // Without npm, what pip installs is left; one server of a group is reported.
    std::fs::remove_file(bin.join("npm")).unwrap();
    std::fs::remove_file(bin.join("ty")).unwrap();
    let (locks, skipped) = (names(&plan(Trust::Trusted)), planned(&plan(Trust::Trusted)).1);
    assert_eq!(locks, ["rust-analyzer", "basedpyright", "ruff"]);
    assert_eq!(skipped, ["typescript-native: `npm` is not installed", "gopls: Tenon does not install it"]);
}

#[test]
fn rustup_proxy_without_the_component_is_not_an_installed_server() {
    let dirs = TestDirs::new();
    let bin = dirs.script("rustup", "");
    std::os::unix::fs::symlink("rustup", bin.join("rust-analyzer")).unwrap();
    let registry = Registry::built_in();
    let finder = Finder::new(dirs.top().join("workspace"), Trust::Trusted, SearchPath::new(bin.as_os_str()))
        .with_rustup_home(dirs.top().join("rustup"));
    assert!(!finder.is_installed(registry.get("rust-analyzer").unwrap()));
    let component = dirs.top().join("rustup/toolchains/stable/bin");
    std::fs::create_dir_all(&component).unwrap();
    std::fs::copy(bin.join("rustup"), component.join("rust-analyzer")).unwrap();
    assert!(finder.is_installed(registry.get("rust-analyzer").unwrap()));
}

/// An old version of a lock, with one file.
fn install_old(managed: &Managed, lock: &PackageLock) -> Utf8PathBuf {
    let folder = managed.folder().join(format!("{}-0.1.0-00000000", lock.name));
    std::fs::create_dir_all(folder.join("node_modules")).unwrap();
    std::fs::write(folder.join(".complete"), "").unwrap();
    folder
}

#[test]
fn outdated_version_is_removed_unless_a_process_uses_it() {
    let dirs = TestDirs::new();
    let managed = dirs.managed();
    dirs.script("npm", "mkdir -p node_modules/.bin");
    let old = install_old(&managed, lock("pyright"));
    managed.install(lock("pyright"), &dirs.own_tools(), &mut |_| {}).unwrap();
    let installed: Vec<(String, bool)> =
        managed.installed().into_iter().map(|one| (one.version, one.current)).collect();
    assert_eq!(installed, [(lock("pyright").version.to_owned(), true), ("0.1.0".to_owned(), false)]);
    let script = old.join("node_modules/server");
    std::fs::write(&script, "#!/bin/sh\necho started\nread line\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut server = Command::new(&script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    let versions = managed.remove_outdated(lock("pyright"), &mut |_| {}).unwrap();
    assert_eq!((versions.removed.len(), versions.in_use), (0, vec!["0.1.0".to_owned()]));
    drop(server.stdin.take());
    server.wait().unwrap();
    let versions = managed.remove_outdated(lock("pyright"), &mut |_| {}).unwrap();
    assert_eq!((versions.removed, versions.in_use.len()), (vec!["0.1.0".to_owned()], 0));
    assert!(!old.exists());
    assert_eq!(managed.installed().len(), 1);
}

#[test]
fn what_interrupted_installations_of_other_versions_left_is_removed() {
    let dirs = TestDirs::new();
    let managed = dirs.managed();
    dirs.script("npm", "mkdir -p node_modules/.bin");
    let left = install_old(&managed, lock("biome"));
    std::fs::remove_file(left.join(".complete")).unwrap();
    managed.install(lock("pyright"), &dirs.own_tools(), &mut |_| {}).unwrap();
    assert!(!left.exists());
}
