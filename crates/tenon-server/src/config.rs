//! Configuration: merges four sources into one typed value; each setting keeps its origin.
//!
//! Precedence, lowest first: built-in defaults, the user's `config.toml`, the workspace's `tenon.toml`, the environment,
//! flags. A later source replaces an earlier one, except that lists of ignored files grow and that a repository can only
//! lower a limit. Settings that a repository may not make (see [`key::SettingScope`]) are listed as ignored.
//!
//! Invariant: an unknown key or an invalid value is an error in every source, an untrusted repository included; nothing is
//! skipped silently.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use serde_json::{Map, Value};
use tenon_contract::regular_file;

pub(crate) mod env;
mod file;
pub(crate) mod key;
mod problem;
#[cfg(test)]
mod reference;
pub mod schema;
mod sections;
mod value;

pub use env::Environment;
pub use file::FileKind;
pub use problem::{ConfigError, ConfigLocation, ConfigProblem, SourceText};
pub use sections::*;

use key::{DefaultValue, KEYS, Key, MergeRule, SettingScope};
use value::Anchors;

/// The name of the workspace's configuration file, in its root.
pub const FILE_NAME: &str = "tenon.toml";

/// The largest configuration file.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// Where a setting was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOrigin {
    Default,
    File { kind: FileKind, path: Utf8PathBuf, line: usize },
    Variable(&'static str),
    Flag(&'static str),
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, .. } => write!(f, "{path}:{line}"),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One setting from one source.
#[derive(Debug)]
struct Entry {
    key: &'static Key,
    path: String,
    value: Value,
    note: Option<String>,
    origin: SettingOrigin,
}

/// A setting in effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    pub value: Value,
    /// One, or several for a list that several sources added to.
    pub origins: Vec<SettingOrigin>,
    /// A note for the user if the value was adjusted.
    pub note: Option<String>,
}

/// A setting that has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredSetting {
    pub path: String,
    pub origin: SettingOrigin,
    pub reason: IgnoredReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IgnoredReason {
    /// The repository is not trusted.
    Untrusted,
    /// Only the user's own configuration may set it.
    UserOnly,
    /// A repository can lower a limit, not raise it.
    NotStricter,
}

impl fmt::Display for IgnoredReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Untrusted => "the workspace is not trusted",
            Self::UserOnly => "only your own configuration may set it",
            Self::NotStricter => "a workspace can only lower a limit",
        })
    }
}

/// A setting made by a command-line flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagSetting {
    /// As it is written: `--port`.
    pub name: &'static str,
    pub key: &'static str,
    pub value: String,
}

/// The sources of settings.
#[derive(Debug)]
pub struct ConfigSources<'a> {
    pub root: &'a Utf8Path,
    pub home: Option<&'a Utf8Path>,
    pub user: Option<&'a SourceText>,
    pub workspace: Option<&'a SourceText>,
    pub environment: &'a Environment,
    pub flags: &'a [FlagSetting],
    /// Whether the workspace is trusted.
    pub trusted: bool,
}

/// All settings in effect, by path, with their origins.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    in_force: BTreeMap<String, Setting>,
    ignored: Vec<IgnoredSetting>,
}

impl Settings {
    /// Reads and merges all sources.
    pub fn resolve(sources: &ConfigSources<'_>) -> Result<Self, ConfigError> {
        let mut problems = Vec::new();
        let mut layers = vec![defaults()];
        let anchors = Anchors { base: None, home: sources.home };
        for (text, kind) in [(sources.user, FileKind::User), (sources.workspace, FileKind::Workspace)] {
            let Some(text) = text else { continue };
            file::read(text, kind, sources.root, sources.home)
                .map_or_else(|more| problems.extend(more), |layer| layers.push(layer));
        }
        env::read(sources.environment, anchors)
            .map_or_else(|more| problems.extend(more), |layer| layers.push(layer));
        from_flags(sources.flags, anchors)
            .map_or_else(|more| problems.extend(more), |layer| layers.push(layer));
        if !problems.is_empty() {
            return Err(ConfigError::Invalid(problems));
        }
        let mut settings = Self { in_force: BTreeMap::new(), ignored: Vec::new() };
        for entry in layers.into_iter().flatten() {
            settings.lay(entry, sources.trusted);
        }
        Ok(settings)
    }

    /// Every setting in effect, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.in_force.iter().map(|(path, setting)| (path.as_str(), setting))
    }

    pub fn get(&self, path: &str) -> Option<&Setting> {
        self.in_force.get(path)
    }

    /// The settings without effect, in the order of the files.
    pub fn ignored(&self) -> &[IgnoredSetting] {
        &self.ignored
    }

    fn lay(&mut self, entry: Entry, trusted: bool) {
        let Entry { key, path, value, note, origin } = entry;
        let from_repository = matches!(origin, SettingOrigin::File { kind: FileKind::Workspace, .. });
        let below = self.in_force.get_mut(&path);
        let refusal = match key.scope {
            _ if !from_repository => None,
            SettingScope::User => Some(IgnoredReason::UserOnly),
            SettingScope::Trusted if !trusted => Some(IgnoredReason::Untrusted),
            _ => {
                let weaker = key.merge == MergeRule::Strictest
                    && below.as_ref().is_some_and(|below| below.value.as_u64() < value.as_u64());
                weaker.then_some(IgnoredReason::NotStricter)
            }
        };
        if let Some(reason) = refusal {
            self.ignored.push(IgnoredSetting { path, origin, reason });
            return;
        }
        match (key.merge, below, value) {
            (
                MergeRule::Append,
                Some(Setting { value: Value::Array(items), origins, .. }),
                Value::Array(more),
            ) => {
                origins.retain(|origin| *origin != SettingOrigin::Default);
                origins.push(origin);
                items.extend(more);
            }
            (_, _, value) => {
                self.in_force.insert(path, Setting { value, origins: vec![origin], note });
            }
        }
    }

    /// The settings as the typed [`Config`].
    pub fn typed(&self) -> Config {
        let mut tree = Map::new();
        for (path, setting) in &self.in_force {
            let mut segments: Vec<&str> = path.split('.').collect();
            let name = segments.pop().expect("a path has at least one segment");
            let table = segments.into_iter().fold(&mut tree, |table, segment| {
                let below = table.entry(segment).or_insert_with(|| Value::Object(Map::new()));
                below.as_object_mut().expect("no key is also a table (keys test)")
            });
            table.insert(name.to_owned(), setting.value.clone());
        }
        serde_json::from_value(Value::Object(tree))
            .expect("the list of keys and `Config` agree (config test)")
    }
}

/// The language servers that a repository's file and the user's configure, once the repository is trusted.
pub(crate) fn trusted_servers(
    root: &Utf8Path,
    workspace: Option<&SourceText>,
    user: Option<&SourceText>,
) -> Result<BTreeMap<String, Value>, ConfigError> {
    let environment = Environment::default();
    let sources = ConfigSources {
        root,
        home: None,
        user,
        workspace,
        environment: &environment,
        flags: &[],
        trusted: true,
    };
    Ok(Settings::resolve(&sources)?.typed().servers)
}

/// Reads the user's configuration file, which may be a link; `None` if it does not exist.
pub fn read_user_file(path: &Utf8Path) -> Result<Option<SourceText>, ConfigError> {
    match path.canonicalize_utf8() {
        Ok(real) => read_real(path, &real),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConfigError::Unreadable { path: path.to_owned(), source }),
    }
}

/// Reads `tenon.toml` of a workspace; `None` if it does not exist. A repository must not have other files of the user read and
/// shown, so a link has to stay inside the root.
pub fn read_workspace_file(root: &Utf8Path) -> Result<Option<SourceText>, ConfigError> {
    let path = root.join(FILE_NAME);
    match path.canonicalize_utf8() {
        Ok(real) if real.starts_with(root) => read_real(&path, &real),
        Ok(_) => Err(ConfigError::Outside { path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConfigError::Unreadable { path, source }),
    }
}

fn read_real(path: &Utf8Path, real: &Utf8Path) -> Result<Option<SourceText>, ConfigError> {
    let bytes = match regular_file::read(real, MAX_FILE_BYTES as u64) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return Err(ConfigError::TooLarge { path: path.to_owned(), limit: MAX_FILE_BYTES });
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            return Err(ConfigError::NotAFile { path: path.to_owned() });
        }
        Err(source) => return Err(ConfigError::Unreadable { path: path.to_owned(), source }),
    };
    let text = String::from_utf8(bytes).map_err(|_| ConfigError::NotText { path: path.to_owned() })?;
    Ok(Some(SourceText::new(path, text)))
}

/// The settings that an environment and flags make, without files and defaults: path, value and origin.
pub(crate) fn made_by(
    environment: &Environment,
    home: Option<&Utf8Path>,
    flags: &[FlagSetting],
) -> Result<Vec<(String, Value, SettingOrigin)>, ConfigError> {
    let anchors = Anchors { base: None, home };
    let mut entries = env::read(environment, anchors).map_err(ConfigError::Invalid)?;
    entries.extend(from_flags(flags, anchors).map_err(ConfigError::Invalid)?);
    Ok(entries.into_iter().map(|entry| (entry.path, entry.value, entry.origin)).collect())
}

fn defaults() -> Vec<Entry> {
    let value = |default| match default {
        DefaultValue::Absent => None,
        DefaultValue::Flag(flag) => Some(Value::from(flag)),
        DefaultValue::Number(number) => Some(Value::from(number)),
        DefaultValue::Text(text) => Some(Value::from(text)),
        DefaultValue::Texts(texts) => Some(Value::from(texts)),
    };
    let entry = |key: &'static Key| {
        let value = value(key.default)?;
        Some(Entry { key, path: key.path.to_owned(), value, note: None, origin: SettingOrigin::Default })
    };
    KEYS.iter().filter_map(entry).collect()
}

fn from_flags(flags: &[FlagSetting], anchors: Anchors<'_>) -> Result<Vec<Entry>, Vec<ConfigProblem>> {
    let mut entries = Vec::new();
    let mut problems = Vec::new();
    for flag in flags {
        let key = key::find(flag.key).expect("flags are declared with keys that exist");
        match value::from_text(key.kind, &flag.value, anchors) {
            Ok(reading) => entries.push(Entry {
                key,
                path: flag.key.to_owned(),
                value: reading.value,
                note: reading.note,
                origin: SettingOrigin::Flag(flag.name),
            }),
            Err(misfit) => problems.push(ConfigProblem {
                message: format!("`{}` {misfit}", flag.key),
                hint: None,
                location: ConfigLocation::Flag(flag.name),
            }),
        }
    }
    if problems.is_empty() { Ok(entries) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::surface::ToolNames;

    fn resolve(
        user: &str,
        workspace: &str,
        variables: Environment,
        flags: &[FlagSetting],
        trusted: bool,
    ) -> Settings {
        let user = SourceText::new("/home/ada/config.toml", user);
        let workspace = SourceText::new("/w/tenon.toml", workspace);
        Settings::resolve(&ConfigSources {
            root: Utf8Path::new("/w"),
            home: Some(Utf8Path::new("/home/ada")),
            user: Some(&user),
            workspace: Some(&workspace),
            environment: &variables,
            flags,
            trusted,
        })
        .unwrap()
    }

    fn shown(settings: &Settings, path: &str) -> String {
        let setting = settings.get(path).unwrap();
        let origins: Vec<String> = setting.origins.iter().map(SettingOrigin::to_string).collect();
        format!("{} from {}", setting.value, origins.join(" and "))
    }

    #[test]
    fn defaults_are_a_complete_configuration() {
        let config = resolve("", "", Environment::default(), &[], false).typed();
        assert_eq!(config.limits.max_page_size, 200);
        assert_eq!(config.daemon.idle, Duration::from_secs(900));
        assert_eq!(config.mcp.tool_names, ToolNames::Dotted);
    }

    #[test]
    fn every_key_has_a_field_in_the_typed_configuration() {
        let text: String = KEYS
            .iter()
            .map(|key| {
                let value = match key.kind {
                    key::ValueKind::Flag => "true".to_owned(),
                    key::ValueKind::Number { max, .. } | key::ValueKind::Limit { max, .. } => max.to_string(),
                    key::ValueKind::Duration { .. } => "\"1m\"".to_owned(),
                    key::ValueKind::Workspace => "\"x\"".to_owned(),
                    key::ValueKind::Text | key::ValueKind::Path | key::ValueKind::Store => {
                        "\"/x\"".to_owned()
                    }
                    key::ValueKind::Choice(choices) => format!("{:?}", choices[0]),
                    key::ValueKind::Texts | key::ValueKind::Globs | key::ValueKind::Paths => {
                        "[\"/x\"]".to_owned()
                    }
                    key::ValueKind::Choices(choices) => format!("{choices:?}"),
                    key::ValueKind::TextMap => "{a = \"b\"}".to_owned(),
                    key::ValueKind::Object => "{a = {b = [1.5, 2]}}".to_owned(),
                };
                format!("{} = {value}\n", key.path.replace('*', "x"))
            })
            .collect();
        let settings = resolve(&text, "", Environment::default(), &[], false);
        assert_eq!(settings.iter().count(), KEYS.len());
        assert_eq!(settings.typed().servers.len(), 1);
    }

    #[test]
    fn later_sources_win_and_origins_are_kept() {
        let variables = Environment::from([("TENON_MCP_CONTENT", "text")]);
        let flags = [FlagSetting { name: "--port", key: "http.port", value: "7".to_owned() }];
        let user = "[http]\nport = 1\n[daemon]\nidle = \"1m\"\n[mcp]\ncontent = \"structured\"\n[work]\nstrict = true\n";
        let workspace = "[http]\nport = 2\n[daemon]\nidle = \"2m\"\n";
        let settings = resolve(user, workspace, variables, &flags, true);
        let lines: Vec<String> = ["http.port", "daemon.idle", "mcp.content", "work.strict", "log.keep"]
            .iter()
            .map(|path| format!("{path} = {}", shown(&settings, path)))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        http.port = 7 from --port
        daemon.idle = "2m" from /w/tenon.toml:4
        mcp.content = "text" from $TENON_MCP_CONTENT
        work.strict = true from /home/ada/config.toml:8
        log.keep = 3 from default
        "#);
    }

    #[test]
    fn repository_can_add_ignored_files_and_lower_limits() {
        let user = "[limits]\nmax_page_size = 50\n[workspace]\nignore = [\"*.log\"]\n";
        let workspace =
            "[limits]\nmax_page_size = 60\nmax_items_nonpaged = 10\n[workspace]\nignore = [\"gen/\"]\n";
        for trusted in [false, true] {
            let settings = resolve(user, workspace, Environment::default(), &[], trusted);
            assert_eq!(shown(&settings, "limits.max_page_size"), "50 from /home/ada/config.toml:2");
            assert_eq!(shown(&settings, "limits.max_items_nonpaged"), "10 from /w/tenon.toml:3");
            let both = "[\"*.log\",\"gen/\"] from /home/ada/config.toml:4 and /w/tenon.toml:5";
            assert_eq!(shown(&settings, "workspace.ignore"), both);
            assert_eq!(settings.ignored().len(), 1);
            assert_eq!(settings.ignored()[0].reason, IgnoredReason::NotStricter);
        }
    }

    #[test]
    fn untrusted_repository_sets_nothing_else() {
        let hostile = "[servers.pyright]\ncommand = \"./evil\"\nenv = {LD_PRELOAD = \"./evil.so\"}\n\
                       [workspace]\nroots = [\"/\"]\nid = \"someone-else\"\n[mcp]\nsurfaces = [\"edit\"]\n\
                       [http]\nport = 80\n[log]\nfolder = \"/tmp\"\n[edit]\nallow = [\"/\"]\n[work]\nstore = \"/tmp/x\"\n";
        let settings = resolve("", hostile, Environment::default(), &[], false);
        assert_eq!(settings.typed(), resolve("", "", Environment::default(), &[], false).typed());
        assert_eq!(settings.ignored().len(), 9);

        let trusted = resolve("", hostile, Environment::default(), &[], true);
        let config = trusted.typed();
        assert_eq!(config.servers.len(), 1);
        assert!(config.edit.allow.is_empty(), "even a trusted repository cannot allow edits");
        assert_eq!(config.log.folder, None);
    }

    #[test]
    fn edits_are_allowed_below_configured_folders_only() {
        let edit = EditSection { allow: vec!["/nowhere/a".into()], severities: Vec::new(), wait_ms: 0 };
        assert!(edit.allows(Utf8Path::new("/nowhere/a")));
        assert!(edit.allows(Utf8Path::new("/nowhere/a/b")));
        assert!(!edit.allows(Utf8Path::new("/nowhere/ab")));
        assert!(!edit.allows(Utf8Path::new("/nowhere")));
    }
}
