//! The user's folders and the files in them.
//!
//! Nothing is created here; the first writer creates its folder. The folder for sockets and locks must be checked before
//! use and belongs to the daemon (`daemon::daemon_paths`).

use camino::Utf8PathBuf;
use etcetera::BaseStrategy;

use crate::config::{Environment, env};

/// Why the user's folders cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum DirsError {
    #[error("there is no home folder")]
    NoHome,
    #[error("the path `{0}` is not UTF-8")]
    NotUtf8(String),
    #[error("`{variable}` must be an absolute path, not `{value}`")]
    Relative { variable: &'static str, value: String },
}

/// The user's folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    pub home: Utf8PathBuf,
    /// The user's configuration file.
    pub config_file: Utf8PathBuf,
    /// Persistent, but replaceable: logs, trust decisions, tokens.
    pub state: Utf8PathBuf,
    /// Worth a backup: plans, memory, installed language servers.
    pub data: Utf8PathBuf,
}

impl Dirs {
    pub fn of(environment: &Environment) -> Result<Self, DirsError> {
        let base = etcetera::choose_base_strategy().map_err(|_| DirsError::NoHome)?;
        let utf8 = |path: std::path::PathBuf| {
            Utf8PathBuf::from_path_buf(path).map_err(|path| DirsError::NotUtf8(path.display().to_string()))
        };
        let or = |variable: &'static str, standard: Utf8PathBuf| match environment.get(variable) {
            None => Ok(standard),
            Some(given) => {
                let path = Utf8PathBuf::from(given);
                match path.is_absolute() {
                    true => Ok(path),
                    false => Err(DirsError::Relative { variable, value: given.to_owned() }),
                }
            }
        };
        let data = utf8(base.data_dir())?.join("tenon");
        // Systems without a state folder keep state with the data.
        let state = base
            .state_dir()
            .map_or_else(|| Ok(data.join("state")), |state| Ok(utf8(state)?.join("tenon")))?;
        Ok(Self {
            home: utf8(base.home_dir().to_owned())?,
            config_file: or(env::CONFIG, utf8(base.config_dir())?.join("tenon").join("config.toml"))?,
            state: or(env::STATE_DIR, state)?,
            data: or(env::DATA_DIR, data)?,
        })
    }

    /// All folders below one.
    #[cfg(test)]
    pub(crate) fn below(folder: &camino::Utf8Path) -> Self {
        Self {
            home: folder.to_owned(),
            config_file: folder.join("config").join("config.toml"),
            state: folder.join("state"),
            data: folder.join("data"),
        }
    }

    pub(crate) fn logs(&self) -> Utf8PathBuf {
        self.state.join("logs")
    }

    /// The locks of running daemons.
    pub(crate) fn daemons(&self) -> Utf8PathBuf {
        self.state.join("daemons")
    }

    /// The HTTP port of each workspace that serves HTTP.
    pub(crate) fn ports(&self) -> Utf8PathBuf {
        self.state.join("ports")
    }

    /// Which folders use which workspaces of the store.
    pub(crate) fn workspaces(&self) -> Utf8PathBuf {
        self.state.join("workspaces")
    }

    pub fn trust(&self) -> Utf8PathBuf {
        self.state.join("trust")
    }

    pub fn tokens(&self) -> Utf8PathBuf {
        self.state.join("tokens.json")
    }

    /// The SQLite file for plans and memory, unless the configuration names another store.
    pub(crate) fn store(&self) -> Utf8PathBuf {
        self.data.join("work.sqlite3")
    }

    /// Language servers that Tenon installed.
    pub fn servers(&self) -> Utf8PathBuf {
        self.data.join("servers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_move_the_folders_and_must_be_absolute() {
        let environment = Environment::from([("TENON_STATE_DIR", "/s"), ("TENON_CONFIG", "/c/my.toml")]);
        let dirs = Dirs::of(&environment).unwrap();
        assert_eq!(dirs.trust(), "/s/trust");
        assert_eq!(dirs.config_file, "/c/my.toml");
        let error = Dirs::of(&Environment::from([("TENON_DATA_DIR", "data")])).unwrap_err();
        insta::assert_snapshot!(error, @"`TENON_DATA_DIR` must be an absolute path, not `data`");
    }
}
