//! Finds a server's program and decides whether it may run here.
//!
//! Order: the user's own command; once the root is trusted, the workspace's `node_modules/.bin` and virtualenvs, as far as
//! the programs there are the ones that the user trusted; the managed folder; PATH. A repository may be hostile, so until its root is trusted nothing inside it runs:
//!
//! - no program inside the root, through any name, link or PATH entry; the PATH of the server's children has no such
//!   entry either;
//! - no server that runs workspace code ([`ServerEntry::runs_workspace_code`]);
//! - servers that would load a library from the workspace are pinned to their own copy ([`crate::registry::Pin`]);
//! - a virtualenv's packages are read, but its interpreter is not started.
//!
//! The one exception is an absolute path in the user's own configuration.
//!
//! Every program is confined ([`crate::confinement`]), before trust and after.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use crate::confinement::ConfinementSettings;
use crate::install::Managed;
use crate::registry::{Install, LaunchCommand, LibrarySource, Registry, ServerEntry, ServerId, Switch};

mod choice;
mod json_values;
mod npm_package;
mod program;
mod rustup;
mod search_path;
mod virtualenv;

pub use choice::{ChoiceReason, GroupChoice, InstalledPackage, MissedPackage};
pub use program::Program;
pub use search_path::SearchPath;

use json_values::lookup;
use npm_package::NpmProgram;

/// Whether the user trusts the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    Trusted,
    Untrusted,
}

/// Where a program was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramOrigin {
    UserConfig,
    Workspace,
    Managed,
    Path,
}

/// A server's program that may run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundProgram {
    pub path: Utf8PathBuf,
    pub origin: ProgramOrigin,
    launch: LaunchCommand,
    /// The server's own copy of a library that it would else load from the workspace.
    own_copy: Option<Utf8PathBuf>,
}

/// The folder of programs that npm installs.
const NODE_BIN: &str = "node_modules/.bin";

/// Why a server cannot be started, and what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    pub reason: UnavailableReason,
    pub fix: Fix,
}

/// What the user can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// Run this command.
    Run(String),
    /// Follow these instructions; there is no command for it.
    See(String),
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(command) => write!(f, "run `{command}`"),
            Self::See(words) => f.write_str(words),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnavailableReason {
    Untrusted,
    NotFound,
}

impl fmt::Display for UnavailableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Untrusted => "untrusted",
            Self::NotFound => "not found",
        })
    }
}

/// Why an available server does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disabled {
    ByUser,
    /// Another server of the same group runs.
    InFavourOf(ServerId),
}

impl fmt::Display for Disabled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByUser => f.write_str("disabled in the configuration"),
            Self::InFavourOf(id) => write!(f, "`{id}` serves its files"),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Availability {
    Found(FoundProgram),
    Unavailable(Unavailable),
    Disabled(Disabled),
}

/// Returns whether the user still trusts the root.
#[derive(Clone)]
struct TrustCheck(Arc<dyn Fn() -> Trust + Send + Sync>);

impl fmt::Debug for TrustCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrustCheck")
    }
}

/// Returns whether a program inside the root is one that the user trusted.
#[derive(Clone)]
struct ProgramCheck(Arc<dyn Fn(&Utf8Path) -> bool + Send + Sync>);

impl fmt::Debug for ProgramCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgramCheck")
    }
}

/// Which paths of a lookup are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupPaths {
    /// Those with a file.
    Existing,
    /// Also those where nothing is yet.
    All,
}

/// The servers of a group that run, with their programs if they are found.
struct GroupMembers {
    /// The first of them, or the one to report as missing.
    wanted: ServerId,
    found: BTreeMap<ServerId, Option<FoundProgram>>,
}

/// Where a program was looked up.
enum Lookup {
    Found(Utf8PathBuf, ProgramOrigin),
    /// Only a program inside the root that the user has not trusted.
    Unpinned,
    NotFound,
}

/// The server would run workspace code, since it ships no copy.
struct NoOwnLibrary;

/// Looks for servers on behalf of one workspace root.
#[derive(Debug, Clone)]
pub struct Finder {
    root: Utf8PathBuf,
    trust: Trust,
    trust_check: Option<TrustCheck>,
    program_check: Option<ProgramCheck>,
    search: SearchPath,
    managed: Option<Managed>,
    rustup_home: Option<Utf8PathBuf>,
    /// `None` if servers are not confined.
    confinement: Option<ConfinementSettings>,
}

impl Finder {
    /// `root` is canonical: the comparison with it decides what may run.
    pub fn new(root: Utf8PathBuf, trust: Trust, search: SearchPath) -> Self {
        let confinement = Some(ConfinementSettings::from_env());
        Self {
            root,
            trust,
            trust_check: None,
            program_check: None,
            search,
            managed: None,
            rustup_home: None,
            confinement,
        }
    }

    pub fn with_confinement(mut self, settings: ConfinementSettings) -> Self {
        self.confinement = Some(settings);
        self
    }

    /// Servers are not confined: for tests whose server writes down what it was told.
    pub fn without_confinement(mut self) -> Self {
        self.confinement = None;
        self
    }

    /// The user's exceptions; see [`ConfinementSettings::with_exceptions`].
    pub fn with_confinement_exceptions(mut self, servers: &[String], writes: &[Utf8PathBuf]) -> Self {
        self.confinement = self.confinement.map(|settings| settings.with_exceptions(servers, writes));
        self
    }

    pub fn with_managed(mut self, managed: Managed) -> Self {
        self.managed = Some(managed);
        self
    }

    /// Checks trust before every start: a trusted program may have changed since the root was trusted.
    pub fn with_trust_check(mut self, trust_check: impl Fn() -> Trust + Send + Sync + 'static) -> Self {
        self.trust_check = Some(TrustCheck(Arc::new(trust_check)));
        self
    }

    /// Checks every program that a lookup by name finds inside the trusted root.
    pub fn with_program_check(mut self, check: impl Fn(&Utf8Path) -> bool + Send + Sync + 'static) -> Self {
        self.program_check = Some(ProgramCheck(Arc::new(check)));
        self
    }

    pub fn with_rustup_home(mut self, home: Utf8PathBuf) -> Self {
        self.rustup_home = Some(home);
        self
    }

    /// Looks in this process's environment: its PATH and its rustup.
    pub fn from_env(root: Utf8PathBuf, trust: Trust) -> Self {
        Self { rustup_home: rustup::home_from_env(), ..Self::new(root, trust, SearchPath::from_env()) }
    }

    pub fn trust(&self) -> Trust {
        self.trust
    }

    /// Every server of the registry, in its order, with one of each group chosen for the root.
    pub fn find_all<'r>(&self, registry: &'r Registry) -> Vec<(&'r ServerEntry, Availability)> {
        let finder = self.with_current_trust();
        let path = finder.path();
        let mut groups: BTreeMap<String, GroupMembers> = BTreeMap::new();
        let mut availability = |entry: &ServerEntry| {
            if entry.enabled == Switch::Off {
                return Availability::Disabled(Disabled::ByUser);
            }
            let find = || match finder.find_in(&path, entry, &finder.root) {
                Ok(program) => Availability::Found(program),
                Err(unavailable) => Availability::Unavailable(unavailable),
            };
            let Some(group) = entry.group.as_deref() else {
                return find();
            };
            let members = groups.entry(group.to_owned()).or_insert_with(|| {
                // If no server of a group is found, one is reported as missing, not all.
                let chosen = finder.choose(&path, registry, group, &finder.root);
                let wanted = chosen.first().map_or(&entry.id, |(choice, _)| &choice.server).clone();
                let found = chosen.into_iter().map(|(choice, program)| (choice.server, program));
                GroupMembers { wanted, found: found.collect() }
            });
            match members.found.remove(&entry.id) {
                Some(Some(program)) => Availability::Found(program),
                None if entry.id != members.wanted => {
                    Availability::Disabled(Disabled::InFavourOf(members.wanted.clone()))
                }
                Some(None) | None => find(),
            }
        };
        registry.entries().iter().map(|entry| (entry, availability(entry))).collect()
    }

    /// The program for a server in one project of the workspace.
    pub fn find(&self, entry: &ServerEntry, project: &Utf8Path) -> Result<Program, Unavailable> {
        let finder = self.with_current_trust();
        let path = finder.path();
        let found = finder.find_in(&path, entry, project)?;
        Ok(finder.equip(&path, entry, found, project))
    }

    /// Whether the machine has a server, whether or not it may run here before the root is trusted.
    pub fn is_installed(&self, entry: &ServerEntry) -> bool {
        let finder = self.with_current_trust();
        let path = finder.path();
        entry
            .launches()
            .any(|launch| !matches!(finder.locate(&path, entry, &launch, &self.root), Lookup::NotFound))
    }

    /// What a server needs to expand the standard library's macros, if the toolchain lacks it.
    pub fn missing_library<'e>(&self, entry: &'e ServerEntry) -> Option<&'e LibrarySource> {
        self.with_current_trust().library_of(entry, &self.root)
    }

    /// Nothing is run to find out: rustup might install the toolchain that the workspace names.
    fn library_of<'e>(&self, entry: &'e ServerEntry, project: &Utf8Path) -> Option<&'e LibrarySource> {
        let library = entry.library_source.as_ref()?;
        let compiler = self.search.which("rustc", self.forbidden())?;
        let real = compiler.canonicalize_utf8().ok()?;
        let compiler = match rustup::is_proxy(&compiler, &real) {
            true => rustup::component(self.rustup_home.as_deref()?, "rustc", project, &self.root)?,
            false => real,
        };
        let toolchain = compiler.parent()?.parent()?;
        (!toolchain.join(&library.folder).is_dir()).then_some(library)
    }

    /// The paths inside the root where the servers of a project in `folder` are looked up, and the interpreters of
    /// virtualenvs in it. Folders above it are not included.
    pub fn lookup_paths(
        &self,
        registry: &Registry,
        folder: &Utf8Path,
        which: LookupPaths,
    ) -> BTreeSet<Utf8PathBuf> {
        let virtualenvs = virtualenv::candidates(folder);
        let mut bins: Vec<Utf8PathBuf> = virtualenvs.iter().map(|found| found.bin()).collect();
        bins.push(folder.join(NODE_BIN));
        if folder == self.root {
            bins.extend(self.search.folders(None).into_iter().map(Utf8Path::to_owned));
        }
        bins.retain(|bin| which == LookupPaths::All || bin.is_dir());
        let mut paths = BTreeSet::new();
        if !bins.is_empty() || folder == self.root {
            for launch in registry.entries().iter().flat_map(ServerEntry::launches) {
                match Utf8Path::new(&launch.command) {
                    command if command.is_absolute() => {}
                    command if launch.command.contains('/') => paths.extend([self.root.join(command)]),
                    command => paths.extend(bins.iter().map(|bin| bin.join(command))),
                }
            }
        }
        paths.extend(virtualenvs.iter().map(|found| found.interpreter()));
        paths.retain(|path| which == LookupPaths::All || path.symlink_metadata().is_ok());
        paths.into_iter().filter_map(|path| self.inside(&path)).collect()
    }

    /// This finder, or an untrusting one if the user no longer trusts the root.
    fn with_current_trust(&self) -> Cow<'_, Self> {
        match (self.trust, &self.trust_check) {
            (Trust::Trusted, Some(trust_check)) if (trust_check.0)() == Trust::Untrusted => {
                Cow::Owned(Self { trust: Trust::Untrusted, trust_check: None, ..self.clone() })
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// The folders of PATH that programs may come from now. Reads the file system, so callers compute it once per lookup.
    fn path(&self) -> Vec<&Utf8Path> {
        self.search.folders(self.forbidden())
    }

    fn find_in(
        &self,
        path: &[&Utf8Path],
        entry: &ServerEntry,
        project: &Utf8Path,
    ) -> Result<FoundProgram, Unavailable> {
        let mut reason = UnavailableReason::NotFound;
        for launch in entry.launches() {
            let located = self.locate(path, entry, &launch, project);
            let is_safe = self.confinement.as_ref().is_none_or(|settings| settings.is_safe_for(entry));
            if self.trust == Trust::Untrusted && (launch.runs_workspace_code || !is_safe) {
                // Trust could also make a workspace program available. A fallback that is not installed is not reported.
                if entry.runs_workspace_code || !is_safe || !matches!(located, Lookup::NotFound) {
                    reason = UnavailableReason::Untrusted;
                }
                continue;
            }
            let (path, origin) = match located {
                Lookup::Found(path, origin) => (path, origin),
                Lookup::Unpinned => {
                    reason = UnavailableReason::Untrusted;
                    continue;
                }
                Lookup::NotFound => continue,
            };
            match self.own_library(entry, &path) {
                Ok(own_copy) => return Ok(FoundProgram { path, origin, launch, own_copy }),
                Err(NoOwnLibrary) => reason = UnavailableReason::Untrusted,
            }
        }
        Err(Unavailable {
            reason,
            fix: match reason {
                UnavailableReason::Untrusted => Fix::Run("tenon trust".to_owned()),
                UnavailableReason::NotFound => how_to_install(entry),
            },
        })
    }

    fn locate(
        &self,
        path: &[&Utf8Path],
        entry: &ServerEntry,
        launch: &LaunchCommand,
        project: &Utf8Path,
    ) -> Lookup {
        let command = Utf8Path::new(&launch.command);
        if launch.command.contains('/') {
            let path = self.root.join(command);
            let is_allowed = command.is_absolute() || self.trust == Trust::Trusted;
            return match is_allowed && search_path::is_program(&path) {
                true => Lookup::Found(path, ProgramOrigin::UserConfig),
                false => Lookup::NotFound,
            };
        }
        let in_workspace = || {
            let origin = ProgramOrigin::Workspace;
            self.workspace_bins(project).into_iter().map(move |folder| (folder.join(command), origin))
        };
        let in_managed = || {
            let locks = match &entry.install {
                Install::Managed { locks, .. } => locks.as_slice(),
                Install::Command { .. } | Install::Manual { .. } => &[],
            };
            self.managed
                .iter()
                .flat_map(|managed| managed.bins(locks))
                .map(|folder| (folder.join(command), ProgramOrigin::Managed))
        };
        let on_path = || path.iter().map(|folder| (folder.join(command), ProgramOrigin::Path));
        let candidates: Vec<(Utf8PathBuf, ProgramOrigin)> = if entry.user_command {
            on_path().map(|(path, _)| (path, ProgramOrigin::UserConfig)).collect()
        } else {
            in_workspace().chain(in_managed()).chain(on_path()).collect()
        };
        let mut lookup = Lookup::NotFound;
        for (path, origin) in candidates.into_iter().filter(|(path, _)| search_path::is_program(path)) {
            if !has_packages(entry, &path) {
                continue;
            }
            if !self.is_pinned(&path) {
                lookup = Lookup::Unpinned;
            } else if let Some(program) = self.admit(entry, launch, path, project) {
                return Lookup::Found(program, origin);
            }
        }
        lookup
    }

    /// Whether a program is outside the trusted root, or one that the user trusted with it.
    fn is_pinned(&self, path: &Utf8Path) -> bool {
        let (Trust::Trusted, Some(check)) = (self.trust, &self.program_check) else { return true };
        self.inside(path).is_none_or(|inside| (check.0)(&inside))
    }

    /// The path inside the root that a path is or leads to.
    fn inside(&self, path: &Utf8Path) -> Option<Utf8PathBuf> {
        if path.starts_with(&self.root) {
            return Some(path.to_owned());
        }
        path.canonicalize_utf8().ok().filter(|real| real.starts_with(&self.root))
    }

    /// Rejects programs that are not the server or lie inside an untrusted root; resolves rustup's proxies and npm's scripts.
    fn admit(
        &self,
        entry: &ServerEntry,
        launch: &LaunchCommand,
        path: Utf8PathBuf,
        project: &Utf8Path,
    ) -> Option<Utf8PathBuf> {
        let is_forbidden = |real: &Utf8Path| self.forbidden().is_some_and(|root| real.starts_with(root));
        let real = path.canonicalize_utf8().ok()?;
        if is_forbidden(&real) {
            return None;
        }
        match npm_package::binary_of(&path, &real, &entry.binaries) {
            NpmProgram::Binary(binary) => {
                return binary.canonicalize_utf8().ok().filter(|real| !is_forbidden(real));
            }
            NpmProgram::Script => return None,
            NpmProgram::Other => {}
        }
        if rustup::is_proxy(&path, &real) {
            return rustup::component(self.rustup_home.as_deref()?, &launch.command, project, &self.root);
        }
        Some(path)
    }

    /// The server's own copy of the library that it would else load from an untrusted workspace, if it needs one. `Err` if it has
    /// none.
    fn own_library(
        &self,
        entry: &ServerEntry,
        program: &Utf8Path,
    ) -> Result<Option<Utf8PathBuf>, NoOwnLibrary> {
        let (Some(pin), Trust::Untrusted) = (&entry.pin, self.trust) else { return Ok(None) };
        let options = entry.initialization_options.as_ref();
        if options.is_some_and(|options| lookup(options, &pin.option).is_some()) {
            return Ok(None);
        }
        let copy = own_copy(program, &pin.file).filter(|copy| !copy.starts_with(&self.root));
        copy.map(Some).ok_or(NoOwnLibrary)
    }

    fn workspace_bins(&self, project: &Utf8Path) -> Vec<Utf8PathBuf> {
        if self.trust == Trust::Untrusted {
            return Vec::new();
        }
        virtualenv::up_to(project, &self.root)
            .flat_map(|folder| {
                std::iter::once(folder.join(NODE_BIN))
                    .chain(virtualenv::in_folder(folder).map(|found| found.bin()))
            })
            .collect()
    }

    /// The folder that nothing may be run from.
    fn forbidden(&self) -> Option<&Utf8Path> {
        (self.trust == Trust::Untrusted).then_some(self.root.as_path())
    }
}

/// How the user can install a missing server.
pub(crate) fn how_to_install(entry: &ServerEntry) -> Fix {
    if entry.user_command {
        return Fix::See(format!("install `{}` or correct its `command`", entry.command));
    }
    match &entry.install {
        Install::Managed { .. } => Fix::Run(format!("tenon servers install {}", entry.id)),
        Install::Command { run } => Fix::Run(run.clone()),
        Install::Manual { see } => Fix::See(format!("see {see}")),
    }
}

/// A file of another package in the `node_modules` folder that a program is installed in.
fn own_copy(program: &Utf8Path, file: &str) -> Option<Utf8PathBuf> {
    packages_of(program)?.join(file).canonicalize_utf8().ok()
}

/// The `node_modules` folder that a program is installed in.
fn packages_of(program: &Utf8Path) -> Option<Utf8PathBuf> {
    let real = program.canonicalize_utf8().ok()?;
    real.ancestors().find(|folder| folder.file_name() == Some("node_modules")).map(Utf8Path::to_owned)
}

/// Whether a program is installed together with what the server needs.
fn has_packages(entry: &ServerEntry, program: &Utf8Path) -> bool {
    let needed = &entry.needs_packages;
    needed.is_empty()
        || packages_of(program).is_some_and(|folder| needed.iter().all(|one| folder.join(one).exists()))
}
