//! Finds declarations by name, whatever the case, in all files.

use std::collections::BTreeSet;

use crate::indexed_file::IndexedFile;
use crate::view::SymbolId;
use crate::words;

/// Hashes of names with the declarations that have them. Several names may have one hash: callers compare.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameTable(BTreeSet<(u32, SymbolId)>);

impl NameTable {
    pub(crate) fn new<'f>(files: impl Iterator<Item = &'f IndexedFile>) -> Self {
        Self(files.flat_map(keys).collect())
    }

    pub(crate) fn insert(&mut self, file: &IndexedFile) {
        self.0.extend(keys(file));
    }

    pub(crate) fn remove(&mut self, file: &IndexedFile) {
        for key in keys(file) {
            self.0.remove(&key);
        }
    }

    /// In no useful order.
    pub(crate) fn candidates(&self, name: &str) -> impl Iterator<Item = SymbolId> {
        let key = key(name);
        self.0.range((key, SymbolId::FIRST)..=(key, SymbolId::LAST)).map(|(_, id)| *id)
    }
}

fn keys(file: &IndexedFile) -> impl Iterator<Item = (u32, SymbolId)> {
    file.symbols().map(|symbol| (key(symbol.name()), symbol.id()))
}

fn key(name: &str) -> u32 {
    words::hash(without_sigil(name).to_lowercase().as_bytes())
}

/// `field` of `#field`, `name` of `$name`: the sign is optional in questions.
pub(crate) fn without_sigil(name: &str) -> &str {
    let bare = name.trim_start_matches(['#', '$', '@']);
    if bare.is_empty() { name } else { bare }
}
