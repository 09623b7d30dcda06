//! The output of the commands, and the names under which the binary runs them.

use std::fs;
use std::os::unix::fs::symlink;

use tenon_testkit::{McpClient, Revision, Sandbox};

use crate::{SOURCES, answer, built, context, exit, names};

const RESOLVE: [&str; 7] =
    ["resolve", "--cache", "caches/docs", "--query", "Release notes", "--budget", "4000"];

#[test]
fn resolve_prints_one_line_of_json() {
    let sandbox = built();
    insta::assert_snapshot!(answer(&sandbox, &RESOLVE), @r#"{"documents":[{"id":"notes.md","version":"sha256:48b1a29e44eeff814abc6250e43395bf8ac81827f5791261378cb13b6699e37f","content":"release notes\n","score":1.0,"tokens":4,"why":{"query_terms":["release","notes"],"term_matches":2,"total_words":2}},{"id":"guide/deploy.md","version":"sha256:3693436c0af8e36bb7cce54d34fe73e643d45c7f331a3cbeb34adcc037aa61bf","content":"Ship the release to the staging area\n","score":0.14285715,"tokens":10,"why":{"query_terms":["release","notes"],"term_matches":1,"total_words":7}}],"selection":{"query":"Release notes","budget":4000,"tokens_used":14,"documents_considered":2,"documents_selected":2,"documents_excluded_by_budget":0}}"#);
    let pretty = answer(&sandbox, &[&RESOLVE[..], &["--format", "pretty"]].concat());
    assert!(pretty.starts_with("{\n  \"documents\": [\n") && pretty.ends_with("\n}\n"), "{pretty}");
    let compact: serde_json::Value = serde_json::from_str(&answer(&sandbox, &RESOLVE)).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&pretty).unwrap(), compact);
}

#[test]
fn inspect_and_list_print_pretty_json() {
    let sandbox = built();
    insta::assert_snapshot!(answer(&sandbox, &["inspect", "--cache", "caches/docs"]), @r#"
    {
      "cache_version": "sha256:f0cd4ca33670121c5b5ef5975c8bfbfe4648baaf38e9a038691b57cbeddcd350",
      "document_count": 2,
      "total_bytes": 363,
      "valid": true
    }
    "#);
    insta::assert_snapshot!(answer(&sandbox, &["list", "--root", "caches"]), @r#"
    {
      "caches": [
        {
          "path": "docs",
          "has_manifest": true
        }
      ]
    }
    "#);
}

#[test]
fn build_and_verify_report_on_stderr() {
    let sandbox = built();
    let output = context(&sandbox, &["build", "--force", "--sources", "docs", "--cache", "caches/docs"]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(output.stderr.starts_with(b"built: 2 documents, sha256:"), "{output:?}");
    let output = context(&sandbox, &["verify", "--cache", "caches/docs"]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(output.stderr.starts_with(b"valid: 2 documents, sha256:"), "{output:?}");
}

#[test]
fn verify_lists_every_violation() {
    let sandbox = built();
    fs::remove_file(sandbox.tree().path("caches/docs/index.json")).unwrap();
    sandbox.tree().write("caches/docs/documents/stray.json", "{}");
    let output = context(&sandbox, &["verify", "--cache", "caches/docs"]);
    assert_eq!(output.status.code(), Some(5));
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @"
    error: cache `caches/docs` is invalid
      caused by: `index.json` is missing
      caused by: `documents/stray.json` is not listed in `manifest.json`
    ");
}

/// Existing scripts call `context`, and existing configurations start `mcp-context-server`.
#[test]
fn binary_runs_under_its_old_names() {
    let sandbox = built();
    let program = sandbox.tenon().get_program().to_owned();
    let (link, copy) = (sandbox.tree().path("context"), sandbox.tree().path("mcp-context-server"));
    symlink(&program, &link).unwrap();
    fs::copy(&program, &copy).unwrap();

    let output = sandbox.command(&link).args(RESOLVE).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), answer(&sandbox, &RESOLVE));
    let output = sandbox.command(&link).args(["resolve", "--cache", "caches/docs"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));

    let mut command = sandbox.command(&copy);
    command.env("CONTEXT_CACHE_ROOT", sandbox.tree().path("caches"));
    let mut client = McpClient::over_pipes(&mut command, Revision::Sessions);
    assert_eq!(client.initialize()["serverInfo"]["name"], "mcp-context-server");
    assert_eq!(client.list_tools(), ["context.resolve", "context.list_caches", "context.inspect_cache"]);
    assert!(client.close().unwrap().success());
}

#[test]
fn usage_error_exits_with_1() {
    let sandbox = Sandbox::new();
    for args in [
        &[][..],
        &["nonsense"],
        &["resolve"],
        &["resolve", "--cache", "x", "--query", "y"],
        &["resolve", "--cache", "x", "--query", "y", "--budget", "1", "--format", "xml"],
        &["inspect", "--cache", "x", "--more"],
        &["build", "--sources", "x"],
    ] {
        let output = context(&sandbox, args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    let help = context(&sandbox, &["--help"]);
    assert!(help.status.success() && help.stdout.starts_with(b"Build and query document caches"), "{help:?}");
}

#[test]
fn locale_and_time_zone_do_not_change_results() {
    let sandbox = Sandbox::with_tree(SOURCES);
    sandbox.tree().write("docs/İSTANBUL/ÇAĞ.md", "İĞNE ISI ığdır\n");
    let mut results = Vec::new();
    for (name, locale, zone) in [("a", "C", "UTC"), ("b", "tr_TR.UTF-8", "Asia/Istanbul"), ("c", "", "")] {
        let build = ["context", "build", "--sources", "docs", "--cache", name];
        let resolve = ["context", "resolve", "--query", "ISI iğne", "--budget", "99", "--cache", name];
        let run = |args: &[&str]| {
            let mut command = sandbox.tenon();
            command.args(args).env("LANG", locale).env("LC_ALL", locale).env("TZ", zone);
            let output = command.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            (output.stdout, output.stderr)
        };
        results.push((run(&build).1, run(&resolve).0));
    }
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{results:?}");
}

#[test]
fn build_without_force_keeps_an_existing_cache() {
    let sandbox = built();
    let before = answer(&sandbox, &["inspect", "--cache", "caches/docs"]);
    sandbox.tree().write("docs/more.md", "more\n");
    assert_eq!(exit(&sandbox, &["build", "--sources", "docs", "--cache", "caches/docs"]), 6);
    assert_eq!(answer(&sandbox, &["inspect", "--cache", "caches/docs"]), before);
    assert_eq!(names(&sandbox, "caches"), ["docs"]);
}
