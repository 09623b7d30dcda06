//! Which files mention what others declare.

use std::sync::Arc;

use rayon::prelude::*;

use crate::words::word_hashes;
use crate::{IndexedFile, SymbolRef, View};

/// A name declared in more files tells little about who is meant.
const DISTINCTIVE: usize = 3;

pub(crate) fn subtypes<'v>(view: &'v View, name: &str) -> Vec<SymbolRef<'v>> {
    let files = view.files().filter(|file| !file.content.bases.is_empty() && file.mentions(name));
    let named = |symbol: &SymbolRef<'_>| symbol.bases().any(|base| base.last_segment() == name);
    files.flat_map(|file| file.symbols().filter(named)).collect()
}

/// A declared name: hash, number of the file, and whether it is at top level.
type Declared = (u32, u32, bool);

/// For each file, how many others mention a distinctive name that it declares at top level.
pub(crate) fn reference_counts(files: &[Arc<IndexedFile>]) -> Vec<u32> {
    let mut declared: Vec<Declared> = files.par_iter().enumerate().flat_map_iter(declared_names).collect();
    // At top level first, so that it survives where a file declares a name twice.
    declared.par_sort_unstable_by_key(|(hash, file, top)| (*hash, *file, !*top));
    declared.dedup_by_key(|(hash, file, _)| (*hash, *file));
    let distinctive: Vec<(u32, u32)> = declared
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|same| same.len() <= DISTINCTIVE)
        .flatten()
        .filter(|(_, _, top)| *top)
        .map(|(hash, file, _)| (*hash, *file))
        .collect();
    let filter = HashFilter::new(distinctive.iter().map(|(hash, _)| *hash));

    let mentioned = |(file, content): (usize, &Arc<IndexedFile>)| {
        let mut found: Vec<u32> = Vec::new();
        for hash in content.content.words.iter().filter(|hash| filter.may_contain(**hash)) {
            let first = distinctive.partition_point(|(known, _)| known < hash);
            let same = distinctive[first..].iter().take_while(|(known, _)| known == hash);
            found.extend(
                same.map(|(_, declaring)| *declaring).filter(|declaring| *declaring as usize != file),
            );
        }
        found.sort_unstable();
        found.dedup();
        found
    };
    let all: Vec<Vec<u32>> = files.par_iter().enumerate().map(mentioned).collect();
    let mut counts = vec![0; files.len()];
    for declaring in all.iter().flatten() {
        counts[*declaring as usize] += 1;
    }
    counts
}

/// A word such as `first` is in comments, too: only names that prose does not use tell who is meant.
fn is_telling(name: &str) -> bool {
    let inner = name.trim_matches('_');
    inner.len() >= 4 && inner.contains(|c: char| c == '_' || c.is_uppercase())
}

fn declared_names((number, file): (usize, &Arc<IndexedFile>)) -> impl Iterator<Item = Declared> {
    let telling = file.symbols().filter(|symbol| is_telling(symbol.name()));
    telling.filter_map(move |symbol| {
        let mut words = word_hashes(symbol.name().as_bytes());
        let hash = words.next()?;
        // A name of several words would match by its first one.
        words.next().is_none().then_some((hash, number as u32, symbol.parent().is_none()))
    })
}

/// Rejects most hashes without a search.
struct HashFilter {
    bits: Vec<u64>,
}

impl HashFilter {
    const BITS: u32 = 20;

    fn new(hashes: impl Iterator<Item = u32>) -> Self {
        let mut bits = vec![0; 1 << (Self::BITS - 6)];
        for hash in hashes {
            let bit = hash >> (32 - Self::BITS);
            bits[(bit >> 6) as usize] |= 1 << (bit & 63);
        }
        Self { bits }
    }

    fn may_contain(&self, hash: u32) -> bool {
        let bit = hash >> (32 - Self::BITS);
        self.bits[(bit >> 6) as usize] & (1 << (bit & 63)) != 0
    }
}
