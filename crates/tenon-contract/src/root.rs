//! The root gate: the only way from a path or URI that someone sent to a path that may be read or returned.
//!
//! Policy:
//! - A path is allowed when its real path (all symlinks resolved) is an allowed root or below one. Roots are real
//!   paths too. Hard links are files like any other: nothing tells the names of one file apart.
//! - Outside the roots the answer is [`GateError::Denied`] whether or not something is there, so nobody learns
//!   what is. The longest existing prefix decides, links that dangle included. `.` and `..` are resolved in the text
//!   before the file system is asked, as RFC 3986 has it: what they step over would otherwise show by the answer.
//! - Only what the operating system itself resolved is ever admitted (and, for a file still to be written, names
//!   below it that do not exist); our own walk over the components merely decides which error a failure is.
//! - Nothing here names a path in an error: the caller knows what it asked for.
//!
//! [`WorkspacePath`] and [`CanonicalUri`] have no other constructor. They say what was true when the gate looked;
//! [`RootGate::read_to_string`] therefore looks again, without following links. All of it asks the file
//! system, so callers on an async thread move it to a blocking one.

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
#[path = "root/portable.rs"]
mod platform;
#[cfg(unix)]
#[path = "root/unix.rs"]
mod platform;

pub use read::ReadError;
pub use uri::{CanonicalUri, Malformed};

/// Longest URI or path that is looked at: four times what Linux resolves, percent-encoded and all.
const MAX_INPUT_BYTES: usize = 32 * 1024;
/// As many symlinks as Linux follows in one path.
const MAX_LINKS: usize = 40;

/// Why the gate does not let something in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// It does not say which file is meant.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// It is outside the allowed roots, or there are none.
    #[error("outside the allowed roots")]
    Denied,
    /// It would be inside, but is not there.
    #[error("no such file inside the allowed roots")]
    Missing,
    /// It would be inside, but the file system cannot say where: a loop of links, a folder without permission.
    #[error("the path cannot be resolved")]
    Unresolvable,
    /// It is inside, but a folder, pipe, socket or device.
    #[error("not a regular file")]
    NotAFile,
    /// A folder was asked for, and it is something else.
    #[error("not a folder")]
    NotAFolder,
}

/// Why a folder cannot be an allowed root.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    #[error("root `{}` cannot be resolved", .path.display())]
    Unresolvable { path: PathBuf, source: io::Error },
    #[error("root `{}` is not a folder", .path.display())]
    NotAFolder { path: PathBuf },
    #[error("root `{}` is not valid UTF-8", .path.display())]
    NotUtf8 { path: PathBuf },
}

/// A real path inside the allowed roots, as the gate found it. Cheap to clone.
///
/// Ordered by the bytes of the path, which is not the order of the URIs: what sorts by URI sorts by [`Self::uri`].
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

/// The allowed roots, and what may pass. Cheap to clone; a changed set of roots is a new gate.
#[derive(Clone, Debug)]
pub struct RootGate(Arc<Roots>);

#[derive(Debug)]
struct Roots {
    /// Real paths, sorted by bytes, no duplicates. An outer root sorts before the ones nested in it.
    sorted: Vec<Utf8PathBuf>,
    primary: Option<Utf8PathBuf>,
    key: String,
}

impl RootGate {
    /// A gate for these roots; the first is the primary one, against which relative paths are read. Without any
    /// root the gate denies everything.
    ///
    /// # Errors
    /// When a root does not exist, is no folder, or has a name that is not UTF-8.
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

    /// The root that relative paths start from.
    #[must_use]
    pub fn primary(&self) -> Option<&Utf8Path> {
        self.0.primary.as_deref()
    }

    /// SHA-256 over the canonical JSON of the sorted roots, in hex: the part of a snapshot key that names them.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// Lets a `file:` URI in that names a regular file inside the roots.
    ///
    /// # Errors
    /// See [`GateError`].
    pub fn admit_uri(&self, uri: &str) -> Result<WorkspacePath, GateError> {
        self.some_root()?;
        self.file(Utf8Path::new(&uri::decode(uri)?))
    }

    /// Lets a path in that names a regular file inside the roots: absolute, or relative to the primary root.
    ///
    /// # Errors
    /// See [`GateError`].
    pub fn admit_path(&self, path: impl AsRef<Path>) -> Result<WorkspacePath, GateError> {
        self.file(&self.absolute(path.as_ref())?)
    }

    /// Lets a path in that names a folder inside the roots, the roots themselves included.
    ///
    /// # Errors
    /// See [`GateError`].
    pub fn admit_folder(&self, path: impl AsRef<Path>) -> Result<WorkspacePath, GateError> {
        let (real, kind) = self.resolve(&self.absolute(path.as_ref())?)?;
        if kind.is_dir() { Ok(WorkspacePath::new(real)) } else { Err(GateError::NotAFolder) }
    }

    /// Lets a path in that a file is to be written to: a regular file inside the roots, or one that is not there yet,
    /// nor perhaps its folders. A link that leads nowhere is refused.
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

    /// Lets a URI out that a server gave: only when it names a regular file inside the roots.
    #[must_use]
    pub fn admit_output_uri(&self, uri: &str) -> Option<WorkspacePath> {
        self.admit_uri(uri).ok()
    }

    /// A filter for one answer, which asks the file system once for each distinct URI.
    #[must_use]
    pub fn output_filter(&self) -> OutputFilter<'_> {
        OutputFilter { gate: self, known: IndexMap::new() }
    }

    /// How a path is shown: relative to the primary root with `/` between its names, absolute when it is in another
    /// root. [`RootGate::admit_path`] and [`RootGate::admit_folder`] read it back.
    #[must_use]
    pub fn display(&self, path: &WorkspacePath) -> String {
        let relative = self.primary().and_then(|primary| path.as_path().strip_prefix(primary).ok());
        match relative {
            Some(relative) if relative.as_str().is_empty() => ".".to_owned(),
            Some(relative) => platform::with_slashes(relative.as_str()),
            None => platform::with_slashes(path.as_str()),
        }
    }

    fn some_root(&self) -> Result<&Utf8Path, GateError> {
        self.primary().ok_or(GateError::Denied)
    }

    fn absolute(&self, path: &Path) -> Result<Utf8PathBuf, GateError> {
        let primary = self.some_root()?;
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
        let Ok(real) = fs::canonicalize(&normal) else {
            return Err(self.classify(normal.as_std_path()));
        };
        self.containing_root(&real).ok_or(GateError::Denied)?;
        let real = Utf8PathBuf::from_path_buf(real).map_err(|_| Malformed::NotUtf8)?;
        let kind = fs::symlink_metadata(&real).map_err(|_| GateError::Missing)?.file_type();
        if names_folder && !kind.is_dir() {
            return Err(GateError::Missing);
        }
        Ok((real, kind))
    }

    /// The outermost root that a real path is in.
    fn containing_root(&self, real: &Path) -> Option<&Utf8Path> {
        self.roots().iter().find(|root| real.starts_with(root)).map(Utf8PathBuf::as_path)
    }

    /// What to answer for a path that does not resolve: follows it as far as it goes, and asks where that is.
    fn classify(&self, normal: &Path) -> GateError {
        let mut place = PathBuf::new();
        let mut ahead: VecDeque<OsString> = owned_components(normal);
        let mut links = 0;
        let failure = loop {
            let Some(name) = ahead.pop_front() else {
                break GateError::Missing;
            };
            if name == ".." {
                place.pop();
                continue;
            }
            place.push(&name);
            match fs::symlink_metadata(&place) {
                Ok(found) if found.is_symlink() => {
                    links += 1;
                    let Ok(target) = fs::read_link(&place) else {
                        break GateError::Unresolvable;
                    };
                    if links > MAX_LINKS {
                        break GateError::Unresolvable;
                    }
                    place.pop();
                    for name in owned_components(&target).into_iter().rev() {
                        ahead.push_front(name);
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    break GateError::Unresolvable;
                }
                Err(_) => break GateError::Missing,
            }
        };
        // Neither the place where it ended nor the one it was on the way to may be outside.
        let mut goal = place.clone();
        for name in ahead {
            if name == ".." {
                goal.pop();
            } else {
                goal.push(name);
            }
        }
        let inside = self.containing_root(&place).is_some() && self.containing_root(&goal).is_some();
        if inside { failure } else { GateError::Denied }
    }
}

/// Lets the URIs of one answer out, each distinct one resolved once.
#[derive(Debug)]
pub struct OutputFilter<'gate> {
    gate: &'gate RootGate,
    known: IndexMap<String, Option<WorkspacePath>>,
}

impl OutputFilter<'_> {
    /// As [`RootGate::admit_output_uri`].
    pub fn admit(&mut self, uri: &str) -> Option<WorkspacePath> {
        if let Some(known) = self.known.get(uri) {
            return known.clone();
        }
        let admitted = self.gate.admit_output_uri(uri);
        self.known.insert(uri.to_owned(), admitted.clone());
        admitted
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

/// Resolves `.`, `..` and doubled slashes in the text alone, and says whether the text can only name a folder.
fn normalise(path: &Utf8Path) -> (Utf8PathBuf, bool) {
    let mut normal = Utf8PathBuf::new();
    for component in path.components() {
        match component {
            Utf8Component::ParentDir => {
                normal.pop();
            }
            Utf8Component::CurDir => {}
            kept => normal.push(kept),
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
