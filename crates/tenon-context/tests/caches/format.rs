//! The cache format, byte for byte, and what builds accept.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::{Duration, UNIX_EPOCH};

use tenon_context::{
    CacheSummary, ContentVersion, ContextErrorCode, Inspection, ListedCache, inspect, list, verify,
};

use crate::fixture::{Fixture, names};

#[test]
fn cache_consists_of_manifest_index_and_documents() {
    let fixture = Fixture::with(&[("Guide/Deploy.md", "Ship it\n"), ("a.md", "Alpha \"beta\"")]);
    let a = ContentVersion::of("Alpha \"beta\"");
    let deploy = ContentVersion::of("Ship it\n");
    let (a_file, deploy_file) = (file(&a), file(&deploy));
    let preimage = format!(r#"{{"version":"1","hash_algorithm":"sha256"}}a.md:{a}guide/deploy.md:{deploy}"#);
    let cache_version = ContentVersion::of(preimage);

    assert_eq!(names(&fixture.cache()), ["documents", "index.json", "manifest.json"]);
    assert_eq!(
        fixture.read(&a_file),
        format!(
            r#"{{"id":"a.md","version":"{a}","source":"a.md","content":"Alpha \"beta\"","metadata":{{}}}}"#
        )
    );
    assert_eq!(
        fixture.read(&deploy_file),
        format!(
            r#"{{"id":"guide/deploy.md","version":"{deploy}","source":"Guide/Deploy.md","content":"Ship it\n","metadata":{{}}}}"#
        )
    );
    assert_eq!(
        fixture.read("index.json"),
        format!("{{\n  \"a.md\": \"{a_file}\",\n  \"guide/deploy.md\": \"{deploy_file}\"\n}}")
    );
    assert_eq!(
        fixture.read("manifest.json"),
        format!(
            r#"{{
  "cache_version": "{cache_version}",
  "build_config": {{
    "version": "1",
    "hash_algorithm": "sha256"
  }},
  "created_at": "2026-01-02T12:00:00.000Z",
  "document_count": 2,
  "documents": [
    {{
      "id": "a.md",
      "version": "{a}",
      "file": "{a_file}"
    }},
    {{
      "id": "guide/deploy.md",
      "version": "{deploy}",
      "file": "{deploy_file}"
    }}
  ]
}}"#
        )
    );
    let summary = CacheSummary { cache_version: cache_version.to_string(), document_count: 2 };
    assert_eq!(verify(&fixture.cache()).unwrap(), summary);
}

fn file(version: &ContentVersion) -> String {
    format!("documents/{}.json", &version.to_string()["sha256:".len()..][..12])
}

#[test]
fn empty_source_folder_makes_an_empty_cache() {
    let fixture = Fixture::with(&[]);
    assert_eq!(fixture.read("index.json"), "{}");
    assert_eq!(
        fixture.resolve("x", 5).unwrap(),
        r#"{"documents":[],"selection":{"query":"x","budget":5,"tokens_used":0,"documents_considered":0,"documents_selected":0,"documents_excluded_by_budget":0}}"#
    );
    // Git does not store empty folders; the cache must stay valid without `documents`.
    fs::remove_dir(fixture.cache().join("documents")).unwrap();
    verify(&fixture.cache()).unwrap();
}

#[test]
fn ids_are_in_byte_order() {
    let names =
        ["b.md", "b2.md", "a-b.md", "a.md", "a/b.md", "é.md", "z.md", "日本.md", "\u{ffee}.md", "😀.md"];
    let fixture = Fixture::with(&names.map(|name| (name, "w")));
    let index = fixture.read("index.json");
    let listed: Vec<&str> = index.lines().filter_map(|line| line.trim().split('"').nth(1)).collect();
    let sorted =
        ["a-b.md", "a.md", "a/b.md", "b.md", "b2.md", "z.md", "é.md", "日本.md", "\u{ffee}.md", "😀.md"];
    assert_eq!(listed, sorted);
}

#[test]
fn equal_documents_get_separate_files() {
    let fixture = Fixture::with(&[("c.md", "same"), ("a.md", "same"), ("b.md", "same")]);
    let stem = file(&ContentVersion::of("same")).replace(".json", "");
    let index = fixture.read("index.json");
    for (id, file) in [
        ("a.md", format!("{stem}.json")),
        ("b.md", format!("{stem}-2.json")),
        ("c.md", format!("{stem}-3.json")),
    ] {
        assert!(index.contains(&format!("\"{id}\": \"{file}\"")), "{index}");
    }
    verify(&fixture.cache()).unwrap();
}

/// Hidden folders and links to files are read. All other entries are skipped; in particular, FIFOs are never opened.
#[test]
fn only_markdown_files_are_sources() {
    let fixture = Fixture::new();
    for name in [".md", "x.MD", "x.md.txt", "md", ".hidden/deep/y.md", "dir.md/z.md", r"back\slash.md"] {
        fixture.write(name, name);
    }
    let outside = fixture.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("linked.md"), "linked").unwrap();
    fs::write(outside.join("plain.txt"), "plain").unwrap();
    let sources = fixture.sources();
    symlink(&outside, sources.join("folder")).unwrap();
    symlink(&outside, sources.join("folder.md")).unwrap();
    symlink(outside.join("plain.txt"), sources.join("link.md")).unwrap();
    symlink("nowhere", sources.join("dangling.md")).unwrap();
    symlink("loop.md", sources.join("loop.md")).unwrap();
    symlink("..", sources.join("dir.md/up")).unwrap();
    let _socket = UnixListener::bind(sources.join("socket.md")).unwrap();
    nix::unistd::mkfifo(&sources.join("fifo.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("fifo.md", sources.join("to-fifo.md")).unwrap();

    fixture.build().unwrap();
    let index: std::collections::BTreeMap<String, String> =
        serde_json::from_str(&fixture.read("index.json")).unwrap();
    let ids: Vec<&String> = index.keys().collect();
    assert_eq!(ids, [".hidden/deep/y.md", "back/slash.md", "dir.md/z.md", "link.md"]);
}

#[test]
fn invalid_source_fails_the_build_and_leaves_nothing() {
    let fails = |fixture: &Fixture, code: ContextErrorCode| {
        let before = fixture.names();
        assert_eq!(fixture.build().unwrap_err().code(), code);
        assert_eq!(fixture.names(), before);
    };
    let fixture = Fixture::new();
    fails(&fixture, ContextErrorCode::IoError);
    fixture.write("ok.md", "ok");
    fixture.write("broken.md", b"\xff\xfe");
    fails(&fixture, ContextErrorCode::CacheInvalid);
    fs::remove_file(fixture.sources().join("broken.md")).unwrap();
    fixture.write("Ok.md", "same id");
    fails(&fixture, ContextErrorCode::CacheInvalid);
    fs::remove_file(fixture.sources().join("Ok.md")).unwrap();
    fixture.write("O\u{345}.md", "");
    let name = std::ffi::OsStr::from_bytes(b"\xff.md");
    fs::write(fixture.sources().join(name), "").unwrap();
    fails(&fixture, ContextErrorCode::CacheInvalid);
    fs::remove_file(fixture.sources().join(name)).unwrap();
    fixture.build().unwrap();
}

#[test]
fn same_documents_make_the_same_cache_in_any_folder() {
    let documents = [("b/Two.md", "two two"), ("a.md", "one"), ("É.md", "three\r\n"), ("z.md", "")];
    let one = Fixture::new();
    one.write_all(&documents);
    let two = Fixture::in_memory();
    let mut reversed = documents;
    reversed.reverse();
    two.write_all(&reversed);
    for (name, _) in documents {
        let file = File::options().write(true).open(two.sources().join(name)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1)).unwrap();
    }

    assert_eq!(one.build().unwrap(), two.build().unwrap());
    assert_eq!(one.read("manifest.json"), two.read("manifest.json"));
    assert_eq!(one.read("index.json"), two.read("index.json"));
    for (query, budget) in [("two", 3), ("one TWO three", u64::MAX), ("", 1)] {
        assert_eq!(one.resolve(query, budget).unwrap(), two.resolve(query, budget).unwrap());
    }
}

#[test]
fn inspect_reports_size_and_validity() {
    let fixture = Fixture::with(&[("a.md", "one"), ("b.md", "two")]);
    let bytes: u64 = names(&fixture.cache().join("documents"))
        .iter()
        .map(|name| fs::metadata(fixture.cache().join("documents").join(name)).unwrap().len())
        .sum();
    let summary = verify(&fixture.cache()).unwrap();
    let mut expected = Inspection {
        cache_version: summary.cache_version,
        document_count: 2,
        total_bytes: bytes,
        valid: true,
    };
    assert_eq!(inspect(&fixture.cache()).unwrap(), expected);

    let a = file(&ContentVersion::of("one"));
    let removed = fs::metadata(fixture.cache().join(&a)).unwrap().len();
    fs::remove_file(fixture.cache().join(&a)).unwrap();
    expected.total_bytes -= removed;
    expected.valid = false;
    assert_eq!(inspect(&fixture.cache()).unwrap(), expected);

    fs::write(fixture.cache().join("manifest.json"), "{").unwrap();
    let empty = serde_json::to_string(&inspect(&fixture.cache()).unwrap()).unwrap();
    assert_eq!(empty, r#"{"cache_version":"","document_count":0,"total_bytes":0,"valid":false}"#);
}

#[test]
fn list_has_folders_in_byte_order() {
    let fixture = Fixture::with(&[("a.md", "one")]);
    for name in ["Z", "é", "empty", ".hidden", ".tenon-build-0-1-0", "odd/manifest.json"] {
        fs::create_dir_all(fixture.path().join(name)).unwrap();
    }
    fs::write(fixture.path().join("file"), "").unwrap();
    symlink("cache", fixture.path().join("link")).unwrap();
    let listed = |path: &str, has_manifest| ListedCache { path: path.into(), has_manifest };
    assert_eq!(
        list(fixture.path()).unwrap().caches,
        [
            listed(".hidden", false),
            listed("Z", false),
            listed("cache", true),
            listed("empty", false),
            listed("odd", false),
            listed("sources", false),
            listed("é", false),
        ]
    );
    assert_eq!(list(&fixture.path().join("nowhere")).unwrap_err().code(), ContextErrorCode::CacheMissing);
    assert_eq!(list(&fixture.path().join("file")).unwrap_err().code(), ContextErrorCode::CacheMissing);
}

/// A watched folder is built first, then after every change, and not without one.
#[test]
fn watch_builds_again_after_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let (sources, cache) = (folder.path().join("docs"), folder.path().join("cache"));
    fs::create_dir(&sources).unwrap();
    fs::write(sources.join("a.rst"), "one").unwrap();
    let rules = tenon_context::SourceRules::Extensions(vec!["rst".to_owned()]);
    let mut counts = Vec::new();
    tenon_context::watch(&sources, &cache, &rules, &tenon_contract::clock::Clock::system(), |event| {
        let tenon_context::WatchEvent::Built(built) = event else { panic!("{event:?}") };
        counts.push(built.document_count);
        fs::write(sources.join(format!("{}.rst", counts.len())), "more").unwrap();
        counts.len() < 3
    })
    .unwrap();
    assert_eq!(counts, [1, 2, 3]);
    assert_eq!(tenon_context::verify(&cache).unwrap().document_count, 3);
}
