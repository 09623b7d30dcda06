//! The texts of the files that were reported on, as the baseline of the next report.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_contract::root::WorkspacePath;

/// The most bytes of all texts.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// See the module. The texts that were used least recently are dropped first.
#[derive(Debug, Default)]
pub(super) struct LastTexts {
    texts: BTreeMap<WorkspacePath, (Arc<str>, u64)>,
    bytes: usize,
    uses: u64,
}

impl LastTexts {
    pub(super) fn get(&mut self, path: &WorkspacePath) -> Option<Arc<str>> {
        self.uses += 1;
        let (text, used) = self.texts.get_mut(path)?;
        *used = self.uses;
        Some(Arc::clone(text))
    }

    /// `None` if the text is not known.
    pub(super) fn put(&mut self, path: &WorkspacePath, text: Option<&str>) {
        self.remove(path);
        let Some(text) = text else { return };
        self.uses += 1;
        self.bytes += text.len();
        self.texts.insert(path.clone(), (text.into(), self.uses));
        while self.bytes > MAX_BYTES {
            let oldest = self.texts.iter().min_by_key(|(_, (_, used))| *used);
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else { return };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, path: &WorkspacePath) {
        if let Some((text, _)) = self.texts.remove(path) {
            self.bytes -= text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use tenon_contract::root::RootGate;

    use super::*;

    #[test]
    fn least_recently_used_texts_are_dropped_at_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let gate = RootGate::new([folder.path()]).unwrap();
        let path = |name: &str| gate.admit_target(folder.path().join(name)).unwrap();
        let half = "x".repeat(MAX_BYTES / 2);
        let mut texts = LastTexts::default();
        texts.put(&path("a"), Some(&half));
        texts.put(&path("b"), Some(&half));
        assert!(texts.get(&path("a")).is_some());
        texts.put(&path("c"), Some("c"));
        assert!(texts.get(&path("b")).is_none() && texts.get(&path("a")).is_some());
        texts.put(&path("a"), None);
        assert_eq!((texts.get(&path("a")), texts.bytes), (None, 1));
    }
}
