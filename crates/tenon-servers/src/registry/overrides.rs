//! The user's overrides: add, change or disable an entry by its id.
//!
//! An override inherits what it does not set. Objects (`initializationOptions`, `settings`, `env`) merge key by key; other
//! values are replaced. An unknown id needs a command and extensions; without them it counts as a typo.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Capability, Install, InvalidServerId, Registry, ResultLimits, ServerEntry, ServerId, Switch};

/// An entry as users write it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Override {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// With the dot: `.py`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_markers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization_options: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// Why an override cannot take effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    #[error(transparent)]
    InvalidId(#[from] InvalidServerId),
    #[error("invalid settings for the language server `{id}`: {why}")]
    Malformed { id: ServerId, why: String },
    #[error("no language server is called `{id}`{}", did_you_mean(.nearest.as_ref()))]
    UnknownId { id: ServerId, nearest: Option<ServerId> },
    #[error("the new language server `{id}` is missing `extensions`")]
    NoExtensions { id: ServerId },
    #[error(
        "invalid extension `{extension}` for the language server `{id}`: write it with its dot, like `.py`"
    )]
    BadExtension { id: ServerId, extension: String },
    #[error("the language server `{id}` has an empty `{field}`")]
    Empty { id: ServerId, field: &'static str },
    #[error(
        "invalid root marker `{marker}` for the language server `{id}`: a marker is a file name without a path"
    )]
    BadMarker { id: ServerId, marker: String },
}

fn did_you_mean(nearest: Option<&ServerId>) -> String {
    nearest
        .map(|id| format!("; did you mean `{id}`? A new server needs `command` and `extensions`"))
        .unwrap_or_else(|| "; a new server needs `command` and `extensions`".to_owned())
}

impl Override {
    fn check(&self, id: &ServerId) -> Result<(), OverrideError> {
        for (field, value) in [("command", &self.command), ("languageId", &self.language_id)] {
            if value.as_deref().is_some_and(str::is_empty) {
                return Err(OverrideError::Empty { id: id.clone(), field });
            }
        }
        for extension in self.extensions.iter().flatten() {
            let bare = extension.strip_prefix('.').unwrap_or_default();
            if bare.is_empty() || bare.contains(['/', '\\', '*']) {
                return Err(OverrideError::BadExtension { id: id.clone(), extension: extension.clone() });
            }
        }
        for marker in self.root_markers.iter().flatten() {
            if marker.is_empty() || marker == "." || marker == ".." || marker.contains(['/', '\\', '*']) {
                return Err(OverrideError::BadMarker { id: id.clone(), marker: marker.clone() });
            }
        }
        Ok(())
    }

    fn change(&self, entry: &mut ServerEntry, known: &BTreeMap<String, String>) {
        if let Some(command) = &self.command {
            entry.command.clone_from(command);
            entry.user_command = true;
            // The built-in arguments and fallbacks belong to the built-in command.
            entry.args.clear();
            entry.untrusted_args.clear();
            entry.needs_packages.clear();
            entry.fallbacks.clear();
        }
        if let Some(args) = &self.args {
            entry.args.clone_from(args);
        }
        if let Some(extensions) = &self.extensions {
            let inherited = std::mem::take(&mut entry.extensions);
            entry.extensions = extensions
                .iter()
                .map(|extension| {
                    let language = inherited
                        .get(extension)
                        .or_else(|| known.get(extension))
                        .cloned()
                        .unwrap_or_else(|| extension.trim_start_matches('.').to_owned());
                    (extension.clone(), language)
                })
                .collect();
        }
        if let Some(language_id) = &self.language_id {
            for language in entry.extensions.values_mut() {
                language.clone_from(language_id);
            }
        }
        if let Some(markers) = &self.root_markers {
            entry.root_markers = vec![markers.clone()];
            entry.outer_markers.clear();
        }
        if let Some(env) = &self.env {
            entry.env.extend(env.clone());
        }
        if let Some(options) = &self.initialization_options {
            merge(entry.initialization_options.get_or_insert(Value::Null), options);
        }
        if let Some(settings) = &self.settings {
            merge(&mut entry.settings, settings);
        }
        if let Some(enabled) = self.enabled {
            entry.enabled = if enabled { Switch::On } else { Switch::Off };
        }
    }
}

/// Objects merge key by key, everything else is replaced.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => into.clone_from(from),
    }
}

impl Registry {
    /// The built-in entries with overrides from the configuration: by id, in the form of [`Override`].
    pub fn configured(servers: &BTreeMap<String, Value>) -> Result<Self, OverrideError> {
        let overrides = servers
            .iter()
            .map(|(id, value)| {
                let id = ServerId::new(id.as_str())?;
                match Override::deserialize(value) {
                    Ok(given) => Ok((id, given)),
                    Err(error) => Err(OverrideError::Malformed { id, why: error.to_string() }),
                }
            })
            .collect::<Result<_, OverrideError>>()?;
        Self::with_overrides(&overrides)
    }

    pub(super) fn apply(&mut self, id: &ServerId, given: &Override) -> Result<(), OverrideError> {
        given.check(id)?;
        let known: BTreeMap<String, String> =
            self.entries.iter().rev().flat_map(|entry| entry.extensions.clone()).collect();
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == *id) {
            given.change(entry, &known);
            return Ok(());
        }
        let Some(command) = given.command.clone() else {
            return Err(OverrideError::UnknownId {
                id: id.clone(),
                nearest: self.nearest_id(id.as_str()).cloned(),
            });
        };
        if given.extensions.as_ref().is_none_or(Vec::is_empty) {
            return Err(OverrideError::NoExtensions { id: id.clone() });
        }
        let mut entry = ServerEntry {
            id: id.clone(),
            language: given.language_id.clone().unwrap_or_else(|| id.to_string()),
            command: command.clone(),
            args: Vec::new(),
            needs_packages: Vec::new(),
            fallbacks: Vec::new(),
            extensions: BTreeMap::new(),
            root_markers: Vec::new(),
            outer_markers: Vec::new(),
            configuration: Vec::new(),
            needs_marker: false,
            capabilities: Capability::ALL.to_vec(),
            install: Install::Manual { see: format!("the command `{command}` from your configuration") },
            proven: None,
            library_source: None,
            ready: None,
            settle_ms: super::default_settle_ms(),
            reopens: false,
            tsserver_command: None,
            ignores_publishes: false,
            idle_command: None,
            exit_message: None,
            rebuilds: false,
            opens_new_files: false,
            on_save: None,
            keeps: Vec::new(),
            early: Vec::new(),
            asks_for_settings: false,
            initialization_options: None,
            settings: super::empty_object(),
            env: BTreeMap::new(),
            limits: ResultLimits::default(),
            misread_characters: String::new(),
            // We know nothing about it; the user's configuration is enough to start it.
            runs_workspace_code: false,
            needs_confinement: false,
            untrusted_args: Vec::new(),
            filters_database: false,
            writes: Vec::new(),
            pin: None,
            virtualenv: None,
            warm_up_opens_file: false,
            utf16_columns: false,
            projects: None,
            imports: Vec::new(),
            symbols_per_project: false,
            binaries: BTreeMap::new(),
            removed_options: BTreeMap::new(),
            removed_option_errors: Vec::new(),
            older_package: None,
            group: None,
            enabled: Switch::On,
            user_command: true,
        };
        given.change(&mut entry, &known);
        self.entries.push(entry);
        Ok(())
    }
}
