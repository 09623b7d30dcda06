//! The settings that a client makes with its environment and flags, and which of them a running daemon lacks.
//!
//! A daemon reads its settings once, when it starts, and serves clients with other environments. A setting of a client is
//! honoured or the client is rejected; it is never ignored. How answers look is a matter of each connection
//! ([`SessionSettings`]); everything else belongs to the daemon. A setting that changes no answer, such as the level of the
//! log, does not reject the client, which is told when it takes effect. Settings that the daemon has and the client does not make do
//! not matter: the daemon may have been started with flags.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::protocol::ConnectionKind;
use crate::config::{ConfigError, Environment, FlagSetting, env, made_by};
use crate::dirs::Dirs;
use crate::surface::{ContentMode, ToolNames};
use crate::workspace::Workspace;

/// The settings that each connection may choose.
const OF_SESSION: &[&str] = &["mcp.surfaces", "mcp.content", "mcp.tool_names"];

/// The settings that change how the daemon runs, but no answer.
const WITHOUT_EFFECT_ON_ANSWERS: &[&str] =
    &["daemon.idle", "log.folder", "log.keep", "log.level", "log.max_bytes"];

/// One setting of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ClientSetting {
    /// The name of the setting, or of a variable that is not a setting.
    key: String,
    value: Value,
    /// The variable or flag that makes it.
    origin: String,
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientSettings(Vec<ClientSetting>);

impl ClientSettings {
    /// The settings that `environment` and `flags` make. Fails if one is invalid.
    pub fn of(environment: &Environment, dirs: &Dirs, flags: &[FlagSetting]) -> Result<Self, ConfigError> {
        let folders =
            [(env::CONFIG, &dirs.config_file), (env::STATE_DIR, &dirs.state), (env::DATA_DIR, &dirs.data)];
        let folders = folders.into_iter().filter(|(name, _)| environment.get(name).is_some());
        let folders = folders.map(|(name, path)| ClientSetting {
            key: name.to_owned(),
            value: path.as_str().into(),
            origin: format!("${name}"),
        });
        let made = made_by(environment, Some(&dirs.home), flags)?;
        let made = made.into_iter().map(|(key, value, origin)| ClientSetting {
            key,
            value,
            origin: origin.to_string(),
        });
        Ok(Self(folders.chain(made).collect()))
    }

    /// The settings that `workspace` does not have, for a message: names only, because a value may be a secret.
    pub(crate) fn missing_in(&self, workspace: &Workspace, want: &ConnectionKind) -> MissingSettings {
        // The port matters to the client that asks for HTTP.
        let is_deferred = |key: &str| {
            WITHOUT_EFFECT_ON_ANSWERS.contains(&key)
                || (key == "http.port" && !matches!(want, ConnectionKind::Http { .. }))
        };
        let mut missing = MissingSettings::default();
        for setting in self.0.iter().filter(|setting| !has(workspace, setting)) {
            let names = if is_deferred(&setting.key) { &mut missing.deferred } else { &mut missing.decisive };
            names.push(format!("`{}` ({})", setting.key, setting.origin));
        }
        missing
    }

    /// The settings for this connection. `None` if a value is not known here.
    pub(crate) fn for_session(&self) -> Option<SessionSettings> {
        let mut session = SessionSettings::default();
        for setting in &self.0 {
            let value = || setting.value.clone();
            match setting.key.as_str() {
                "mcp.surfaces" => session.surfaces = Some(serde_json::from_value(value()).ok()?),
                "mcp.content" => session.content = Some(serde_json::from_value(value()).ok()?),
                "mcp.tool_names" => session.tool_names = Some(serde_json::from_value(value()).ok()?),
                _ => {}
            }
        }
        Some(session)
    }
}

/// The names of the settings that a client makes and the daemon lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MissingSettings {
    /// Those that may change an answer: a daemon with other clients rejects this one.
    pub(crate) decisive: Vec<String>,
    /// The others: they take effect when the daemon starts again.
    pub(crate) deferred: Vec<String>,
}

impl MissingSettings {
    pub(crate) fn is_empty(&self) -> bool {
        self.decisive.is_empty() && self.deferred.is_empty()
    }
}

/// The settings of one connection, where they differ from the daemon's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionSettings {
    pub(crate) surfaces: Option<Vec<String>>,
    pub(crate) content: Option<ContentMode>,
    pub(crate) tool_names: Option<ToolNames>,
}

fn has(workspace: &Workspace, setting: &ClientSetting) -> bool {
    let dirs = workspace.dirs();
    let same_path = |path: &camino::Utf8Path| setting.value == path.as_str();
    match setting.key.as_str() {
        env::CONFIG => same_path(&dirs.config_file),
        env::STATE_DIR => same_path(&dirs.state),
        env::DATA_DIR => same_path(&dirs.data),
        key if OF_SESSION.contains(&key) => true,
        // Other folders do not matter here.
        "edit.allow" => {
            let mut asked = workspace.config().edit.clone();
            asked.allow = serde_json::from_value(setting.value.clone()).unwrap_or_default();
            asked.allows(workspace.root()) == workspace.config().edit.allows(workspace.root())
        }
        key => workspace.settings().get(key).is_some_and(|own| own.value == setting.value),
    }
}

#[cfg(test)]
mod tests {
    use tenon_contract::clock::Clock;

    use super::*;
    use crate::workspace::WorkspaceOptions;

    #[test]
    fn settings_that_the_daemon_lacks_are_named_without_their_values() {
        let folder = tempfile::tempdir().unwrap();
        let root = camino::Utf8Path::from_path(folder.path()).unwrap().canonicalize_utf8().unwrap();
        let workspace = |pairs: Environment| {
            let options = WorkspaceOptions {
                dirs: Dirs::below(&root),
                environment: pairs,
                flags: vec![],
                clock: Clock::system(),
            };
            Workspace::open(&root, options).unwrap()
        };
        let store = ("TENON_WORK_STORE", "postgres://ada:hunter2@localhost/db");
        let client = Environment::from([
            store,
            ("TENON_MCP_CONTENT", "text"),
            ("TENON_EDIT_ALLOW", root.as_str()),
            ("TENON_LOG_LEVEL", "debug"),
            ("TENON_DAEMON_IDLE", "15m"),
            ("TENON_HTTP_PORT", "7001"),
            ("TENON_DATA_DIR", "/elsewhere"),
        ]);
        let mut dirs = Dirs::below(&root);
        dirs.data = "/elsewhere".into();
        let settings = ClientSettings::of(&client, &dirs, &[]).unwrap();
        let mcp = ConnectionKind::Mcp { surfaces: None };
        let missing = settings.missing_in(&workspace(Environment::default()), &mcp);
        let expected = [
            "`TENON_DATA_DIR` ($TENON_DATA_DIR)",
            "`work.store` ($TENON_WORK_STORE)",
            "`edit.allow` ($TENON_EDIT_ALLOW)",
        ];
        assert_eq!(missing.decisive, expected);
        let deferred = ["`http.port` ($TENON_HTTP_PORT)", "`log.level` ($TENON_LOG_LEVEL)"];
        assert_eq!(missing.deferred, deferred);
        assert_eq!(settings.for_session().unwrap().content, Some(ContentMode::Text));
        let above = root.parent().unwrap().as_str();
        let same = workspace(Environment::from([store, ("TENON_EDIT_ALLOW", above)]));
        let http = settings.missing_in(&same, &ConnectionKind::Http { port: None });
        assert_eq!(http.decisive, ["`TENON_DATA_DIR` ($TENON_DATA_DIR)", "`http.port` ($TENON_HTTP_PORT)"]);
        assert!(ClientSettings::of(&Environment::from([("TENON_HTTP_PORT", "x")]), &dirs, &[]).is_err());
    }
}
