//! The line between a cache that is broken, one that is not there, and a machine that refuses.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tenon_context::{Code, Error, Library, Query, Violation, resolve, verify};

use crate::fixture::{Desk, names};

/// The violations that a change to a good cache brings about.
fn after(change: impl FnOnce(&Path)) -> Vec<String> {
    let desk = Desk::with(&[("a.md", "one"), ("b.md", "two")]);
    change(&desk.cache());
    let found = violations(verify(&desk.cache()).map(drop));
    // Whoever reads a cache reads it under the same rules.
    assert_eq!(violations(resolve(&desk.cache(), Query::new("x").unwrap(), 1).map(drop)), found);
    let library = Library::default();
    assert_eq!(violations(library.resolve(&desk.cache(), Query::new("x").unwrap(), 1).map(drop)), found);
    found
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
fn the_manifest_must_be_there_and_make_sense() {
    assert_eq!(
        after(|cache| fs::remove_file(cache.join("manifest.json")).unwrap()),
        ["`manifest.json` is missing"]
    );
    let directory = after(|cache| {
        fs::remove_file(cache.join("manifest.json")).unwrap();
        fs::create_dir(cache.join("manifest.json")).unwrap();
    });
    assert_eq!(directory, ["`manifest.json` is not a regular file"]);
    let fifo = after(|cache| {
        fs::remove_file(cache.join("manifest.json")).unwrap();
        nix::unistd::mkfifo(&cache.join("manifest.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    });
    assert_eq!(fifo, ["`manifest.json` is not a regular file"]);
    for text in ["", "{", "[]", "null", "\"\u{fffd}\"", &"[".repeat(100_000)] {
        let malformed = after(|cache| fs::write(cache.join("manifest.json"), text).unwrap());
        assert!(malformed[0].starts_with("`manifest.json` is malformed: "), "{malformed:?}");
        assert_eq!(malformed.len(), 1);
    }
    let time = after(|cache| edit(cache, "manifest.json", "2026-01-02T", "yesterday"));
    assert!(time[0].starts_with("`manifest.json` is malformed: "), "{time:?}");
    assert_eq!(
        after(|cache| edit(cache, "manifest.json", "\"version\": \"1\"", "\"version\": \"2\"")),
        ["version `2` with `sha256` is not supported"]
    );
    assert_eq!(
        after(|cache| edit(cache, "manifest.json", "\"document_count\": 2", "\"document_count\": 1")),
        ["`manifest.json` counts 1 documents and lists 2"]
    );
    assert_eq!(
        after(|cache| edit(
            cache,
            "manifest.json",
            "\"cache_version\": \"sha256:",
            "\"cache_version\": \"sha256:0"
        )),
        ["`cache_version` is not the hash of the documents listed"]
    );
}

#[test]
fn the_index_must_agree() {
    assert_eq!(
        after(|cache| fs::remove_file(cache.join("index.json")).unwrap()),
        ["`index.json` is missing"]
    );
    assert_eq!(
        after(|cache| edit(cache, "index.json", "a.md", "c.md")),
        ["`index.json` and `manifest.json` differ"]
    );
    assert_eq!(
        after(|cache| fs::write(cache.join("index.json"), "{}").unwrap()),
        ["`index.json` and `manifest.json` differ"]
    );
    let malformed = after(|cache| fs::write(cache.join("index.json"), "[1]").unwrap());
    assert!(malformed[0].starts_with("`index.json` is malformed: "), "{malformed:?}");
}

#[test]
fn documents_must_be_there_and_be_what_they_were() {
    assert_eq!(after(|cache| fs::remove_file(cache.join(ONE)).unwrap()), [format!("`{ONE}` is missing")]);
    let directory = after(|cache| {
        fs::remove_file(cache.join(ONE)).unwrap();
        fs::create_dir(cache.join(ONE)).unwrap();
    });
    assert_eq!(directory, [format!("`{ONE}` is not a regular file")]);
    assert_eq!(
        after(|cache| edit(cache, ONE, "\"one\"", "\"won\"")),
        [format!("`{ONE}` differs from its hash")]
    );
    assert_eq!(
        after(|cache| edit(cache, ONE, "\"id\":\"a.md\"", "\"id\":\"b.md\"")),
        [format!("`{ONE}` holds another document than `a.md`")]
    );
    for (from, to) in
        [("{", ""), ("\"metadata\":{}", "\"metadata\":{\"a\":{}}"), (",\"source\":\"a.md\"", "")]
    {
        let malformed = after(|cache| edit(cache, ONE, from, to));
        assert!(malformed[0].starts_with(&format!("`{ONE}` is malformed: ")), "{malformed:?}");
    }
    assert_eq!(
        after(|cache| fs::write(cache.join("documents/stray.json"), "{}").unwrap()),
        ["`documents/stray.json` is not listed in `manifest.json`"]
    );
    let everything = after(|cache| fs::remove_dir_all(cache.join("documents")).unwrap());
    assert_eq!(everything.len(), 2, "{everything:?}");
    let file = after(|cache| {
        fs::remove_dir_all(cache.join("documents")).unwrap();
        fs::write(cache.join("documents"), "").unwrap();
    });
    assert_eq!(file, ["`documents` is not a folder"]);
}

#[test]
fn every_violation_is_named_in_order() {
    let found = after(|cache| {
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
            "`manifest.json` counts 3 documents and lists 2",
            "`index.json` and `manifest.json` differ",
            &format!("`{ONE}` is malformed"),
            "`documents/3fc4ccfe7458.json` is malformed",
            "`documents/y` is not listed in `manifest.json`",
            "`documents/z` is not listed in `manifest.json`",
        ]
    );
}

#[test]
fn nothing_is_read_outside_the_folder() {
    for path in ["../outside.json", "/etc/hostname", "documents/../../outside.json", "documents/a\\u0000b"] {
        let found = after(|cache| {
            fs::copy(cache.join(ONE), cache.parent().unwrap().join("outside.json")).unwrap();
            for file in ["manifest.json", "index.json"] {
                edit(cache, file, ONE, path);
            }
            fs::remove_file(cache.join(ONE)).unwrap();
        });
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with("is not a file directly below `documents`"), "{found:?}");
    }
    let file = after(|cache| {
        let outside = cache.parent().unwrap().join("outside.json");
        fs::rename(cache.join(ONE), &outside).unwrap();
        symlink(outside, cache.join(ONE)).unwrap();
    });
    assert_eq!(file, [format!("`{ONE}` leaves the cache folder")]);
    let manifest = after(|cache| {
        let outside = cache.parent().unwrap().join("outside.json");
        fs::rename(cache.join("manifest.json"), &outside).unwrap();
        symlink("../outside.json", cache.join("manifest.json")).unwrap();
    });
    assert_eq!(manifest, ["`manifest.json` leaves the cache folder"]);
    let folder = after(|cache| {
        fs::rename(cache.join("documents"), cache.parent().unwrap().join("elsewhere")).unwrap();
        symlink("../elsewhere", cache.join("documents")).unwrap();
    });
    assert_eq!(folder, ["`documents` leaves the cache folder"]);
    let nowhere = after(|cache| {
        fs::remove_file(cache.join(ONE)).unwrap();
        symlink("nowhere", cache.join(ONE)).unwrap();
    });
    assert_eq!(nowhere, [format!("`{ONE}` is missing")]);
    let circle = after(|cache| {
        fs::remove_file(cache.join(ONE)).unwrap();
        symlink(cache.join(ONE), cache.join(ONE)).unwrap();
    });
    assert_eq!(circle, [format!("`{ONE}` is missing")]);
}

#[test]
fn links_that_stay_inside_are_followed() {
    let desk = Desk::with(&[("a.md", "one")]);
    let cache = desk.cache();
    fs::rename(cache.join("documents"), cache.join("real")).unwrap();
    symlink("real", cache.join("documents")).unwrap();
    fs::rename(cache.join("manifest.json"), cache.join("m")).unwrap();
    symlink(cache.join("m"), cache.join("manifest.json")).unwrap();
    fs::rename(cache.join("real/7692c3ad3540.json"), cache.join("doc")).unwrap();
    symlink("../doc", cache.join("real/7692c3ad3540.json")).unwrap();
    verify(&cache).unwrap();
}

#[test]
fn what_is_no_folder_is_no_cache() {
    let desk = Desk::with(&[("a.md", "one")]);
    let file = desk.sources().join("a.md");
    symlink("circle", desk.path().join("circle")).unwrap();
    for path in [
        desk.path().join("nowhere"),
        file.join("below"),
        file,
        desk.path().join("circle"),
        desk.path().join("nul\0"),
        desk.path().join("x".repeat(300)),
    ] {
        assert_eq!(verify(&path).unwrap_err().code(), Code::CacheMissing, "{path:?}");
        let query = Query::new("x").unwrap();
        assert_eq!(resolve(&path, query, 1).unwrap_err().code(), Code::CacheMissing, "{path:?}");
        let query = Query::new("x").unwrap();
        assert_eq!(
            Library::default().resolve(&path, query, 1).unwrap_err().code(),
            Code::CacheMissing,
            "{path:?}"
        );
    }
}

#[test]
fn broken_wins_over_denied() {
    // A name that is too long for the system is a broken manifest, not a passing failure.
    let long = format!("documents/{}.json", "x".repeat(300));
    let found = after(|cache| {
        for file in ["manifest.json", "index.json"] {
            edit(cache, file, ONE, &long);
        }
    });
    assert_eq!(found[0], format!("`{long}` is missing"));
}
