//! The two lists of a cache, `manifest.json` and `index.json`, and the cache version.
//!
//! Both are pretty JSON with two spaces and no final newline, in byte order of the ids. `cache_version` is the hash of
//! the build configuration as compact JSON followed, without separators, by `id:version` of every document in that
//! order. `created_at` is informational and not part of any hash.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};
use tenon_contract::clock::rfc3339;

use crate::document::ContentVersion;
use crate::error::Violation;

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const INDEX: &str = "index.json";
pub(crate) const DOCUMENTS: &str = "documents";

/// `manifest.json`. Unknown keys are ignored, since later versions may add some.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Manifest {
    pub cache_version: String,
    pub build_config: BuildConfig,
    #[serde(serialize_with = "to_the_millisecond")]
    pub created_at: Timestamp,
    pub document_count: u64,
    pub documents: Vec<Entry>,
}

fn to_the_millisecond<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*time))
}

#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct BuildConfig {
    pub version: String,
    pub hash_algorithm: String,
}

impl BuildConfig {
    /// The only supported configuration.
    pub(crate) fn current() -> Self {
        Self { version: "1".into(), hash_algorithm: "sha256".into() }
    }
}

/// One document in the manifest.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Entry {
    pub id: String,
    pub version: ContentVersion,
    pub file: String,
}

impl Entry {
    /// The file name below `documents/`; `None` if the path is anywhere else.
    pub(crate) fn file_name(&self) -> Option<&str> {
        let name = self.file.strip_prefix(DOCUMENTS)?.strip_prefix('/')?;
        let plain = !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']);
        plain.then_some(name)
    }
}

impl Manifest {
    pub(crate) fn new(documents: Vec<Entry>, created_at: Timestamp) -> Self {
        Self {
            cache_version: cache_version(&documents).to_string(),
            build_config: BuildConfig::current(),
            created_at,
            document_count: documents.len() as u64,
            documents,
        }
    }

    /// `index.json`: the file of each document.
    pub(crate) fn index(&self) -> BTreeMap<&str, &str> {
        self.documents.iter().map(|entry| (&*entry.id, &*entry.file)).collect()
    }

    /// The rules that the manifest violates, apart from other files.
    pub(crate) fn violations(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        let BuildConfig { version, hash_algorithm } = &self.build_config;
        if self.build_config != BuildConfig::current() {
            violations.push(Violation::Unsupported {
                version: version.clone(),
                hash_algorithm: hash_algorithm.clone(),
            });
        }
        if self.document_count != self.documents.len() as u64 {
            violations
                .push(Violation::WrongCount { stated: self.document_count, listed: self.documents.len() });
        }
        let disordered = self.documents.windows(2).filter(|pair| pair[0].id >= pair[1].id);
        violations.extend(disordered.map(|pair| Violation::OutOfOrder { id: pair[1].id.clone() }));
        if self.cache_version != cache_version(&self.documents).to_string() {
            violations.push(Violation::WrongCacheVersion);
        }
        violations
    }
}

/// The version of a cache with these documents, which must be in byte order of the ids.
fn cache_version(documents: &[Entry]) -> ContentVersion {
    let config = serde_json::to_vec(&BuildConfig::current()).expect("two strings are JSON");
    let mut hasher = Sha256::new_with_prefix(config);
    for Entry { id, version, .. } in documents {
        hasher.update(id);
        hasher.update(":");
        hasher.update(version.to_string());
    }
    ContentVersion::finish(hasher)
}

/// Names the file of each version. If several versions share a stem, all but the first, in byte order of the ids, get
/// a number.
pub(crate) fn name_files(versions: impl IntoIterator<Item = ContentVersion>) -> impl Iterator<Item = String> {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    versions.into_iter().map(move |version| {
        let stem = version.stem();
        let nth = taken.entry(stem.clone()).and_modify(|nth| *nth += 1).or_insert(1);
        match nth {
            1 => format!("{DOCUMENTS}/{stem}.json"),
            nth => format!("{DOCUMENTS}/{stem}-{nth}.json"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(documents: &[(&str, &str)]) -> Vec<Entry> {
        let files = name_files(documents.iter().map(|(_, content)| ContentVersion::of(content)));
        documents
            .iter()
            .zip(files)
            .map(|((id, content), file)| Entry {
                id: (*id).into(),
                version: ContentVersion::of(content),
                file,
            })
            .collect()
    }

    #[test]
    fn version_of_an_empty_cache_is_the_hash_of_the_configuration() {
        let manifest = Manifest::new(Vec::new(), Timestamp::UNIX_EPOCH);
        let config = r#"{"version":"1","hash_algorithm":"sha256"}"#;
        assert_eq!(manifest.cache_version, ContentVersion::of(config).to_string());
        assert_eq!(manifest.violations(), []);
    }

    #[test]
    fn cache_version_hashes_parts_without_separators() {
        let documents = entries(&[("a.md", "x"), ("b.md", "y")]);
        let (a, b) = (documents[0].version, documents[1].version);
        let preimage = format!(r#"{{"version":"1","hash_algorithm":"sha256"}}a.md:{a}b.md:{b}"#);
        let manifest = Manifest::new(documents, Timestamp::UNIX_EPOCH);
        assert_eq!(manifest.cache_version, ContentVersion::of(preimage).to_string());
    }

    #[test]
    fn manifest_is_pretty_without_a_final_newline() {
        let manifest = Manifest::new(entries(&[("a.md", "abc")]), Timestamp::UNIX_EPOCH);
        let version = &manifest.cache_version;
        let expected = format!(
            r#"{{
  "cache_version": "{version}",
  "build_config": {{
    "version": "1",
    "hash_algorithm": "sha256"
  }},
  "created_at": "1970-01-01T00:00:00.000Z",
  "document_count": 1,
  "documents": [
    {{
      "id": "a.md",
      "version": "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
      "file": "documents/ba7816bf8f01.json"
    }}
  ]
}}"#
        );
        assert_eq!(serde_json::to_string_pretty(&manifest).unwrap(), expected);
        assert_eq!(
            serde_json::to_string_pretty(&manifest.index()).unwrap(),
            "{\n  \"a.md\": \"documents/ba7816bf8f01.json\"\n}"
        );
    }

    #[test]
    fn equal_documents_get_separate_files() {
        let files: Vec<String> = entries(&[("a", "abc"), ("b", "x"), ("c", "abc"), ("d", "abc")])
            .into_iter()
            .map(|e| e.file)
            .collect();
        assert_eq!(
            files,
            [
                "documents/ba7816bf8f01.json",
                "documents/2d711642b726.json",
                "documents/ba7816bf8f01-2.json",
                "documents/ba7816bf8f01-3.json"
            ]
        );
    }

    #[test]
    fn every_violation_of_a_manifest_is_reported() {
        let mut manifest = Manifest::new(entries(&[("a", "1"), ("b", "2")]), Timestamp::UNIX_EPOCH);
        manifest.documents.swap(0, 1);
        manifest.document_count = 3;
        manifest.build_config.version = "2".into();
        assert_eq!(
            manifest.violations(),
            [
                Violation::Unsupported { version: "2".into(), hash_algorithm: "sha256".into() },
                Violation::WrongCount { stated: 3, listed: 2 },
                Violation::OutOfOrder { id: "a".into() },
                Violation::WrongCacheVersion,
            ]
        );
    }

    #[test]
    fn file_name_accepts_only_paths_directly_below_documents() {
        let name = |file: &str| {
            Entry { id: String::new(), version: ContentVersion::of(""), file: file.into() }
                .file_name()
                .map(str::to_owned)
        };
        assert_eq!(name("documents/a.json").as_deref(), Some("a.json"));
        for invalid in [
            "",
            "a.json",
            "documents",
            "documents/",
            "documents/..",
            "documents/../a",
            "documents/a/b",
            "/etc/passwd",
        ] {
            assert_eq!(name(invalid), None, "{invalid}");
        }
        assert_eq!(name("documents/\0"), None);
    }
}
