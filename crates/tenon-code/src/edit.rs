//! Edits that answer with what they broke: files of the root, changed whole or not at all.
//!
//! Policy:
//! - Only regular UTF-8 files inside the root, opened beneath it without following links; never what decides what runs on
//!   the user's machine ([`protected`]). A link inside the root that leads to a file inside it means that file.
//! - Reading, matching and writing are one step: edits of one file take turns, and a file that someone else changes between
//!   reading and writing is read again.
//! - Nothing is half done: a file is what it was or what was asked for, with its mode, byte order mark and line endings.
//! - What language servers say afterwards is never a reason to fail, and always about exactly the text that was written.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;
use tenon_contract::clock::Entropy;
use tenon_contract::id::sha256_hex;
use tenon_contract::root::{GateError, RootGate, WorkspacePath};
use tenon_lsp::CallContext;
use tenon_lsp::aftermath::{Aftermath, Touched};
use tenon_lsp::orchestrator::{MAX_TEXT_BYTES, Orchestrator};
use tokio::task::spawn_blocking;

mod directory;
mod error;
mod file_locks;
mod protected;
mod text;

pub use error::EditError;
pub use text::Lines;

use directory::{DirectoryHandle, FileSnapshot, ReadFailure, WriteFailure};
use file_locks::{FileLocks, ShowGuard};
use text::{Rewritten, Text};

/// How often a file that someone else changes meanwhile is read again.
const TRIES: usize = 5;

/// Replaces one place of a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    pub file: String,
    pub old_text: String,
    pub new_text: String,
    pub expected_sha256: Option<String>,
}

/// Makes a file, or overwrites the one that is expected.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    pub file: String,
    pub text: String,
    pub expected_sha256: Option<String>,
}

impl EditFile {
    pub const TOOL: &'static str = "edit_file";
}

impl WriteFile {
    pub const TOOL: &'static str = "write_file";
}

/// What was done to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the root.
    pub file: String,
    /// SHA-256 of its bytes before, in hex, unless it was made.
    pub before: Option<String>,
    pub after: String,
    /// The lines of the old text that were replaced, unless the file was made.
    pub replaced: Option<Lines>,
    /// The lines that stand there now.
    pub lines: Lines,
}

impl Change {
    pub fn created(&self) -> bool {
        self.before.is_none()
    }
}

/// A change, and the right to show it to the language servers before anyone shows a newer one.
pub struct Changed {
    pub change: Change,
    path: WorkspacePath,
    texts: Texts,
    showing: ShowGuard,
}

/// The text of a file around a change, as servers count in it.
struct Texts {
    /// Unless the file was made.
    before: Option<String>,
    after: String,
}

impl Changed {
    /// Shows the new text and collects what it broke; elsewhere that may take `wait` to show. Ends at once when a newer edit
    /// of the file overtakes it.
    pub async fn aftermath(self, servers: &Orchestrator, wait: Duration, call: &CallContext) -> Aftermath {
        let either = call.cancel.child_token();
        let call = CallContext::new(call.deadline, either.clone());
        let Texts { before, after } = self.texts;
        let touched = [Touched { path: self.path, text: Some(after), before }];
        let superseded = async {
            self.showing.superseded.cancelled().await;
            either.cancel();
            // What is known by then is still an answer.
            std::future::pending().await
        };
        let mut found = tokio::select! {
            biased;
            found = Aftermath::of(servers, &touched, wait, &call) => found,
            found = superseded => found,
        };
        found.complete &= !self.showing.superseded.is_cancelled();
        found
    }
}

/// What an edit wants a file's text to be.
enum RequestedText {
    Replace { old: String, new: String },
    Whole(String),
}

/// Changes files below one root.
pub struct Editor {
    gate: RootGate,
    inner: Arc<Inner>,
    turns: FileLocks,
}

struct Inner {
    root: Utf8PathBuf,
    own_paths: Vec<Utf8PathBuf>,
    entropy: Entropy,
    /// Folders in which leftovers were looked for.
    cleaned: Mutex<BTreeSet<Utf8PathBuf>>,
}

impl Editor {
    /// For the files below `root`, which must be a real path. `own_paths` are files and folders of our own.
    pub fn new(
        root: &Utf8Path,
        own_paths: Vec<Utf8PathBuf>,
    ) -> Result<Self, tenon_contract::root::RootError> {
        let real = |path: Utf8PathBuf| path.canonicalize_utf8().unwrap_or(path);
        let inner = Inner {
            root: root.to_owned(),
            own_paths: own_paths.into_iter().map(real).collect(),
            entropy: Entropy::system(),
            cleaned: Mutex::default(),
        };
        Ok(Self { gate: RootGate::new([root])?, inner: Arc::new(inner), turns: FileLocks::default() })
    }

    pub async fn edit(&self, edit: EditFile) -> Result<Changed, EditError> {
        let EditFile { file, old_text, new_text, expected_sha256 } = edit;
        self.change(file, RequestedText::Replace { old: old_text, new: new_text }, expected_sha256).await
    }

    pub async fn write(&self, write: WriteFile) -> Result<Changed, EditError> {
        let WriteFile { file, text, expected_sha256 } = write;
        self.change(file, RequestedText::Whole(text), expected_sha256).await
    }

    async fn change(
        &self,
        file: String,
        requested: RequestedText,
        expected: Option<String>,
    ) -> Result<Changed, EditError> {
        let (gate, inner) = (self.gate.clone(), Arc::clone(&self.inner));
        let path = blocking(move || admit(&gate, &inner, &file)).await?;
        let turn = self.turns.of(&path);
        let writing = turn.write().await;
        let (inner, target) = (Arc::clone(&self.inner), path.clone());
        // The turn goes along: a caller that leaves must not let the next one in before the file is written.
        let (writing, (texts, mut change)) = blocking(move || {
            let done = inner.change(&target, &requested, expected.as_deref())?;
            Ok((writing, done))
        })
        .await?;
        change.file = self.gate.display(&path);
        let showing = turn.show(writing).await;
        Ok(Changed { change, path, texts, showing })
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EditError> + Send + 'static,
) -> Result<T, EditError> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(EditError::Io(std::io::Error::other(error))))
}

/// The file that is meant, if it may be changed.
fn admit(gate: &RootGate, inner: &Inner, file: &str) -> Result<WorkspacePath, EditError> {
    let path = gate.admit_target(file).map_err(|error| match error {
        GateError::Denied => EditError::Outside,
        GateError::Malformed(why) => EditError::Path(why.to_string()),
        GateError::Missing => EditError::NotFound,
        GateError::NotAFile | GateError::NotAFolder => EditError::NotAFile,
        GateError::Unresolvable => EditError::Path(error.to_string()),
    })?;
    let asked = Utf8Path::new(file);
    let asked = asked.strip_prefix(&inner.root).unwrap_or(asked);
    match protected::reason(&inner.root, path.as_path(), asked, &inner.own_paths) {
        Some(why) => Err(EditError::Protected(why)),
        None => Ok(path),
    }
}

impl Inner {
    /// Reads, matches and writes.
    fn change(
        &self,
        path: &WorkspacePath,
        requested: &RequestedText,
        expected: Option<&str>,
    ) -> Result<(Texts, Change), EditError> {
        let below = path.as_path().strip_prefix(&self.root).map_err(|_| EditError::Outside)?;
        let (Some(parent), Some(name)) = (below.parent(), below.file_name()) else {
            return Err(EditError::NotAFile);
        };
        for _ in 0..TRIES {
            let (folder, made) = match (DirectoryHandle::open(&self.root, parent), requested) {
                (Ok(folder), _) => (folder, None),
                (Err(error), RequestedText::Whole(_)) if error.kind() == std::io::ErrorKind::NotFound => {
                    refuse_hash_of_nothing(expected)?;
                    let (folder, made) = DirectoryHandle::make(&self.root, parent)?;
                    (folder, Some(made))
                }
                (Err(error), _) => return Err(error.into()),
            };
            self.clean(&folder, parent);
            match self.change_in(&folder, name, requested, expected) {
                Err(EditError::Changing) => {}
                Ok(done) => return Ok(done),
                Err(error) => {
                    if let Some(made) = made {
                        made.undo();
                    }
                    return Err(error);
                }
            }
        }
        Err(EditError::Changing)
    }

    fn change_in(
        &self,
        folder: &DirectoryHandle,
        name: &str,
        requested: &RequestedText,
        expected: Option<&str>,
    ) -> Result<(Texts, Change), EditError> {
        let found = folder.read(name, MAX_TEXT_BYTES).map_err(|error| match error {
            ReadFailure::NotAFile => EditError::NotAFile,
            ReadFailure::TooLarge => EditError::TooLarge { limit: MAX_TEXT_BYTES },
            ReadFailure::Io(error) => error.into(),
        })?;
        let before = found.as_ref().map(|found| sha256_hex(&found.bytes));
        let rewritten = rewrite(found.as_ref(), before.as_deref(), requested, expected)?;
        let bytes = rewritten.text.to_bytes();
        if bytes.len() as u64 > MAX_TEXT_BYTES {
            return Err(EditError::TooLarge { limit: MAX_TEXT_BYTES });
        }
        let after = sha256_hex(&bytes);
        if before.as_deref() != Some(&after) {
            folder.replace(name, &bytes, found.as_ref(), &self.entropy).map_err(|error| match error {
                WriteFailure::Changed => EditError::Changing,
                WriteFailure::Io(error) => error.into(),
            })?;
        }
        let replaced = before.is_some().then_some(rewritten.old);
        let change = Change { file: String::new(), before, after, replaced, lines: rewritten.new };
        let old = found.and_then(|found| Text::read(found.bytes).ok());
        Ok((Texts { before: old.map(Text::into_body), after: rewritten.text.into_body() }, change))
    }

    /// Once for each folder: whoever left something there has died before us.
    fn clean(&self, folder: &DirectoryHandle, below: &Utf8Path) {
        let first = self.cleaned.lock().unwrap_or_else(PoisonError::into_inner).insert(below.to_owned());
        if first {
            folder.clean();
        }
    }
}

/// The new text of a file that is or is not there.
fn rewrite(
    found: Option<&FileSnapshot>,
    before: Option<&str>,
    requested: &RequestedText,
    expected: Option<&str>,
) -> Result<Rewritten, EditError> {
    let (Some(found), Some(before)) = (found, before) else {
        let RequestedText::Whole(text) = requested else {
            return Err(EditError::NotFound);
        };
        refuse_hash_of_nothing(expected)?;
        let lines = text::require_complete(text);
        return Ok(Rewritten { text: Text::new(text.clone()), old: lines, new: lines });
    };
    match (expected, requested) {
        (Some(expected), _) if !expected.eq_ignore_ascii_case(before) => {
            return Err(EditError::HashMismatch { actual: Some(before.to_owned()) });
        }
        (None, RequestedText::Whole(_)) => return Err(EditError::HashRequired { actual: before.to_owned() }),
        _ => {}
    }
    if !found.writable {
        return Err(EditError::ReadOnly);
    }
    let text = Text::read(found.bytes.clone())?;
    match requested {
        RequestedText::Replace { old, new } => text.replace(old, new),
        RequestedText::Whole(new) => Ok(text.overwrite(new)),
    }
}

fn refuse_hash_of_nothing(expected: Option<&str>) -> Result<(), EditError> {
    match expected {
        Some(_) => Err(EditError::HashMismatch { actual: None }),
        None => Ok(()),
    }
}
