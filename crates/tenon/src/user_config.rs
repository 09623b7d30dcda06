//! Changes of the user's own `config.toml`, checked before they are written.

use camino::Utf8Path;
use serde_json::Value;
use tenon_server::config::{ConfigSources, Environment, Settings, SourceText};

use crate::config_edit::edited_file::{self, EditedFile};
use crate::config_edit::toml_table::{self, TomlError};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// The texts of a list in the file.
pub(crate) fn list(file: &EditedFile, key: &str) -> Result<Vec<String>, Failure> {
    let path: Vec<&str> = key.split('.').collect();
    let text = file.text.as_deref().unwrap_or_default();
    let value = toml_table::table(text, &path).map_err(|error| refused(file, &error))?;
    let items = value.as_ref().and_then(Value::as_array).into_iter().flatten();
    Ok(items.filter_map(Value::as_str).map(str::to_owned).collect())
}

/// The value that a word on the command line means: TOML, else text, else a list separated by commas; the first that the
/// settings accept.
pub(crate) fn write_text(
    file: EditedFile,
    key: &str,
    text: &str,
    invocation: &Invocation,
) -> Result<Value, Failure> {
    let as_toml = toml_table::table(&format!("value = {text}"), &["value"]).ok().flatten();
    let as_list = Value::from(text.split(',').map(str::trim).collect::<Vec<_>>());
    let candidates = as_toml.into_iter().chain([Value::from(text), as_list]);
    let mut first = None;
    for value in candidates {
        match changed(&file, key, &value, invocation) {
            Ok(after) => {
                edited_file::write_all(&[file.edit(after, true)])?;
                return Ok(value);
            }
            Err(failure) => first = first.or(Some(failure)),
        }
    }
    Err(first.unwrap_or_else(|| Failure::new(Exit::Usage, "the value is missing")))
}

/// Sets a value and writes the file if the settings in it are valid then.
pub(crate) fn write(
    file: EditedFile,
    key: &str,
    value: &Value,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let after = changed(&file, key, value, invocation)?;
    edited_file::write_all(&[file.edit(after, true)])
}

/// The text with another value, if the settings in it are valid.
fn changed(file: &EditedFile, key: &str, value: &Value, invocation: &Invocation) -> Result<String, Failure> {
    let path: Vec<&str> = key.split('.').collect();
    let text = file.text.as_deref().unwrap_or_default();
    let after = toml_table::set_value(text, &path, value).map_err(|error| refused(file, &error))?;
    check(&file.path, &after, invocation)?;
    Ok(after)
}

/// Reads a text as the program reads `config.toml`.
fn check(path: &Utf8Path, text: &str, invocation: &Invocation) -> Result<(), Failure> {
    let dirs = invocation.dirs()?;
    let source = SourceText { path: path.to_owned(), text: text.into() };
    let sources = ConfigSources {
        root: &dirs.home,
        home: Some(&dirs.home),
        user: Some(&source),
        workspace: None,
        environment: &Environment::default(),
        flags: &[],
        trusted: false,
    };
    Settings::resolve(&sources)?;
    Ok(())
}

fn refused(file: &EditedFile, error: &TomlError) -> Failure {
    let failure = Failure::new(Exit::Config, format!("cannot change `{}`: {error}", file.path));
    match error {
        TomlError::Syntax(cause) => failure.caused_by(cause.message().lines().collect::<Vec<_>>().join(", ")),
        TomlError::Shape(_) => failure,
    }
}
