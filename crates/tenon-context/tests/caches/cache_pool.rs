//! Answers from a pool equal answers from disk, even after the files change.

use std::fs::{self, File};
use std::time::Duration;

use tenon_context::{CachePool, ContextErrorCode};

use crate::fixture::Fixture;

#[test]
fn replaced_cache_is_reloaded() {
    let fixture = Fixture::with(&[("a.md", "one two"), ("b.md", "two")]);
    let pool = CachePool::default();
    for (query, budget) in [("two", 100), ("one", 1), ("", 0), ("two", 100)] {
        assert_eq!(
            fixture.resolve_in(&pool, query, budget).unwrap(),
            fixture.resolve(query, budget).unwrap()
        );
    }
    fixture.write("c.md", "two two");
    fixture.rebuild().unwrap();
    let answer = fixture.resolve_in(&pool, "two", 100).unwrap();
    assert!(answer.contains("\"c.md\""));
    assert_eq!(answer, fixture.resolve("two", 100).unwrap());
}

#[test]
fn cache_that_becomes_invalid_gives_an_error() {
    for break_it in [
        (|fixture: &Fixture| fs::remove_dir_all(fixture.cache()).unwrap()) as fn(&Fixture),
        |fixture| fs::remove_file(fixture.cache().join("index.json")).unwrap(),
        |fixture| fs::write(fixture.cache().join("manifest.json"), "{}").unwrap(),
        |fixture| fs::write(fixture.cache().join("documents/stray"), "").unwrap(),
    ] {
        let fixture = Fixture::with(&[("a.md", "one")]);
        let pool = CachePool::default();
        fixture.resolve_in(&pool, "one", 10).unwrap();
        break_it(&fixture);
        let expected = fixture.resolve("one", 10).unwrap_err().code();
        assert_eq!(fixture.resolve_in(&pool, "one", 10).unwrap_err().code(), expected);
        // Again, now that the pool is empty.
        assert_eq!(fixture.resolve_in(&pool, "one", 10).unwrap_err().code(), expected);
    }
}

#[test]
fn edit_of_a_delivered_document_is_detected_immediately() {
    let fixture = Fixture::with(&[("a.md", "one"), ("b.md", "two")]);
    let pool = CachePool::default();
    fixture.resolve_in(&pool, "one", 1).unwrap();
    let path = fixture.cache().join("documents/7692c3ad3540.json");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    // Same size, same inode, same modification time.
    let text = fs::read_to_string(&path).unwrap().replace("\"one\"", "\"won\"");
    fs::write(&path, text).unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(fixture.resolve_in(&pool, "one", 1).unwrap_err().code(), ContextErrorCode::CacheInvalid);
}

#[test]
fn restored_cache_is_used_again() {
    let fixture = Fixture::with(&[("a.md", "one")]);
    let pool = CachePool::default();
    let manifest = fixture.read("manifest.json");
    fs::write(fixture.cache().join("manifest.json"), "").unwrap();
    assert_eq!(fixture.resolve_in(&pool, "one", 9).unwrap_err().code(), ContextErrorCode::CacheInvalid);
    fs::write(fixture.cache().join("manifest.json"), manifest).unwrap();
    assert_eq!(fixture.resolve_in(&pool, "one", 9).unwrap(), fixture.resolve("one", 9).unwrap());
}

#[test]
fn cache_over_the_capacity_is_still_answered() {
    let fixture = Fixture::with(&[("a.md", "one two"), ("b.md", "two")]);
    let pool = CachePool::new(0);
    for query in ["two", "one", "three"] {
        assert_eq!(fixture.resolve_in(&pool, query, 100).unwrap(), fixture.resolve(query, 100).unwrap());
    }
}

#[test]
fn concurrent_calls_agree_while_the_cache_is_replaced() {
    let fixture = Fixture::in_memory();
    for n in 0..30 {
        fixture.write(&format!("{n}.md"), format!("document number {n}"));
    }
    fixture.build().unwrap();
    let pool = CachePool::default();
    let expected = fixture.resolve("number", 50).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(fixture.resolve_in(&pool, "number", 50).unwrap(), expected);
                }
            });
        }
        for _ in 0..5 {
            fixture.rebuild().unwrap();
        }
    });
}

/// Dropping the pool must end the sweeper thread without delay.
#[test]
fn dropping_a_pool_does_not_block() {
    let (done, finished) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let fixture = Fixture::with(&[("a.md", "one")]);
        let pool = CachePool::default();
        fixture.resolve_in(&pool, "one", 10).unwrap();
        drop(pool);
        done.send(()).unwrap();
    });
    finished.recv_timeout(Duration::from_secs(60)).unwrap();
    thread.join().unwrap();
}
