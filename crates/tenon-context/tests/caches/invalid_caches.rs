//! Which caches are invalid and which are missing, and the violations reported for each.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tenon_context::{CachePool, ContextErrorCode, Error, Query, Violation, resolve, verify};

use crate::fixture::{Fixture, names};

/// The violations after a change to a valid cache. All readers must report the same ones.
fn violations_after(change: impl FnOnce(&Path)) -> Vec<String> {
    let fixture = Fixture::with(&[("a.md", "one"), ("b.md", "two")]);
    change(&fixture.cache());
    let expected = violations(verify(&fixture.cache()).map(drop));
    assert_eq!(violations(resolve(&fixture.cache(), Query::new("x").unwrap(), 1).map(drop)), expected);
    let pool = CachePool::default();
    assert_eq!(violations(pool.resolve(&fixture.cache(), Query::new("x").unwrap(), 1).map(drop)), expected);
    expected
}

fn violations(result: Result<(), Error>) -> Vec<String> {
    match result {
        Err(Error::CacheInvalid { violations, .. }) => violations.iter().map(Violation::to_string).collect(),
        other => panic!("not an invalid cache: {other:?}"),
    }
}

fn edit(cache: &Path, file: &str, from: &str, to: &str) {
    let text = fs::read_to_string(cache.join(file)).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(cache.join(file), text.replace(from, to)).unwrap();
}

const ONE: &str = "documents/7692c3ad3540.json";

#[test]
fn missing_or_malformed_manifest_is_invalid() {
    assert_eq!(
        violations_after(|cache| fs::remove_file(cache.join("manifest.json")).unwrap()),
        ["`manifest.json` is missing"]
    );
    let directory = violations_after(|cache| {
        fs::remove_file(cache.join("manifest.json")).unwrap();
        fs::create_dir(cache.join("manifest.json")).unwrap();
    });
    assert_eq!(directory, ["`manifest.json` is not a regular file"]);
    let fifo = violations_after(|cache| {
        fs::remove_file(cache.join("manifest.json")).unwrap();
        nix::unistd::mkfifo(&cache.join("manifest.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    });
    assert_eq!(fifo, ["`manifest.json` is not a regular file"]);
    for text in ["", "{", "[]", "null", "\"\u{fffd}\"", &"[".repeat(100_000)] {
        let malformed = violations_after(|cache| fs::write(cache.join("manifest.json"), text).unwrap());
        assert!(malformed[0].starts_with("`manifest.json` is malformed: "), "{malformed:?}");
        assert_eq!(malformed.len(), 1);
    }
    let time = violations_after(|cache| edit(cache, "manifest.json", "2026-01-02T", "yesterday"));
    assert!(time[0].starts_with("`manifest.json` is malformed: "), "{time:?}");
    assert_eq!(
        violations_after(|cache| edit(cache, "manifest.json", "\"version\": \"1\"", "\"version\": \"2\"")),
        ["version `2` with `sha256` is not supported"]
    );
    assert_eq!(
        violations_after(|cache| edit(
            cache,
            "manifest.json",
            "\"document_count\": 2",
            "\"document_count\": 1"
        )),
        ["`manifest.json` states 1 documents but lists 2"]
    );
    assert_eq!(
        violations_after(|cache| edit(
            cache,
            "manifest.json",
            "\"cache_version\": \"sha256:",
            "\"cache_version\": \"sha256:0"
        )),
        ["`cache_version` does not match the listed documents"]
    );
}

#[test]
fn index_that_differs_from_the_manifest_is_invalid() {
    assert_eq!(
        violations_after(|cache| fs::remove_file(cache.join("index.json")).unwrap()),
        ["`index.json` is missing"]
    );
    assert_eq!(
        violations_after(|cache| edit(cache, "index.json", "a.md", "c.md")),
        ["`index.json` and `manifest.json` differ"]
    );
    assert_eq!(
        violations_after(|cache| fs::write(cache.join("index.json"), "{}").unwrap()),
        ["`index.json` and `manifest.json` differ"]
    );
    let malformed = violations_after(|cache| fs::write(cache.join("index.json"), "[1]").unwrap());
    assert!(malformed[0].starts_with("`index.json` is malformed: "), "{malformed:?}");
}

#[test]
fn missing_changed_or_unlisted_document_is_invalid() {
    assert_eq!(
        violations_after(|cache| fs::remove_file(cache.join(ONE)).unwrap()),
        [format!("`{ONE}` is missing")]
    );
    let directory = violations_after(|cache| {
        fs::remove_file(cache.join(ONE)).unwrap();
        fs::create_dir(cache.join(ONE)).unwrap();
    });
    assert_eq!(directory, [format!("`{ONE}` is not a regular file")]);
    assert_eq!(
        violations_after(|cache| edit(cache, ONE, "\"one\"", "\"won\"")),
        [format!("`{ONE}` does not match its hash")]
    );
    assert_eq!(
        violations_after(|cache| edit(cache, ONE, "\"id\":\"a.md\"", "\"id\":\"b.md\"")),
        [format!("`{ONE}` does not contain document `a.md`")]
    );
    for (from, to) in
        [("{", ""), ("\"metadata\":{}", "\"metadata\":{\"a\":{}}"), (",\"source\":\"a.md\"", "")]
    {
        let malformed = violations_after(|cache| edit(cache, ONE, from, to));
        assert!(malformed[0].starts_with(&format!("`{ONE}` is malformed: ")), "{malformed:?}");
    }
    assert_eq!(
        violations_after(|cache| fs::write(cache.join("documents/stray.json"), "{}").unwrap()),
        ["`documents/stray.json` is not listed in `manifest.json`"]
    );
    let everything = violations_after(|cache| fs::remove_dir_all(cache.join("documents")).unwrap());
    assert_eq!(everything.len(), 2, "{everything:?}");
    let file = violations_after(|cache| {
        fs::remove_dir_all(cache.join("documents")).unwrap();
        fs::write(cache.join("documents"), "").unwrap();
    });
    assert_eq!(file, ["`documents` is not a folder"]);
}

#[test]
fn violations_are_reported_in_a_fixed_order() {
    let found = violations_after(|cache| {
        edit(cache, "manifest.json", "\"document_count\": 2", "\"document_count\": 3");
        fs::write(cache.join("index.json"), "{}").unwrap();
        for name in names(&cache.join("documents")) {
            fs::write(cache.join("documents").join(name), "").unwrap();
        }
        fs::write(cache.join("documents/z"), "").unwrap();
        fs::write(cache.join("documents/y"), "").unwrap();
    });
    let reasons: Vec<&str> = found.iter().map(|reason| reason.split(": ").next().unwrap()).collect();
    assert_eq!(
        reasons,
        [
            "`manifest.json` states 3 documents but lists 2",
            "`index.json` and `manifest.json` differ",
            &format!("`{ONE}` is malformed"),
            "`documents/3fc4ccfe7458.json` is malformed",
            "`documents/y` is not listed in `manifest.json`",
            "`documents/z` is not listed in `manifest.json`",
        ]
    );
}

#[test]
fn files_outside_the_cache_folder_are_never_read() {
    for path in ["../outside.json", "/etc/hostname", "documents/../../outside.json", "documents/a\\u0000b"] {
        let found = violations_after(|cache| {
            fs::copy(cache.join(ONE), cache.parent().unwrap().join("outside.json")).unwrap();
            for file in ["manifest.json", "index.json"] {
                edit(cache, file, ONE, path);
            }
            fs::remove_file(cache.join(ONE)).unwrap();
        });
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with("is not a file directly below `documents`"), "{found:?}");
    }
    let file = violations_after(|cache| {
        let outside = cache.parent().unwrap().join("outside.json");
        fs::rename(cache.join(ONE), &outside).unwrap();
        symlink(outside, cache.join(ONE)).unwrap();
    });
    assert_eq!(file, [format!("`{ONE}` leads outside the cache folder")]);
    let manifest = violations_after(|cache| {
        let outside = cache.parent().unwrap().join("outside.json");
        fs::rename(cache.join("manifest.json"), &outside).unwrap();
        symlink("../outside.json", cache.join("manifest.json")).unwrap();
    });
    assert_eq!(manifest, ["`manifest.json` leads outside the cache folder"]);
    let folder = violations_after(|cache| {
        fs::rename(cache.join("documents"), cache.parent().unwrap().join("moved")).unwrap();
        symlink("../moved", cache.join("documents")).unwrap();
    });
    assert_eq!(folder, ["`documents` leads outside the cache folder"]);
    let dangling = violations_after(|cache| {
        fs::remove_file(cache.join(ONE)).unwrap();
        symlink("nowhere", cache.join(ONE)).unwrap();
    });
    assert_eq!(dangling, [format!("`{ONE}` is missing")]);
    let link_loop = violations_after(|cache| {
        fs::remove_file(cache.join(ONE)).unwrap();
        symlink(cache.join(ONE), cache.join(ONE)).unwrap();
    });
    assert_eq!(link_loop, [format!("`{ONE}` is missing")]);
}

#[test]
fn links_inside_the_cache_folder_are_followed() {
    let fixture = Fixture::with(&[("a.md", "one")]);
    let cache = fixture.cache();
    fs::rename(cache.join("documents"), cache.join("real")).unwrap();
    symlink("real", cache.join("documents")).unwrap();
    fs::rename(cache.join("manifest.json"), cache.join("m")).unwrap();
    symlink(cache.join("m"), cache.join("manifest.json")).unwrap();
    fs::rename(cache.join("real/7692c3ad3540.json"), cache.join("doc")).unwrap();
    symlink("../doc", cache.join("real/7692c3ad3540.json")).unwrap();
    verify(&cache).unwrap();
}

#[test]
fn path_that_is_not_a_folder_is_a_missing_cache() {
    let fixture = Fixture::with(&[("a.md", "one")]);
    let file = fixture.sources().join("a.md");
    symlink("loop", fixture.path().join("loop")).unwrap();
    for path in [
        fixture.path().join("nowhere"),
        file.join("below"),
        file,
        fixture.path().join("loop"),
        fixture.path().join("nul\0"),
        fixture.path().join("x".repeat(300)),
    ] {
        assert_eq!(verify(&path).unwrap_err().code(), ContextErrorCode::CacheMissing, "{path:?}");
        let query = Query::new("x").unwrap();
        assert_eq!(resolve(&path, query, 1).unwrap_err().code(), ContextErrorCode::CacheMissing, "{path:?}");
        let query = Query::new("x").unwrap();
        assert_eq!(
            CachePool::default().resolve(&path, query, 1).unwrap_err().code(),
            ContextErrorCode::CacheMissing,
            "{path:?}"
        );
    }
}

#[test]
fn file_name_too_long_for_the_system_is_a_violation() {
    // A retry would not help, so it is not an I/O error.
    let long = format!("documents/{}.json", "x".repeat(300));
    let found = violations_after(|cache| {
        for file in ["manifest.json", "index.json"] {
            edit(cache, file, ONE, &long);
        }
    });
    assert_eq!(found[0], format!("`{long}` is missing"));
}
