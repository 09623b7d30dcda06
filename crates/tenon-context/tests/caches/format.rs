//! The format, to the byte.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::{Duration, UNIX_EPOCH};

use tenon_context::{Code, Inspection, Listed, Summary, Version, inspect, list, verify};

use crate::fixture::{Desk, names};

#[test]
fn a_cache_is_three_kinds_of_files() {
    let desk = Desk::with(&[("Guide/Deploy.md", "Ship it\n"), ("a.md", "Alpha \"beta\"")]);
    let a = Version::of("Alpha \"beta\"");
    let deploy = Version::of("Ship it\n");
    let (a_file, deploy_file) = (file(&a), file(&deploy));
    let preimage = format!(r#"{{"version":"1","hash_algorithm":"sha256"}}a.md:{a}guide/deploy.md:{deploy}"#);
    let cache_version = Version::of(preimage);

    assert_eq!(names(&desk.cache()), ["documents", "index.json", "manifest.json"]);
    assert_eq!(
        desk.read(&a_file),
        format!(
            r#"{{"id":"a.md","version":"{a}","source":"a.md","content":"Alpha \"beta\"","metadata":{{}}}}"#
        )
    );
    assert_eq!(
        desk.read(&deploy_file),
        format!(
            r#"{{"id":"guide/deploy.md","version":"{deploy}","source":"Guide/Deploy.md","content":"Ship it\n","metadata":{{}}}}"#
        )
    );
    assert_eq!(
        desk.read("index.json"),
        format!("{{\n  \"a.md\": \"{a_file}\",\n  \"guide/deploy.md\": \"{deploy_file}\"\n}}")
    );
    assert_eq!(
        desk.read("manifest.json"),
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
    let summary = Summary { cache_version: cache_version.to_string(), document_count: 2 };
    assert_eq!(verify(&desk.cache()).unwrap(), summary);
}

fn file(version: &Version) -> String {
    format!("documents/{}.json", &version.to_string()["sha256:".len()..][..12])
}

#[test]
fn an_empty_folder_makes_an_empty_cache() {
    let desk = Desk::with(&[]);
    assert_eq!(desk.read("index.json"), "{}");
    assert_eq!(
        desk.resolve("x", 5).unwrap(),
        r#"{"documents":[],"selection":{"query":"x","budget":5,"tokens_used":0,"documents_considered":0,"documents_selected":0,"documents_excluded_by_budget":0}}"#
    );
    // A version control that keeps no empty folders does not break it.
    fs::remove_dir(desk.cache().join("documents")).unwrap();
    verify(&desk.cache()).unwrap();
}

#[test]
fn ids_are_in_byte_order() {
    let names =
        ["b.md", "b2.md", "a-b.md", "a.md", "a/b.md", "é.md", "z.md", "日本.md", "\u{ffee}.md", "😀.md"];
    let desk = Desk::with(&names.map(|name| (name, "w")));
    let index = desk.read("index.json");
    let listed: Vec<&str> = index.lines().filter_map(|line| line.trim().split('"').nth(1)).collect();
    let sorted =
        ["a-b.md", "a.md", "a/b.md", "b.md", "b2.md", "z.md", "é.md", "日本.md", "\u{ffee}.md", "😀.md"];
    assert_eq!(listed, sorted);
}

#[test]
fn equal_documents_are_kept_apart() {
    let desk = Desk::with(&[("c.md", "same"), ("a.md", "same"), ("b.md", "same")]);
    let stem = file(&Version::of("same")).replace(".json", "");
    let index = desk.read("index.json");
    for (id, file) in [
        ("a.md", format!("{stem}.json")),
        ("b.md", format!("{stem}-2.json")),
        ("c.md", format!("{stem}-3.json")),
    ] {
        assert!(index.contains(&format!("\"{id}\": \"{file}\"")), "{index}");
    }
    verify(&desk.cache()).unwrap();
}

/// Hidden folders and links to files are read; everything else that is no plain Markdown is passed over, and above all
/// not waited for.
#[test]
fn only_markdown_is_taken() {
    let desk = Desk::new();
    for name in [".md", "x.MD", "x.md.txt", "md", ".hidden/deep/y.md", "dir.md/z.md", r"back\slash.md"] {
        desk.write(name, name);
    }
    let outside = desk.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("linked.md"), "linked").unwrap();
    fs::write(outside.join("plain.txt"), "plain").unwrap();
    let sources = desk.sources();
    symlink(&outside, sources.join("folder")).unwrap();
    symlink(&outside, sources.join("folder.md")).unwrap();
    symlink(outside.join("plain.txt"), sources.join("link.md")).unwrap();
    symlink("nowhere", sources.join("dangling.md")).unwrap();
    symlink("loop.md", sources.join("loop.md")).unwrap();
    symlink("..", sources.join("dir.md/up")).unwrap();
    let _socket = UnixListener::bind(sources.join("socket.md")).unwrap();
    nix::unistd::mkfifo(&sources.join("fifo.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("fifo.md", sources.join("to-fifo.md")).unwrap();

    desk.build().unwrap();
    let index: std::collections::BTreeMap<String, String> =
        serde_json::from_str(&desk.read("index.json")).unwrap();
    let ids: Vec<&String> = index.keys().collect();
    assert_eq!(ids, [".hidden/deep/y.md", "back/slash.md", "dir.md/z.md", "link.md"]);
}

#[test]
fn what_cannot_be_a_document_fails_the_build_and_leaves_nothing() {
    let refused = |desk: &Desk, code: Code| {
        let before = desk.names();
        assert_eq!(desk.build().unwrap_err().code(), code);
        assert_eq!(desk.names(), before);
    };
    let desk = Desk::new();
    refused(&desk, Code::IoError);
    desk.write("ok.md", "ok");
    desk.write("broken.md", b"\xff\xfe");
    refused(&desk, Code::CacheInvalid);
    fs::remove_file(desk.sources().join("broken.md")).unwrap();
    desk.write("Ok.md", "same id");
    refused(&desk, Code::CacheInvalid);
    fs::remove_file(desk.sources().join("Ok.md")).unwrap();
    desk.write("O\u{345}.md", "");
    let name = std::ffi::OsStr::from_bytes(b"\xff.md");
    fs::write(desk.sources().join(name), "").unwrap();
    refused(&desk, Code::CacheInvalid);
    fs::remove_file(desk.sources().join(name)).unwrap();
    desk.build().unwrap();
}

#[test]
fn the_same_documents_make_the_same_cache_anywhere() {
    let documents = [("b/Two.md", "two two"), ("a.md", "one"), ("É.md", "three\r\n"), ("z.md", "")];
    let one = Desk::new();
    one.write_all(&documents);
    let two = Desk::in_memory();
    let mut backwards = documents;
    backwards.reverse();
    two.write_all(&backwards);
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
fn inspecting_counts_the_document_files() {
    let desk = Desk::with(&[("a.md", "one"), ("b.md", "two")]);
    let bytes: u64 = names(&desk.cache().join("documents"))
        .iter()
        .map(|name| fs::metadata(desk.cache().join("documents").join(name)).unwrap().len())
        .sum();
    let summary = verify(&desk.cache()).unwrap();
    let mut expected = Inspection {
        cache_version: summary.cache_version,
        document_count: 2,
        total_bytes: bytes,
        valid: true,
    };
    assert_eq!(inspect(&desk.cache()).unwrap(), expected);

    let a = file(&Version::of("one"));
    let gone = fs::metadata(desk.cache().join(&a)).unwrap().len();
    fs::remove_file(desk.cache().join(&a)).unwrap();
    expected.total_bytes -= gone;
    expected.valid = false;
    assert_eq!(inspect(&desk.cache()).unwrap(), expected);

    fs::write(desk.cache().join("manifest.json"), "{").unwrap();
    let nothing = serde_json::to_string(&inspect(&desk.cache()).unwrap()).unwrap();
    assert_eq!(nothing, r#"{"cache_version":"","document_count":0,"total_bytes":0,"valid":false}"#);
}

#[test]
fn a_list_has_the_folders_by_name() {
    let desk = Desk::with(&[("a.md", "one")]);
    for name in ["Z", "é", "empty", ".hidden", ".tenon-build-0-1-0", "odd/manifest.json"] {
        fs::create_dir_all(desk.path().join(name)).unwrap();
    }
    fs::write(desk.path().join("file"), "").unwrap();
    symlink("cache", desk.path().join("link")).unwrap();
    let listed = |path: &str, has_manifest| Listed { path: path.into(), has_manifest };
    assert_eq!(
        list(desk.path()).unwrap().caches,
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
    assert_eq!(list(&desk.path().join("nowhere")).unwrap_err().code(), Code::CacheMissing);
    assert_eq!(list(&desk.path().join("file")).unwrap_err().code(), Code::CacheMissing);
}
