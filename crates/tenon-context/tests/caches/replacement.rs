//! Replacing caches: atomically, and never anything that is not a cache.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use tenon_context::{CacheRoot, ContextErrorCode, Error, Existing, build, verify};
use tenon_contract::id::sha256_hex;

use crate::fixture::{Fixture, names, noon};

#[test]
fn existing_cache_is_replaced_only_on_request() {
    let fixture = Fixture::with(&[("a.md", "one")]);
    let before = verify(&fixture.cache()).unwrap();
    fixture.write("b.md", "two");
    assert!(matches!(fixture.build(), Err(Error::TargetExists { .. })));
    assert_eq!(verify(&fixture.cache()).unwrap(), before);
    let after = fixture.rebuild().unwrap();
    assert_eq!(after.document_count, 2);
    assert_eq!(verify(&fixture.cache()).unwrap(), after);
    assert_eq!(fixture.names(), ["cache", "sources"]);
    assert_eq!(names(&fixture.cache().join("documents")).len(), 2);
}

#[test]
fn failed_build_keeps_the_old_cache() {
    let fixture = Fixture::with(&[("a.md", "one")]);
    let before = verify(&fixture.cache()).unwrap();
    fixture.write("bad.md", b"\xff");
    assert_eq!(fixture.rebuild().unwrap_err().code(), ContextErrorCode::CacheInvalid);
    assert_eq!(verify(&fixture.cache()).unwrap(), before);
    assert_eq!(fixture.names(), ["cache", "sources"]);
}

#[test]
fn parent_folders_are_created_and_removed_on_failure() {
    let fixture = Fixture::new();
    fixture.write("a.md", "one");
    let deep = fixture.path().join("x/y/z");
    build(&fixture.sources(), &deep, Existing::Keep, &noon()).unwrap();
    verify(&deep).unwrap();

    // The name is one byte too long, which fails only at the final rename.
    let long = fixture.path().join("p/q").join("n".repeat(256));
    assert_eq!(
        build(&fixture.sources(), &long, Existing::Keep, &noon()).unwrap_err().code(),
        ContextErrorCode::IoError
    );
    assert_eq!(fixture.names(), ["sources", "x"]);
    assert_eq!(names(&fixture.path().join("x/y")), ["z"]);
}

#[test]
fn only_caches_are_replaced() {
    let fixture = Fixture::new();
    fixture.write("a.md", "one");
    let replace =
        |name: &str| build(&fixture.sources(), &fixture.path().join(name), Existing::Replace, &noon());

    fs::create_dir(fixture.path().join("empty")).unwrap();
    replace("empty").unwrap();
    fs::create_dir_all(fixture.path().join("broken/documents")).unwrap();
    replace("broken").unwrap();
    fs::write(fixture.path().join("broken/README"), "a cache with a note").unwrap();
    replace("broken").unwrap();

    fs::create_dir(fixture.path().join("precious")).unwrap();
    fs::write(fixture.path().join("precious/thesis.txt"), "years of work").unwrap();
    fs::write(fixture.path().join("precious/manifest.json"), "{\"name\":\"an app\"}").unwrap();
    fs::write(fixture.path().join("file"), "").unwrap();
    fs::create_dir(fixture.path().join("pipe")).unwrap();
    fs::write(fixture.path().join("pipe/other"), "").unwrap();
    nix::unistd::mkfifo(&fixture.path().join("pipe/manifest.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for name in ["precious", "file", "pipe"] {
        assert!(matches!(replace(name), Err(Error::TargetNotACache { .. })), "{name}");
    }
    for name in [".", "sources", "sources/..", "sources/../sources"] {
        let result = replace(name);
        assert!(matches!(result, Err(Error::TargetHoldsSources { .. })), "{name}: {result:?}");
    }
    assert_eq!(fixture.names(), ["broken", "empty", "file", "pipe", "precious", "sources"]);
    assert_eq!(names(&fixture.path().join("precious")), ["manifest.json", "thesis.txt"]);
}

#[test]
fn build_through_a_link_replaces_the_target_and_keeps_the_link() {
    let fixture = Fixture::with(&[("a.md", "one")]);
    let link = fixture.path().join("current");
    symlink("cache", &link).unwrap();
    fixture.write("b.md", "two");
    let summary = build(&fixture.sources(), &link, Existing::Replace, &noon()).unwrap();
    assert!(link.is_symlink());
    assert_eq!(verify(&fixture.cache()).unwrap(), summary);
}

#[test]
fn next_build_removes_leftovers_of_killed_builds() {
    let fixture = Fixture::with(&[("a.md", "one")]);
    let key = &sha256_hex("cache")[..16];
    for name in [format!(".tenon-build-{key}-1-0"), format!(".tenon-old-{key}")] {
        fs::create_dir_all(fixture.path().join(name).join("documents")).unwrap();
    }
    let of_other_cache = format!(".tenon-build-{}-1-0", &sha256_hex("other")[..16]);
    fs::create_dir(fixture.path().join(&of_other_cache)).unwrap();
    // Locked: this build is still running.
    let busy = format!(".tenon-build-{key}-2-0");
    fs::create_dir(fixture.path().join(&busy)).unwrap();
    let lock = fs::File::open(fixture.path().join(&busy)).unwrap();
    lock.try_lock().unwrap();

    fixture.rebuild().unwrap();
    let mut remaining = vec![of_other_cache.clone(), busy, "cache".into(), "sources".into()];
    remaining.sort();
    assert_eq!(fixture.names(), remaining);
    drop(lock);
    fixture.rebuild().unwrap();
    assert_eq!(fixture.names(), [of_other_cache, "cache".into(), "sources".into()]);
}

#[test]
fn interrupted_replacement_is_rolled_back_by_readers_and_builds() {
    let fixture = Fixture::with(&[("a.md", "one")]);
    let before = verify(&fixture.cache()).unwrap();
    let aside = fixture.path().join(format!(".tenon-old-{}", &sha256_hex("cache")[..16]));
    fs::rename(fixture.cache(), &aside).unwrap();
    assert_eq!(verify(&fixture.cache()).unwrap(), before);
    assert_eq!(fixture.names(), ["cache", "sources"]);

    fs::rename(fixture.cache(), &aside).unwrap();
    let found = CacheRoot::new(fixture.path()).cache("cache").unwrap();
    assert_eq!(verify(&found).unwrap(), before);

    fs::rename(fixture.cache(), &aside).unwrap();
    assert!(matches!(fixture.build(), Err(Error::TargetExists { .. })));
    assert_eq!(verify(&fixture.cache()).unwrap(), before);
}

#[test]
fn readers_during_a_replacement_see_the_old_or_the_new_cache() {
    let fixture = Fixture::in_memory();
    for n in 0..40 {
        fixture.write(&format!("{n}.md"), format!("document {n}"));
    }
    let small = fixture.build().unwrap();
    fixture.write("more.md", "more");
    let large = fixture.rebuild().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..30 {
                let more = fixture.sources().join("more.md");
                if n % 2 == 0 {
                    fs::remove_file(more).unwrap()
                } else {
                    fs::write(more, "more").unwrap()
                }
                fixture.rebuild().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let seen = verify(&fixture.cache()).unwrap();
            assert!(seen == small || seen == large, "{seen:?}");
        }
    });
}

#[test]
fn concurrent_builds_leave_a_valid_cache() {
    let fixture = Fixture::in_memory();
    for n in 0..40 {
        fixture.write(&format!("{n}.md"), format!("document {n}"));
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    fixture.rebuild().unwrap();
                }
            });
        }
    });
    assert_eq!(verify(&fixture.cache()).unwrap().document_count, 40);
    // The last build may have found leftovers locked by another build that was removing them.
    fixture.rebuild().unwrap();
    assert_eq!(fixture.names(), ["cache", "sources"]);
}
