//! Putting caches in place: all or nothing, and nothing that is not a cache is ever removed.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use tenon_context::{CacheRoot, Code, Error, Existing, build, verify};
use tenon_contract::id::sha256_hex;

use crate::fixture::{Desk, names, noon};

#[test]
fn an_existing_cache_is_replaced_only_when_told_to() {
    let desk = Desk::with(&[("a.md", "one")]);
    let before = verify(&desk.cache()).unwrap();
    desk.write("b.md", "two");
    assert!(matches!(desk.build(), Err(Error::TargetExists { .. })));
    assert_eq!(verify(&desk.cache()).unwrap(), before);
    let after = desk.rebuild().unwrap();
    assert_eq!(after.document_count, 2);
    assert_eq!(verify(&desk.cache()).unwrap(), after);
    assert_eq!(desk.names(), ["cache", "sources"]);
    assert_eq!(names(&desk.cache().join("documents")).len(), 2);
}

#[test]
fn a_build_that_fails_leaves_the_old_cache_alone() {
    let desk = Desk::with(&[("a.md", "one")]);
    let before = verify(&desk.cache()).unwrap();
    desk.write("bad.md", b"\xff");
    assert_eq!(desk.rebuild().unwrap_err().code(), Code::CacheInvalid);
    assert_eq!(verify(&desk.cache()).unwrap(), before);
    assert_eq!(desk.names(), ["cache", "sources"]);
}

#[test]
fn folders_on_the_way_are_made_and_taken_back() {
    let desk = Desk::new();
    desk.write("a.md", "one");
    let deep = desk.path().join("x/y/z");
    build(&desk.sources(), &deep, Existing::Keep, &noon()).unwrap();
    verify(&deep).unwrap();

    // The name is one byte too long, which shows only when the finished cache is put in place.
    let long = desk.path().join("p/q").join("n".repeat(256));
    assert_eq!(build(&desk.sources(), &long, Existing::Keep, &noon()).unwrap_err().code(), Code::IoError);
    assert_eq!(desk.names(), ["sources", "x"]);
    assert_eq!(names(&desk.path().join("x/y")), ["z"]);
}

#[test]
fn only_caches_are_replaced() {
    let desk = Desk::new();
    desk.write("a.md", "one");
    let replace = |name: &str| build(&desk.sources(), &desk.path().join(name), Existing::Replace, &noon());

    fs::create_dir(desk.path().join("empty")).unwrap();
    replace("empty").unwrap();
    fs::create_dir_all(desk.path().join("broken/documents")).unwrap();
    replace("broken").unwrap();
    fs::write(desk.path().join("broken/README"), "a cache with a note").unwrap();
    replace("broken").unwrap();

    fs::create_dir(desk.path().join("precious")).unwrap();
    fs::write(desk.path().join("precious/thesis.txt"), "years of work").unwrap();
    fs::write(desk.path().join("precious/manifest.json"), "{\"name\":\"an app\"}").unwrap();
    fs::write(desk.path().join("file"), "").unwrap();
    fs::create_dir(desk.path().join("pipe")).unwrap();
    fs::write(desk.path().join("pipe/other"), "").unwrap();
    nix::unistd::mkfifo(&desk.path().join("pipe/manifest.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for name in ["precious", "file", "pipe"] {
        assert!(matches!(replace(name), Err(Error::TargetNotACache { .. })), "{name}");
    }
    for name in [".", "sources", "sources/..", "sources/../sources"] {
        let refused = replace(name);
        assert!(matches!(refused, Err(Error::TargetHoldsSources { .. })), "{name}: {refused:?}");
    }
    assert_eq!(desk.names(), ["broken", "empty", "file", "pipe", "precious", "sources"]);
    assert_eq!(names(&desk.path().join("precious")), ["manifest.json", "thesis.txt"]);
}

#[test]
fn a_link_to_a_cache_stays_a_link() {
    let desk = Desk::with(&[("a.md", "one")]);
    let link = desk.path().join("current");
    symlink("cache", &link).unwrap();
    desk.write("b.md", "two");
    let summary = build(&desk.sources(), &link, Existing::Replace, &noon()).unwrap();
    assert!(link.is_symlink());
    assert_eq!(verify(&desk.cache()).unwrap(), summary);
}

#[test]
fn what_killed_builds_left_is_removed_by_the_next() {
    let desk = Desk::with(&[("a.md", "one")]);
    let key = &sha256_hex("cache")[..16];
    for name in [format!(".tenon-build-{key}-1-0"), format!(".tenon-old-{key}")] {
        fs::create_dir_all(desk.path().join(name).join("documents")).unwrap();
    }
    let others = format!(".tenon-build-{}-1-0", &sha256_hex("other")[..16]);
    fs::create_dir(desk.path().join(&others)).unwrap();
    // Somebody is still at work on this one.
    let busy = format!(".tenon-build-{key}-2-0");
    fs::create_dir(desk.path().join(&busy)).unwrap();
    let lock = fs::File::open(desk.path().join(&busy)).unwrap();
    lock.try_lock().unwrap();

    desk.rebuild().unwrap();
    let mut left = vec![others.clone(), busy, "cache".into(), "sources".into()];
    left.sort();
    assert_eq!(desk.names(), left);
    drop(lock);
    desk.rebuild().unwrap();
    assert_eq!(desk.names(), [others, "cache".into(), "sources".into()]);
}

#[test]
fn a_replacement_cut_short_is_put_back_by_whoever_comes_next() {
    let desk = Desk::with(&[("a.md", "one")]);
    let before = verify(&desk.cache()).unwrap();
    let aside = desk.path().join(format!(".tenon-old-{}", &sha256_hex("cache")[..16]));
    fs::rename(desk.cache(), &aside).unwrap();
    assert_eq!(verify(&desk.cache()).unwrap(), before);
    assert_eq!(desk.names(), ["cache", "sources"]);

    fs::rename(desk.cache(), &aside).unwrap();
    let found = CacheRoot::new(desk.path()).cache("cache").unwrap();
    assert_eq!(verify(&found).unwrap(), before);

    fs::rename(desk.cache(), &aside).unwrap();
    assert!(matches!(desk.build(), Err(Error::TargetExists { .. })));
    assert_eq!(verify(&desk.cache()).unwrap(), before);
}

/// Readers see the old cache or the new one while it is being replaced, never a mixture and never nothing.
#[test]
fn readers_never_see_a_replacement_half_done() {
    let desk = Desk::in_memory();
    for n in 0..40 {
        desk.write(&format!("{n}.md"), format!("document {n}"));
    }
    let small = desk.build().unwrap();
    desk.write("more.md", "more");
    let large = desk.rebuild().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..30 {
                let more = desk.sources().join("more.md");
                if n % 2 == 0 {
                    fs::remove_file(more).unwrap()
                } else {
                    fs::write(more, "more").unwrap()
                }
                desk.rebuild().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let seen = verify(&desk.cache()).unwrap();
            assert!(seen == small || seen == large, "{seen:?}");
        }
    });
}

#[test]
fn builds_at_the_same_time_do_not_hurt_each_other() {
    let desk = Desk::in_memory();
    for n in 0..40 {
        desk.write(&format!("{n}.md"), format!("document {n}"));
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    desk.rebuild().unwrap();
                }
            });
        }
    });
    assert_eq!(verify(&desk.cache()).unwrap().document_count, 40);
    // The last to finish may have met a leftover that another was just removing.
    desk.rebuild().unwrap();
    assert_eq!(desk.names(), ["cache", "sources"]);
}
