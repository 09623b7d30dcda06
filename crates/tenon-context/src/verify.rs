//! Verifies a cache against every rule of the format, reading each file once and in parallel.
//!
//! All readers use this one pass: it hands each valid document to the caller's `convert` function. Violations are
//! listed in a fixed order (manifest, index, documents by id, unlisted files by name), independent of thread
//! scheduling.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rayon::prelude::*;

use crate::cache_folder::{CacheFolder, ReadFault};
use crate::document::{ContentVersion, DocumentFile};
use crate::error::{Error, Violation};
use crate::file_stamp::FileStamp;
use crate::manifest::{BuildConfig, DOCUMENTS, Entry, INDEX, MANIFEST, Manifest};
use crate::system::{self, Identity};

/// Version and size of a valid cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSummary {
    pub cache_version: String,
    pub document_count: usize,
}

/// Checks every rule. An invalid cache gives [`Error::CacheInvalid`] with all violations.
pub fn verify(cache: &Path) -> Result<CacheSummary, Error> {
    let valid = read_valid(cache, |_, _| ())?;
    Ok(CacheSummary { cache_version: valid.manifest.cache_version, document_count: valid.documents.len() })
}

/// A valid cache with its converted documents, in byte order of the ids.
pub(crate) struct ValidCache<T> {
    pub manifest: Manifest,
    pub documents: Vec<T>,
    /// Absent if the cache was being replaced at that moment; then later changes cannot be detected.
    pub stamps: Option<CacheStamps>,
    /// Bytes of the document files.
    pub bytes: u64,
}

/// Stamps of the folder and the lists, taken before any file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheStamps {
    folder: FileStamp,
    documents: Option<FileStamp>,
    manifest: FileStamp,
    index: Option<FileStamp>,
}

impl CacheStamps {
    /// The current stamps; `None` if the folder or the manifest is missing.
    pub(crate) fn now(cache: &Path) -> Option<Self> {
        let at = |name: &str| FileStamp::at(&cache.join(name)).ok();
        Some(Self {
            folder: FileStamp::at(cache).ok()?,
            documents: at(DOCUMENTS),
            manifest: at(MANIFEST)?,
            index: at(INDEX),
        })
    }
}

/// Reads and verifies a cache, passing the content and stamp of each document to `convert`.
pub(crate) fn read_valid<T, F>(cache: &Path, convert: F) -> Result<ValidCache<T>, Error>
where
    T: Send,
    F: Fn(Cow<'_, str>, FileStamp) -> T + Sync,
{
    let findings = examine(cache, convert)?;
    if !findings.violations.is_empty() {
        return Err(Error::invalid(cache, findings.violations));
    }
    if let Some(error) = findings.io_error {
        return Err(error);
    }
    let manifest = findings.manifest.expect("a missing manifest is a violation");
    Ok(ValidCache { manifest, documents: findings.documents, stamps: findings.stamps, bytes: findings.bytes })
}

/// The content and all problems of a cache folder.
pub(crate) struct Findings<T> {
    pub manifest: Option<Manifest>,
    stamps: Option<CacheStamps>,
    documents: Vec<T>,
    /// Total size of the existing document files, valid or not.
    pub bytes: u64,
    pub violations: Vec<Violation>,
    /// The first error from the operating system.
    pub io_error: Option<Error>,
}

impl<T> Findings<T> {
    fn is_clean(&self) -> bool {
        self.violations.is_empty() && self.io_error.is_none()
    }

    fn record(&mut self, fault: ReadFault) {
        match fault {
            ReadFault::Violation(violation) => self.violations.push(violation),
            ReadFault::Io(error) => self.io_error = self.io_error.take().or(Some(error)),
        }
    }
}

/// How often to start over because the cache was replaced during the read.
const MAX_RESTARTS: usize = 16;

/// Reads all files of a cache. Fails only if the folder is missing or cannot be entered.
///
/// If the folder was replaced during the read, the findings mix two caches, so the read starts over.
pub(crate) fn examine<T, F>(cache: &Path, convert: F) -> Result<Findings<T>, Error>
where
    T: Send,
    F: Fn(Cow<'_, str>, FileStamp) -> T + Sync,
{
    let mut attempts = 0;
    loop {
        let before = identity(cache);
        let findings = CacheFolder::open(cache).map(|folder| examine_folder(&folder, &convert));
        attempts += 1;
        let consistent =
            matches!(&findings, Ok(findings) if findings.is_clean()) || before == identity(cache);
        if consistent || attempts > MAX_RESTARTS {
            return findings;
        }
    }
}

fn identity(cache: &Path) -> Option<Identity> {
    fs::metadata(cache).ok().map(|metadata| system::identity(&metadata))
}

fn examine_folder<T, F>(folder: &CacheFolder, convert: &F) -> Findings<T>
where
    T: Send,
    F: Fn(Cow<'_, str>, FileStamp) -> T + Sync,
{
    let mut findings = Findings {
        manifest: None,
        stamps: CacheStamps::now(folder.path()),
        documents: Vec::new(),
        bytes: 0,
        violations: Vec::new(),
        io_error: None,
    };
    let manifest = match read_manifest(folder) {
        Ok(manifest) => manifest,
        Err(fault) => {
            findings.record(fault);
            return findings;
        }
    };
    findings.violations = manifest.violations();
    if manifest.build_config == BuildConfig::current() {
        let (index, documents) =
            rayon::join(|| check_index(folder, &manifest), || check_documents(folder, &manifest, convert));
        index.into_iter().for_each(|fault| findings.record(fault));
        for document in documents {
            match document {
                Ok((converted, bytes)) => {
                    findings.documents.push(converted);
                    findings.bytes += bytes;
                }
                Err((fault, bytes)) => {
                    findings.record(fault);
                    findings.bytes += bytes;
                }
            }
        }
    }
    findings.manifest = Some(manifest);
    findings
}

pub(crate) fn read_manifest(folder: &CacheFolder) -> Result<Manifest, ReadFault> {
    let mut bytes = Vec::new();
    folder.read(MANIFEST, &mut bytes)?;
    serde_json::from_slice(&bytes).map_err(|error| malformed(MANIFEST, &error).into())
}

fn malformed(file: &str, error: &serde_json::Error) -> Violation {
    Violation::Malformed { file: file.to_owned(), reason: error.to_string() }
}

fn check_index(folder: &CacheFolder, manifest: &Manifest) -> Option<ReadFault> {
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

/// A converted document or a fault, each with the size of the file.
type DocumentResult<T> = Result<(T, u64), (ReadFault, u64)>;

fn check_documents<T, F>(folder: &CacheFolder, manifest: &Manifest, convert: &F) -> Vec<DocumentResult<T>>
where
    T: Send,
    F: Fn(Cow<'_, str>, FileStamp) -> T + Sync,
{
    let names = match folder.names(DOCUMENTS) {
        Ok(names) => names,
        Err(fault) => return vec![Err((fault, 0))],
    };
    let mut documents: Vec<DocumentResult<T>> = manifest
        .documents
        .par_iter()
        .map_init(Vec::new, |buffer, entry| check_document(folder, entry, buffer, convert))
        .collect();
    let listed: BTreeSet<&str> = manifest.documents.iter().filter_map(Entry::file_name).collect();
    let unlisted = names.iter().filter(|name| !listed.contains(name.as_str()));
    documents.extend(
        unlisted.map(|name| Err((Violation::Unlisted { file: format!("{DOCUMENTS}/{name}") }.into(), 0))),
    );
    documents
}

fn check_document<T, F>(
    folder: &CacheFolder,
    entry: &Entry,
    buffer: &mut Vec<u8>,
    convert: &F,
) -> DocumentResult<T>
where
    F: Fn(Cow<'_, str>, FileStamp) -> T,
{
    let file = || entry.file.clone();
    if entry.file_name().is_none() {
        return Err((Violation::Misplaced { file: file() }.into(), 0));
    }
    let stamp = folder.read(&entry.file, buffer).map_err(|fault| (fault, 0))?;
    let bytes = stamp.size();
    let invalid = |violation: Violation| (violation.into(), bytes);
    let document: DocumentFile<'_> =
        serde_json::from_slice(buffer).map_err(|error| invalid(malformed(&entry.file, &error)))?;
    if document.id != entry.id {
        return Err(invalid(Violation::WrongDocument { file: file(), id: entry.id.clone() }));
    }
    if document.version != entry.version || ContentVersion::of(&*document.content) != entry.version {
        return Err(invalid(Violation::WrongHash { file: file() }));
    }
    Ok((convert(document.content, stamp), bytes))
}
