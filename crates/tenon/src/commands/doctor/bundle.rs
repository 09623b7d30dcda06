//! `tenon doctor --bundle`: an archive for a bug report, without secrets and without the user's name.
//!
//! Secrets are masked as in logs, the home folder becomes `~` and the user's name `USER`. The name `root` stays: it says
//! nothing about a person, and it is a word of our own output.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tenon_server::surfaces::workspace::masked;

use crate::commands::{config, logs};
use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// The number of log lines in an archive.
const LOG_LINES: usize = 500;

/// The folder in the archive.
const FOLDER: &str = "tenon-doctor";

/// Fails if the archive cannot be written to `path`, before the checks take their time.
pub(super) fn check_path(path: &Utf8Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() {
        return Err(Failure::new(Exit::Files, format!("`{path}` exists")).hint("choose another name"));
    }
    let folder = folder_of(path);
    match folder.is_dir() {
        true => Ok(()),
        false => Err(Failure::new(Exit::Files, format!("there is no folder `{folder}`"))),
    }
}

/// Writes the archive and says what is in it. `report` is the text of the checks.
pub(super) fn write(invocation: &mut Invocation, path: &Utf8Path, report: &str) -> Result<(), Failure> {
    let redaction = Redaction::of(invocation);
    let root = invocation.root(None);
    let root = root.as_deref().map_err(Failure::to_string);
    let status = match &root {
        Ok(root) => match daemon_client::status(invocation, root) {
            Ok(Some(info)) => serde_json::to_value(info).unwrap_or_default(),
            Ok(None) => json!({"running": false}),
            Err(failure) => json!({"error": failure.to_string()}),
        },
        Err(error) => json!({"error": error}),
    };
    let workspace =
        root.clone().and_then(|root| invocation.workspace(root, vec![]).map_err(|error| error.to_string()));
    let settings = match &workspace {
        Ok(workspace) => config::all_settings(workspace),
        Err(error) => json!({"error": error}),
    };
    let log = match &workspace {
        Ok(workspace) => match logs::tail(&workspace.log_path(), LOG_LINES) {
            Ok(lines) => lines.iter().map(|line| redaction.log_line(line)).collect(),
            Err(error) => format!("no log: {error}\n"),
        },
        Err(error) => format!("no log: {error}\n"),
    };
    let files = [
        ("doctor.txt", "the checks above", redaction.text(report)),
        ("status.json", "the daemon's state", format!("{:#}\n", redaction.value(&status))),
        ("settings.json", "all settings and their origins", format!("{:#}\n", redaction.value(&settings))),
        ("daemon.log", "the last 500 lines of the daemon's log", redaction.text(&log)),
    ];
    let list: String = files.iter().map(|(name, what, _)| format!("{name}: {what}\n")).collect();
    let note = "Secrets are masked. Your home folder is `~` and your name is `USER`.\n\
                Names of folders, files and symbols are as they are: read the files before you send them.\n";
    let about = format!("tenon {}\n\n{list}\n{note}", env!("CARGO_PKG_VERSION"));
    let entries = files.iter().map(|(name, _, text)| (*name, text.as_str()));
    let entries: Vec<(&str, &str)> = [("README.txt", about.as_str())].into_iter().chain(entries).collect();
    write_archive(path, &entries).map_err(|error| {
        Failure::new(Exit::Files, format!("cannot write `{path}`")).caused_by(error.to_string())
    })?;
    invocation.eprint(format!("written: {path}"));
    for line in list.lines() {
        invocation.eprint(format!("  {line}"));
    }
    invocation
        .eprint("  hint: secrets, your home folder and your name are replaced; read it before you send it");
    Ok(())
}

fn folder_of(path: &Utf8Path) -> Utf8PathBuf {
    path.parent().filter(|folder| !folder.as_str().is_empty()).unwrap_or(Utf8Path::new(".")).to_owned()
}

/// Writes all or nothing, readable by the user only.
fn write_archive(path: &Utf8Path, entries: &[(&str, &str)]) -> io::Result<()> {
    let file = tempfile::NamedTempFile::new_in(folder_of(path))?;
    let mut tar = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    for (name, text) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, format!("{FOLDER}/{name}"), text.as_bytes())?;
    }
    let file = tar.into_inner()?.finish()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(())
}

/// What is replaced in each file, besides secrets.
#[derive(Debug, Default)]
struct Redaction {
    home: Option<String>,
    user: Option<String>,
}

impl Redaction {
    fn of(invocation: &Invocation) -> Self {
        let home = invocation.dirs().ok().map(|dirs| dirs.home);
        let name = |variable| invocation.environment.get(variable).map(str::to_owned);
        let folder = || home.as_ref().and_then(|home| home.file_name()).map(str::to_owned);
        let user = name("USER").or_else(|| name("LOGNAME")).or_else(folder);
        Self {
            home: home.map(Utf8PathBuf::into_string).filter(|home| home != "/"),
            user: user.filter(|user| !user.is_empty() && user != "root"),
        }
    }

    /// One line of a log, which is JSON unless it was cut.
    fn log_line(&self, line: &str) -> String {
        match serde_json::from_str::<Value>(line) {
            Ok(value) => format!("{}\n", self.value(&value)),
            Err(_) => format!("{}\n", self.text(line)),
        }
    }

    fn value(&self, value: &Value) -> Value {
        match masked(value) {
            Value::String(text) => Value::from(self.text(&text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(name, member)| (name, self.value(&member))).collect()
            }
            other => other,
        }
    }

    fn text(&self, text: &str) -> String {
        let mut text = match masked(&Value::from(text)) {
            Value::String(text) => text,
            _ => String::new(),
        };
        if let Some(home) = &self.home {
            text = replace_words(&text, home, "~");
        }
        if let Some(user) = &self.user {
            text = replace_words(&text, user, "USER");
        }
        text
    }
}

/// Replaces `word` where it is not part of a longer word.
fn replace_words(text: &str, word: &str, with: &str) -> String {
    let is_part = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let is_word = !is_part(before.chars().next_back().or(replaced.chars().next_back()))
            && !is_part(after.chars().next());
        replaced.push_str(before);
        replaced.push_str(if is_word { with } else { word });
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_home_and_name_are_replaced() {
        let redaction = Redaction { home: Some("/home/ada".to_owned()), user: Some("ada".to_owned()) };
        let text = "root /home/ada/w of ada, not adam; /home/adam; adaada; API_KEY=sk-abcdef123456";
        let clean = "root ~/w of USER, not adam; /home/adam; adaada; API_KEY=[redacted]";
        assert_eq!(redaction.text(text), clean);
        let value = json!({"env": {"GITHUB_TOKEN": "ghp_abcdef"}, "paths": ["/home/ada/bin"], "n": 1});
        let clean = json!({"env": {"GITHUB_TOKEN": "[redacted]"}, "paths": ["~/bin"], "n": 1});
        assert_eq!(redaction.value(&value), clean);
    }
}
