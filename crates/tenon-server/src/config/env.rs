//! The environment: a copy, and the variables that are not settings.
//!
//! Settings have their own variables (see the list of keys). The environment is read once, when the process starts, so that
//! later changes have no effect.

use std::collections::BTreeMap;

use super::key::KEYS;
use super::problem::{ConfigLocation, ConfigProblem};
use super::value::{self, Anchors};
use super::{Entry, SettingOrigin};

/// The user's configuration file, instead of `config.toml` in the user's configuration folder.
pub(crate) const CONFIG: &str = "TENON_CONFIG";
/// The workspace root, instead of the nearest one above the current folder.
pub(crate) const ROOT: &str = "TENON_ROOT";
/// The folder for logs, trust decisions and tokens, instead of the user's state folder.
pub(crate) const STATE_DIR: &str = "TENON_STATE_DIR";
/// The folder for plans and memory and installed language servers, instead of the user's data folder.
pub(crate) const DATA_DIR: &str = "TENON_DATA_DIR";
/// The folder for sockets and locks, instead of `$XDG_RUNTIME_DIR/tenon` or `$TMPDIR/tenon-$UID`.
pub(crate) const RUNTIME_DIR: &str = "TENON_RUNTIME_DIR";

/// The token that agents send to `tenon serve --http`. Tenon itself does not read it.
pub(crate) const TOKEN: &str = "TENON_TOKEN";

/// The variables that are not settings, with their descriptions.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    (CONFIG, "The user's configuration file, instead of `config.toml` in the user's configuration folder."),
    (ROOT, "The workspace root, instead of the nearest one above the current folder."),
    (STATE_DIR, "The folder for logs, trust decisions and tokens, instead of the user's state folder."),
    (
        DATA_DIR,
        "The folder for plans, memory and installed language servers, instead of the user's data folder.",
    ),
    (
        RUNTIME_DIR,
        "The folder for sockets and locks, instead of `$XDG_RUNTIME_DIR/tenon` or `$TMPDIR/tenon-$UID`.",
    ),
    (
        TOKEN,
        "The token that agents send to `tenon serve --http`, see `tenon connect --http`. Tenon itself does not read it.",
    ),
];

/// A copy of the environment. Variables that are not UTF-8 are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    pub fn capture() -> Self {
        let pairs = std::env::vars_os();
        Self(
            pairs
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        )
    }

    /// The value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Unknown variables that begin with `TENON_`, each with the closest known one.
    pub fn unknown(&self) -> Vec<(String, Option<&'static str>)> {
        let known = || {
            VARIABLES.iter().map(|(name, _)| *name).chain(KEYS.iter().flat_map(|key| key.variables).copied())
        };
        let ours = self.0.keys().filter(|name| name.starts_with("TENON_"));
        ours.filter(|name| known().all(|known| known != name.as_str()))
            .map(|name| {
                let nearest = known()
                    .map(|known| (strsim::damerau_levenshtein(name, known), known))
                    .filter(|(distance, known)| *distance <= known.len() / 5)
                    .min();
                (name.clone(), nearest.map(|(_, known)| known))
            })
            .collect()
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

/// The settings made by environment variables.
pub(super) fn read(
    environment: &Environment,
    anchors: Anchors<'_>,
) -> Result<Vec<Entry>, Vec<ConfigProblem>> {
    let mut entries = Vec::new();
    let mut problems = Vec::new();
    for key in KEYS {
        let set = key.variables.iter().find_map(|name| Some((*name, environment.get(name)?)));
        let Some((name, text)) = set else { continue };
        match value::from_text(key.kind, text, anchors) {
            Ok(reading) => entries.push(Entry {
                key,
                path: key.path.to_owned(),
                value: reading.value,
                note: reading.note,
                origin: SettingOrigin::Variable(name),
            }),
            Err(misfit) => problems.push(ConfigProblem {
                message: format!("`{}` {misfit}", key.path),
                hint: None,
                location: ConfigLocation::Variable(name),
            }),
        }
    }
    if problems.is_empty() { Ok(entries) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_tenon_variable_is_reported() {
        let environment =
            Environment::from([("TENON_MCP_SURFACE", "code"), ("TENON_ROOT", "/w"), ("PATH", "/bin")]);
        assert_eq!(environment.unknown(), [("TENON_MCP_SURFACE".to_owned(), Some("TENON_MCP_SURFACES"))]);
    }

    #[test]
    fn first_of_two_variables_wins() {
        let environment =
            Environment::from([("CONTEXT_CACHE_ROOT", "/old"), ("TENON_CONTEXT_CACHE_ROOT", "/new")]);
        let entries = read(&environment, Anchors::default()).unwrap();
        assert_eq!(entries[0].value, serde_json::json!("/new"));
        assert_eq!(entries[0].origin, SettingOrigin::Variable("TENON_CONTEXT_CACHE_ROOT"));
    }

    #[test]
    fn invalid_value_names_its_variable() {
        let problems =
            read(&Environment::from([("TENON_HTTP_PORT", "http")]), Anchors::default()).unwrap_err();
        insta::assert_snapshot!(problems[0], @"`http.port` must be a whole number from 0 to 65535 (the environment variable `TENON_HTTP_PORT`)");
    }
}
