//! An inverted index: which documents contain a word, and how often. It makes a query cost as much as its matches.
//!
//! Words are hashed into buckets, about one per 32 bytes of text. An entry has four bytes: the document in the upper
//! bits, a saturating count in the rest. A bucket with a single word answers exactly. If words share a bucket, the few
//! documents it lists are read again; a bucket with many entries is split into one list per word. The words
//! themselves are not stored: reading the first document of a list shows whether it contains the term.
//!
//! Two words collide only if all 64 bits of their hashes agree, under keys that each process draws at random. The index
//! never changes an answer; it only avoids reading every document.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};

use rayon::prelude::*;

use crate::corpus::Document;
use crate::tokenize::{Terms, fold, words};

/// Bytes of text per bucket.
const TEXT_PER_BUCKET: usize = 32;

/// Maximum number of entries in a bucket that several words share; larger ones are split.
const MAX_SHARED_ENTRIES: u32 = 32;

/// Number of documents whose words are in memory at once during the build.
const BATCH: usize = 64;

#[derive(Debug)]
pub(crate) struct Postings {
    hasher: RandomState,
    buckets: usize,
    /// The entries of bucket `b` are `starts[b]..starts[b + 1]`.
    starts: Vec<u32>,
    entries: Vec<u32>,
    /// One bit per bucket: whether several words share it.
    shared: Vec<u64>,
    /// The entries of split buckets, by the hash of the word.
    split: BTreeMap<u64, Vec<u32>>,
    /// Number of bits in an entry for the count.
    count_bits: u32,
}

impl Postings {
    /// Indexes the documents in at most `limit` bytes. `None` if that is not enough, or once `wanted` returns false.
    pub(crate) fn new(documents: &[Document], limit: usize, wanted: impl Fn() -> bool) -> Option<Self> {
        let count_bits = u32::try_from(documents.len()).ok()?.leading_zeros().min(31);
        Self::with_count_bits(documents, limit, count_bits, wanted)
    }

    fn with_count_bits(
        documents: &[Document],
        limit: usize,
        count_bits: u32,
        wanted: impl Fn() -> bool,
    ) -> Option<Self> {
        let text: usize = documents.iter().map(|document| document.content.len()).sum();
        let buckets = (text / TEXT_PER_BUCKET).max(1);
        let mut postings = Self {
            hasher: RandomState::new(),
            buckets,
            starts: vec![0; buckets + 2],
            entries: Vec::new(),
            shared: vec![0; buckets.div_ceil(64)],
            split: BTreeMap::new(),
            count_bits,
        };

        if postings.bytes() > limit {
            return None;
        }
        // Record the first word of each bucket, as the two halves of a hash, in the space that the entries will need.
        // The allocator would not return a separate list to the system.
        postings.entries = vec![0; buckets * 2];
        let mut total: u32 = 0;
        postings.each_word(documents, &wanted, |postings, _, hash, _| {
            let bucket = postings.bucket(hash);
            // Offset by two: one for the prefix sum, one because filling below advances each start to the end of the
            // bucket.
            postings.starts[bucket + 2] += 1;
            total = total.saturating_add(1);
            let halves = [(hash >> 32) as u32, hash as u32];
            let owner = &mut postings.entries[bucket * 2..][..2];
            if owner == [0, 0] {
                owner.copy_from_slice(&halves);
            } else if owner != halves {
                postings.shared[bucket / 64] |= 1 << (bucket % 64);
            }
        })?;
        postings.entries.clear();
        if total == u32::MAX || postings.bytes() + total as usize * size_of::<u32>() > limit {
            return None;
        }

        let mut oversized = BTreeSet::new();
        for bucket in 0..buckets {
            let size = &mut postings.starts[bucket + 2];
            if *size > MAX_SHARED_ENTRIES && is_set(&postings.shared, bucket) {
                total -= *size;
                *size = 0;
                oversized.insert(bucket);
            }
            postings.starts[bucket + 2] += postings.starts[bucket + 1];
        }
        postings.entries.resize(total as usize, 0);
        postings.entries.shrink_to_fit();
        postings.each_word(documents, &wanted, |postings, document, hash, count| {
            let bucket = postings.bucket(hash);
            let entry = document << postings.count_bits | count.min(postings.full());
            if postings.is_shared(bucket) && oversized.contains(&bucket) {
                postings.split.entry(hash).or_default().push(entry);
            } else {
                let slot = postings.starts[bucket + 1];
                postings.entries[slot as usize] = entry;
                postings.starts[bucket + 1] = slot + 1;
            }
        })?;
        postings.starts.truncate(buckets + 1);
        postings.split.values_mut().for_each(Vec::shrink_to_fit);
        Some(postings)
    }

    /// Visits each distinct word of each document in order. `None` once `wanted` returns false.
    fn each_word(
        &mut self,
        documents: &[Document],
        wanted: &impl Fn() -> bool,
        mut visit: impl FnMut(&mut Self, u32, u64, u32),
    ) -> Option<()> {
        let mut number = 0;
        for batch in documents.chunks(BATCH) {
            if !wanted() {
                return None;
            }
            let counted: Vec<Vec<(u64, u32)>> =
                batch.par_iter().map(|document| count_words(&self.hasher, &document.content)).collect();
            for counts in counted {
                for (hash, count) in counts {
                    visit(self, number, hash, count);
                }
                number += 1;
            }
        }
        Some(())
    }

    /// For each document, the number of words that are among the terms.
    pub(crate) fn matches(&self, documents: &[Document], terms: &Terms) -> Vec<u64> {
        let mut matches = vec![0; documents.len()];
        let mut ambiguous = Vec::new();
        let mut candidates = Vec::new();
        for term in terms.iter() {
            let hash = hash(&self.hasher, term);
            let bucket = self.bucket(hash);
            let in_bucket = &self.entries[self.starts[bucket] as usize..self.starts[bucket + 1] as usize];
            if self.is_shared(bucket) && !in_bucket.is_empty() {
                ambiguous.push(term.to_owned());
                candidates.extend(in_bucket.iter().map(|&entry| self.document(entry)));
                continue;
            }
            let entries = self.split.get(&hash).map_or(in_bucket, Vec::as_slice);
            let term = Terms::new([term.to_owned()]);
            let is_here = |&entry: &u32| term.occur_in(&documents[self.document(entry)].content);
            if !entries.first().is_some_and(is_here) {
                continue;
            }
            for &entry in entries {
                let document = self.document(entry);
                matches[document] += match entry & self.full() {
                    full if full == self.full() => documents[document].matches(&term),
                    count => u64::from(count),
                };
            }
        }
        candidates.sort_unstable();
        candidates.dedup();
        let ambiguous = Terms::new(ambiguous);
        let counts: Vec<(usize, u64)> = candidates
            .into_par_iter()
            .map(|candidate| (candidate, documents[candidate].matches(&ambiguous)))
            .collect();
        for (document, count) in counts {
            matches[document] += count;
        }
        matches
    }

    /// Memory use of the index.
    pub(crate) fn bytes(&self) -> usize {
        // 64 bytes: an estimate of the overhead per list in the tree.
        let split_bytes: usize = self.split.values().map(|list| 64 + list.len() * size_of::<u32>()).sum();
        let rest = (self.starts.len() + self.entries.len()) * size_of::<u32>();
        rest + self.shared.len() * size_of::<u64>() + split_bytes
    }

    fn bucket(&self, hash: u64) -> usize {
        // Maps the upper half of the hash evenly to buckets without a division.
        (((hash >> 32) * self.buckets as u64) >> 32) as usize
    }

    fn is_shared(&self, bucket: usize) -> bool {
        is_set(&self.shared, bucket)
    }

    fn document(&self, entry: u32) -> usize {
        (entry >> self.count_bits) as usize
    }

    /// The saturated count, which means "this many or more".
    fn full(&self) -> u32 {
        (1 << self.count_bits) - 1
    }
}

fn is_set(bits: &[u64], bit: usize) -> bool {
    bits[bit / 64] >> (bit % 64) & 1 == 1
}

fn hash(hasher: &RandomState, word: &str) -> u64 {
    // Zero marks a bucket without a word.
    hasher.hash_one(word).max(1)
}

/// The hashes of the distinct words of a text, each with its number of occurrences.
fn count_words(hasher: &RandomState, text: &str) -> Vec<(u64, u32)> {
    let mut hashes: Vec<u64> = words(text).map(|word| hash(hasher, &fold(word))).collect();
    hashes.sort_unstable();
    let runs = hashes.chunk_by(|one, next| one == next);
    runs.map(|run| (run[0], u32::try_from(run.len()).unwrap_or(u32::MAX))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(texts: &[&str]) -> Vec<Document> {
        texts.iter().map(|text| Document::of_text(text)).collect()
    }

    fn terms(text: &str) -> Terms {
        Terms::new(words(text).map(|word| fold(word).into_owned()))
    }

    #[test]
    fn counts_are_exact_for_single_shared_and_saturated_entries() {
        let many = "Common ".repeat(9) + "rare";
        let long: String = (0..400).map(|n| format!("w{n} ")).collect();
        let documents = documents(&["common", &many, "other COMMON words", "", &long]);
        for count_bits in [29, 3, 1] {
            let postings = Postings::with_count_bits(&documents, usize::MAX, count_bits, || true).unwrap();
            for query in ["common", "rare common", "w7 w399 w400 other", "absent", "", &long] {
                let terms = terms(query);
                let expected: Vec<u64> = documents.iter().map(|document| document.matches(&terms)).collect();
                assert_eq!(postings.matches(&documents, &terms), expected, "{query}");
            }
        }
    }

    #[test]
    fn words_in_a_shared_bucket_are_distinguished() {
        // Too little text for a second bucket.
        let documents = documents(&["a b", "b c c", "d"]);
        let postings = Postings::new(&documents, usize::MAX, || true).unwrap();
        assert_eq!(postings.buckets, 1);
        assert_eq!(postings.matches(&documents, &terms("c")), [0, 2, 0]);
        assert_eq!(postings.matches(&documents, &terms("b a z")), [2, 1, 0]);
    }

    #[test]
    fn large_shared_bucket_is_split() {
        let documents = documents(&["a", "B"].repeat(20));
        let postings = Postings::new(&documents, usize::MAX, || true).unwrap();
        assert_eq!((postings.buckets, postings.split.len()), (1, 2));
        for query in ["a", "b", "a b", "c", "c a"] {
            let terms = terms(query);
            let expected: Vec<u64> = documents.iter().map(|document| document.matches(&terms)).collect();
            assert_eq!(postings.matches(&documents, &terms), expected, "{query}");
        }
    }

    #[test]
    fn empty_corpus_and_empty_documents_can_be_indexed() {
        let none = Postings::new(&[], usize::MAX, || true).unwrap();
        assert!(none.matches(&[], &terms("a")).is_empty());
        let empty = documents(&["", " "]);
        let postings = Postings::new(&empty, usize::MAX, || true).unwrap();
        assert_eq!(postings.matches(&empty, &terms("a")), [0, 0]);
    }

    #[test]
    fn index_over_the_limit_or_unwanted_is_none() {
        let documents = documents(&["one two three four", "five six"]);
        let bytes = Postings::new(&documents, usize::MAX, || true).unwrap().bytes();
        assert!(Postings::new(&documents, bytes + 4, || true).is_some());
        assert!(Postings::new(&documents, bytes - 1, || true).is_none());
        assert!(Postings::new(&documents, usize::MAX, || false).is_none());
    }
}
