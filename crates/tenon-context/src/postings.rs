//! Which documents have a word, and how often: the index that makes a call cost its matches instead of the cache.
//!
//! Words are hashed into buckets, about one for every 32 bytes of text. An entry is four bytes: the document in the
//! upper bits, the count in the rest, saturating. A bucket that only one word of the corpus falls into answers for that
//! word exactly. Where words share a bucket they are told apart by reading the documents it names, which are few: a
//! bucket that would hold many is broken up into lists, one for each of its words. The words themselves are not
//! kept: whether the word asked for is the one in the list shows in its first document.
//!
//! Two different words are taken for one only if all 64 bits of their hashes agree under keys drawn anew by every
//! process. The index answers the same questions as reading everything does; it never changes an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};

use rayon::prelude::*;

use crate::corpus::Document;
use crate::words::{Terms, fold, words};

/// Bytes of text for each bucket.
const TEXT_PER_BUCKET: usize = 32;

/// Entries that words may share a bucket for.
const CROWD: u32 = 32;

/// Documents whose words are held in memory at once while building.
const BATCH: usize = 64;

#[derive(Debug)]
pub(crate) struct Postings {
    hasher: RandomState,
    buckets: usize,
    /// The entries of bucket `b` are those from `starts[b]` to `starts[b + 1]`.
    starts: Vec<u32>,
    entries: Vec<u32>,
    /// One bit for each bucket: whether words share it.
    mixed: Vec<u64>,
    /// The words of buckets that were broken up, by their hashes.
    crowds: BTreeMap<u64, Vec<u32>>,
    /// How many bits of an entry are its count.
    count_bits: u32,
}

impl Postings {
    /// Indexes the documents, in at most `limit` bytes; `None` if that is not enough, or if `wanted` says that nobody
    /// wants it any more.
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
            mixed: vec![0; buckets.div_ceil(64)],
            crowds: BTreeMap::new(),
            count_bits,
        };

        if postings.bytes() > limit {
            return None;
        }
        // Whose each bucket is, by both halves of a hash, in the room that the entries will need: a list of its own
        // would be given back to the allocator and not to the system.
        postings.entries = vec![0; buckets * 2];
        let mut total: u32 = 0;
        postings.each_word(documents, &wanted, |postings, _, hash, _| {
            let bucket = postings.bucket(hash);
            // Two places ahead: one for the sum of those before, one for the filling below, which moves each start
            // to the end of its bucket.
            postings.starts[bucket + 2] += 1;
            total = total.saturating_add(1);
            let halves = [(hash >> 32) as u32, hash as u32];
            let owner = &mut postings.entries[bucket * 2..][..2];
            if owner == [0, 0] {
                owner.copy_from_slice(&halves);
            } else if owner != halves {
                postings.mixed[bucket / 64] |= 1 << (bucket % 64);
            }
        })?;
        postings.entries.clear();
        if total == u32::MAX || postings.bytes() + total as usize * size_of::<u32>() > limit {
            return None;
        }

        let mut crowded = BTreeSet::new();
        for bucket in 0..buckets {
            let size = &mut postings.starts[bucket + 2];
            if *size > CROWD && is_set(&postings.mixed, bucket) {
                total -= *size;
                *size = 0;
                crowded.insert(bucket);
            }
            postings.starts[bucket + 2] += postings.starts[bucket + 1];
        }
        postings.entries.resize(total as usize, 0);
        postings.entries.shrink_to_fit();
        postings.each_word(documents, &wanted, |postings, document, hash, count| {
            let bucket = postings.bucket(hash);
            let entry = document << postings.count_bits | count.min(postings.full());
            if postings.is_mixed(bucket) && crowded.contains(&bucket) {
                postings.crowds.entry(hash).or_default().push(entry);
            } else {
                let place = postings.starts[bucket + 1];
                postings.entries[place as usize] = entry;
                postings.starts[bucket + 1] = place + 1;
            }
        })?;
        postings.starts.truncate(buckets + 1);
        postings.crowds.values_mut().for_each(Vec::shrink_to_fit);
        Some(postings)
    }

    /// Shows each distinct word of each document, in the order of the documents, as long as that is wanted.
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

    /// How many words of each document are among the terms.
    pub(crate) fn matches(&self, documents: &[Document], terms: &Terms) -> Vec<u64> {
        let mut matches = vec![0; documents.len()];
        let mut doubtful = Vec::new();
        let mut suspects = Vec::new();
        for term in terms.iter() {
            let hash = hash(&self.hasher, term);
            let bucket = self.bucket(hash);
            let shared = &self.entries[self.starts[bucket] as usize..self.starts[bucket + 1] as usize];
            if self.is_mixed(bucket) && !shared.is_empty() {
                doubtful.push(term.to_owned());
                suspects.extend(shared.iter().map(|&entry| self.document(entry)));
                continue;
            }
            let entries = self.crowds.get(&hash).map_or(shared, Vec::as_slice);
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
        suspects.sort_unstable();
        suspects.dedup();
        let doubtful = Terms::new(doubtful);
        let found: Vec<(usize, u64)> = suspects
            .into_par_iter()
            .map(|suspect| (suspect, documents[suspect].matches(&doubtful)))
            .collect();
        for (document, count) in found {
            matches[document] += count;
        }
        matches
    }

    /// What the index holds on to.
    pub(crate) fn bytes(&self) -> usize {
        // A list in a tree takes some room besides its entries.
        let crowds: usize = self.crowds.values().map(|list| 64 + list.len() * size_of::<u32>()).sum();
        let rest = (self.starts.len() + self.entries.len()) * size_of::<u32>();
        rest + self.mixed.len() * size_of::<u64>() + crowds
    }

    fn bucket(&self, hash: u64) -> usize {
        // A fair share of the upper half of the hash for each bucket, without a division.
        (((hash >> 32) * self.buckets as u64) >> 32) as usize
    }

    fn is_mixed(&self, bucket: usize) -> bool {
        is_set(&self.mixed, bucket)
    }

    fn document(&self, entry: u32) -> usize {
        (entry >> self.count_bits) as usize
    }

    /// The count that means "this many or more".
    fn full(&self) -> u32 {
        (1 << self.count_bits) - 1
    }
}

fn is_set(bits: &[u64], bit: usize) -> bool {
    bits[bit / 64] >> (bit % 64) & 1 == 1
}

fn hash(hasher: &RandomState, word: &str) -> u64 {
    // Zero stands for a bucket without an owner.
    hasher.hash_one(word).max(1)
}

/// The distinct words of a text by their hashes, and how often each occurs.
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
    fn counts_are_exact_alone_mixed_and_saturated() {
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
    fn words_that_share_a_bucket_are_told_apart() {
        // Too little text for a second bucket.
        let documents = documents(&["a b", "b c c", "d"]);
        let postings = Postings::new(&documents, usize::MAX, || true).unwrap();
        assert_eq!(postings.buckets, 1);
        assert_eq!(postings.matches(&documents, &terms("c")), [0, 2, 0]);
        assert_eq!(postings.matches(&documents, &terms("b a z")), [2, 1, 0]);
    }

    #[test]
    fn a_crowded_bucket_is_broken_up() {
        let documents = documents(&["a", "B"].repeat(20));
        let postings = Postings::new(&documents, usize::MAX, || true).unwrap();
        assert_eq!((postings.buckets, postings.crowds.len()), (1, 2));
        for query in ["a", "b", "a b", "c", "c a"] {
            let terms = terms(query);
            let expected: Vec<u64> = documents.iter().map(|document| document.matches(&terms)).collect();
            assert_eq!(postings.matches(&documents, &terms), expected, "{query}");
        }
    }

    #[test]
    fn nothing_can_be_indexed() {
        let none = Postings::new(&[], usize::MAX, || true).unwrap();
        assert!(none.matches(&[], &terms("a")).is_empty());
        let empty = documents(&["", " "]);
        let postings = Postings::new(&empty, usize::MAX, || true).unwrap();
        assert_eq!(postings.matches(&empty, &terms("a")), [0, 0]);
    }

    #[test]
    fn the_limit_is_kept_and_the_unwanted_left() {
        let documents = documents(&["one two three four", "five six"]);
        let bytes = Postings::new(&documents, usize::MAX, || true).unwrap().bytes();
        assert!(Postings::new(&documents, bytes + 4, || true).is_some());
        assert!(Postings::new(&documents, bytes - 1, || true).is_none());
        assert!(Postings::new(&documents, usize::MAX, || false).is_none());
    }
}
