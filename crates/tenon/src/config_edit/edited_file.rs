//! A configuration file of the user or of a team that Tenon changes: read, backed up, replaced and restored.
//!
//! Before its first change, the file is copied to `connect` in the user's state folder, readable by the user alone, with a record of
//! the change. If the file has not changed since, an undo restores it byte for byte. A link stays a link: its target is
//! changed. Several files are changed together or not at all.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use tenon_contract::id::sha256_hex;

use crate::exit::Exit;
use crate::failure::Failure;

/// Larger files are refused.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// What was changed.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    file: Utf8PathBuf,
    /// Hash of the file after the change.
    sha256: String,
    /// Whether there was a file before. Its text is in the backup.
    existed: bool,
    /// How many folders above the file the change created.
    new_folders: usize,
}

/// A file as it is now.
#[derive(Debug)]
pub(crate) struct EditedFile {
    /// The real file, behind all links.
    pub(crate) path: Utf8PathBuf,
    pub(crate) text: Option<String>,
    record: Utf8PathBuf,
    backup: Utf8PathBuf,
}

/// A file and its next text.
#[derive(Debug)]
pub(crate) struct FileChange {
    pub(crate) file: EditedFile,
    /// `None` removes the file.
    pub(crate) after: Option<String>,
    kind: ChangeKind,
}

#[derive(Debug)]
enum ChangeKind {
    Edit { had_our_parts: bool },
    Undo { remove_folders: usize },
}

impl EditedFile {
    pub(crate) fn open(named: &Utf8Path, state: &Utf8Path) -> Result<Self, Failure> {
        let path = resolve(named)?;
        let text = read(&path)?;
        let name = &sha256_hex(path.as_str())[..16];
        let folder = state.join("connect");
        Ok(Self {
            record: folder.join(format!("{name}.json")),
            backup: folder.join(format!("{name}.backup")),
            path,
            text,
        })
    }

    /// Replaces the text. `had_our_parts`: Tenon's parts are in the file already.
    pub(crate) fn edit(self, after: String, had_our_parts: bool) -> FileChange {
        FileChange { file: self, after: Some(after), kind: ChangeKind::Edit { had_our_parts } }
    }

    /// Restores the text before the first change if the file is as Tenon left it, else sets it to `stripped`.
    pub(crate) fn undo(self, stripped: Option<String>) -> Result<FileChange, Failure> {
        if let Some(record) = self.current_record() {
            let original = match record.existed {
                true => Some(std::fs::read_to_string(&self.backup).map_err(|error| {
                    Failure::new(Exit::Files, format!("cannot read the backup `{}`", self.backup))
                        .caused_by(error.to_string())
                })?),
                false => None,
            };
            let kind = ChangeKind::Undo { remove_folders: record.new_folders };
            return Ok(FileChange { file: self, after: original, kind });
        }
        Ok(FileChange { file: self, after: stripped, kind: ChangeKind::Undo { remove_folders: 0 } })
    }

    pub(crate) fn backup(&self) -> &Utf8Path {
        &self.backup
    }

    /// Whether the file has not changed since Tenon changed it.
    pub(crate) fn is_as_we_left_it(&self) -> bool {
        self.current_record().is_some()
    }

    /// The record, if the file is as the change left it.
    fn current_record(&self) -> Option<Record> {
        let record: Record = serde_json::from_slice(&std::fs::read(&self.record).ok()?).ok()?;
        let unchanged = self.text.as_ref().is_some_and(|text| sha256_hex(text) == record.sha256);
        (unchanged && record.file == self.path).then_some(record)
    }
}

impl FileChange {
    pub(crate) fn is_unchanged(&self) -> bool {
        self.file.text == self.after
    }

    /// Whether an earlier text was copied, and is the one that an undo restores.
    pub(crate) fn has_backup(&self) -> bool {
        self.file.text.is_some() && matches!(self.kind, ChangeKind::Edit { .. })
    }

    fn write(&self) -> Result<(), Failure> {
        let file = &self.file;
        let failed = |path: &Utf8Path, error: io::Error| write_failed(path, &error);
        let require_unchanged = || match read(&file.path)? == file.text {
            true => Ok(()),
            false => Err(Failure::new(Exit::Files, format!("`{}` changed in the meantime", file.path))
                .hint("run the command again")),
        };
        match (&self.kind, &self.after) {
            (ChangeKind::Edit { had_our_parts }, Some(after)) => {
                require_writable(&file.path)?;
                let folders = file.path.ancestors().skip(1);
                let fresh = Record {
                    file: file.path.clone(),
                    sha256: sha256_hex(after),
                    existed: file.text.is_some(),
                    new_folders: folders.take_while(|folder| !folder.exists()).count(),
                };
                let record = match file.current_record() {
                    Some(earlier) => Some(Record { sha256: sha256_hex(after), ..earlier }),
                    None => {
                        if let Some(text) = &file.text {
                            replace_private(&file.backup, text)
                                .map_err(|error| failed(&file.backup, error))?;
                        }
                        (!had_our_parts).then_some(fresh)
                    }
                };
                match record {
                    Some(record) => {
                        let text = serde_json::to_string(&record).map_err(io::Error::from)?;
                        replace_private(&file.record, &text).map_err(|error| failed(&file.record, error))?;
                    }
                    // The text before the first change is unknown: an undo removes Tenon's parts.
                    None => remove(&file.record).map_err(|error| failed(&file.record, error))?,
                }
                require_unchanged()?;
                replace(&file.path, after).map_err(|error| failed(&file.path, error))
            }
            (ChangeKind::Edit { .. }, None) => Ok(()),
            (ChangeKind::Undo { remove_folders }, after) => {
                require_writable(&file.path)?;
                require_unchanged()?;
                match after {
                    Some(text) => replace(&file.path, text).map_err(|error| failed(&file.path, error))?,
                    None => remove(&file.path).map_err(|error| failed(&file.path, error))?,
                }
                remove_empty_folders(&file.path, *remove_folders);
                for own in [&file.record, &file.backup] {
                    remove(own).map_err(|error| failed(own, error))?;
                }
                Ok(())
            }
        }
    }

    /// Puts back what was there before a write that a later file's failure makes void.
    fn roll_back(&self, saved: &Saved) {
        let file = &self.file;
        let _ = match &file.text {
            Some(text) => replace(&file.path, text),
            None => remove(&file.path),
        };
        remove_empty_folders(&file.path, saved.new_folders);
        saved.restore(file);
    }
}

/// What a write replaces besides the file.
struct Saved {
    record: Option<String>,
    backup: Option<String>,
    new_folders: usize,
}

impl Saved {
    fn restore(&self, file: &EditedFile) {
        for (path, text) in [(&file.record, &self.record), (&file.backup, &self.backup)] {
            let _ = match text {
                Some(text) => replace_private(path, text),
                None => remove(path),
            };
        }
    }
}

/// Writes all changes. If one fails, those before it are rolled back.
pub(crate) fn write_all(changes: &[FileChange]) -> Result<(), Failure> {
    let mut done: Vec<(&FileChange, Saved)> = Vec::new();
    for change in changes {
        let file = &change.file;
        let saved = Saved {
            record: std::fs::read_to_string(&file.record).ok(),
            backup: std::fs::read_to_string(&file.backup).ok(),
            new_folders: file.path.ancestors().skip(1).take_while(|folder| !folder.exists()).count(),
        };
        done.push((change, saved));
        if let Err(failure) = change.write() {
            for (index, (change, saved)) in done.iter().enumerate().rev() {
                // The file whose write failed is as it was; only its record may be new.
                match index + 1 == done.len() {
                    true => {
                        remove_empty_folders(&change.file.path, saved.new_folders);
                        saved.restore(&change.file);
                    }
                    false => change.roll_back(saved),
                }
            }
            return Err(failure.hint("nothing was changed"));
        }
    }
    Ok(())
}

/// The file behind a name, links resolved.
fn resolve(named: &Utf8Path) -> Result<Utf8PathBuf, Failure> {
    match named.canonicalize_utf8() {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match named.symlink_metadata() {
            Ok(_) => Err(Failure::new(Exit::Files, format!("`{named}` is a link to a missing file"))
                .hint("create the file that it points to, or remove the link")),
            // The folder may be behind a link, too.
            Err(_) => {
                let folder = named.ancestors().skip(1).find_map(|folder| {
                    let rest = named.strip_prefix(folder).ok()?;
                    Some(folder.canonicalize_utf8().ok()?.join(rest))
                });
                Ok(folder.unwrap_or_else(|| named.to_owned()))
            }
        },
        Err(error) => Err(unreadable(named, &error)),
    }
}

fn unreadable(path: &Utf8Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Files, format!("cannot read `{path}`")).caused_by(error.to_string())
}

fn read(path: &Utf8Path) -> Result<Option<String>, Failure> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, &error)),
    };
    if metadata.is_dir() {
        return Err(Failure::new(Exit::Files, format!("`{path}` is a folder, not a file"))
            .hint("move the folder away, then run the command again"));
    }
    if !metadata.is_file() {
        return Err(Failure::new(Exit::Files, format!("`{path}` is not a regular file")));
    }
    if metadata.len() > MAX_BYTES {
        return Err(Failure::new(Exit::Files, format!("`{path}` exceeds {} MiB", MAX_BYTES / 1024 / 1024)));
    }
    let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(Failure::new(Exit::Config, format!("`{path}` is not UTF-8 text"))
            .hint("save the file as UTF-8, then run the command again")),
    }
}

/// A rename would replace a read-only file, too.
fn require_writable(path: &Utf8Path) -> Result<(), Failure> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.permissions().readonly() => {
            Err(Failure::new(Exit::Files, format!("`{path}` is read-only"))
                .hint(format!("run `chmod u+w {path}`, then run the command again")))
        }
        Ok(_) => match std::fs::OpenOptions::new().append(true).open(path) {
            Ok(_) => Ok(()),
            Err(error) => Err(write_failed(path, &error)),
        },
        Err(_) => Ok(()),
    }
}

fn write_failed(path: &Utf8Path, error: &io::Error) -> Failure {
    let failure = Failure::new(Exit::Files, format!("cannot write `{path}`")).caused_by(error.to_string());
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            failure.hint("check who owns the file and its folder, and their permissions")
        }
        io::ErrorKind::StorageFull => failure.hint("free some space, then run the command again"),
        _ => failure,
    }
}

fn remove(path: &Utf8Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove_empty_folders(file: &Utf8Path, count: usize) {
    for folder in file.ancestors().skip(1).take(count) {
        // Fails, as intended, if the folder has other files.
        let _ = std::fs::remove_dir(folder);
    }
}

/// Replaces a file atomically and keeps its permissions and owner.
fn replace(file: &Utf8Path, text: &str) -> io::Result<()> {
    write(file, text, 0o666)
}

/// Replaces a file of Tenon that only the user may read.
fn replace_private(file: &Utf8Path, text: &str) -> io::Result<()> {
    write(file, text, 0o600)
}

/// `mode`: the permissions of a new file; the user's mask applies.
fn write(file: &Utf8Path, text: &str, mode: u32) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Utf8Path::new("/"));
    std::fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tenon-");
    #[cfg(unix)]
    let permissions: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
    #[cfg(unix)]
    builder.permissions(permissions);
    #[cfg(not(unix))]
    let _ = mode;
    let mut next = builder.tempfile_in(folder)?;
    io::Write::write_all(&mut next, text.as_bytes())?;
    if let Ok(metadata) = std::fs::metadata(file) {
        next.as_file().set_permissions(metadata.permissions())?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            // Only root can change the owner; the file of another user becomes the user's own.
            let _ = std::os::unix::fs::chown(next.path(), Some(metadata.uid()), Some(metadata.gid()));
        }
    }
    next.as_file().sync_all()?;
    next.persist(file)?;
    Ok(())
}
