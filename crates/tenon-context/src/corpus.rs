//! The documents of a valid cache in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::document::ContentVersion;
use crate::error::Error;
use crate::file_stamp::FileStamp;
use crate::manifest::Manifest;
use crate::query::Query;
use crate::select::{Selection, select};
use crate::tokenize::{Terms, words};
use crate::verify::{CacheStamps, ValidCache, read_valid};

/// Answers a query from the cache on disk: verifies and reads every document and keeps nothing in memory.
pub fn resolve(cache: &Path, query: Query, budget: u64) -> Result<Selection, Error> {
    let terms = query.terms();
    let (corpus, matches) = Corpus::load(cache, |content| {
        let count = terms.count(content);
        (count.words, count.matches)
    })?;
    Ok(select(Arc::new(corpus), &matches, query, budget))
}

/// All documents of a verified cache, in byte order of the ids.
#[derive(Debug)]
pub(crate) struct Corpus {
    cache: PathBuf,
    documents: Vec<Document>,
    stamps: Option<CacheStamps>,
    bytes: u64,
    least_tokens: u64,
}

#[derive(Debug)]
pub(crate) struct Document {
    pub id: Box<str>,
    pub version: ContentVersion,
    pub content: Box<str>,
    pub words: u64,
    file: Box<str>,
    stamp: FileStamp,
}

impl Document {
    #[cfg(test)]
    pub(crate) fn of_text(text: &str) -> Self {
        let metadata = std::fs::metadata("/").expect("the root folder exists");
        Self {
            id: "".into(),
            version: ContentVersion::of(text),
            content: text.into(),
            words: words(text).count() as u64,
            file: "".into(),
            stamp: FileStamp::of(&metadata),
        }
    }

    /// The token estimate that counts against budgets: four bytes per token.
    pub(crate) fn tokens(&self) -> u64 {
        (self.content.len() as u64).div_ceil(4)
    }

    /// Number of words in the document that are among the terms.
    pub(crate) fn matches(&self, terms: &Terms) -> u64 {
        terms.count(&self.content).matches
    }
}

impl Corpus {
    /// Loads a cache and counts the words of each document.
    pub(crate) fn open(cache: &Path) -> Result<Self, Error> {
        Self::load(cache, |content| (words(content).count() as u64, ())).map(|(corpus, _)| corpus)
    }

    /// Loads a cache. `read` is called once with each content and returns the number of words plus a value for the
    /// caller.
    fn load<T: Send>(cache: &Path, read: impl Fn(&str) -> (u64, T) + Sync) -> Result<(Self, Vec<T>), Error> {
        let ValidCache { manifest, documents: contents, stamps, bytes } =
            read_valid(cache, |content, stamp| {
                let content = content.into_owned().into_boxed_str();
                (read(&content), content, stamp)
            })?;
        let Manifest { documents: entries, .. } = manifest;
        let mut documents = Vec::with_capacity(entries.len());
        let mut extras = Vec::with_capacity(entries.len());
        for (entry, ((words, extra), content, stamp)) in entries.into_iter().zip(contents) {
            extras.push(extra);
            documents.push(Document {
                id: entry.id.into_boxed_str(),
                version: entry.version,
                content,
                words,
                file: entry.file.into_boxed_str(),
                stamp,
            });
        }
        let least_tokens = documents.iter().map(Document::tokens).min().unwrap_or(0);
        Ok((Self { cache: cache.to_owned(), documents, stamps, bytes, least_tokens }, extras))
    }

    pub(crate) fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// Tokens of the smallest document: with a smaller remaining budget, no document fits.
    pub(crate) fn least_tokens(&self) -> u64 {
        self.least_tokens
    }

    /// Total size of the document files, from which the memory limit is computed.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that the documents occupy in memory.
    pub(crate) fn resident(&self) -> u64 {
        let size = |document: &Document| {
            size_of::<Document>() + document.id.len() + document.file.len() + document.content.len()
        };
        self.documents.iter().map(size).sum::<usize>() as u64
    }

    /// Whether the stamps of the folder, the lists and the given documents are unchanged since the read.
    pub(crate) fn is_current<'a>(&'a self, documents: impl IntoIterator<Item = &'a Document>) -> bool {
        let same = |document: &Document| {
            FileStamp::at(&self.cache.join(&*document.file)).is_ok_and(|stamp| stamp == document.stamp)
        };
        let folder = self.stamps.is_some() && CacheStamps::now(&self.cache) == self.stamps;
        folder && documents.into_iter().all(same)
    }
}
