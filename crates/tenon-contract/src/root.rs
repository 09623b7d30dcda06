//! The root gate: checks every path or URI from a client or server before it is read or returned.
//!
//! Policy:
//! - A path is allowed if its real path (all symlinks resolved) is an allowed root or below one. Roots are real
//!   paths too. Hard links cannot be distinguished from other files and are allowed.
//! - Outside the roots the answer is always [`GateError::Denied`], so it does not reveal which files exist. The longest
//!   existing prefix decides, including dangling links. `.` and `..` are resolved in the text before any file system
//!   access, as in RFC 3986; otherwise the answer would reveal whether the skipped folders exist.
//! - Only paths that the operating system resolved are admitted (plus, for a file to be written, missing names below
//!   one). Our own walk over the components only decides which error to report.
//! - Errors contain no path: the caller knows which one it sent.
//!
//! [`WorkspacePath`] and [`CanonicalUri`] have no other constructor. They state what was true at the time of the check,
//! so [`RootGate::read_to_string`] checks again, without following links. All functions access the file system;
//! async callers run them on a blocking thread.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use indexmap::IndexMap;

use crate::id::sha256_hex;
use crate::json;

mod read;
mod uri;

#[cfg(not(unix))]
#[path = "root/non_unix.rs"]
mod platform;
#[cfg(unix)]
#[path = "root/unix.rs"]
mod platform;

pub use read::ReadError;
pub use uri::{CanonicalUri, Malformed};

/// Longest accepted URI or path: well above what Linux resolves, even percent-encoded.
const MAX_INPUT_BYTES: usize = 32 * 1024;
/// Maximum number of symlinks in one path, as on Linux.
const MAX_LINKS: usize = 40;

/// Why the gate rejects a path or URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The text is not a valid path or `file:` URI.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// Outside the allowed roots, or there are no roots.
    #[error("outside the allowed roots")]
    Denied,
    /// Inside the roots, but does not exist.
    #[error("no such file inside the allowed roots")]
    Missing,
    /// Inside the roots, but cannot be resolved: a loop of links, or a folder without permission.
    #[error("cannot resolve the path")]
    Unresolvable,
    /// Inside the roots, but a folder, pipe, socket or device.
    #[error("not a regular file")]
    NotAFile,
    /// A folder is required, and the path is not one.
    #[error("not a folder")]
    NotAFolder,
    /// An allowed root was removed or moved since the gate was made.
    #[error("workspace root is missing")]
    RootMissing,
}

/// Why a folder cannot be an allowed root.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    #[error("cannot resolve root `{}`", .path.display())]
    Unresolvable { path: PathBuf, source: io::Error },
    #[error("root `{}` is not a folder", .path.display())]
    NotAFolder { path: PathBuf },
    #[error("root `{}` is not valid UTF-8", .path.display())]
    NotUtf8 { path: PathBuf },
}

/// A real path inside the allowed roots at the time of the check. Cheap to clone.
///
/// Ordered by the bytes of the path, which differs from the order of the URIs: to sort by URI, use [`Self::uri`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(Arc<Admitted>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Admitted {
    real: String,
    uri: CanonicalUri,
}

impl WorkspacePath {
    fn new(real: Utf8PathBuf) -> Self {
        let uri = CanonicalUri::of(&real);
        Self(Arc::new(Admitted { real: real.into_string(), uri }))
    }

    #[must_use]
    pub fn as_path(&self) -> &Utf8Path {
        Utf8Path::new(&self.0.real)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.real
    }

    #[must_use]
    pub fn uri(&self) -> &CanonicalUri {
        &self.0.uri
    }
}

impl AsRef<Path> for WorkspacePath {
    fn as_ref(&self) -> &Path {
        self.as_path().as_std_path()
    }
}

/// The allowed roots and the checks against them. Cheap to clone; a changed set of roots needs a new gate.
#[derive(Clone, Debug)]
pub struct RootGate(Arc<Roots>);

#[derive(Debug)]
struct Roots {
    /// Real paths, sorted by bytes, no duplicates. An outer root sorts before nested ones.
    sorted: Vec<Utf8PathBuf>,
    primary: Option<Utf8PathBuf>,
    key: String,
}

impl RootGate {
    /// A gate for these roots. Relative paths are resolved against the first, the primary root. Without roots the gate
    /// denies everything.
    ///
    /// # Errors
    /// If a root does not exist, is not a folder, or has a name that is not UTF-8.
    pub fn new<P: AsRef<Path>>(roots: impl IntoIterator<Item = P>) -> Result<Self, RootError> {
        let mut sorted =
            roots.into_iter().map(|root| real_root(root.as_ref())).collect::<Result<Vec<_>, _>>()?;
        let primary = sorted.first().cloned();
        sorted.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        sorted.dedup();
        let key = roots_key(&sorted);
        Ok(Self(Arc::new(Roots { sorted, primary, key })))
    }

    /// The allowed roots: real paths in byte order.
    #[must_use]
    pub fn roots(&self) -> &[Utf8PathBuf] {
        &self.0.sorted
    }

    /// The root that relative paths are resolved against.
    #[must_use]
    pub fn primary(&self) -> Option<&Utf8Path> {
        self.0.primary.as_deref()
    }

    /// SHA-256 over the canonical JSON of the sorted roots, in hex: identifies them in snapshot keys.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// Admits a `file:` URI of a regular file inside the roots.
    ///
    /// # Errors
    /// See [`GateError`].
    pub fn admit_uri(&self, uri: &str) -> Result<WorkspacePath, GateError> {
        self.require_primary()?;
        self.file(Utf8Path::new(&uri::decode(uri)?))
    }

    /// Admits a path of a regular file inside the roots: absolute, or relative to the primary root.
    ///
    /// # Errors
    /// See [`GateError`].
    pub fn admit_path(&self, path: impl AsRef<Path>) -> Result<WorkspacePath, GateError> {
        self.file(&self.absolute(path.as_ref())?)
    }

    /// Admits a path of a folder inside the roots, including the roots themselves.
    ///
    /// # Errors
    /// See [`GateError`].
    pub fn admit_folder(&self, path: impl AsRef<Path>) -> Result<WorkspacePath, GateError> {
        let (real, kind) = self.resolve(&self.absolute(path.as_ref())?)?;
        if kind.is_dir() { Ok(WorkspacePath::new(real)) } else { Err(GateError::NotAFolder) }
    }

    /// Admits a path to write a file to: a regular file inside the roots, or a missing one, whose folders may be
    /// missing too. A dangling link is rejected.
    ///
    /// # Errors
    /// See [`GateError`].
    pub fn admit_target(&self, path: impl AsRef<Path>) -> Result<WorkspacePath, GateError> {
        let absolute = self.absolute(path.as_ref())?;
        match self.file(&absolute) {
            Err(GateError::Missing) => {}
            decided => return decided,
        }
        let (normal, names_folder) = normalise(&absolute);
        if names_folder {
            return Err(GateError::NotAFile);
        }
        let exists = |prefix: &&Utf8Path| fs::symlink_metadata(prefix).is_ok();
        let existing = normal.ancestors().find(exists).ok_or(GateError::Missing)?;
        let rest = normal.strip_prefix(existing).expect("an ancestor is a prefix");
        let (prefix, kind) = self.resolve(existing)?;
        if !kind.is_dir() {
            return Err(GateError::Missing);
        }
        Ok(WorkspacePath::new(prefix.join(rest)))
    }

    /// Admits the path of a change on disk: a file or a folder inside the roots, or what was one. Its folder may be gone, or
    /// another kind of thing may have taken its name.
    ///
    /// # Errors
    /// See [`GateError`].
    pub fn admit_changed(&self, path: impl AsRef<Path>) -> Result<WorkspacePath, GateError> {
        let absolute = self.absolute(path.as_ref())?;
        match self.resolve(&absolute) {
            Ok((real, _)) => return Ok(WorkspacePath::new(real)),
            Err(GateError::Missing) => {}
            Err(error) => return Err(error),
        }
        let (normal, _) = normalise(&absolute);
        let exists = |prefix: &&Utf8Path| fs::symlink_metadata(prefix).is_ok();
        let existing = normal.ancestors().find(exists).ok_or(GateError::Missing)?;
        let rest = normal.strip_prefix(existing).expect("an ancestor is a prefix");
        let (prefix, _) = self.resolve(existing)?;
        // Joining nothing would add a slash.
        Ok(WorkspacePath::new(if rest.as_str().is_empty() { prefix } else { prefix.join(rest) }))
    }

    /// Admits a question about the whole workspace: there is a root, and all roots are there.
    ///
    /// # Errors
    /// [`GateError::Denied`] without roots, [`GateError::RootMissing`] if one is missing.
    pub fn admit_workspace(&self) -> Result<(), GateError> {
        self.require_primary()?;
        match self.roots().iter().all(|root| root.is_dir()) {
            true => Ok(()),
            false => Err(GateError::RootMissing),
        }
    }

    /// Admits a URI from a language server into an answer: only that of a regular file inside the roots.
    #[must_use]
    pub fn admit_output_uri(&self, uri: &str) -> Option<WorkspacePath> {
        self.admit_uri(uri).ok()
    }

    /// A filter for one answer, which checks each distinct URI once.
    #[must_use]
    pub fn output_filter(&self) -> OutputFilter<'_> {
        OutputFilter { gate: self, known: IndexMap::new(), folders: IndexMap::new() }
    }

    /// The path for display: relative to the primary root with `/` as separator, or absolute if in another root.
    /// [`RootGate::admit_path`] and [`RootGate::admit_folder`] accept it.
    #[must_use]
    pub fn display(&self, path: &WorkspacePath) -> String {
        let relative = self.primary().and_then(|primary| path.as_path().strip_prefix(primary).ok());
        match relative {
            Some(relative) if relative.as_str().is_empty() => ".".to_owned(),
            Some(relative) => platform::with_slashes(relative.as_str()),
            None => platform::with_slashes(path.as_str()),
        }
    }

    fn require_primary(&self) -> Result<&Utf8Path, GateError> {
        self.primary().ok_or(GateError::Denied)
    }

    fn absolute(&self, path: &Path) -> Result<Utf8PathBuf, GateError> {
        let primary = self.require_primary()?;
        let path = Utf8Path::from_path(path).ok_or(Malformed::NotUtf8)?;
        if path.as_str().len() > MAX_INPUT_BYTES {
            return Err(Malformed::TooLong.into());
        }
        if path.as_str().contains('\0') {
            return Err(Malformed::Nul.into());
        }
        Ok(primary.join(path))
    }

    fn file(&self, absolute: &Utf8Path) -> Result<WorkspacePath, GateError> {
        let (real, kind) = self.resolve(absolute)?;
        if kind.is_file() { Ok(WorkspacePath::new(real)) } else { Err(GateError::NotAFile) }
    }

    fn resolve(&self, absolute: &Utf8Path) -> Result<(Utf8PathBuf, fs::FileType), GateError> {
        let (normal, names_folder) = normalise(absolute);
        let kind = platform::kind_without_links(&normal);
        let real = match kind {
            Some(_) => normal.into_std_path_buf(),
            None => fs::canonicalize(&normal).map_err(|_| self.classify(normal.as_std_path()))?,
        };
        self.containing_root(&real).ok_or(GateError::Denied)?;
        let real = Utf8PathBuf::from_path_buf(real).map_err(|_| Malformed::NotUtf8)?;
        let kind = match kind {
            Some(kind) => kind,
            None => fs::symlink_metadata(&real).map_err(|_| GateError::Missing)?.file_type(),
        };
        if names_folder && !kind.is_dir() {
            return Err(GateError::Missing);
        }
        Ok((real, kind))
    }

    /// The outermost root that contains a real path.
    fn containing_root(&self, real: &Path) -> Option<&Utf8Path> {
        self.roots().iter().find(|root| real.starts_with(root)).map(Utf8PathBuf::as_path)
    }

    /// The error for a path that does not resolve: follows it as far as possible, to see whether that is inside.
    fn classify(&self, normal: &Path) -> GateError {
        let mut current = PathBuf::new();
        let mut rest: VecDeque<OsString> = owned_components(normal);
        let mut links = 0;
        let failure = loop {
            let Some(name) = rest.pop_front() else {
                break GateError::Missing;
            };
            if name == ".." {
                current.pop();
                continue;
            }
            current.push(&name);
            match fs::symlink_metadata(&current) {
                Ok(metadata) if metadata.is_symlink() => {
                    links += 1;
                    let Ok(target) = fs::read_link(&current) else {
                        break GateError::Unresolvable;
                    };
                    if links > MAX_LINKS {
                        break GateError::Unresolvable;
                    }
                    current.pop();
                    for name in owned_components(&target).into_iter().rev() {
                        rest.push_front(name);
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    break GateError::Unresolvable;
                }
                Err(_) => break GateError::Missing,
            }
        };
        // Both the path reached and the full target must be inside.
        let mut target = current.clone();
        for name in rest {
            if name == ".." {
                target.pop();
            } else {
                target.push(name);
            }
        }
        let inside = self.containing_root(&current).is_some() && self.containing_root(&target).is_some();
        if inside { failure } else { GateError::Denied }
    }
}

/// Admits the URIs of one answer and resolves each distinct one, and each of their folders, once.
#[derive(Debug)]
pub struct OutputFilter<'gate> {
    gate: &'gate RootGate,
    known: IndexMap<String, Option<WorkspacePath>>,
    folders: IndexMap<Utf8PathBuf, Option<platform::Folder>>,
}

/// The most folders that an [`OutputFilter`] keeps open.
const MAX_FOLDERS: usize = 64;

impl OutputFilter<'_> {
    /// As [`RootGate::admit_output_uri`].
    pub fn admit(&mut self, uri: &str) -> Option<WorkspacePath> {
        if let Some(known) = self.known.get(uri) {
            return known.clone();
        }
        let admitted = self.admit_in_folder(uri).or_else(|| self.gate.admit_output_uri(uri));
        self.known.insert(uri.to_owned(), admitted.clone());
        admitted
    }

    /// Admits a regular file whose path contains no link. `None` says nothing about the URI.
    fn admit_in_folder(&mut self, uri: &str) -> Option<WorkspacePath> {
        let (normal, names_folder) = normalise(Utf8Path::new(&uri::decode(uri).ok()?));
        self.gate.containing_root(normal.as_std_path())?;
        let (path, name) = (normal.parent()?, normal.file_name().filter(|_| !names_folder)?);
        if self.folders.len() == MAX_FOLDERS && !self.folders.contains_key(path) {
            self.folders.clear();
        }
        let folder =
            self.folders.entry(path.to_owned()).or_insert_with(|| platform::Folder::without_links(path));
        folder.as_ref()?.has_file(name).then(|| WorkspacePath::new(normal))
    }
}

fn real_root(path: &Path) -> Result<Utf8PathBuf, RootError> {
    let real =
        fs::canonicalize(path).map_err(|source| RootError::Unresolvable { path: path.to_owned(), source })?;
    if !real.is_dir() {
        return Err(RootError::NotAFolder { path: path.to_owned() });
    }
    Utf8PathBuf::from_path_buf(real).map_err(|path| RootError::NotUtf8 { path })
}

fn roots_key(sorted: &[Utf8PathBuf]) -> String {
    let texts: Vec<&str> = sorted.iter().map(|root| root.as_str()).collect();
    sha256_hex(json::canonical(&texts).expect("strings have a JSON form"))
}

/// Resolves `.`, `..` and doubled slashes in the text only. Also returns whether the text can only name a folder.
fn normalise(path: &Utf8Path) -> (Utf8PathBuf, bool) {
    let mut normal = Utf8PathBuf::new();
    for component in path.components() {
        match component {
            Utf8Component::ParentDir => {
                normal.pop();
            }
            Utf8Component::CurDir => {}
            other => normal.push(other),
        }
    }
    let text = path.as_str();
    let last = text.rsplit(std::path::is_separator).next().unwrap_or(text);
    (normal, matches!(last, "" | "." | ".."))
}

fn owned_components(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|component| !matches!(component, Component::CurDir))
        .map(|component| component.as_os_str().to_owned())
        .collect()
}
