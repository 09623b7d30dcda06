//! Changes one file on disk: admits the path, reads, matches, and replaces the file in one step.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::clock::Entropy;
use tenon_contract::id::sha256_hex;
use tenon_contract::root::{GateError, RootError, RootGate, WorkspacePath};
use tenon_lsp::orchestrator::MAX_TEXT_BYTES;

use super::directory::{DirectoryHandle, FileSnapshot, ReadFailure, WriteFailure};
use super::text::{self, Rewritten, Text};
use super::{Change, EditError, protected};

/// How often a file that another program keeps changing is read again.
pub(super) const TRIES: usize = 5;

/// The text that an edit requests for a file.
pub(super) enum RequestedText {
    Replace { old: String, new: String },
    Whole(String),
}

/// The text of a file before and after a change, without its byte order mark.
pub(super) struct Texts {
    /// `None` for a new file.
    pub(super) before: Option<String>,
    pub(super) after: String,
}

/// Changes files below one root.
pub(super) struct FileWriter {
    gate: RootGate,
    root: Utf8PathBuf,
    own_paths: Vec<Utf8PathBuf>,
    entropy: Entropy,
    /// Directories that were already searched for leftovers of crashed processes.
    cleaned: Mutex<BTreeSet<Utf8PathBuf>>,
}

impl FileWriter {
    pub(super) fn new(root: &Utf8Path, own_paths: Vec<Utf8PathBuf>) -> Result<Self, RootError> {
        let real = |path: Utf8PathBuf| path.canonicalize_utf8().unwrap_or(path);
        Ok(Self {
            gate: RootGate::new([root])?,
            root: root.to_owned(),
            own_paths: own_paths.into_iter().map(real).collect(),
            entropy: Entropy::system(),
            cleaned: Mutex::default(),
        })
    }

    pub(super) fn gate(&self) -> &RootGate {
        &self.gate
    }

    pub(super) fn root(&self) -> &Utf8Path {
        &self.root
    }

    pub(super) fn entropy(&self) -> &Entropy {
        &self.entropy
    }

    /// The path of a file that may be changed.
    pub(super) fn admit(&self, file: &str) -> Result<WorkspacePath, EditError> {
        let path = self.gate.admit_target(file).map_err(|error| match error {
            GateError::Denied => EditError::Outside,
            GateError::Malformed(why) => EditError::Path(why.to_string()),
            GateError::Missing | GateError::RootMissing => EditError::NotFound,
            GateError::NotAFile | GateError::NotAFolder => EditError::NotAFile,
            GateError::Unresolvable => EditError::Path(error.to_string()),
        })?;
        let asked = Utf8Path::new(file);
        let asked = asked.strip_prefix(&self.root).unwrap_or(asked);
        match protected::reason(&self.root, path.as_path(), asked, &self.own_paths) {
            Some(why) => Err(EditError::Protected(why)),
            None => Ok(path),
        }
    }

    /// Reads, matches and writes.
    pub(super) fn change(
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
            let (directory, created) = match (DirectoryHandle::open(&self.root, parent), requested) {
                (Ok(directory), _) => (directory, None),
                (Err(error), RequestedText::Whole(_)) if error.kind() == std::io::ErrorKind::NotFound => {
                    reject_hash_of_new_file(expected)?;
                    let (directory, created) = DirectoryHandle::create(&self.root, parent)?;
                    (directory, Some(created))
                }
                (Err(error), _) => return Err(error.into()),
            };
            self.clean(&directory, parent);
            match self.change_in(&directory, name, requested, expected) {
                Err(EditError::Changing) => {}
                Ok((texts, change)) => {
                    return Ok((texts, Change { file: self.gate.display(path), ..change }));
                }
                Err(error) => {
                    if let Some(created) = created {
                        created.undo();
                    }
                    return Err(error);
                }
            }
        }
        Err(EditError::Changing)
    }

    fn change_in(
        &self,
        directory: &DirectoryHandle,
        name: &str,
        requested: &RequestedText,
        expected: Option<&str>,
    ) -> Result<(Texts, Change), EditError> {
        let snapshot = directory.read(name, MAX_TEXT_BYTES).map_err(read_failed)?;
        let before = snapshot.as_ref().map(|snapshot| sha256_hex(&snapshot.bytes));
        let rewritten = rewrite(snapshot.as_ref(), before.as_deref(), requested, expected)?;
        let bytes = rewritten.text.to_bytes();
        if bytes.len() as u64 > MAX_TEXT_BYTES {
            return Err(EditError::TooLarge { limit: MAX_TEXT_BYTES });
        }
        let after = sha256_hex(&bytes);
        if before.as_deref() != Some(&after) {
            directory.replace(name, &bytes, snapshot.as_ref(), &self.entropy).map_err(
                |error| match error {
                    WriteFailure::Changed => EditError::Changing,
                    WriteFailure::Io(error) => error.into(),
                },
            )?;
        }
        let replaced = before.is_some().then_some(rewritten.old);
        let change = Change { file: String::new(), before, after, replaced, lines: rewritten.new };
        let old = snapshot.and_then(|snapshot| Text::read(snapshot.bytes).ok());
        Ok((Texts { before: old.map(Text::into_body), after: rewritten.text.into_body() }, change))
    }

    /// Removes leftovers of crashed processes, once per directory.
    pub(super) fn clean(&self, directory: &DirectoryHandle, below: &Utf8Path) {
        let first = self.cleaned.lock().unwrap_or_else(PoisonError::into_inner).insert(below.to_owned());
        if first {
            directory.clean();
        }
    }
}

pub(super) fn read_failed(error: ReadFailure) -> EditError {
    match error {
        ReadFailure::NotAFile => EditError::NotAFile,
        ReadFailure::TooLarge => EditError::TooLarge { limit: MAX_TEXT_BYTES },
        ReadFailure::Io(error) => error.into(),
    }
}

/// The new text of an existing or a new file.
fn rewrite(
    snapshot: Option<&FileSnapshot>,
    before: Option<&str>,
    requested: &RequestedText,
    expected: Option<&str>,
) -> Result<Rewritten, EditError> {
    let (Some(snapshot), Some(before)) = (snapshot, before) else {
        let RequestedText::Whole(text) = requested else {
            return Err(EditError::NotFound);
        };
        reject_hash_of_new_file(expected)?;
        let lines = text::all_lines(text);
        return Ok(Rewritten { text: Text::new(text.clone()), old: lines, new: lines });
    };
    match (expected, requested) {
        (Some(expected), _) if !expected.eq_ignore_ascii_case(before) => {
            return Err(EditError::HashMismatch { actual: Some(before.to_owned()) });
        }
        (None, RequestedText::Whole(_)) => return Err(EditError::HashRequired { actual: before.to_owned() }),
        _ => {}
    }
    if !snapshot.writable {
        return Err(EditError::ReadOnly);
    }
    let text = Text::read(snapshot.bytes.clone())?;
    match requested {
        RequestedText::Replace { old, new } => text.replace(old, new),
        RequestedText::Whole(new) => Ok(text.overwrite(new)),
    }
}

fn reject_hash_of_new_file(expected: Option<&str>) -> Result<(), EditError> {
    match expected {
        Some(_) => Err(EditError::HashMismatch { actual: None }),
        None => Ok(()),
    }
}
