//! Which workspaces may command: the user's decisions, kept and checked.
//!
//! # Policy
//!
//! A repository may be hostile, and opening it must not run its code. So every workspace is in one of four states:
//!
//! | state | meaning | what its `tenon.toml` may do |
//! |---|---|---|
//! | trusted | the user said `tenon trust` and nothing that was pinned has changed | everything but the user's own settings |
//! | untrusted | the user has not decided | hide files, choose severities, lower limits |
//! | stale | trusted once, but something that was pinned has changed | as untrusted, until the user looks again |
//! | excluded | the user said `tenon trust --exclude`: never ask again | as untrusted |
//!
//! Trust pins `tenon.toml` itself and every file inside the root that the file's commands, their arguments or their
//! environments name. A named file that is absent is pinned as absent, so that planting it later is a change like any
//! other (`named` says what counts as naming). Folders are not pinned whole: an argument like `src` must not make every
//! edit a change of trust. Of a folder that an interpreter is told to run, the file that runs is pinned.
//!
//! # Format
//!
//! One JSON file per workspace in the `trust` folder of the user's state, named by a hash of the canonical root:
//! `{"version": 1, "root": …, "decision": "trusted"|"excluded", "decided_at": …, "pins": {path: hash|null, …}}`. A file
//! that is damaged, of another version or for another root counts as no decision: doubt never trusts.
//!
//! # Concurrency
//!
//! A decision is one file, written beside its place and renamed over it, so a reader sees the old one or the new one and
//! the last writer wins. The state is computed from the bytes of `tenon.toml` that the caller then reads its settings
//! from: the file cannot be exchanged between the check and the use.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use serde::{Deserialize, Serialize};
use tenon_contract::clock::Clock;
use tenon_contract::id::sha256_hex;

use crate::config::{ConfigError, FILE_NAME, SourceText, repository_servers};
use pinned_files::pinned_files;

mod pinned_files;

/// The version of the format.
const VERSION: u32 = 1;

/// The largest file that can be pinned; language servers are far smaller.
const MAX_PINNED_BYTES: u64 = 512 * 1024 * 1024;

/// What the user's decision means right now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustState {
    Trusted,
    Untrusted,
    /// What changed, relative to the root, sorted.
    Stale {
        changed: Vec<Utf8PathBuf>,
    },
    Excluded,
}

impl TrustState {
    /// Whether the workspace's own word counts.
    pub fn is_trusted(&self) -> bool {
        *self == Self::Trusted
    }

    /// The name of the state.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
            Self::Stale { .. } => "stale",
            Self::Excluded => "excluded",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustDecision {
    Trusted,
    Excluded,
}

/// One decision as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustRecord {
    version: u32,
    pub root: Utf8PathBuf,
    pub decision: TrustDecision,
    pub decided_at: String,
    /// Paths relative to the root with the hash of their content; `None` where there was no file.
    pub pins: BTreeMap<Utf8PathBuf, Option<String>>,
}

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("cannot keep trust decisions in `{folder}`")]
    Store { folder: Utf8PathBuf, source: io::Error },
    #[error("cannot pin `{path}`, which `tenon.toml` names")]
    Pin { path: Utf8PathBuf, source: io::Error },
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// The user's decisions about workspaces.
#[derive(Debug, Clone)]
pub struct TrustStore {
    folder: Utf8PathBuf,
    clock: Clock,
}

impl TrustStore {
    pub fn new(folder: impl Into<Utf8PathBuf>, clock: Clock) -> Self {
        Self { folder: folder.into(), clock }
    }

    /// The state of the workspace at the canonical `root`, whose `tenon.toml` is `settings`.
    pub fn state(&self, root: &Utf8Path, settings: Option<&SourceText>) -> TrustState {
        let Some(record) = self.record(root) else {
            return TrustState::Untrusted;
        };
        if record.decision == TrustDecision::Excluded {
            return TrustState::Excluded;
        }
        let unchanged = |(path, pinned): &(&Utf8PathBuf, &Option<String>)| {
            let now = match path.as_str() {
                FILE_NAME => Ok(settings.map(hash_of)),
                _ => pin(&root.join(path)),
            };
            now.is_ok_and(|now| now == **pinned)
        };
        let changed: Vec<Utf8PathBuf> =
            record.pins.iter().filter(|pin| !unchanged(pin)).map(|(path, _)| path.clone()).collect();
        // A decision that pins nothing was not written by us.
        if changed.is_empty() && record.pins.contains_key(Utf8Path::new(FILE_NAME)) {
            return TrustState::Trusted;
        }
        TrustState::Stale { changed }
    }

    /// The decision about `root`, if there is a sound one.
    pub fn record(&self, root: &Utf8Path) -> Option<TrustRecord> {
        let text = fs::read_to_string(self.file_of(root)).ok()?;
        let record: TrustRecord = serde_json::from_str(&text).ok()?;
        (record.version == VERSION && record.root == root).then_some(record)
    }

    /// Trusts the workspace as it is now.
    pub fn trust(&self, root: &Utf8Path, settings: Option<&SourceText>) -> Result<TrustRecord, TrustError> {
        let mut pins = BTreeMap::from([(Utf8PathBuf::from(FILE_NAME), settings.map(hash_of))]);
        if let Some(settings) = settings {
            for path in pinned_files(root, &repository_servers(settings, root)?) {
                let hash = pin(&root.join(&path))
                    .map_err(|source| TrustError::Pin { path: path.clone(), source })?;
                pins.insert(path, hash);
            }
        }
        self.write(root, TrustDecision::Trusted, pins)
    }

    /// Settles that the workspace is not trusted and that nobody need ask.
    pub fn exclude(&self, root: &Utf8Path) -> Result<TrustRecord, TrustError> {
        self.write(root, TrustDecision::Excluded, BTreeMap::new())
    }

    /// Takes a decision back. Whether there was one.
    pub fn revoke(&self, root: &Utf8Path) -> Result<bool, TrustError> {
        match fs::remove_file(self.file_of(root)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(self.store_error(source)),
        }
    }

    fn write(
        &self,
        root: &Utf8Path,
        decision: TrustDecision,
        pins: BTreeMap<Utf8PathBuf, Option<String>>,
    ) -> Result<TrustRecord, TrustError> {
        let record = TrustRecord {
            version: VERSION,
            root: root.to_owned(),
            decision,
            decided_at: self.clock.rfc3339(),
            pins,
        };
        let text =
            format!("{:#}\n", serde_json::to_value(&record).expect("strings and maps of strings serialise"));
        let write = || -> io::Result<()> {
            fs::create_dir_all(&self.folder)?;
            let mut next = tempfile::NamedTempFile::new_in(&self.folder)?;
            next.write_all(text.as_bytes())?;
            next.as_file().sync_all()?;
            next.persist(self.file_of(root))?;
            Ok(())
        };
        write().map_err(|source| self.store_error(source))?;
        Ok(record)
    }

    fn file_of(&self, root: &Utf8Path) -> Utf8PathBuf {
        self.folder.join(format!("{}.json", &sha256_hex(root.as_str())[..32]))
    }

    fn store_error(&self, source: io::Error) -> TrustError {
        TrustError::Store { folder: self.folder.clone(), source }
    }
}

fn hash_of(settings: &SourceText) -> String {
    sha256_hex(settings.text.as_bytes())
}

/// The hash of a regular file, links followed; `None` when there is nothing at the path.
fn pin(path: &Utf8Path) -> io::Result<Option<String>> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Opening a FIFO would wait for a writer.
    if !metadata.is_file() || metadata.len() > MAX_PINNED_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is too large or no regular file"));
    }
    let mut content = Vec::new();
    fs::File::open(path)?.take(MAX_PINNED_BYTES).read_to_end(&mut content)?;
    Ok(Some(sha256_hex(content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        _folder: tempfile::TempDir,
        root: Utf8PathBuf,
        store: TrustStore,
    }

    fn place() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let base = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        let root = base.join("repo");
        fs::create_dir_all(root.join("tools")).unwrap();
        let (clock, _) = Clock::fixed("2026-01-02T03:04:05Z".parse().unwrap());
        Place { store: TrustStore::new(base.join("trust"), clock), root, _folder: folder }
    }

    impl Place {
        fn write(&self, path: &str, text: &str) {
            fs::write(self.root.join(path), text).unwrap();
        }

        fn settings(&self) -> Option<SourceText> {
            crate::config::read_file(&self.root.join(FILE_NAME)).unwrap()
        }

        fn trust(&self) -> TrustRecord {
            self.store.trust(&self.root, self.settings().as_ref()).unwrap()
        }

        fn state(&self) -> TrustState {
            self.store.state(&self.root, self.settings().as_ref())
        }

        fn stale(&self, changed: &str) -> bool {
            self.state() == TrustState::Stale { changed: vec![changed.into()] }
        }
    }

    #[test]
    fn the_four_states() {
        let place = place();
        assert_eq!(place.state(), TrustState::Untrusted);
        place.trust();
        assert_eq!(place.state(), TrustState::Trusted);
        place.write("tenon.toml", "[work]\nstrict = true\n");
        assert!(place.stale("tenon.toml"), "a settings file that appears is a change");
        place.trust();
        assert_eq!(place.state(), TrustState::Trusted);
        place.store.exclude(&place.root).unwrap();
        assert_eq!(place.state(), TrustState::Excluded);
        assert!(place.store.revoke(&place.root).unwrap());
        assert!(!place.store.revoke(&place.root).unwrap());
        assert_eq!(place.state(), TrustState::Untrusted);
    }

    #[test]
    fn every_file_that_a_command_names_is_pinned() {
        let place = place();
        place.write("tools/server", "#!/bin/sh\n");
        place.write("plugin.js", "1\n");
        place.write("hook.js", "2\n");
        place.write(
            "tenon.toml",
            "[servers.a]\ncommand = \"tools/server\"\nextensions = [\".a\"]\n\
             args = [\"--stdio\", \"--plugin=plugin.js\", \"tools\", \"later/added.js\", \"info\"]\n\
             env = {NODE_OPTIONS = \"--require ./hook.js\"}\n\
             [servers.b]\ncommand = \"/usr/bin/env\"\nextensions = [\".b\"]\nargs = [\"../out\", \"https://x.y/z\"]\n",
        );
        let pins: Vec<String> = place.trust().pins.keys().map(ToString::to_string).collect();
        insta::assert_snapshot!(pins.join("\n"), @"
        hook.js
        later/added.js
        plugin.js
        tenon.toml
        tools/server
        ");

        for path in ["tools/server", "plugin.js", "hook.js"] {
            let before = fs::read_to_string(place.root.join(path)).unwrap();
            place.write(path, "changed\n");
            assert!(place.stale(path), "{path}");
            place.write(path, &before);
            assert_eq!(place.state(), TrustState::Trusted, "{path}");
        }
        fs::create_dir(place.root.join("later")).unwrap();
        place.write("later/added.js", "planted\n");
        assert!(place.stale("later/added.js"));
        fs::remove_file(place.root.join("later/added.js")).unwrap();
        fs::remove_file(place.root.join("tools/server")).unwrap();
        assert!(place.stale("tools/server"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_counts_for_where_it_leads() {
        let place = place();
        place.write("real.sh", "one\n");
        std::os::unix::fs::symlink("real.sh", place.root.join("link.sh")).unwrap();
        place.write("tenon.toml", "[servers.a]\ncommand = \"./link.sh\"\nextensions = [\".a\"]\n");
        place.trust();
        place.write("real.sh", "two\n");
        assert!(place.stale("real.sh"));
    }

    #[test]
    fn a_damaged_decision_is_no_decision() {
        let place = place();
        place.trust();
        let file = place.store.file_of(&place.root);
        for text in ["", "{}", "{\"version\": 2}", "not json"] {
            fs::write(&file, text).unwrap();
            assert_eq!(place.state(), TrustState::Untrusted, "{text:?}");
        }
        let foreign = place.store.trust(Utf8Path::new("/elsewhere"), None).unwrap();
        fs::write(&file, serde_json::to_string(&foreign).unwrap()).unwrap();
        assert_eq!(place.state(), TrustState::Untrusted, "a decision about another root");
    }

    #[test]
    fn a_file_with_problems_cannot_be_trusted() {
        let place = place();
        place.write("tenon.toml", "[servers.a]\ncmd = \"x\"\n");
        let refused = place.store.trust(&place.root, place.settings().as_ref());
        assert!(matches!(refused, Err(TrustError::Config(_))));
        assert_eq!(place.state(), TrustState::Untrusted);
    }
}
