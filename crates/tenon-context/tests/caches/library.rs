//! Caches in memory answer as those on disk do, whatever happens to the files.

use std::fs::{self, File};
use std::time::Duration;

use tenon_context::{Code, Library};

use crate::fixture::Desk;

#[test]
fn a_replaced_cache_is_noticed() {
    let desk = Desk::with(&[("a.md", "one two"), ("b.md", "two")]);
    let library = Library::default();
    for (query, budget) in [("two", 100), ("one", 1), ("", 0), ("two", 100)] {
        assert_eq!(desk.ask(&library, query, budget).unwrap(), desk.resolve(query, budget).unwrap());
    }
    desk.write("c.md", "two two");
    desk.rebuild().unwrap();
    let answer = desk.ask(&library, "two", 100).unwrap();
    assert!(answer.contains("\"c.md\""));
    assert_eq!(answer, desk.resolve("two", 100).unwrap());
}

#[test]
fn a_cache_that_breaks_is_no_longer_answered_from() {
    for break_it in [
        (|desk: &Desk| fs::remove_dir_all(desk.cache()).unwrap()) as fn(&Desk),
        |desk| fs::remove_file(desk.cache().join("index.json")).unwrap(),
        |desk| fs::write(desk.cache().join("manifest.json"), "{}").unwrap(),
        |desk| fs::write(desk.cache().join("documents/stray"), "").unwrap(),
    ] {
        let desk = Desk::with(&[("a.md", "one")]);
        let library = Library::default();
        desk.ask(&library, "one", 10).unwrap();
        break_it(&desk);
        let expected = desk.resolve("one", 10).unwrap_err().code();
        assert_eq!(desk.ask(&library, "one", 10).unwrap_err().code(), expected);
        // And again, now that nothing is in memory.
        assert_eq!(desk.ask(&library, "one", 10).unwrap_err().code(), expected);
    }
}

#[test]
fn an_edit_of_a_delivered_document_is_noticed_at_once() {
    let desk = Desk::with(&[("a.md", "one"), ("b.md", "two")]);
    let library = Library::default();
    desk.ask(&library, "one", 1).unwrap();
    let path = desk.cache().join("documents/7692c3ad3540.json");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    // Same size, same inode, and the clock of the file set back.
    let text = fs::read_to_string(&path).unwrap().replace("\"one\"", "\"won\"");
    fs::write(&path, text).unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(desk.ask(&library, "one", 1).unwrap_err().code(), Code::CacheInvalid);
}

#[test]
fn a_mended_cache_is_answered_from_again() {
    let desk = Desk::with(&[("a.md", "one")]);
    let library = Library::default();
    let manifest = desk.read("manifest.json");
    fs::write(desk.cache().join("manifest.json"), "").unwrap();
    assert_eq!(desk.ask(&library, "one", 9).unwrap_err().code(), Code::CacheInvalid);
    fs::write(desk.cache().join("manifest.json"), manifest).unwrap();
    assert_eq!(desk.ask(&library, "one", 9).unwrap(), desk.resolve("one", 9).unwrap());
}

#[test]
fn a_cache_that_does_not_fit_is_answered_all_the_same() {
    let desk = Desk::with(&[("a.md", "one two"), ("b.md", "two")]);
    let library = Library::new(0);
    for query in ["two", "one", "three"] {
        assert_eq!(desk.ask(&library, query, 100).unwrap(), desk.resolve(query, 100).unwrap());
    }
}

/// Many callers, one of whom replaces the cache all the while.
#[test]
fn callers_do_not_get_in_each_others_way() {
    let desk = Desk::in_memory();
    for n in 0..30 {
        desk.write(&format!("{n}.md"), format!("document number {n}"));
    }
    desk.build().unwrap();
    let library = Library::default();
    let expected = desk.resolve("number", 50).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(desk.ask(&library, "number", 50).unwrap(), expected);
                }
            });
        }
        for _ in 0..5 {
            desk.rebuild().unwrap();
        }
    });
}

/// The thread that sweeps ends with the library, and does not hold it up.
#[test]
fn a_library_can_be_dropped() {
    let (done, finished) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let desk = Desk::with(&[("a.md", "one")]);
        let library = Library::default();
        desk.ask(&library, "one", 10).unwrap();
        drop(library);
        done.send(()).unwrap();
    });
    finished.recv_timeout(Duration::from_secs(60)).unwrap();
    thread.join().unwrap();
}
