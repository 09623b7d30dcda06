//! An attack as it is described in `tests/hostile`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

/// The exit codes of commands for which `attack.toml` says nothing. 70 (a bug) is never accepted.
const EXITS: &[(&str, &[i32])] = &[
    ("serve", &[0]),
    ("check", &[0, 1, 2]),
    ("changed", &[0, 1, 2]),
    ("find", &[0, 1]),
    ("outline", &[0, 1]),
    ("search", &[0, 1]),
    ("refs", &[0, 1]),
    ("doctor", &[0, 1]),
    ("hook", &[0]),
    ("stop-hook", &[0]),
    ("tasks", &[0, 1]),
    ("servers", &[0]),
    ("config", &[0]),
    ("trust", &[0]),
    ("stop", &[0]),
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attack {
    #[serde(skip)]
    pub tree: String,
    /// What the repository tries, for the reader.
    #[expect(dead_code, reason = "for the reader of the file")]
    pub tries: String,
    /// The attack whose `project.tree` this one uses.
    same_files_as: Option<String>,
    /// Servers that must have started, so that the attack reached them.
    #[serde(default)]
    pub servers: Vec<String>,
    /// Servers that must not have started.
    #[serde(default)]
    pub off: Vec<String>,
    /// Files that the hook and the code questions name.
    #[serde(default)]
    pub files: Vec<String>,
    /// Files in which `tenon check` must find something: their server works in spite of the attack.
    #[serde(default)]
    pub found: Vec<String>,
    /// Names for `tenon find`, `tenon refs` and the `explore` surface.
    #[serde(default)]
    pub symbols: Vec<String>,
    /// Names that `tenon find` must find.
    #[serde(default)]
    pub declared: Vec<String>,
    /// Shell commands that complete the repository, with `$ROOT`, `$HOME`, `$MARK` and `$RUN` (leaves a mark).
    #[serde(default)]
    pub setup: String,
    /// The user's own configuration.
    #[serde(default)]
    pub user_config: String,
    /// Exit codes of commands, where they differ from the usual ones.
    #[serde(default)]
    pub exits: BTreeMap<String, Vec<i32>>,
    /// The exit code with which every command but hooks may reject the repository.
    pub rejected: Option<i32>,
    /// Runs only in `cargo xtask attack`.
    #[serde(default)]
    pub slow: bool,
}

/// The folder of all attacks.
pub fn folder() -> PathBuf {
    tenon_testkit::repository_root().join("tests/hostile")
}

impl Attack {
    pub fn read(name: &str) -> Self {
        let read = |name: &str, file: &str| {
            let path = folder().join(name).join(file);
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let mut attack: Self = toml::from_str(&read(name, "attack.toml"))
            .unwrap_or_else(|error| panic!("{name}/attack.toml: {error}"));
        let known = |command: &String| EXITS.iter().any(|(name, _)| name == command);
        assert!(attack.exits.keys().all(known), "{name}/attack.toml: {:?}", attack.exits);
        attack.tree = read(attack.same_files_as.as_deref().unwrap_or(name), "project.tree");
        attack
    }

    /// Whether a command may exit with this code.
    pub fn accepts(&self, command: &str, code: i32) -> bool {
        if self.rejected == Some(code) && !command.contains("hook") {
            return true;
        }
        let usual = EXITS.iter().find(|(name, _)| *name == command).map(|(_, codes)| *codes);
        let codes = self.exits.get(command).map(Vec::as_slice).or(usual);
        codes.is_some_and(|codes| codes.contains(&code))
    }
}
