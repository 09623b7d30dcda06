//! Changes several files, all or none of them.
//!
//! Each new text is first written beside its file. Then the change is recorded ([`EditJournal`]), the files are replaced one
//! by one, and the record is removed. If a file cannot be replaced, or the process ends in between, the files that were
//! replaced get their old text back. A file that another program changed meanwhile is never overwritten (decision 0410).

use std::collections::BTreeSet;
use std::io;

use camino::Utf8Path;
use tenon_contract::id::sha256_hex;
use tenon_contract::root::WorkspacePath;
use tenon_lsp::orchestrator::MAX_TEXT_BYTES;

use super::EditError;
use super::directory::{DirectoryHandle, FileSnapshot, PreparedFile, WriteFailure};
use super::edit_journal::{EditJournal, RecordedFile};
use super::file_writer::{FileWriter, TRIES, read_failed};
use super::text::Text;

/// The most files of one change: each has an open temporary file until all are replaced.
pub const MAX_FILES: usize = 500;
/// The most bytes of all texts before and after.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The new text of a file, and the text that it was computed from, both without a byte order mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    pub path: WorkspacePath,
    pub before: String,
    pub after: String,
}

/// Why several files were not changed. Unless it says otherwise, all files are unchanged.
#[derive(Debug, thiserror::Error)]
pub enum MultiEditError {
    #[error("{file}: {error}")]
    File { file: String, error: EditError },
    #[error("{file} has changed since it was read")]
    Stale { file: String },
    #[error("the change has {count} files; at most {MAX_FILES} can be changed at once")]
    TooManyFiles { count: usize },
    #[error("the texts of the change exceed {MAX_BYTES} bytes")]
    TooLarge,
    #[error("cannot record the change: {0}")]
    Journal(#[source] io::Error),
    /// Some files have their new text. The record stays, and the next edit tries to undo them again.
    #[error("the change failed ({error}) and was not undone in {}", files.join(", "))]
    NotUndone { files: Vec<String>, error: Box<MultiEditError> },
}

/// A file that is ready to be replaced.
struct Ready<'a> {
    edit: &'a FileEdit,
    found: FileSnapshot,
    prepared: PreparedFile,
    recorded: RecordedFile,
}

impl FileWriter {
    /// Changes all files or none. Files that stay the same are skipped.
    pub(super) fn change_all(&self, journal: &EditJournal, edits: &[FileEdit]) -> Result<(), MultiEditError> {
        let edits: Vec<&FileEdit> = edits.iter().filter(|edit| edit.before != edit.after).collect();
        if edits.len() > MAX_FILES {
            return Err(MultiEditError::TooManyFiles { count: edits.len() });
        }
        if edits.iter().map(|edit| edit.before.len() + edit.after.len()).sum::<usize>() > MAX_BYTES {
            return Err(MultiEditError::TooLarge);
        }
        let mut ready = Vec::with_capacity(edits.len());
        for edit in edits {
            match self.get_ready(edit) {
                Ok(one) => ready.push(one),
                Err(error) => {
                    self.discard(&ready);
                    return Err(error);
                }
            }
        }
        // One file is replaced at once.
        let record = match ready.len() {
            0 | 1 => None,
            _ => {
                let files = ready.iter().map(|one| one.recorded.clone()).collect();
                let begun = journal.begin(files, self.entropy());
                Some(begun.map_err(|error| {
                    self.discard(&ready);
                    MultiEditError::Journal(error)
                })?)
            }
        };
        for at in 0..ready.len() {
            if let Err(error) = self.replace(&ready[at]) {
                self.discard(&ready[at..]);
                let recorded: Vec<RecordedFile> =
                    ready[..at].iter().map(|one| one.recorded.clone()).collect();
                let failed = self.failure(ready[at].edit, error);
                let left = self.undo(&recorded);
                if !left.is_empty() {
                    return Err(MultiEditError::NotUndone { files: left, error: Box::new(failed) });
                }
                record.map(|record| record.finish()).transpose().map_err(MultiEditError::Journal)?;
                return Err(failed);
            }
        }
        self.sync_folders(&ready);
        if let Some(record) = record
            && let Err(error) = record.finish()
        {
            // All files have their new text, which the next start finds out.
            tracing::warn!(%error, "cannot remove the record of a finished change");
        }
        Ok(())
    }

    /// Undoes a change that a process left unfinished, unless all files have their new text. Returns whether it is over.
    pub(super) fn recover(&self, files: &[RecordedFile]) -> bool {
        let is_new = |one: &RecordedFile| {
            self.look_up(&one.file).is_ok_and(|(_, _, found)| sha256_hex(&found.bytes) == one.after_sha256)
        };
        let left = if files.iter().all(is_new) { Vec::new() } else { self.undo(files) };
        for below in folders(files.iter().map(|one| one.file.as_str())) {
            if let Ok(directory) = DirectoryHandle::open(self.root(), Utf8Path::new(below)) {
                directory.clean();
            }
        }
        left.is_empty()
    }

    fn get_ready<'a>(&self, edit: &'a FileEdit) -> Result<Ready<'a>, MultiEditError> {
        let file = self.gate().display(&edit.path);
        let failed = |error: EditError| MultiEditError::File { file: file.clone(), error };
        let path = self.admit(edit.path.as_str()).map_err(failed)?;
        if path != edit.path {
            return Err(MultiEditError::Stale { file });
        }
        let (directory, _, found) = self.look_up(&file).map_err(failed)?;
        self.clean(&directory, parent(&file));
        let text = Text::read(found.bytes.clone()).map_err(failed)?;
        if !found.writable {
            return Err(failed(EditError::ReadOnly));
        }
        if text.body() != edit.before {
            return Err(MultiEditError::Stale { file });
        }
        let bytes = text.with_body(edit.after.clone()).to_bytes();
        if bytes.len() as u64 > MAX_TEXT_BYTES {
            return Err(failed(EditError::TooLarge { limit: MAX_TEXT_BYTES }));
        }
        let prepared =
            directory.prepare(&bytes, Some(&found), self.entropy()).map_err(|error| failed(error.into()))?;
        let before = String::from_utf8_lossy(&found.bytes).into_owned();
        let recorded = RecordedFile { file, before, after_sha256: sha256_hex(&bytes) };
        Ok(Ready { edit, found, prepared, recorded })
    }

    fn replace(&self, one: &Ready<'_>) -> Result<(), WriteFailure> {
        let file = Utf8Path::new(&one.recorded.file);
        let directory = DirectoryHandle::open(self.root(), parent(file.as_str()))?;
        directory.commit(&one.prepared, file.file_name().unwrap_or_default(), Some(&one.found))
    }

    fn failure(&self, edit: &FileEdit, failure: WriteFailure) -> MultiEditError {
        let file = self.gate().display(&edit.path);
        match failure {
            WriteFailure::Changed => MultiEditError::Stale { file },
            WriteFailure::Io(error) => MultiEditError::File { file, error: error.into() },
        }
    }

    fn discard(&self, ready: &[Ready<'_>]) {
        for one in ready {
            if let Ok(directory) = DirectoryHandle::open(self.root(), parent(&one.recorded.file)) {
                directory.discard(&one.prepared);
            }
        }
    }

    /// Gives files with the new text their old one back. Returns those where that failed.
    fn undo(&self, files: &[RecordedFile]) -> Vec<String> {
        let fails = |one: &&RecordedFile| match self.undo_file(one) {
            Ok(()) => false,
            Err(error) => {
                tracing::warn!(file = one.file, %error, "cannot undo a part of a change");
                // A file that is gone, too large or may not be changed does not have our new text.
                matches!(
                    error,
                    EditError::Io(_) | EditError::DiskFull | EditError::ReadOnly | EditError::Changing
                )
            }
        };
        files.iter().filter(fails).map(|one| one.file.clone()).collect()
    }

    fn undo_file(&self, one: &RecordedFile) -> Result<(), EditError> {
        for _ in 0..TRIES {
            let (directory, name, found) = self.look_up(&one.file)?;
            // Else it was not replaced yet, or another program has changed it since.
            if sha256_hex(&found.bytes) != one.after_sha256 {
                return Ok(());
            }
            match directory.replace(&name, one.before.as_bytes(), Some(&found), self.entropy()) {
                Ok(()) => return Ok(directory.sync()?),
                Err(WriteFailure::Changed) => {}
                Err(WriteFailure::Io(error)) => return Err(error.into()),
            }
        }
        Err(EditError::Changing)
    }

    /// An existing file that may be changed, with its folder and name.
    fn look_up(&self, file: &str) -> Result<(DirectoryHandle, String, FileSnapshot), EditError> {
        let path = self.admit(file)?;
        let below = path.as_path().strip_prefix(self.root()).map_err(|_| EditError::Outside)?;
        let (Some(parent), Some(name)) = (below.parent(), below.file_name()) else {
            return Err(EditError::NotAFile);
        };
        let directory = DirectoryHandle::open(self.root(), parent)?;
        let found = directory.read(name, MAX_TEXT_BYTES).map_err(read_failed)?.ok_or(EditError::NotFound)?;
        Ok((directory, name.to_owned(), found))
    }

    /// Makes all renames durable before the record of the change is removed.
    fn sync_folders(&self, ready: &[Ready<'_>]) {
        for below in folders(ready.iter().map(|one| one.recorded.file.as_str())) {
            let synced = DirectoryHandle::open(self.root(), below).and_then(|directory| directory.sync());
            if let Err(error) = synced {
                tracing::warn!(%below, %error, "cannot sync a folder");
            }
        }
    }
}

/// The folders of files.
fn folders<'a>(files: impl Iterator<Item = &'a str>) -> BTreeSet<&'a Utf8Path> {
    files.map(parent).collect()
}

fn parent(file: &str) -> &Utf8Path {
    Utf8Path::new(file).parent().unwrap_or(Utf8Path::new(""))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use camino::Utf8PathBuf;
    use tenon_contract::clock::Entropy;
    use tenon_lsp::watch::UNFINISHED_EDIT;

    use super::super::edit_journal::OpenRecord;
    use super::*;

    /// A root with files, and a state folder beside it.
    struct Fixture {
        _folder: tempfile::TempDir,
        root: Utf8PathBuf,
        writer: FileWriter,
        journal: EditJournal,
    }

    const FILES: [&str; 3] = ["a.txt", "sub/b.txt", "sub/c.txt"];

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let top = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
            let root = top.join("root");
            fs::create_dir_all(root.join("sub")).unwrap();
            for file in FILES {
                fs::write(root.join(file), "\u{feff}old\r\n").unwrap();
            }
            let writer = FileWriter::new(&root, vec![top.join("state")]).unwrap();
            let journal = EditJournal::new(&top.join("state"), &root);
            Self { _folder: folder, root, writer, journal }
        }

        fn edits(&self, files: &[&str]) -> Vec<FileEdit> {
            let edit = |file: &&str| FileEdit {
                path: self.writer.gate().admit_path(file).unwrap(),
                before: "old\r\n".to_owned(),
                after: "new\r\n".to_owned(),
            };
            files.iter().map(edit).collect()
        }

        fn change(&self, files: &[&str]) -> Result<(), MultiEditError> {
            self.writer.change_all(&self.journal, &self.edits(files))
        }

        fn texts(&self) -> Vec<String> {
            FILES.iter().map(|file| fs::read_to_string(self.root.join(file)).unwrap()).collect()
        }

        /// Everything below a folder.
        fn listed(folder: &Path) -> Vec<PathBuf> {
            let mut found = Vec::new();
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    found.extend(Self::listed(&path));
                } else {
                    found.push(path);
                }
            }
            found
        }

        /// Only the files of the fixture are left, and no record.
        fn assert_clean(&self) {
            let left = Self::listed(self.root.parent().unwrap().as_std_path());
            assert_eq!(left.len(), FILES.len(), "{left:?}");
        }

        /// The state that a process leaves that ended after it replaced the first `replaced` files.
        fn leave_unfinished(&self, replaced: usize) {
            let recorded = FILES.map(|file| RecordedFile {
                file: file.to_owned(),
                before: OLD.to_owned(),
                after_sha256: sha256_hex(NEW),
            });
            drop::<OpenRecord>(self.journal.begin(recorded.to_vec(), &Entropy::system()).unwrap());
            for (at, file) in FILES.iter().enumerate() {
                let path = self.root.join(file);
                match at < replaced {
                    true => fs::write(&path, NEW).unwrap(),
                    false => fs::write(path.with_file_name(format!("{UNFINISHED_EDIT}{at}")), NEW).unwrap(),
                }
            }
        }

        fn recover(&self) {
            for record in self.journal.unfinished() {
                super::super::recover(&self.writer, record);
            }
        }
    }

    const OLD: &str = "\u{feff}old\r\n";
    const NEW: &str = "\u{feff}new\r\n";

    #[test]
    fn all_files_change_and_nothing_is_left_over() {
        let fixture = Fixture::new();
        fixture.change(&FILES).unwrap();
        assert_eq!(fixture.texts(), [NEW; 3]);
        fixture.assert_clean();
        let failed = fixture.change(&FILES[..1]);
        assert!(matches!(&failed, Err(MultiEditError::Stale { file }) if file == "a.txt"), "{failed:?}");
    }

    #[test]
    fn one_bad_file_leaves_all_unchanged() {
        for spoil in [
            (|path: &Path| fs::write(path, "other\n").unwrap()) as fn(&Path),
            |path| fs::write(path, b"old \xff").unwrap(),
            |path| fs::remove_file(path).unwrap(),
            |path| {
                let mut mode = fs::metadata(path).unwrap().permissions();
                mode.set_readonly(true);
                fs::set_permissions(path, mode).unwrap();
            },
        ] {
            let fixture = Fixture::new();
            let edits = fixture.edits(&FILES);
            spoil(fixture.root.join(FILES[2]).as_std_path());
            let failed = fixture.writer.change_all(&fixture.journal, &edits);
            assert!(failed.is_err());
            for file in &FILES[..2] {
                assert_eq!(fs::read_to_string(fixture.root.join(file)).unwrap(), OLD, "{failed:?}");
            }
            let left = Fixture::listed(fixture.root.parent().unwrap().as_std_path());
            assert!(left.len() <= FILES.len(), "{left:?}");
        }
    }

    #[test]
    fn protected_file_leaves_all_unchanged() {
        let fixture = Fixture::new();
        fs::write(fixture.root.join(".mcp.json"), OLD).unwrap();
        let failed = fixture.change(&["a.txt", ".mcp.json"]);
        let is_protected =
            matches!(&failed, Err(MultiEditError::File { error: EditError::Protected(_), .. }));
        assert!(is_protected, "{failed:?}");
        assert_eq!(fixture.texts(), [OLD; 3]);
    }

    #[test]
    fn large_changes_are_rejected() {
        let fixture = Fixture::new();
        let mut edits = fixture.edits(&["a.txt"]);
        edits[0].after = "x".repeat(MAX_TEXT_BYTES as usize);
        let failed = fixture.writer.change_all(&fixture.journal, &edits);
        let is_large = matches!(&failed, Err(MultiEditError::File { error: EditError::TooLarge { .. }, .. }));
        assert!(is_large, "{failed:?}");
        let many = vec![fixture.edits(&["a.txt"]).remove(0); MAX_FILES + 1];
        let failed = fixture.writer.change_all(&fixture.journal, &many);
        assert!(matches!(failed, Err(MultiEditError::TooManyFiles { .. })), "{failed:?}");
        assert_eq!(fixture.texts(), [OLD; 3]);
        fixture.assert_clean();
    }

    #[test]
    fn unfinished_change_is_undone_or_finished() {
        for replaced in 0..=FILES.len() {
            let fixture = Fixture::new();
            fixture.leave_unfinished(replaced);
            fixture.recover();
            let expected = if replaced == FILES.len() { NEW } else { OLD };
            assert_eq!(fixture.texts(), [expected; 3], "{replaced} files were replaced");
            fixture.assert_clean();
        }
    }

    #[test]
    fn file_that_changed_since_the_crash_is_not_overwritten() {
        let fixture = Fixture::new();
        fixture.leave_unfinished(2);
        fs::write(fixture.root.join(FILES[1]), "someone else's").unwrap();
        fixture.recover();
        assert_eq!(fixture.texts(), [OLD, "someone else's", OLD]);
        fixture.assert_clean();
    }

    #[cfg(unix)]
    #[test]
    fn hostile_record_changes_nothing_outside_the_root_and_no_protected_file() {
        let fixture = Fixture::new();
        let outside = fixture.root.parent().unwrap().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), NEW).unwrap();
        std::os::unix::fs::symlink(&outside, fixture.root.join("link")).unwrap();
        std::os::unix::fs::symlink(outside.join("secret"), fixture.root.join("direct")).unwrap();
        fs::create_dir(fixture.root.join(".git")).unwrap();
        fs::write(fixture.root.join(".git/config"), NEW).unwrap();
        let absolute = outside.join("secret");
        let hostile = [
            "../outside/secret",
            "link/secret",
            "direct",
            absolute.as_str(),
            ".git/config",
            "",
            "/",
            "sub",
            "a\0b",
            "none",
        ];
        let recorded = hostile.map(|file| RecordedFile {
            file: file.to_owned(),
            before: "overwritten".to_owned(),
            after_sha256: sha256_hex(NEW),
        });
        drop(fixture.journal.begin(recorded.to_vec(), &Entropy::system()).unwrap());
        fixture.recover();
        assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), NEW);
        assert_eq!(fs::read_to_string(fixture.root.join(".git/config")).unwrap(), NEW);
        assert_eq!(fixture.texts(), [OLD; 3]);
        assert!(fixture.journal.unfinished().is_empty(), "the record is over");
    }
}
