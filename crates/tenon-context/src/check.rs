//! Checking a cache against every rule of its format, reading each file once and in parallel.
//!
//! One pass serves every reader: it hands each document that holds to the caller, who keeps of it what he needs. What
//! is broken is listed in a fixed order (manifest, index, documents by id, strangers by name), however the
//! threads were scheduled.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rayon::prelude::*;

use crate::document::{DocumentFile, Version};
use crate::error::{Error, Violation};
use crate::folder::{Fault, Folder};
use crate::manifest::{BuildConfig, DOCUMENTS, Entry, INDEX, MANIFEST, Manifest};
use crate::stamp::Stamp;
use crate::system::{self, Identity};

/// What a valid cache says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub cache_version: String,
    pub document_count: usize,
}

/// Checks every rule. An invalid cache comes back as [`Error::CacheInvalid`] with all that it breaks.
pub fn verify(cache: &Path) -> Result<Summary, Error> {
    let checked = check(cache, |_, _| ())?;
    Ok(Summary { cache_version: checked.manifest.cache_version, document_count: checked.kept.len() })
}

/// A valid cache, and what was kept of each document, in byte order of the ids.
pub(crate) struct Checked<T> {
    pub manifest: Manifest,
    pub kept: Vec<T>,
    /// Absent if something was just being put there; then nothing can be compared with them.
    pub stamps: Option<Stamps>,
    /// Bytes of the document files.
    pub bytes: u64,
}

/// What the folder and its lists looked like before anything in them was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamps {
    folder: Stamp,
    documents: Option<Stamp>,
    manifest: Stamp,
    index: Option<Stamp>,
}

impl Stamps {
    /// What they look like now; `None` if the folder or the manifest is gone.
    pub(crate) fn now(cache: &Path) -> Option<Self> {
        let at = |name: &str| Stamp::at(&cache.join(name)).ok();
        Some(Self {
            folder: Stamp::at(cache).ok()?,
            documents: at(DOCUMENTS),
            manifest: at(MANIFEST)?,
            index: at(INDEX),
        })
    }
}

/// Reads and checks a cache, keeping of each document what `keep` makes of its content and stamp.
pub(crate) fn check<T, F>(cache: &Path, keep: F) -> Result<Checked<T>, Error>
where
    T: Send,
    F: Fn(Cow<'_, str>, Stamp) -> T + Sync,
{
    let found = examine(cache, keep)?;
    if !found.violations.is_empty() {
        return Err(Error::invalid(cache, found.violations));
    }
    if let Some(denied) = found.denied {
        return Err(denied);
    }
    let manifest = found.manifest.expect("a manifest that is absent is a violation");
    Ok(Checked { manifest, kept: found.kept, stamps: found.stamps, bytes: found.bytes })
}

/// All that was found in a cache folder, good or bad.
pub(crate) struct Findings<T> {
    pub manifest: Option<Manifest>,
    stamps: Option<Stamps>,
    kept: Vec<T>,
    /// Bytes of the document files that are there, whatever is in them.
    pub bytes: u64,
    pub violations: Vec<Violation>,
    /// The first refusal of the operating system.
    pub denied: Option<Error>,
}

impl<T> Findings<T> {
    fn is_clean(&self) -> bool {
        self.violations.is_empty() && self.denied.is_none()
    }

    fn note(&mut self, fault: Fault) {
        match fault {
            Fault::Broken(violation) => self.violations.push(violation),
            Fault::Denied(error) => self.denied = self.denied.take().or(Some(error)),
        }
    }
}

/// How often a cache may be replaced under the eyes of one reader before he believes what he sees.
const REPLACEMENTS: usize = 16;

/// Reads everything there is to read. Fails only where there is no folder, or none that may be entered.
///
/// A reader that began in a folder which was replaced meanwhile has seen half of each; it begins again.
pub(crate) fn examine<T, F>(cache: &Path, keep: F) -> Result<Findings<T>, Error>
where
    T: Send,
    F: Fn(Cow<'_, str>, Stamp) -> T + Sync,
{
    let mut attempts = 0;
    loop {
        let before = identity(cache);
        let found = Folder::open(cache).map(|folder| examine_folder(&folder, &keep));
        attempts += 1;
        let settled = matches!(&found, Ok(found) if found.is_clean()) || before == identity(cache);
        if settled || attempts > REPLACEMENTS {
            return found;
        }
    }
}

fn identity(cache: &Path) -> Option<Identity> {
    fs::metadata(cache).ok().map(|metadata| system::identity(&metadata))
}

fn examine_folder<T, F>(folder: &Folder, keep: &F) -> Findings<T>
where
    T: Send,
    F: Fn(Cow<'_, str>, Stamp) -> T + Sync,
{
    let mut found = Findings {
        manifest: None,
        stamps: Stamps::now(folder.path()),
        kept: Vec::new(),
        bytes: 0,
        violations: Vec::new(),
        denied: None,
    };
    let manifest = match read_manifest(folder) {
        Ok(manifest) => manifest,
        Err(fault) => {
            found.note(fault);
            return found;
        }
    };
    found.violations = manifest.violations();
    if manifest.build_config == BuildConfig::current() {
        let (index, documents) =
            rayon::join(|| check_index(folder, &manifest), || check_documents(folder, &manifest, keep));
        index.into_iter().for_each(|fault| found.note(fault));
        for document in documents {
            match document {
                Ok((kept, bytes)) => {
                    found.kept.push(kept);
                    found.bytes += bytes;
                }
                Err((fault, bytes)) => {
                    found.note(fault);
                    found.bytes += bytes;
                }
            }
        }
    }
    found.manifest = Some(manifest);
    found
}

pub(crate) fn read_manifest(folder: &Folder) -> Result<Manifest, Fault> {
    let mut bytes = Vec::new();
    folder.read(MANIFEST, &mut bytes)?;
    serde_json::from_slice(&bytes).map_err(|error| malformed(MANIFEST, &error).into())
}

fn malformed(file: &str, error: &serde_json::Error) -> Violation {
    Violation::Malformed { file: file.to_owned(), reason: error.to_string() }
}

fn check_index(folder: &Folder, manifest: &Manifest) -> Option<Fault> {
    let mut bytes = Vec::new();
    if let Err(fault) = folder.read(INDEX, &mut bytes) {
        return Some(fault);
    }
    match serde_json::from_slice::<BTreeMap<String, String>>(&bytes) {
        Err(error) => Some(malformed(INDEX, &error).into()),
        Ok(index) => {
            let listed = index.iter().map(|(id, file)| (&**id, &**file));
            let same = listed.eq(manifest.index());
            (!same).then_some(Violation::IndexDiffers.into())
        }
    }
}

/// What a document file comes to, and its size.
type Document<T> = Result<(T, u64), (Fault, u64)>;

fn check_documents<T, F>(folder: &Folder, manifest: &Manifest, keep: &F) -> Vec<Document<T>>
where
    T: Send,
    F: Fn(Cow<'_, str>, Stamp) -> T + Sync,
{
    let names = match folder.names(DOCUMENTS) {
        Ok(names) => names,
        Err(fault) => return vec![Err((fault, 0))],
    };
    let mut documents: Vec<Document<T>> = manifest
        .documents
        .par_iter()
        .map_init(Vec::new, |buffer, entry| check_document(folder, entry, buffer, keep))
        .collect();
    let listed: BTreeSet<&str> = manifest.documents.iter().filter_map(Entry::file_name).collect();
    let strangers = names.iter().filter(|name| !listed.contains(name.as_str()));
    documents.extend(
        strangers.map(|name| Err((Violation::Unlisted { file: format!("{DOCUMENTS}/{name}") }.into(), 0))),
    );
    documents
}

fn check_document<T, F>(folder: &Folder, entry: &Entry, buffer: &mut Vec<u8>, keep: &F) -> Document<T>
where
    F: Fn(Cow<'_, str>, Stamp) -> T,
{
    let file = || entry.file.clone();
    if entry.file_name().is_none() {
        return Err((Violation::Misplaced { file: file() }.into(), 0));
    }
    let stamp = folder.read(&entry.file, buffer).map_err(|fault| (fault, 0))?;
    let bytes = stamp.size();
    let broken = |violation: Violation| (violation.into(), bytes);
    let document: DocumentFile<'_> =
        serde_json::from_slice(buffer).map_err(|error| broken(malformed(&entry.file, &error)))?;
    if document.id != entry.id {
        return Err(broken(Violation::WrongDocument { file: file(), id: entry.id.clone() }));
    }
    if document.version != entry.version || Version::of(&*document.content) != entry.version {
        return Err(broken(Violation::WrongHash { file: file() }));
    }
    Ok((keep(document.content, stamp), bytes))
}
