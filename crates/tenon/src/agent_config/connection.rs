//! The parts of Tenon in an agent's files: which are there, and the changes that add or remove them.

use camino::Utf8PathBuf;
use serde_json::{Value, json};

use super::hook_entries::{self, HookState};
use super::{Agent, EntryPlace, Folders, Scope, Transport, surfaces_of};
use crate::config_edit::edited_file::{EditedFile, FileChange};
use crate::config_edit::jsonc_edit::{self, JsoncError, NewValue, Step};
use crate::config_edit::toml_table::{self, TomlError};
use crate::exit::Exit;
use crate::failure::Failure;

/// The plugin for opencode, and how it begins.
const OPENCODE_PLUGIN: &str = include_str!("opencode.js");
const OPENCODE_MARK: &str = "// Written by `tenon ";

/// What to add or remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) entry: bool,
    pub(crate) hooks: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartState {
    Missing,
    /// It runs another program, serves another workspace, or is incomplete.
    Stale,
    Present,
}

/// An agent, a scope and what its files should have.
#[derive(Debug)]
pub(crate) struct Connection<'a> {
    pub(crate) agent: Agent,
    pub(crate) scope: Scope,
    pub(crate) folders: &'a Folders,
    /// The user's state folder.
    pub(crate) state: &'a camino::Utf8Path,
    /// The program that entries and hooks run.
    pub(crate) program: &'a str,
}

#[derive(Debug, thiserror::Error)]
enum EditError {
    #[error(transparent)]
    Json(#[from] JsoncError),
    #[error(transparent)]
    Toml(#[from] TomlError),
    #[error("Tenon did not write this file")]
    ForeignPlugin,
}

impl Connection<'_> {
    /// The changes that connect the agent. Without changes it is connected already.
    pub(crate) fn changes(&self, parts: Parts, transport: &Transport) -> Result<Vec<FileChange>, Failure> {
        let mut changes = Vec::new();
        for (path, parts) in self.files(parts) {
            let file = EditedFile::open(&path, self.state)?;
            let before = file.text.clone().unwrap_or_default();
            let refused = |error: EditError| self.refused(&file, &error);
            let had_our_parts = file.text.is_some() && self.has_any_part(&before, parts).map_err(refused)?;
            let mut text = before;
            if parts.entry {
                text = self.with_entry(&text, transport).map_err(refused)?;
            }
            if parts.hooks {
                text = self.with_hooks(&text).map_err(refused)?;
            }
            changes.push(file.edit(text, had_our_parts));
        }
        changes.retain(|change| !change.is_unchanged());
        Ok(changes)
    }

    /// The changes that remove Tenon's parts.
    pub(crate) fn removal(&self, parts: Parts) -> Result<Vec<FileChange>, Failure> {
        let all = self.files(Parts { entry: true, hooks: true });
        let mut changes = Vec::new();
        for (path, parts) in self.files(parts) {
            let file = EditedFile::open(&path, self.state)?;
            let Some(text) = file.text.clone() else { continue };
            let refused = |error: EditError| self.refused(&file, &error);
            let stripped = self.without(&text, parts).map_err(refused)?;
            if stripped.as_deref() == Some(text.as_str()) && !file.is_as_we_left_it() {
                continue;
            }
            // The original had neither part: it is restored only if both go.
            let others = all.iter().any(|(other, held)| {
                *other == path && (held.entry && !parts.entry || held.hooks && !parts.hooks)
            });
            let kept = others
                && self
                    .without(&text, Parts { entry: !parts.entry, hooks: !parts.hooks })
                    .map_err(refused)?
                    .as_ref()
                    != Some(&text);
            changes.push(match kept {
                true => file.edit(stripped.unwrap_or_default(), true),
                false => file.undo(stripped)?,
            });
        }
        changes.retain(|change| !change.is_unchanged());
        Ok(changes)
    }

    pub(crate) fn entry_state(&self) -> Result<PartState, Failure> {
        let file = EditedFile::open(&self.agent.entry_file(self.scope, self.folders), self.state)?;
        let Some(text) = &file.text else { return Ok(PartState::Missing) };
        let entry = self.entry_in(text).map_err(|error| self.refused(&file, &error))?;
        let Some(entry) = entry else { return Ok(PartState::Missing) };
        let url = ["url", "httpUrl", "serverUrl"].iter().find_map(|key| entry.get(key)?.as_str());
        if let Some(url) = url {
            let is_ours = url.starts_with("http://127.0.0.1:") && url.contains("/mcp");
            return Ok(if is_ours { PartState::Present } else { PartState::Stale });
        }
        let transport = Transport::Stdio { program: self.program.to_owned(), surfaces: surfaces_of(&entry) };
        let expected = self.agent.entry(self.scope, &transport, &self.folders.root);
        let matches = |(key, value): &(String, NewValue)| entry.get(key) == Some(&value.to_json());
        // `type` may be left out, and the user may choose the variables.
        let same = expected.iter().filter(|(key, _)| key != "type" && key != "env_vars").all(matches);
        Ok(if same { PartState::Present } else { PartState::Stale })
    }

    /// `None` if the agent has no hooks.
    pub(crate) fn hooks_state(&self) -> Result<Option<PartState>, Failure> {
        let Some(path) = self.agent.hooks_file(self.scope, self.folders) else { return Ok(None) };
        let file = EditedFile::open(&path, self.state)?;
        let Some(text) = &file.text else { return Ok(Some(PartState::Missing)) };
        Ok(Some(match self.agent {
            Agent::Opencode if *text == self.plugin() => PartState::Present,
            Agent::Opencode if text.starts_with(OPENCODE_MARK) => PartState::Stale,
            Agent::Opencode => PartState::Missing,
            agent => match hook_entries::state(text, agent, self.program) {
                Ok(HookState::Missing) => PartState::Missing,
                Ok(HookState::Stale) => PartState::Stale,
                Ok(HookState::Installed) => PartState::Present,
                Err(error) => return Err(self.refused(&file, &error.into())),
            },
        }))
    }

    /// The files that hold the parts. One file may hold both.
    fn files(&self, parts: Parts) -> Vec<(Utf8PathBuf, Parts)> {
        let entry = self.agent.entry_file(self.scope, self.folders);
        let hooks = self.agent.hooks_file(self.scope, self.folders).filter(|_| parts.hooks);
        let mut files = Vec::new();
        if parts.entry {
            let shared = hooks.as_ref() == Some(&entry);
            files.push((entry.clone(), Parts { entry: true, hooks: shared }));
        }
        files.extend(
            hooks
                .filter(|hooks| !parts.entry || *hooks != entry)
                .map(|hooks| (hooks, Parts { entry: false, hooks: true })),
        );
        files
    }

    fn refused(&self, file: &EditedFile, error: &EditError) -> Failure {
        let failure = Failure::new(Exit::Config, format!("cannot change `{}`: {error}", file.path));
        match error {
            EditError::Json(JsoncError::Syntax(cause)) => failure.caused_by(cause.to_string()),
            EditError::Toml(TomlError::Syntax(cause)) => {
                failure.caused_by(cause.message().lines().collect::<Vec<_>>().join(", "))
            }
            EditError::ForeignPlugin => failure.hint("move the file away, then run the command again"),
            EditError::Json(JsoncError::Twice(_)) => failure.hint("remove one of them"),
            _ => failure,
        }
    }

    fn has_any_part(&self, text: &str, parts: Parts) -> Result<bool, EditError> {
        Ok(self.without(text, parts)?.as_deref() != Some(text))
    }

    fn entry_in(&self, text: &str) -> Result<Option<Value>, EditError> {
        Ok(match self.agent.entry_place() {
            EntryPlace::Json(path) => jsonc_edit::value(text)?
                .and_then(|value| path.iter().try_fold(&value, |value, key| value.get(key)).cloned()),
            EntryPlace::Toml(path) => toml_table::table(text, path)?,
        })
    }

    fn with_entry(&self, text: &str, transport: &Transport) -> Result<String, EditError> {
        let mut members = self.agent.entry(self.scope, transport, &self.folders.root);
        let current = self.entry_in(text)?;
        // The user may have chosen other variables.
        members.retain(|(key, _)| {
            key != "env_vars" || current.as_ref().is_none_or(|entry| entry.get(key).is_none())
        });
        let obsolete: Vec<&str> = Agent::ENTRY_KEYS
            .iter()
            .copied()
            .filter(|key| members.iter().all(|(member, _)| member != key))
            .filter(|key| current.as_ref().is_some_and(|entry| entry.get(key).is_some()))
            // The user may name the kind of server that it is.
            .filter(|key| {
                !(["type", "env_vars"].contains(key) && matches!(transport, Transport::Stdio { .. }))
            })
            .collect();
        match self.agent.entry_place() {
            EntryPlace::Toml(path) => {
                let members: Vec<(String, Value)> =
                    members.iter().map(|(key, value)| (key.clone(), value.to_json())).collect();
                Ok(toml_table::set(text, path, &members, &obsolete)?)
            }
            EntryPlace::Json(path) => {
                let Some(Value::Object(current)) = current else {
                    return Ok(jsonc_edit::set(text, path, &NewValue::Object(members))?);
                };
                let mut text = text.to_owned();
                for (key, value) in &members {
                    if current.get(key) != Some(&value.to_json()) {
                        text = jsonc_edit::set(&text, &[path, &[key.as_str()]].concat(), value)?;
                    }
                }
                for key in obsolete {
                    let steps = path.iter().chain([&key]).map(|key| Step::Key((*key).to_owned()));
                    text = jsonc_edit::remove(&text, &steps.collect::<Vec<_>>())?.unwrap_or(text);
                }
                Ok(text)
            }
        }
    }

    fn with_hooks(&self, text: &str) -> Result<String, EditError> {
        match self.agent {
            Agent::Opencode if !text.is_empty() && !text.starts_with(OPENCODE_MARK) => {
                Err(EditError::ForeignPlugin)
            }
            Agent::Opencode => Ok(self.plugin()),
            agent => Ok(hook_entries::add(text, agent, self.program)?),
        }
    }

    fn plugin(&self) -> String {
        OPENCODE_PLUGIN.replace(r#""@PROGRAM@""#, &json!(self.program).to_string())
    }

    /// The text without the parts; `None` to remove the file.
    fn without(&self, text: &str, parts: Parts) -> Result<Option<String>, EditError> {
        let mut current = text.to_owned();
        if parts.entry {
            let removed = match self.agent.entry_place() {
                EntryPlace::Json(path) => {
                    let steps: Vec<Step> = path.iter().map(|key| Step::Key((*key).to_owned())).collect();
                    jsonc_edit::remove(&current, &steps)?
                }
                EntryPlace::Toml(path) => toml_table::remove(&current, path)?,
            };
            current = removed.unwrap_or(current);
        }
        if parts.hooks {
            match self.agent {
                Agent::Opencode if text.starts_with(OPENCODE_MARK) => return Ok(None),
                Agent::Opencode => {}
                agent => current = hook_entries::remove(&current, agent)?,
            }
        }
        Ok(Some(current))
    }
}
