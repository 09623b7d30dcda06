//! The language servers we know, as data: one entry per server, overridden by id.
//!
//! Each built-in entry is a TOML file in `registry/`; their order in [`BUILT_IN`] is the registry order that navigation
//! follows. An entry records what we learned by running the server: when its answers can be trusted, how to lift its
//! limits, how to keep it off the network, and whether it runs code from an opened workspace.
//!
//! Servers with the same [`ServerEntry::group`] do the same job (two type checkers, two TypeScript servers). One of a group
//! runs: the ones the user enabled, else the first that is found in registry order; a project with an older version of a
//! package may have another one ([`OlderPackage`]). Servers without a group run side by side.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::project_files::ProjectKind;

mod overrides;

pub use overrides::{Override, OverrideError};

/// The built-in entries in registry order.
const BUILT_IN: &[(&str, &str)] = &[
    ("rust-analyzer", include_str!("registry/rust-analyzer.toml")),
    ("pyright", include_str!("registry/pyright.toml")),
    ("ty", include_str!("registry/ty.toml")),
    ("basedpyright", include_str!("registry/basedpyright.toml")),
    ("pyrefly", include_str!("registry/pyrefly.toml")),
    ("ruff", include_str!("registry/ruff.toml")),
    ("typescript-native", include_str!("registry/typescript-native.toml")),
    ("typescript-language-server", include_str!("registry/typescript-language-server.toml")),
    ("vue", include_str!("registry/vue.toml")),
    ("svelte", include_str!("registry/svelte.toml")),
    ("eslint", include_str!("registry/eslint.toml")),
    ("biome", include_str!("registry/biome.toml")),
    ("gopls", include_str!("registry/gopls.toml")),
    ("clangd", include_str!("registry/clangd.toml")),
    ("fortls", include_str!("registry/fortls.toml")),
    ("jdtls", include_str!("registry/jdtls.toml")),
    ("intelephense", include_str!("registry/intelephense.toml")),
    ("ruby-lsp", include_str!("registry/ruby-lsp.toml")),
    ("zls", include_str!("registry/zls.toml")),
    ("lua", include_str!("registry/lua.toml")),
    ("bash", include_str!("registry/bash.toml")),
    ("html", include_str!("registry/html.toml")),
    ("css", include_str!("registry/css.toml")),
    ("json", include_str!("registry/json.toml")),
    ("yaml", include_str!("registry/yaml.toml")),
];

static PARSED: LazyLock<Vec<ServerEntry>> = LazyLock::new(|| {
    BUILT_IN
        .iter()
        .map(|(id, text)| {
            let entry: ServerEntry =
                toml::from_str(text).expect("the entries are embedded and a test parses them");
            debug_assert_eq!(entry.id.as_str(), *id);
            entry
        })
        .collect()
});

/// The id of a server in configuration, status lists, folder names and log names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerId(String);

impl ServerId {
    /// Accepts 1 to 64 ASCII letters, digits, `-`, `_` and `.`, not starting with a dot: ids become file names.
    pub fn new(id: impl Into<String>) -> Result<Self, InvalidServerId> {
        let id = id.into();
        let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
        if id.is_empty() || id.len() > 64 || id.starts_with('.') || !id.bytes().all(allowed) {
            return Err(InvalidServerId(id));
        }
        Ok(Self(id))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ServerId {
    type Error = InvalidServerId;

    fn try_from(id: String) -> Result<Self, Self::Error> {
        Self::new(id)
    }
}

impl From<ServerId> for String {
    fn from(id: ServerId) -> Self {
        id.0
    }
}

impl std::borrow::Borrow<str> for ServerId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A string that cannot name a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be a server id: use 1 to 64 letters, digits, `-`, `_` or `.`, not starting with a dot")]
pub struct InvalidServerId(pub String);

/// A kind of request that we send to a server. A server may offer more than its entry lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    Diagnostics,
    Definition,
    References,
    Hover,
    DocumentSymbols,
    WorkspaceSymbols,
    Implementation,
    CallHierarchy,
    Rename,
    CodeActions,
    Formatting,
}

impl Capability {
    /// The capabilities of a server that we know nothing about.
    pub const ALL: [Self; 11] = [
        Self::Diagnostics,
        Self::Definition,
        Self::References,
        Self::Hover,
        Self::DocumentSymbols,
        Self::WorkspaceSymbols,
        Self::Implementation,
        Self::CallHierarchy,
        Self::Rename,
        Self::CodeActions,
        Self::Formatting,
    ];
}

/// When a server's answers cover its whole project.
///
/// A server without a rule counts as ready at once, but its answers are never called complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReadinessRule {
    /// From the answer to `initialize` on: it always answers from the current files.
    Immediate,
    /// When the first diagnostics arrive, pushed or pulled, for a document that we opened.
    FirstDiagnostics,
    /// When a work-done progress has begun and ended. A server with nothing to load never begins one, so we wait for the
    /// begin only for a grace time.
    Progress { grace_ms: u64 },
    /// When `experimental/serverStatus` reports `quiescent`, or when a progress with `caches` in its token begins: the server
    /// has loaded everything then, and computes ahead what questions may need.
    ServerStatus {
        #[serde(default)]
        caches: Option<String>,
    },
    /// When a log message with this text in it arrives.
    LogMessage { contains: String },
}

impl ReadinessRule {
    /// How long to wait for the first `begin`, for servers that report progress.
    pub fn grace(&self) -> Option<Duration> {
        match self {
            Self::Progress { grace_ms } => Some(Duration::from_millis(*grace_ms)),
            Self::Immediate
            | Self::FirstDiagnostics
            | Self::ServerStatus { .. }
            | Self::LogMessage { .. } => None,
        }
    }
}

/// Where a server comes from when it is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Install {
    /// `tenon servers install` installs it from the lock files in `locks/<name>/`: the first whose package manager the
    /// machine has. Several entries may share one lock.
    Managed {
        locks: Vec<String>,
        /// A command that installs it faster, or where Tenon cannot.
        #[serde(default)]
        instead: Option<String>,
    },
    /// The user runs this command.
    Command { run: String },
    /// The user follows the server's own instructions.
    Manual { see: String },
}

/// The most results that a server returns if no setting lifts that limit. An answer of that size is incomplete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultLimits {
    #[serde(default)]
    pub references: Option<usize>,
    #[serde(default)]
    pub document_symbols: Option<usize>,
    #[serde(default)]
    pub workspace_symbols: Option<usize>,
}

/// Whether the user enabled or disabled a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// Not set: it runs unless another server of the same group does.
    #[default]
    Auto,
    On,
    Off,
}

/// One way to start a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchCommand {
    /// A program name looked up by [`crate::find`], or a path.
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    /// As [`ServerEntry::runs_workspace_code`], for this program.
    #[serde(default)]
    pub runs_workspace_code: bool,
}

/// An older version of an npm package in a project, for which another server runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OlderPackage {
    pub name: String,
    /// The first major version that this server is for.
    pub below: u64,
    /// The server for older versions.
    pub server: ServerId,
}

/// Code that a server would load from the workspace unless it is configured to use the copy that it was installed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The initialization option that names the code, dotted.
    pub option: String,
    /// The code, relative to the `node_modules` folder that the server is installed in.
    pub file: String,
}

/// A command that does nothing beyond the change that it comes with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleCommand {
    pub command: String,
    /// A JSON pointer into its arguments: it does something if there is anything.
    pub unless: String,
}

/// The settings that point a server to a virtualenv in the workspace, dotted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VirtualenvSettings {
    /// Takes the interpreter. The server runs it, so it is set only once the root is trusted.
    pub interpreter: String,
    /// Takes a list of package folders, which are only read.
    pub packages: String,
}

/// Diagnostics that a server makes from the files on disk: they are never about a text that is not saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnSave {
    /// The `source` of these diagnostics; empty means all.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Part of the token or title of the progress that the check reports, if it does.
    #[serde(default)]
    pub progress: Option<String>,
    /// How long after a save that progress may take to begin.
    #[serde(default)]
    pub grace_ms: u64,
    /// What the message of a `serverStatus` begins with if the check could not run. Nothing found then does not mean that
    /// nothing is wrong.
    #[serde(default)]
    pub failure: Option<String>,
}

impl OnSave {
    pub fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }
}

/// When a server was last run with Tenon, for definitions, references and diagnostics of a real project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvenRun {
    pub version: String,
    /// `YYYY-MM-DD`.
    pub date: String,
    /// The code that it was run on.
    pub project: String,
}

/// The source of a language's standard library, which a server reads to expand its macros.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LibrarySource {
    /// Its folder in the toolchain of the server's language.
    pub folder: String,
    /// Part of the line that the server logs if it is missing.
    pub missing: String,
    /// The command that installs it.
    pub install: String,
}

/// Everything we know about one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerEntry {
    pub id: ServerId,
    /// For people: `Python`, `TypeScript and JavaScript`.
    pub language: String,
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    /// What must be in the `node_modules` folder that the program is installed in. `{packages}` in its initialization options is
    /// that folder.
    #[serde(default)]
    pub needs_packages: Vec<String>,
    /// Tried in order when `command` is not found (pyright → basedpyright).
    #[serde(default)]
    pub fallbacks: Vec<LaunchCommand>,
    /// File name endings with their language ids, or patterns with one `*` in the file name, optionally with folders
    /// before it (`.vscode/*.json`). The longest match wins, so `tsconfig.json` may differ from `.json`.
    pub extensions: BTreeMap<String, String>,
    /// Files that make a folder a separate project, in tiers: the nearest marker of the first tier with any marker above
    /// the file decides. A lock file in an early tier keeps a monorepo on one server.
    #[serde(default)]
    pub root_markers: Vec<Vec<String>>,
    /// Without such a marker, the outermost folder with one of these is the root: a nested `pyproject.toml` alone does not
    /// start another server (decision 0330).
    #[serde(default)]
    pub outer_markers: Vec<String>,
    /// Names of files that configure it, with at most one `*`: a change of one may affect the diagnostics of every file.
    #[serde(default)]
    pub configuration: Vec<String>,
    /// The server runs only if a marker exists (linters need their configuration).
    #[serde(default)]
    pub needs_marker: bool,
    pub capabilities: Vec<Capability>,
    pub install: Install,
    /// Without this, the entry was never run: it is unproven.
    #[serde(default)]
    pub proven: Option<ProvenRun>,
    #[serde(default)]
    pub library_source: Option<LibrarySource>,
    #[serde(default)]
    pub ready: Option<ReadinessRule>,
    /// Requests that it answers completely before it is ready (decision 0305).
    #[serde(default)]
    pub early: Vec<Capability>,
    /// How long after one publish another one for the same text may follow.
    #[serde(default = "default_settle_ms")]
    pub settle_ms: u64,
    /// A changed document is closed and opened again instead of changed: the server does not repeat an empty list, and
    /// adds old diagnostics to new ones (decision 0320).
    #[serde(default)]
    pub reopens: bool,
    /// The command that runs requests of tsserver. If the server offers it, diagnostics are pulled with it (decision 0325).
    #[serde(default)]
    pub tsserver_command: Option<String>,
    /// What it publishes does not count: it answers requests for diagnostics, and publishes others at any later time.
    #[serde(default)]
    pub ignores_publishes: bool,
    /// A command that comes with the change of a fix and often does nothing. No command is ever run.
    #[serde(default)]
    pub idle_command: Option<IdleCommand>,
    /// Part of the log message with which the server reports that a process that it needs has exited. It would go on and answer
    /// every question with nothing, so it is ended.
    #[serde(default)]
    pub exit_message: Option<String>,
    /// A document is built again from scratch (`forceRebuild`) after a file changed on disk: the server watches no files, and a header that
    /// it did not find stays missing for it.
    #[serde(default)]
    pub rebuilds: bool,
    /// New files are opened: the server lists the project's files again some time after one was created, but an open
    /// file belongs to the project at once.
    #[serde(default)]
    pub opens_new_files: bool,
    /// Diagnostics that the server makes from the files on disk when a document is saved.
    #[serde(default)]
    pub on_save: Option<OnSave>,
    /// Requests that are never cancelled, since that breaks the server; a late answer is dropped.
    #[serde(default)]
    pub keeps: Vec<String>,
    #[serde(default)]
    pub initialization_options: Option<Value>,
    /// The tree that answers `workspace/configuration`, by dotted section, and is sent in `didChangeConfiguration`.
    #[serde(default = "empty_object")]
    pub settings: Value,
    /// It requests its settings itself; after `didChangeConfiguration` it would load its project a second time.
    #[serde(default)]
    pub asks_for_settings: bool,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub limits: ResultLimits,
    /// Characters in a path that it takes for something else, so that its answers are about another file.
    #[serde(default)]
    pub misread_characters: String,
    /// The server runs code from an opened workspace, so it never starts before the root is trusted.
    #[serde(default)]
    pub runs_workspace_code: bool,
    /// It obeys configuration of the repository that names files to write, so it starts before trust only where the kernel
    /// confines it (decision 0313).
    #[serde(default)]
    pub needs_confinement: bool,
    /// Arguments until the root is trusted. `{private}` is the server's private folder.
    #[serde(default)]
    pub untrusted_args: Vec<String>,
    /// Until the root is trusted it reads a copy of the compilation database, with harmless options only, from its private
    /// folder.
    #[serde(default)]
    pub filters_database: bool,
    /// What it may change outside the root once that is trusted: absolute, `~/…` or `$NAME/…`.
    #[serde(default)]
    pub writes: Vec<String>,
    /// Code to pin to the server's own copy until the root is trusted.
    #[serde(default)]
    pub pin: Option<Pin>,
    #[serde(default)]
    pub virtualenv: Option<VirtualenvSettings>,
    /// Project-wide requests fail until one file of the project is open.
    #[serde(default)]
    pub warm_up_opens_file: bool,
    /// It counts columns in UTF-16 units, as answers of Tenon do, although it knows UTF-8: converting them takes reading every
    /// file of an answer (decision 0364).
    #[serde(default)]
    pub utf16_columns: bool,
    /// How it decides which files it knows without opening them; without this, all below its root.
    #[serde(default)]
    pub projects: Option<ProjectKind>,
    /// Endings of files that its own files import, and whose servers do not read those: references of what they declare
    /// may be incomplete.
    #[serde(default)]
    pub imports: Vec<String>,
    /// `workspace/symbol` searches only the project of the document that the last request was about.
    #[serde(default)]
    pub symbols_per_project: bool,
    /// npm packages whose program is a script for Node, with the binary that it starts: its path in `node_modules`, with
    /// `{platform}` for `linux-x64` and the like. The binary is started directly, and a package without one is not the server.
    #[serde(default)]
    pub binaries: BTreeMap<String, String>,
    /// `compilerOptions` that it no longer accepts, with the values in lower case; no values mean all. It reports such an
    /// option and continues without it.
    #[serde(default)]
    pub removed_options: BTreeMap<String, Vec<String>>,
    /// The codes of errors that such an option may explain: the project's own compiler would not report them.
    #[serde(default)]
    pub removed_option_errors: Vec<String>,
    #[serde(default)]
    pub group: Option<String>,
    /// Which projects another server of the group serves, once the root is trusted.
    #[serde(default)]
    pub older_package: Option<OlderPackage>,
    #[serde(default)]
    pub enabled: Switch,
    /// The command comes from the user, so it is not looked up in the managed folder.
    #[serde(skip)]
    pub user_command: bool,
}

fn default_settle_ms() -> u64 {
    150
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}

impl ServerEntry {
    /// The language id for a file, if the server serves it.
    pub fn language_id(&self, file: &Utf8Path) -> Option<&str> {
        let name = file.file_name()?;
        let in_lower_case = || match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => self.matching(file, &name.to_ascii_lowercase()),
            false => None,
        };
        self.matching(file, name).or_else(in_lower_case)
    }

    fn matching(&self, file: &Utf8Path, name: &str) -> Option<&str> {
        self.extensions
            .iter()
            .filter(|(pattern, _)| matches_file(pattern, file, name))
            .max_by_key(|(pattern, _)| pattern.len())
            .map(|(_, language)| language.as_str())
    }

    /// Whether a file configures the server.
    pub fn is_configured_by(&self, file: &Utf8Path) -> bool {
        let name = file.file_name().unwrap_or_default();
        self.configuration.iter().any(|pattern| match pattern.split_once('*') {
            Some((start, end)) => {
                name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
            }
            None => name == pattern,
        })
    }

    /// Whether it is an entry of ours that was never run.
    pub fn is_unproven(&self) -> bool {
        self.proven.is_none() && !self.user_command
    }

    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    pub fn settle(&self) -> Duration {
        Duration::from_millis(self.settle_ms)
    }

    /// All ways to start the server, the preferred one first.
    pub fn launches(&self) -> impl Iterator<Item = LaunchCommand> + '_ {
        let first = LaunchCommand {
            command: self.command.clone(),
            args: self.args.clone(),
            runs_workspace_code: self.runs_workspace_code,
        };
        std::iter::once(first).chain(self.fallbacks.iter().cloned())
    }

    /// The project root for a file: the folder of the nearest root marker, else of the outermost outer marker, else the
    /// workspace root. `None` if the server needs a marker and finds none, or the file is outside the workspace.
    pub fn root_for(&self, workspace: &Utf8Path, file: &Utf8Path) -> Option<Utf8PathBuf> {
        if !file.starts_with(workspace) {
            return None;
        }
        let above = || file.ancestors().skip(1).take_while(|folder| folder.starts_with(workspace));
        let marks =
            |folder: &&Utf8Path, markers: &[String]| markers.iter().any(|one| folder.join(one).exists());
        self.root_markers
            .iter()
            .find_map(|tier| above().find(|folder| marks(folder, tier)))
            .or_else(|| above().filter(|folder| marks(folder, &self.outer_markers)).last())
            .or((!self.needs_marker).then_some(workspace))
            .map(Utf8Path::to_owned)
    }
}

/// Whether a key of [`ServerEntry::extensions`] matches a file; `name` is its file name as it is to be compared.
fn matches_file(pattern: &str, file: &Utf8Path, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        // `rush.json` is a name, which `brush.json` does not end with.
        let is_end =
            |rest: &str| rest.is_empty() || pattern.starts_with('.') || rest.ends_with(['.', '-', '_']);
        return name.strip_suffix(pattern).is_some_and(is_end);
    };
    let (folders, before) = before.rsplit_once('/').unwrap_or(("", before));
    let is_in_folder = folders.is_empty() || file.parent().is_some_and(|parent| parent.ends_with(folders));
    is_in_folder && name.strip_prefix(before).is_some_and(|rest| rest.ends_with(after))
}

/// The part of a server's settings that `workspace/configuration` requests by a dotted section; else `Null`.
pub fn section<'s>(settings: &'s Value, section: Option<&str>) -> &'s Value {
    section
        .unwrap_or_default()
        .split('.')
        .filter(|key| !key.is_empty())
        .try_fold(settings, |value, key| value.get(key))
        .unwrap_or(&Value::Null)
}

/// The effective entries: the built-in ones with the user's overrides applied, in registry order.
#[derive(Debug, Clone, PartialEq)]
pub struct Registry {
    entries: Vec<ServerEntry>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::built_in()
    }
}

impl Registry {
    pub fn built_in() -> Self {
        Self { entries: PARSED.clone() }
    }

    /// Exactly these entries.
    pub fn of(entries: Vec<ServerEntry>) -> Self {
        Self { entries }
    }

    /// The built-in entries with overrides; servers that the user adds come last, in the order of their ids.
    pub fn with_overrides(overrides: &BTreeMap<ServerId, Override>) -> Result<Self, OverrideError> {
        let mut registry = Self::built_in();
        for (id, given) in overrides {
            registry.apply(id, given)?;
        }
        Ok(registry)
    }

    pub fn entries(&self) -> &[ServerEntry] {
        &self.entries
    }

    pub fn get(&self, id: &str) -> Option<&ServerEntry> {
        self.entries.iter().find(|entry| entry.id.as_str() == id)
    }

    /// The servers for a file, in registry order, without disabled ones.
    pub fn for_file<'a>(&'a self, file: &'a Utf8Path) -> impl Iterator<Item = &'a ServerEntry> {
        self.entries
            .iter()
            .filter(move |entry| entry.enabled != Switch::Off && entry.language_id(file).is_some())
    }

    /// The known id that a mistyped one most likely meant.
    pub fn nearest_id(&self, id: &str) -> Option<&ServerId> {
        self.entries
            .iter()
            .map(|entry| (strsim::damerau_levenshtein(id, entry.id.as_str()), &entry.id))
            .filter(|(distance, known)| *distance <= known.as_str().len().max(3) / 3 + 1)
            .min()
            .map(|(_, known)| known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_entry_parses_with_its_id() {
        for (id, text) in BUILT_IN {
            let entry: ServerEntry =
                toml::from_str(text).unwrap_or_else(|error| panic!("{id}.toml: {error}"));
            assert_eq!(entry.id.as_str(), *id);
            assert!(!entry.extensions.is_empty(), "{id} has no extensions");
            assert!(!entry.capabilities.is_empty(), "{id} has no capabilities");
            assert!(
                entry.extensions.keys().all(|ending| ending.contains('.')),
                "{id} has an extension without a dot"
            );
        }
    }
}
