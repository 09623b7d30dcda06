//! Every error code over the command line and over MCP, and the difference between invalid caches and I/O errors.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;
use tenon_testkit::small_disk::SmallDisk;
use tenon_testkit::{Revision, Sandbox};

use crate::{answer, built, error_code, exit, names, serve};

const CACHE: &str = "caches/docs";

/// The exit code of `tenon context resolve` and the error code of `context.resolve`.
fn resolve_errors(sandbox: &Sandbox) -> (i32, String) {
    let resolve = ["resolve", "--cache", CACHE, "--query", "release", "--budget", "100"];
    let arguments = json!({"cache": "docs", "query": "release", "budget": 100});
    let mut client = serve(sandbox, Revision::Stateless);
    (exit(sandbox, &resolve), error_code(&mut client, "context.resolve", arguments))
}

fn errors(exit: i32, code: &str) -> (i32, String) {
    (exit, code.to_owned())
}

#[test]
fn command_line_and_mcp_report_the_same_error() {
    let sandbox = built();
    let mut client = serve(&sandbox, Revision::Sessions);
    let mut both = |cache: &str, query: &str, budget: &str| {
        let resolve =
            ["resolve", "--cache", &format!("caches/{cache}"), "--query", query, "--budget", budget];
        let budget: serde_json::Value = serde_json::from_str(budget).unwrap_or_else(|_| budget.into());
        let arguments = json!({"cache": cache, "query": query, "budget": budget});
        (exit(&sandbox, &resolve), error_code(&mut client, "context.resolve", arguments))
    };
    let long = "x ".repeat(40_000);
    assert_eq!(both("docs", &long, "1"), errors(2, "invalid_query"));
    for budget in ["-1", "99999999999999999999", "1.5", "many", "", "0x10"] {
        assert_eq!(both("docs", &long, budget), errors(3, "invalid_budget"), "{budget}");
    }
    assert_eq!(both("nope", "", "1"), errors(4, "cache_missing"));
    fs::remove_file(sandbox.tree().path("caches/docs/manifest.json")).unwrap();
    assert_eq!(both("docs", "", "1"), errors(5, "cache_invalid"));
}

#[test]
fn cache_that_violates_the_format_is_invalid() {
    let document = |sandbox: &Sandbox| {
        let name = names(sandbox, "caches/docs/documents").remove(0);
        sandbox.tree().path(CACHE).join("documents").join(name)
    };
    type Breakage<'a> = &'a dyn Fn(&Sandbox, &Path);
    let breakages: [Breakage<'_>; 7] = [
        &|_, cache| fs::remove_file(cache.join("manifest.json")).unwrap(),
        &|_, cache| fs::write(cache.join("manifest.json"), "{").unwrap(),
        &|_, cache| {
            let text = fs::read_to_string(cache.join("manifest.json")).unwrap();
            fs::write(cache.join("manifest.json"), text.replace("\"version\": \"1\"", "\"version\": \"9\""))
                .unwrap();
        },
        &|sandbox, _| fs::remove_file(document(sandbox)).unwrap(),
        &|sandbox, _| {
            let text = fs::read_to_string(document(sandbox)).unwrap();
            fs::write(document(sandbox), text.replace("elease", "ELEASE")).unwrap();
        },
        &|_, cache| fs::write(cache.join("documents/stray.json"), "{}").unwrap(),
        &|_, cache| {
            fs::remove_file(cache.join("index.json")).unwrap();
            fs::create_dir(cache.join("index.json")).unwrap();
        },
    ];
    for (number, break_it) in breakages.iter().enumerate() {
        let sandbox = built();
        break_it(&sandbox, &sandbox.tree().path(CACHE));
        assert_eq!(resolve_errors(&sandbox), errors(5, "cache_invalid"), "breakage {number}");
        let inspected = answer(&sandbox, &["inspect", "--cache", CACHE]);
        assert!(inspected.contains("\"valid\": false"), "{inspected}");
    }
}

#[test]
fn missing_permission_is_an_io_error() {
    let sandbox = built().unprivileged();
    let cache = sandbox.tree().path(CACHE);
    let document = cache.join("documents").join(names(&sandbox, "caches/docs/documents").remove(0));
    for denied in [&cache, &cache.join("manifest.json"), &cache.join("documents"), &document] {
        let before = fs::metadata(denied).unwrap().permissions();
        fs::set_permissions(denied, Permissions::from_mode(0o000)).unwrap();
        assert_eq!(resolve_errors(&sandbox), errors(6, "io_error"), "{}", denied.display());
        assert_eq!(exit(&sandbox, &["verify", "--cache", CACHE]), 6);
        assert_eq!(exit(&sandbox, &["inspect", "--cache", CACHE]), 6);
        fs::set_permissions(denied, before).unwrap();
    }
    let above = sandbox.tree().path("caches");
    fs::set_permissions(&above, Permissions::from_mode(0o000)).unwrap();
    assert_eq!(resolve_errors(&sandbox), errors(6, "io_error"));
    assert_eq!(exit(&sandbox, &["list", "--root", "caches"]), 6);
    fs::set_permissions(&above, Permissions::from_mode(0o755)).unwrap();
    answer(&sandbox, &["resolve", "--cache", CACHE, "--query", "", "--budget", "1"]);
}

#[test]
fn unreadable_sources_fail_the_build() {
    let sandbox = built().unprivileged();
    let build = ["build", "--sources", "docs", "--cache", "new"];
    for denied in ["docs/notes.md", "docs/Guide", "docs"] {
        let denied = sandbox.tree().path(denied);
        let before = fs::metadata(&denied).unwrap().permissions();
        fs::set_permissions(&denied, Permissions::from_mode(0o000)).unwrap();
        assert_eq!(exit(&sandbox, &build), 6, "{}", denied.display());
        fs::set_permissions(&denied, before).unwrap();
    }
    let closed = sandbox.tree().path("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o555)).unwrap();
    assert_eq!(exit(&sandbox, &["build", "--sources", "docs", "--cache", "closed/deep/new"]), 6);
    fs::set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(names(&sandbox, "closed"), [""; 0]);
    assert_eq!(names(&sandbox, "."), ["caches", "closed", "docs"]);
}

#[test]
fn build_on_a_full_disk_leaves_nothing_behind() {
    let sandbox = built();
    for n in 0..200 {
        sandbox.tree().write(format!("docs/{n}.md"), &format!("{n} ").repeat(1000));
    }
    let Some(disk) = SmallDisk::mount(256) else {
        eprintln!("skipped: mounting a small disk requires root and a container that allows it");
        return;
    };
    let cache = disk.path().join("deep/cache");
    let build = ["build", "--sources", "docs", "--cache", cache.to_str().unwrap()];
    assert_eq!(exit(&sandbox, &build), 6);
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0);
}

#[test]
fn timeout_is_an_internal_error_and_must_be_a_number() {
    let sandbox = built();
    let mut command = sandbox.tenon();
    command.arg("context-server").env("CONTEXT_TOOL_TIMEOUT_SECS", "0");
    let mut client = crate::serve_by(&mut command, &sandbox, Revision::Sessions);
    let arguments = json!({"cache": "docs", "query": "", "budget": 1});
    assert_eq!(error_code(&mut client, "context.resolve", arguments), "internal_error");

    for invalid in ["soon", "-1", "1.5"] {
        let mut command = sandbox.tenon();
        let output =
            command.arg("context-server").env("CONTEXT_TOOL_TIMEOUT_SECS", invalid).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
}
