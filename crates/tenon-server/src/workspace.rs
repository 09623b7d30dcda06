//! One served workspace: its root, readable folders, settings and trust.
//!
//! A workspace does not change after it is opened: changed settings or a new trust decision need a new one.
//! [`Workspace::is_current`] reports whether that is due, and [`Workspace::trust_now`] checks trust again before a program
//! of the workspace is run.

use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;
use tenon_contract::clock::Clock;
use tenon_contract::id::sha256_hex_joined;
use tenon_contract::root::{RootError, RootGate};
use tenon_servers::find::{Finder, Trust};
use tenon_servers::install::Managed;
use tenon_servers::registry::Registry;

use crate::config::{
    Config, ConfigError, ConfigLocation, ConfigProblem, ConfigSources, Environment, FILE_NAME, FlagSetting,
    SettingOrigin, Settings, SourceText, read_user_file, read_workspace_file,
};
use crate::dirs::Dirs;
use crate::http::port_memory::PortMemory;
use crate::trust::{TrustState, TrustStore};

/// The names that mark a folder as a workspace root.
const MARKERS: &[&str] = &[FILE_NAME, ".git", ".jj", ".hg", ".svn"];

#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("there is no folder `{root}`")]
    Missing { root: Utf8PathBuf },
    #[error("cannot read folder `{root}`")]
    Unreadable { root: Utf8PathBuf, source: io::Error },
    #[error("the workspace path is not UTF-8: `{0}`")]
    NotUtf8(String),
    #[error(transparent)]
    Roots(#[from] RootError),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// The workspace root for `start`: the nearest folder at or above it with a `tenon.toml` or a version control folder, else
/// `start` itself.
///
/// The search stops below a folder that everyone can write to, such as `/tmp`: any user could mark it as a root.
pub fn find_root(start: &Utf8Path) -> Utf8PathBuf {
    marked_root(start).unwrap_or_else(|| start.to_owned())
}

/// As [`find_root`], for a path that may not be in any workspace.
pub(crate) fn marked_root(start: &Utf8Path) -> Option<Utf8PathBuf> {
    let marked = |folder: &&Utf8Path| MARKERS.iter().any(|marker| folder.join(marker).exists());
    let ours = |folder: &&Utf8Path| !open_to_everyone(folder);
    start.ancestors().take_while(ours).find(marked).map(ToOwned::to_owned)
}

#[cfg(unix)]
fn open_to_everyone(folder: &Utf8Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    folder.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o002 != 0)
}

#[cfg(not(unix))]
fn open_to_everyone(_: &Utf8Path) -> bool {
    false
}

/// The canonical form of `root`, which must be a readable folder.
pub fn canonical_root(root: &Utf8Path) -> Result<Utf8PathBuf, WorkspaceError> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            WorkspaceError::Missing { root: root.to_owned() }
        }
        _ => WorkspaceError::Unreadable { root: root.to_owned(), source },
    };
    let real = root.as_std_path().canonicalize().map_err(unreadable)?;
    let real = Utf8PathBuf::from_path_buf(real)
        .map_err(|path| WorkspaceError::NotUtf8(path.display().to_string()))?;
    std::fs::read_dir(&real).map_err(unreadable)?;
    Ok(real)
}

/// The canonical path that a root had before it was removed or moved. A daemon may still serve it.
pub fn former_root(root: &Utf8Path) -> Option<Utf8PathBuf> {
    let absolute = std::path::absolute(root).ok().and_then(|path| Utf8PathBuf::from_path_buf(path).ok())?;
    let existing = absolute.ancestors().find(|folder| folder.exists())?;
    let rest = absolute.strip_prefix(existing).ok()?;
    Some(existing.canonicalize_utf8().ok()?.join(rest))
}

/// The files that exist, grouped by the root of their workspace. Files outside every workspace are left out.
///
/// `files` are relative to `folder`. Files below `explicit`, or else below the workspace of `folder`, belong to that root;
/// without `explicit`, other files belong to the nearest root above them.
pub fn files_by_root(
    files: &[Utf8PathBuf],
    folder: &Utf8Path,
    explicit: Option<&Utf8Path>,
) -> BTreeMap<Utf8PathBuf, Vec<Utf8PathBuf>> {
    let session = root_of_folder(folder, explicit);
    let mut grouped: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for file in files {
        let Some(file) = real_file(&folder.join(file)) else {
            continue;
        };
        let nearest = || marked_root(file.parent().unwrap_or(Utf8Path::new("/")));
        let root = match &session {
            Some(session) if file.starts_with(session) => Some(session.clone()),
            _ if explicit.is_some() => None,
            _ => nearest(),
        };
        if let Some(root) = root {
            grouped.entry(root).or_default().push(file);
        }
    }
    grouped
}

/// The workspace of a folder: `explicit`, or else the nearest root above it.
pub fn root_of_folder(folder: &Utf8Path, explicit: Option<&Utf8Path>) -> Option<Utf8PathBuf> {
    match explicit {
        Some(root) => canonical_root(root).ok(),
        None => folder.canonicalize_utf8().ok().and_then(|folder| marked_root(&folder)),
    }
}

/// The real path of a file, which may be deleted.
fn real_file(file: &Utf8Path) -> Option<Utf8PathBuf> {
    let deleted = || Some(file.parent()?.canonicalize_utf8().ok()?.join(file.file_name()?));
    file.canonicalize_utf8().ok().or_else(deleted)
}

/// How to open a workspace.
#[derive(Debug, Clone)]
pub struct WorkspaceOptions {
    pub dirs: Dirs,
    pub environment: Environment,
    pub flags: Vec<FlagSetting>,
    pub clock: Clock,
}

/// See the module.
#[derive(Debug)]
pub struct Workspace {
    root: Utf8PathBuf,
    gate: RootGate,
    settings: Settings,
    config: Config,
    trust: TrustState,
    fingerprint: String,
    options: WorkspaceOptions,
}

/// The files that settings and trust are read from, at one moment.
struct Inputs {
    user: Option<SourceText>,
    workspace: Option<SourceText>,
    trust: TrustState,
    fingerprint: String,
}

impl Workspace {
    /// Opens the workspace at `root`.
    pub fn open(root: &Utf8Path, options: WorkspaceOptions) -> Result<Self, WorkspaceError> {
        let root = canonical_root(root)?;
        let inputs = read_inputs(&root, &options)?;
        let settings = Settings::resolve(&ConfigSources {
            root: &root,
            home: Some(&options.dirs.home),
            user: inputs.user.as_ref(),
            workspace: inputs.workspace.as_ref(),
            environment: &options.environment,
            flags: &options.flags,
            trusted: inputs.trust.is_trusted(),
        })?;
        let config = settings.typed();
        let problems = server_problems(&config, &settings, &inputs);
        if !problems.is_empty() {
            return Err(ConfigError::Invalid(problems).into());
        }
        let gate = RootGate::new(std::iter::once(&root).chain(&config.workspace.roots))?;
        let Inputs { trust, fingerprint, .. } = inputs;
        Ok(Self { root, gate, settings, config, trust, fingerprint, options })
    }

    /// The same workspace with the settings and the trust on disk now.
    pub(crate) fn reopened(&self) -> Result<Self, WorkspaceError> {
        Self::open(&self.root, self.options.clone())
    }

    /// The canonical root.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The readable folders: the root and the configured additional roots.
    pub fn gate(&self) -> &RootGate {
        &self.gate
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The settings with their origins.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The trust state under which the settings were read.
    pub fn trust(&self) -> &TrustState {
        &self.trust
    }

    /// Finds servers in Tenon's own folder and on `PATH`, and confines them, as far as the trust of the workspace requires.
    pub fn finder(&self) -> Finder {
        let trust = if self.trust.is_trusted() { Trust::Trusted } else { Trust::Untrusted };
        let sandbox = &self.config().sandbox;
        Finder::from_env(self.root().to_owned(), trust)
            .with_managed(Managed::new(self.dirs().servers()))
            .with_confinement_exceptions(&sandbox.except, &sandbox.write)
            .with_program_check(trust_store(&self.options).program_check(self.root()))
    }

    pub fn dirs(&self) -> &Dirs {
        &self.options.dirs
    }

    pub fn clock(&self) -> &Clock {
        &self.options.clock
    }

    pub fn environment(&self) -> &Environment {
        &self.options.environment
    }

    /// The trust state now. Check it before running a program of the workspace: a pinned file may have changed since the
    /// workspace was opened.
    pub(crate) fn trust_now(&self) -> TrustState {
        match read_workspace_file(&self.root) {
            Ok(text) => trust_store(&self.options).state(&self.root, text.as_ref()),
            Err(_) => TrustState::Untrusted,
        }
    }

    /// Whether opening the workspace now would give the same settings and trust.
    pub(crate) fn is_current(&self) -> bool {
        read_inputs(&self.root, &self.options).is_ok_and(|inputs| inputs.fingerprint == self.fingerprint)
    }

    /// The log file of this workspace's daemon.
    /// The port of `tenon serve --http`: the configured one, else the one of the last time.
    pub fn http_port(&self) -> Option<u16> {
        match self.config().http.port {
            0 => PortMemory::of(self).read(),
            port => Some(port),
        }
    }

    pub fn log_path(&self) -> Utf8PathBuf {
        let folder = self.config.log.folder.clone().unwrap_or_else(|| self.options.dirs.logs());
        crate::log::path(&folder, &self.root)
    }
}

/// The problems of the configured language servers, each at the first line that configures the server.
fn server_problems(config: &Config, settings: &Settings, inputs: &Inputs) -> Vec<ConfigProblem> {
    let texts = || [&inputs.user, &inputs.workspace].into_iter().flatten();
    let problem = |(id, value): (&String, &Value)| {
        let alone = BTreeMap::from([(id.clone(), value.clone())]);
        let message = Registry::configured(&alone).err()?.to_string();
        let prefix = format!("servers.{id}.");
        let origins = settings.iter().filter(|(path, _)| path.starts_with(&prefix));
        let lines = origins.flat_map(|(_, setting)| &setting.origins).filter_map(|origin| match origin {
            SettingOrigin::File { path, line, .. } => Some((path, *line)),
            SettingOrigin::Default | SettingOrigin::Variable(_) | SettingOrigin::Flag(_) => None,
        });
        let (path, line) = lines.min()?;
        let source = texts().find(|text| text.path == *path)?;
        let location = ConfigLocation::Text { source: source.clone(), span: source.span_of_line(line) };
        Some(ConfigProblem { message, hint: None, location })
    };
    config.servers.iter().filter_map(problem).collect()
}

fn trust_store(options: &WorkspaceOptions) -> TrustStore {
    TrustStore::new(options.dirs.trust(), options.clock.clone())
}

fn read_inputs(root: &Utf8Path, options: &WorkspaceOptions) -> Result<Inputs, ConfigError> {
    let user = read_user_file(&options.dirs.config_file)?;
    let workspace = read_workspace_file(root)?;
    let trust = trust_store(options).state(root, workspace.as_ref());
    let text = |source: &Option<SourceText>| source.as_ref().map_or("-".into(), |source| source.text.clone());
    let fingerprint = sha256_hex_joined(&[&text(&user), &text(&workspace), &trust.name()]);
    Ok(Inputs { user, workspace, trust, fingerprint })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Repository {
        _folder: tempfile::TempDir,
        base: Utf8PathBuf,
        root: Utf8PathBuf,
    }

    fn place() -> Repository {
        let folder = tempfile::tempdir().unwrap();
        let base = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        let root = base.join("repo");
        std::fs::create_dir_all(root.join("deep/er")).unwrap();
        Repository { _folder: folder, base, root }
    }

    impl Repository {
        fn options(&self) -> WorkspaceOptions {
            let dirs = Dirs::below(&self.base);
            WorkspaceOptions {
                dirs,
                environment: Environment::default(),
                flags: vec![],
                clock: Clock::system(),
            }
        }

        fn write(&self, path: &str, text: &str) {
            std::fs::write(self.root.join(path), text).unwrap();
        }

        fn trust(&self) {
            let text = read_workspace_file(&self.root).unwrap();
            trust_store(&self.options()).trust(&self.root, text.as_ref(), None).unwrap();
        }
    }

    #[test]
    fn root_is_the_nearest_marked_folder() {
        let place = place();
        let deep = place.root.join("deep/er");
        assert_eq!(find_root(&deep), deep);
        place.write(".git", "gitdir: elsewhere");
        assert_eq!(find_root(&deep), place.root);
        place.write("deep/tenon.toml", "");
        assert_eq!(find_root(&deep), place.root.join("deep"));
    }

    #[cfg(unix)]
    #[test]
    fn world_writable_folder_is_not_a_root() {
        use std::os::unix::fs::PermissionsExt;
        let place = place();
        place.write("tenon.toml", "");
        let inside = place.root.join("deep");
        assert_eq!(find_root(&inside), place.root);
        std::fs::set_permissions(&place.root, std::fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(find_root(&inside), inside);
    }

    #[test]
    fn root_must_be_a_folder() {
        let place = place();
        place.write("file", "");
        for name in ["missing", "file"] {
            let refused = Workspace::open(&place.root.join(name), place.options());
            assert!(matches!(refused, Err(WorkspaceError::Missing { .. })), "{refused:?}");
        }
    }

    #[test]
    fn repository_commands_need_current_trust() {
        let place = place();
        place.write("server", "#!/bin/sh\n");
        place.write("tenon.toml", "[servers.x]\ncommand = \"./server\"\nextensions = [\".x\"]\n");
        let servers = || Workspace::open(&place.root, place.options()).unwrap().config().servers.len();
        assert_eq!(servers(), 0);
        place.trust();
        assert_eq!(servers(), 1);
        let served = Workspace::open(&place.root, place.options()).unwrap();
        assert!(served.trust_now().is_trusted() && served.is_current());
        place.write("server", "#!/bin/sh\nevil\n");
        assert!(!served.trust_now().is_trusted() && !served.is_current());
        assert_eq!(servers(), 0);
    }

    #[test]
    fn incomplete_new_server_is_reported_with_its_line() {
        let place = place();
        std::fs::create_dir_all(place.base.join("config")).unwrap();
        let text = "[servers.pyrigt]\nenabled = false\n[servers.new]\ncommand = \"new\"\n";
        std::fs::write(place.base.join("config/config.toml"), text).unwrap();
        let refused = Workspace::open(&place.root, place.options()).unwrap_err();
        let WorkspaceError::Config(ConfigError::Invalid(problems)) = refused else { panic!("{refused:?}") };
        let words: Vec<String> = problems
            .iter()
            .map(|problem| problem.to_string().replace(place.base.as_str(), "[BASE]"))
            .collect();
        insta::assert_snapshot!(words.join("\n"), @"
        the new language server `new` is missing `extensions` ([BASE]/config/config.toml:4)
        no language server is called `pyrigt`; did you mean `pyright`? A new server needs `command` and `extensions` ([BASE]/config/config.toml:2)
        ");
    }

    #[test]
    fn changed_settings_are_noticed() {
        let place = place();
        let served = Workspace::open(&place.root, place.options()).unwrap();
        assert!(served.is_current());
        place.write("tenon.toml", "[limits]\nmax_page_size = 10\n");
        assert!(!served.is_current());
    }

    #[test]
    fn additional_roots_need_trust() {
        let place = place();
        let beside = place.base.join("beside");
        std::fs::create_dir(&beside).unwrap();
        std::fs::write(beside.join("a.txt"), "").unwrap();
        place.write("tenon.toml", "[workspace]\nroots = [\"../beside\"]\n");
        let reaches = || {
            let served = Workspace::open(&place.root, place.options()).unwrap();
            served.gate().admit_path(beside.join("a.txt")).is_ok()
        };
        assert!(!reaches());
        place.trust();
        assert!(reaches());
    }
}
