//! The documents of a valid cache, in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::check::{Checked, Stamps, check};
use crate::document::Version;
use crate::error::Error;
use crate::manifest::Manifest;
use crate::query::Query;
use crate::select::{Selection, select};
use crate::stamp::Stamp;
use crate::words::{Terms, words};

/// Answers a query from the cache as it is on disk: checks everything, reads everything, keeps nothing.
pub fn resolve(cache: &Path, query: Query, budget: u64) -> Result<Selection, Error> {
    let terms = query.terms();
    let (corpus, matches) = Corpus::load(cache, |content| {
        let count = terms.count(content);
        (count.words, count.matches)
    })?;
    Ok(select(Arc::new(corpus), &matches, query, budget))
}

/// Every document of a cache that has passed every check, in byte order of the ids.
#[derive(Debug)]
pub(crate) struct Corpus {
    cache: PathBuf,
    documents: Vec<Document>,
    stamps: Option<Stamps>,
    bytes: u64,
    least_tokens: u64,
}

#[derive(Debug)]
pub(crate) struct Document {
    pub id: Box<str>,
    pub version: Version,
    pub content: Box<str>,
    pub words: u64,
    file: Box<str>,
    stamp: Stamp,
}

impl Document {
    #[cfg(test)]
    pub(crate) fn of_text(text: &str) -> Self {
        let metadata = std::fs::metadata("/").expect("there is a root");
        Self {
            id: "".into(),
            version: Version::of(text),
            content: text.into(),
            words: words(text).count() as u64,
            file: "".into(),
            stamp: Stamp::of(&metadata),
        }
    }

    /// The estimate that budgets are counted in.
    pub(crate) fn tokens(&self) -> u64 {
        (self.content.len() as u64).div_ceil(4)
    }

    /// How many words of the document are among the terms.
    pub(crate) fn matches(&self, terms: &Terms) -> u64 {
        terms.count(&self.content).matches
    }
}

impl Corpus {
    /// Loads a cache without looking for anything.
    pub(crate) fn open(cache: &Path) -> Result<Self, Error> {
        Self::load(cache, |content| (words(content).count() as u64, ())).map(|(corpus, _)| corpus)
    }

    /// Loads a cache. `read` sees each content once, while it is at hand, and gives its number of words and whatever
    /// else the caller wants to know of it.
    fn load<T: Send>(cache: &Path, read: impl Fn(&str) -> (u64, T) + Sync) -> Result<(Self, Vec<T>), Error> {
        let Checked { manifest, kept, stamps, bytes } = check(cache, |content, stamp| {
            let content = content.into_owned().into_boxed_str();
            (read(&content), content, stamp)
        })?;
        let Manifest { documents: entries, .. } = manifest;
        let mut documents = Vec::with_capacity(entries.len());
        let mut seen = Vec::with_capacity(entries.len());
        for (entry, ((words, extra), content, stamp)) in entries.into_iter().zip(kept) {
            seen.push(extra);
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
        Ok((Self { cache: cache.to_owned(), documents, stamps, bytes, least_tokens }, seen))
    }

    pub(crate) fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// The tokens of the smallest document: with less than that, nothing more can be bought.
    pub(crate) fn least_tokens(&self) -> u64 {
        self.least_tokens
    }

    /// Bytes of the document files: the measure of what this may cost to hold.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that the documents take in memory.
    pub(crate) fn resident(&self) -> u64 {
        let size = |document: &Document| {
            size_of::<Document>() + document.id.len() + document.file.len() + document.content.len()
        };
        self.documents.iter().map(size).sum::<usize>() as u64
    }

    /// Whether the folder, its lists and the given documents look as they did when they were read.
    pub(crate) fn is_current<'a>(&'a self, documents: impl IntoIterator<Item = &'a Document>) -> bool {
        let same = |document: &Document| {
            Stamp::at(&self.cache.join(&*document.file)).is_ok_and(|stamp| stamp == document.stamp)
        };
        let folder = self.stamps.is_some() && Stamps::now(&self.cache) == self.stamps;
        folder && documents.into_iter().all(same)
    }
}
