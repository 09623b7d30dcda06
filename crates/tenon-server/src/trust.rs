//! Trust decisions: which workspaces may configure commands and other sensitive settings.
//!
//! # Policy
//!
//! A repository may be hostile, and opening it must not run its code. So every workspace is in one of four states:
//!
//! | state | meaning | what its `tenon.toml` may do |
//! |---|---|---|
//! | trusted | the user ran `tenon trust` and no pinned file has changed | everything except user-only settings |
//! | untrusted | the user has not decided | hide files, choose severities, lower limits |
//! | stale | trusted before, but a pinned file has changed | as untrusted, until the user decides again |
//! | excluded | the user ran `tenon trust --exclude`: never ask again | as untrusted |
//!
//! Trust pins `tenon.toml` and every file inside the root that its commands, their arguments or their environments name.
//! A named file that is missing is pinned as missing, so that creating it later is a change (`pinned_files` decides what
//! counts as named). Folders are not pinned: an argument like `src` must not make every edit a change. If an interpreter
//! runs a folder, the file that runs is pinned.
//!
//! Trust also pins the programs that Tenon finds by name inside the root, in `node_modules/.bin` and virtualenvs
//! (`workspace_programs`). One that appears, changes, becomes another link or disappears makes the trust stale. The
//! packages that these programs load are not pinned.
//!
//! # Format
//!
//! One JSON file per workspace in the `trust` folder of the user's state, named by a hash of the canonical root:
//! `{"version": 1, "root": …, "decision": "trusted"|"excluded", "decided_at": …, "pins": {path: hash|null, …}, "programs":
//! {path: identity|null, …}}`. A file that is damaged, has another version or names another root is ignored, which means untrusted.
//!
//! # Concurrency
//!
//! A decision is one file that is replaced by a rename, so a reader sees the old one or the new one and the last writer
//! wins. The state is computed from the same bytes of `tenon.toml` that the caller reads the settings from: the file cannot
//! be swapped between check and use.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use serde::{Deserialize, Serialize};
use tenon_contract::clock::Clock;
use tenon_contract::id::sha256_hex;
use tenon_servers::registry::{OverrideError, Registry};

use crate::config::{ConfigError, FILE_NAME, SourceText, trusted_servers};
use pinned_files::pinned_files;

mod pinned_files;
mod workspace_programs;

/// The version of the format.
const VERSION: u32 = 1;

/// The largest file that can be pinned; language servers are far smaller.
const MAX_PINNED_BYTES: u64 = 512 * 1024 * 1024;

/// The current state of a workspace's trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustState {
    Trusted,
    Untrusted,
    /// The changed files, relative to the root, sorted.
    Stale {
        changed: Vec<Utf8PathBuf>,
    },
    Excluded,
}

impl TrustState {
    /// Whether the workspace's own settings take effect.
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

/// One stored decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustRecord {
    version: u32,
    pub root: Utf8PathBuf,
    pub decision: TrustDecision,
    pub decided_at: String,
    /// Paths relative to the root with the hash of their content; `None` for a missing file.
    pub pins: BTreeMap<Utf8PathBuf, Option<String>>,
    /// Programs that Tenon finds by name, relative to the root; `None` where there is none.
    #[serde(default)]
    pub programs: BTreeMap<Utf8PathBuf, Option<String>>,
}

impl TrustRecord {
    /// The pinned files and the existing programs, with whether they exist.
    pub fn pinned(&self) -> BTreeMap<&Utf8Path, bool> {
        let files = self.pins.iter().map(|(path, hash)| (path.as_path(), hash.is_some()));
        let programs = self.programs.iter().filter(|(_, identity)| identity.is_some());
        programs.map(|(path, _)| (path.as_path(), true)).chain(files).collect()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("cannot store trust decisions in `{folder}`")]
    Store { folder: Utf8PathBuf, source: io::Error },
    #[error("cannot pin `{path}`")]
    Pin { path: Utf8PathBuf, source: io::Error },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Servers(#[from] OverrideError),
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
        let is_same = |(path, identity): &(&Utf8PathBuf, &Option<String>)| {
            workspace_programs::identity(root, path).is_ok_and(|now| now == **identity)
        };
        let files = record.pins.iter().filter(|pin| !unchanged(pin));
        let changed: BTreeSet<Utf8PathBuf> = files
            .chain(record.programs.iter().filter(|program| !is_same(program)))
            .map(|(path, _)| path.clone())
            .collect();
        // A decision without this pin was not written by Tenon.
        if changed.is_empty() && record.pins.contains_key(Utf8Path::new(FILE_NAME)) {
            return TrustState::Trusted;
        }
        TrustState::Stale { changed: changed.into_iter().collect() }
    }

    /// Whether the user trusted a program, found by name inside `root`, as it is now. For a finder of servers.
    pub fn program_check(self, root: &Utf8Path) -> impl Fn(&Utf8Path) -> bool + Send + Sync + use<> {
        let root = root.to_owned();
        move |program| self.is_pinned(&root, program)
    }

    fn is_pinned(&self, root: &Utf8Path, program: &Utf8Path) -> bool {
        let record = self.record(root).filter(|record| record.decision == TrustDecision::Trusted);
        let (Some(record), Ok(relative)) = (record, program.strip_prefix(root)) else { return false };
        let pinned = record.programs.get(relative).and_then(Option::as_ref);
        let now = workspace_programs::identity(root, relative);
        pinned.is_some_and(|pinned| now.is_ok_and(|now| now.as_ref() == Some(pinned)))
    }

    /// The decision about `root`, if there is a valid one.
    pub fn record(&self, root: &Utf8Path) -> Option<TrustRecord> {
        let text = fs::read_to_string(self.file_of(root)).ok()?;
        let record: TrustRecord = serde_json::from_str(&text).ok()?;
        (record.version == VERSION && record.root == root).then_some(record)
    }

    /// Trusts the workspace in its current state. `user` is the user's own configuration, which may name servers too.
    pub fn trust(
        &self,
        root: &Utf8Path,
        settings: Option<&SourceText>,
        user: Option<&SourceText>,
    ) -> Result<TrustRecord, TrustError> {
        let mut pins = BTreeMap::from([(Utf8PathBuf::from(FILE_NAME), settings.map(hash_of))]);
        for path in pinned_files(root, &trusted_servers(root, settings, None)?) {
            let hash =
                pin(&root.join(&path)).map_err(|source| TrustError::Pin { path: path.clone(), source })?;
            pins.insert(path, hash);
        }
        let registry = Registry::configured(&trusted_servers(root, settings, user)?)?;
        let mut programs = BTreeMap::new();
        for path in workspace_programs::find(root, &registry) {
            let identity = workspace_programs::identity(root, &path)
                .map_err(|source| TrustError::Pin { path: path.clone(), source })?;
            programs.insert(path, identity);
        }
        self.write(root, TrustDecision::Trusted, pins, programs)
    }

    /// Marks the workspace as never to be trusted, so that the user is not asked again.
    pub fn exclude(&self, root: &Utf8Path) -> Result<TrustRecord, TrustError> {
        self.write(root, TrustDecision::Excluded, BTreeMap::new(), BTreeMap::new())
    }

    /// Removes a decision. Returns whether there was one.
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
        programs: BTreeMap<Utf8PathBuf, Option<String>>,
    ) -> Result<TrustRecord, TrustError> {
        let record = TrustRecord {
            version: VERSION,
            root: root.to_owned(),
            decision,
            decided_at: self.clock.rfc3339(),
            pins,
            programs,
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

/// The hash of a regular file, following links; `None` if the path does not exist.
fn pin(path: &Utf8Path) -> io::Result<Option<String>> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Opening a FIFO would wait for a writer.
    if !metadata.is_file() || metadata.len() > MAX_PINNED_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too large or not a regular file"));
    }
    let mut content = Vec::new();
    fs::File::open(path)?.take(MAX_PINNED_BYTES).read_to_end(&mut content)?;
    Ok(Some(sha256_hex(content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestRepository {
        _folder: tempfile::TempDir,
        root: Utf8PathBuf,
        store: TrustStore,
    }

    fn repository() -> TestRepository {
        let folder = tempfile::tempdir().unwrap();
        let base = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        let root = base.join("repo");
        fs::create_dir_all(root.join("tools")).unwrap();
        let (clock, _) = Clock::fixed("2026-01-02T03:04:05Z".parse().unwrap());
        TestRepository { store: TrustStore::new(base.join("trust"), clock), root, _folder: folder }
    }

    impl TestRepository {
        fn write(&self, path: &str, text: &str) {
            fs::write(self.root.join(path), text).unwrap();
        }

        fn settings(&self) -> Option<SourceText> {
            crate::config::read_workspace_file(&self.root).unwrap()
        }

        fn trust(&self) -> TrustRecord {
            self.store.trust(&self.root, self.settings().as_ref(), None).unwrap()
        }

        fn state(&self) -> TrustState {
            self.store.state(&self.root, self.settings().as_ref())
        }

        fn stale(&self, changed: &str) -> bool {
            self.state() == TrustState::Stale { changed: vec![changed.into()] }
        }
    }

    #[test]
    fn trust_has_four_states() {
        let repository = repository();
        assert_eq!(repository.state(), TrustState::Untrusted);
        repository.trust();
        assert_eq!(repository.state(), TrustState::Trusted);
        repository.write("tenon.toml", "[work]\nstrict = true\n");
        assert!(repository.stale("tenon.toml"), "a new settings file is a change");
        repository.trust();
        assert_eq!(repository.state(), TrustState::Trusted);
        repository.store.exclude(&repository.root).unwrap();
        assert_eq!(repository.state(), TrustState::Excluded);
        assert!(repository.store.revoke(&repository.root).unwrap());
        assert!(!repository.store.revoke(&repository.root).unwrap());
        assert_eq!(repository.state(), TrustState::Untrusted);
    }

    #[test]
    fn files_named_by_commands_are_pinned() {
        let repository = repository();
        repository.write("tools/server", "#!/bin/sh\n");
        repository.write("plugin.js", "1\n");
        repository.write("hook.js", "2\n");
        repository.write(
            "tenon.toml",
            "[servers.a]\ncommand = \"tools/server\"\nextensions = [\".a\"]\n\
             args = [\"--stdio\", \"--plugin=plugin.js\", \"tools\", \"later/added.js\", \"info\"]\n\
             env = {NODE_OPTIONS = \"--require ./hook.js\"}\n\
             [servers.b]\ncommand = \"/usr/bin/env\"\nextensions = [\".b\"]\nargs = [\"../out\", \"https://x.y/z\"]\n",
        );
        let pins: Vec<String> = repository.trust().pins.keys().map(ToString::to_string).collect();
        insta::assert_snapshot!(pins.join("\n"), @"
        hook.js
        later/added.js
        plugin.js
        tenon.toml
        tools/server
        ");

        for path in ["tools/server", "plugin.js", "hook.js"] {
            let before = fs::read_to_string(repository.root.join(path)).unwrap();
            repository.write(path, "changed\n");
            assert!(repository.stale(path), "{path}");
            repository.write(path, &before);
            assert_eq!(repository.state(), TrustState::Trusted, "{path}");
        }
        fs::create_dir(repository.root.join("later")).unwrap();
        repository.write("later/added.js", "planted\n");
        assert!(repository.stale("later/added.js"));
        fs::remove_file(repository.root.join("later/added.js")).unwrap();
        fs::remove_file(repository.root.join("tools/server")).unwrap();
        assert!(repository.stale("tools/server"));
    }

    #[cfg(unix)]
    #[test]
    fn link_is_pinned_by_its_target() {
        let repository = repository();
        repository.write("real.sh", "one\n");
        std::os::unix::fs::symlink("real.sh", repository.root.join("link.sh")).unwrap();
        repository.write("tenon.toml", "[servers.a]\ncommand = \"./link.sh\"\nextensions = [\".a\"]\n");
        repository.trust();
        repository.write("real.sh", "two\n");
        let both = TrustState::Stale { changed: vec!["link.sh".into(), "real.sh".into()] };
        assert_eq!(repository.state(), both);
        repository.trust();
        repository.write("other.sh", "two\n");
        fs::remove_file(repository.root.join("link.sh")).unwrap();
        std::os::unix::fs::symlink("other.sh", repository.root.join("link.sh")).unwrap();
        assert!(repository.stale("link.sh"));
    }

    /// A repository with a program at `path`.
    fn with_program(path: &str) -> TestRepository {
        let repository = repository();
        let file = repository.root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "#!/bin/sh\n").unwrap();
        repository
    }

    #[test]
    fn program_that_appears_in_the_root_makes_trust_stale() {
        for path in [".venv/bin/ruff", "venv/bin/python", "node_modules/.bin/typescript-language-server"] {
            let repository = repository();
            repository.trust();
            fs::create_dir_all(repository.root.join(path).parent().unwrap()).unwrap();
            assert_eq!(repository.state(), TrustState::Trusted, "{path}");
            repository.write(path, "planted\n");
            assert!(repository.stale(path), "{path}");
            repository.trust();
            assert_eq!(repository.state(), TrustState::Trusted, "{path}");
        }
    }

    #[test]
    fn program_that_changes_or_disappears_makes_trust_stale() {
        for path in [".venv/bin/ruff", "node_modules/.bin/pyright-langserver", "deep/er/.venv/bin/ruff"] {
            let repository = with_program(path);
            fs::create_dir_all(repository.root.join("deep/er")).unwrap();
            repository.write("deep/er/main.py", "");
            let record = repository.trust();
            assert!(record.pinned()[Utf8Path::new(path)], "{path}");
            repository.write(path, "#!/bin/sh\nchanged\n");
            assert!(repository.stale(path), "{path}");
            repository.write(path, "#!/bin/sh\n");
            assert_eq!(repository.state(), TrustState::Trusted, "{path}");
            fs::remove_file(repository.root.join(path)).unwrap();
            assert!(repository.stale(path), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn program_that_becomes_another_link_makes_trust_stale() {
        use std::os::unix::fs::symlink;
        let path = ".venv/bin/ruff";
        let repository = with_program(path);
        repository.trust();
        let program = repository.root.join(path);
        // The content is the same, but not the folder that the program finds its other files in.
        fs::write(repository.root.join("tools/ruff"), "#!/bin/sh\n").unwrap();
        let outside = repository.root.parent().unwrap().join("outside");
        fs::write(&outside, "#!/bin/sh\n").unwrap();
        let missing = repository.root.join("missing");
        for target in [repository.root.join("tools/ruff"), outside, missing] {
            fs::remove_file(&program).unwrap();
            symlink(&target, &program).unwrap();
            assert!(repository.stale(path), "{target}");
            repository.trust();
            assert_eq!(repository.state(), TrustState::Trusted, "{target}");
        }
        fs::write(repository.root.join("missing"), "planted\n").unwrap();
        assert!(repository.stale(path), "the target of a dangling link appeared");
    }

    #[test]
    fn only_pinned_programs_pass_the_check() {
        let repository = with_program(".venv/bin/ruff");
        repository.write("tools/main.py", "");
        let check = repository.store.clone().program_check(&repository.root);
        let pinned = repository.root.join(".venv/bin/ruff");
        assert!(!check(&pinned), "the workspace is not trusted");
        repository.trust();
        assert!(check(&pinned));
        fs::create_dir_all(repository.root.join("tools/.venv/bin")).unwrap();
        repository.write("tools/.venv/bin/ruff", "planted in a nested project\n");
        assert!(!check(&repository.root.join("tools/.venv/bin/ruff")));
        assert_eq!(repository.state(), TrustState::Trusted);
        repository.write(".venv/bin/ruff", "changed\n");
        assert!(!check(&pinned));
    }

    #[test]
    fn damaged_decision_is_ignored() {
        let repository = repository();
        repository.trust();
        let file = repository.store.file_of(&repository.root);
        for text in ["", "{}", "{\"version\": 2}", "not json"] {
            fs::write(&file, text).unwrap();
            assert_eq!(repository.state(), TrustState::Untrusted, "{text:?}");
        }
        let foreign = repository.store.trust(Utf8Path::new("/elsewhere"), None, None).unwrap();
        fs::write(&file, serde_json::to_string(&foreign).unwrap()).unwrap();
        assert_eq!(repository.state(), TrustState::Untrusted, "the decision names another root");
    }

    #[test]
    fn invalid_settings_cannot_be_trusted() {
        let repository = repository();
        repository.write("tenon.toml", "[servers.a]\ncmd = \"x\"\n");
        let refused = repository.store.trust(&repository.root, repository.settings().as_ref(), None);
        assert!(matches!(refused, Err(TrustError::Config(_))));
        assert_eq!(repository.state(), TrustState::Untrusted);
    }
}
