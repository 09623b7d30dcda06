//! Invalid and extreme input gets the right code, prints nothing to stdout and leaves no files.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use serde_json::json;
use tenon_testkit::Revision;

use crate::{answer, built, error_code, exit, names, serve};

const BUILD: [&str; 5] = ["build", "--sources", "docs", "--cache", "new"];

#[test]
fn invalid_sources_fail_the_build() {
    let sandbox = built();
    let before = names(&sandbox, ".");
    let docs = sandbox.tree().path("docs");
    fs::write(docs.join("latin.md"), b"caf\xe9").unwrap();
    assert_eq!(exit(&sandbox, &BUILD), 5);
    fs::remove_file(docs.join("latin.md")).unwrap();

    fs::write(docs.join("NOTES.md"), "other notes").unwrap();
    assert_eq!(exit(&sandbox, &BUILD), 5);
    fs::remove_file(docs.join("NOTES.md")).unwrap();

    let name = OsString::from_vec(b"caf\xe9.md".to_vec());
    fs::write(docs.join(&name), "").unwrap();
    assert_eq!(exit(&sandbox, &BUILD), 5);
    fs::remove_file(docs.join(&name)).unwrap();

    assert_eq!(exit(&sandbox, &["build", "--sources", "nowhere", "--cache", "new"]), 6);
    assert_eq!(exit(&sandbox, &["build", "--sources", "docs/notes.md", "--cache", "new"]), 6);
    assert_eq!(names(&sandbox, "."), before);
}

#[test]
fn links_and_sockets_are_skipped() {
    let sandbox = built();
    let docs = sandbox.tree().path("docs");
    symlink("loop.md", docs.join("loop.md")).unwrap();
    symlink("..", docs.join("Guide/up")).unwrap();
    let _socket = UnixListener::bind(docs.join("socket.md")).unwrap();
    answer(&sandbox, &BUILD);
    let version = |cache: &str| answer(&sandbox, &["inspect", "--cache", cache]);
    assert_eq!(version("new"), version("caches/docs"));
}

#[test]
fn document_of_100_megabytes_is_resolved() {
    let sandbox = built();
    // Long words: counting words dominates the time of an unoptimised build.
    let words = format!("{} ipsum ", "lorem".repeat(100));
    let text = words.repeat(100_000_000 / words.len());
    sandbox.tree().write("docs/huge.md", &text);
    answer(&sandbox, &BUILD);
    let resolve_all = ["resolve", "--cache", "new", "--query", "ipsum", "--budget", "99999999"];
    let answer = answer(&sandbox, &resolve_all);
    assert!(answer.contains(&text) && answer.contains("\"score\":0.5,"));
}

#[test]
fn query_that_is_too_long_or_not_utf8_is_rejected() {
    let sandbox = built();
    let resolve = |query: &str| {
        ["resolve", "--cache", "caches/docs", "--budget", "9", "--query", query].map(OsString::from)
    };
    assert_eq!(exit(&sandbox, &resolve(&"long ".repeat(20_000))), 2);
    let mut latin = resolve("");
    latin[6] = OsString::from_vec(b"caf\xe9".to_vec());
    assert_eq!(exit(&sandbox, &latin), 2);
    // A query that starts with dashes is not an option.
    answer(&sandbox, &resolve("--force"));

    let mut client = serve(&sandbox, Revision::Sessions);
    for bytes in [100_000, 1_000_000, 1 << 20] {
        let arguments = json!({"cache": "docs", "query": "x".repeat(bytes), "budget": 9});
        assert_eq!(error_code(&mut client, "context.resolve", arguments), "invalid_query");
    }
}

#[test]
fn cache_name_outside_the_root_is_missing() {
    let sandbox = built();
    let mut client = serve(&sandbox, Revision::Sessions);
    let absolute = sandbox.tree().path("caches/docs");
    symlink("../docs", sandbox.tree().path("caches/out")).unwrap();
    for name in
        ["..", "../caches/docs", "docs/../docs", "docs\0", "\0", "out", "", absolute.to_str().unwrap()]
    {
        let arguments = json!({"cache": name, "query": "", "budget": 9});
        assert_eq!(error_code(&mut client, "context.resolve", arguments), "cache_missing", "{name:?}");
        let arguments = json!({"cache": name});
        assert_eq!(error_code(&mut client, "context.inspect_cache", arguments), "cache_missing", "{name:?}");
    }
}
