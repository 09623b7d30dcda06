//! §1.2, §3.2 and §4.1: no path outside the roots is accepted or returned.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tenon_contract::root::RootGate;
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::{location, range, reply, script, symbol};
use tenon_testkit::code_tools::{
    self, DEFINITION, DOCUMENT_DIAGNOSTICS, FILE_TOOLS, REFERENCES, TOOLS, WORKSPACE_DIAGNOSTICS,
    WORKSPACE_SYMBOLS,
};

use crate::stage::Stage;

#[test]
fn s1_2_only_file_uris_are_allowed() {
    let stage = Stage::open(Workbench::new().file("a.fake", "").server("fake", script(&[])));
    let real = stage.uri("a.fake");
    let path = real.strip_prefix("file://").unwrap();
    for wrong in [
        "".to_owned(),
        path.to_owned(),
        format!("http://localhost{path}"),
        format!("untitled:{path}"),
        format!("vscode-remote://ssh{path}"),
        format!("file://localhost{path}"),
        format!("file://host{path}"),
        format!("{real}?x"),
        format!("{real}#L1"),
        format!("{real}%00"),
        format!("file://{}", path.replace('/', "%2F")),
        format!("file://{path}%zz"),
        "file:a.fake".to_owned(),
    ] {
        for tool in FILE_TOOLS {
            let (code, _) = stage.failure(tool, code_tools::arguments(tool, &wrong));
            assert_eq!(code, "URI_INVALID", "{tool} {wrong}");
        }
    }
}

#[test]
fn s4_1_paths_outside_the_roots_are_denied_whether_or_not_they_exist() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("there.fake"), "secret").unwrap();
    let stage = Stage::open(Workbench::new().file("a.fake", "").server("fake", script(&[])));
    let root = stage.bench.root();
    symlink(outside.path().join("there.fake"), root.join("link.fake")).unwrap();
    symlink(outside.path().join("missing.fake"), root.join("dangling.fake")).unwrap();
    symlink(outside.path(), root.join("folder")).unwrap();
    let uri = |path: &std::path::Path| format!("file://{}", path.display());
    for denied in [
        "file:///etc/passwd".to_owned(),
        "file:///etc/no-such-file".to_owned(),
        "file:///etc".to_owned(),
        uri(&outside.path().join("there.fake")),
        uri(&outside.path().join("missing.fake")),
        uri(&root.join("link.fake")),
        uri(&root.join("dangling.fake")),
        uri(&root.join("folder/there.fake")),
        uri(&root.join("folder/missing.fake")),
        uri(&root.join("../../etc/passwd")),
        format!("{}/%2e%2e/%2e%2e/etc/passwd", uri(&root)),
    ] {
        for tool in FILE_TOOLS {
            let (code, error) = stage.failure(tool, code_tools::arguments(tool, &denied));
            assert_eq!(code, "WORKSPACE_DENIED", "{tool} {denied}");
            let text = format!("{error:?}");
            assert!(!text.contains("etc") && !text.contains("there"), "{text}");
        }
    }
    assert!(stage.bench.received("fake", "initialize").is_empty(), "no server is started");
}

#[test]
fn s4_1_missing_and_unreadable_files_inside_the_roots_are_rejected() {
    let stage = Stage::open(
        Workbench::new().file("a.fake", "").file("folder/b.fake", "").server("fake", script(&[])),
    );
    let root = stage.bench.root();
    fs::write(root.join("binary.fake"), [0xff, 0xfe, 0x00]).unwrap();
    let large = fs::File::create(root.join("large.fake")).unwrap();
    large.set_len(9 * 1024 * 1024).unwrap();
    symlink("loop.fake", root.join("loop.fake")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(root.join("pipe.fake")).status().unwrap();
    assert!(made.success());
    let deleted = stage.uri("folder/b.fake");
    fs::remove_file(root.join("folder/b.fake")).unwrap();
    for (name, expected) in [
        ("missing.fake", "URI_INVALID"),
        ("folder/b.fake", "URI_INVALID"),
        ("missing/a.fake", "URI_INVALID"),
        ("a.fake/", "URI_INVALID"),
        ("loop.fake", "URI_INVALID"),
        ("folder", "NOT_FOUND"),
        ("", "NOT_FOUND"),
        ("pipe.fake", "NOT_FOUND"),
        ("binary.fake", "NOT_FOUND"),
        ("large.fake", "NOT_FOUND"),
    ] {
        for tool in FILE_TOOLS {
            let uri = format!("file://{}", root.join(name).display());
            let (code, error) = stage.failure(tool, code_tools::arguments(tool, &uri));
            assert_eq!(code, expected, "{tool} {name} {error:?}");
        }
    }
    assert!(deleted.ends_with("/folder/b.fake"));
}

#[test]
fn s6_3_without_roots_every_tool_is_denied() {
    let builder = Workbench::new()
        .file("a.fake", "")
        .server("fake", script(&[]))
        .option(|options| options.gate = RootGate::new(Vec::<&str>::new()).unwrap());
    let stage = Stage::open(builder);
    for tool in TOOLS {
        let (code, _) = stage.failure(tool, code_tools::arguments(tool, "file:///a"));
        assert_eq!(code, "WORKSPACE_DENIED", "{tool}");
    }
}

/// URIs that a server may return and a client must not see.
fn foreign_uris(root: &str) -> Vec<String> {
    vec![
        "file:///etc/passwd".to_owned(),
        "file:///usr/lib/python3/dist-packages/os.fake".to_owned(),
        format!("{root}/../node_modules/x/index.fake"),
        format!("{root}/outside.fake"),
        format!("{root}/missing.fake"),
        "file://host/etc/hostname".to_owned(),
        "untitled:Untitled-1".to_owned(),
        "jdt://contents/java.base/java/lang/String.class".to_owned(),
        "not a uri".to_owned(),
        String::new(),
    ]
}

#[test]
fn s1_2_results_outside_the_roots_are_dropped() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x.fake"), "").unwrap();
    let locations: Vec<Value> = foreign_uris("$root")
        .iter()
        .chain(&["$root/a.fake".to_owned()])
        .map(|uri| location(uri, [0, 0, 0, 1]))
        .collect();
    let links: Vec<Value> = foreign_uris("$root")
        .iter()
        .chain(&["$root/a.fake".to_owned()])
        .map(|uri| json!({ "targetUri": uri, "targetRange": range([0, 0, 0, 1]), "targetSelectionRange": range([0, 0, 0, 1]) }))
        .collect();
    let symbols: Vec<Value> = foreign_uris("$root")
        .iter()
        .chain(&["$root/a.fake".to_owned()])
        .map(|uri| symbol("a", 12, uri, [0, 0, 0, 1]))
        .collect();
    let mut rules = vec![
        reply("textDocument/references", json!(locations)),
        reply("textDocument/definition", json!(links)),
        reply("workspace/symbol", json!(symbols)),
    ];
    for uri in foreign_uris("$root") {
        let params =
            json!({ "uri": uri, "diagnostics": [{ "range": range([0, 0, 0, 1]), "message": "leak" }] });
        let notify = json!({ "method": "textDocument/publishDiagnostics", "params": params });
        rules.push(json!({ "on": "textDocument/didOpen", "do": [{ "notify": notify }] }));
    }
    let stage = Stage::open(Workbench::new().file("a.fake", "bad").server("fake", script(&rules)));
    symlink(outside.path().join("x.fake"), stage.bench.root().join("outside.fake")).unwrap();
    let only = location(&stage.uri("a.fake"), [0, 0, 0, 1]);
    let definition = stage.payload(DEFINITION, stage.at("a.fake", 0, 0));
    assert_eq!(definition["locations"], json!([only]));
    assert_eq!(definition["summary"], "Found 1 definition.");
    let mut with_declaration = stage.at("a.fake", 0, 0);
    with_declaration["includeDeclaration"] = json!(true);
    let references = stage.payload(REFERENCES, with_declaration);
    assert_eq!(references["items"], json!([only]));
    let symbols = stage.payload(WORKSPACE_SYMBOLS, json!({ "query": "a" }));
    assert_eq!(symbols["items"].as_array().unwrap().len(), 1);
    assert_eq!(symbols["items"][0]["location"], only);
    let diagnostics = stage.payload(WORKSPACE_DIAGNOSTICS, json!({}));
    let files: Vec<&Value> =
        diagnostics["items"].as_array().unwrap().iter().map(|file| &file["uri"]).collect();
    assert_eq!(files, [&json!(stage.uri("a.fake"))]);
}

#[test]
fn s3_2_uris_are_canonical_however_clients_and_servers_spell_them() {
    let rules = [json!({ "on": "textDocument/references", "do": [{ "reply": [
        location("$root/d%C3%A9%20x/%61.fake", [0, 0, 0, 1]),
        location("$root/link/a.fake", [0, 0, 0, 1]),
        location("$root/dé x/../dé x/./a.fake", [0, 0, 0, 1]),
    ] }] })];
    let stage = Stage::open(
        Workbench::new().file("dé x/a.fake", "a").file("real#1/b.fake", "b").server("fake", script(&rules)),
    );
    let root = stage.bench.root();
    symlink(root.join("dé x"), root.join("link")).unwrap();
    let canonical = format!("file://{}/d%C3%A9%20x/a.fake", root.display());
    for spelled in ["dé x/a.fake", "link/a.fake", "dé%20x/%61.fake", "real%231/../d%c3%a9 x//a.fake"] {
        let mut at = stage.at("dé x/a.fake", 0, 0);
        at["uri"] = json!(format!("file://{}/{spelled}", root.display()));
        let payload = stage.payload(REFERENCES, at.clone());
        assert_eq!(payload["items"], json!([location(&canonical, [0, 0, 0, 1])]), "{spelled}");
        let diagnostics = stage.payload(DOCUMENT_DIAGNOSTICS, json!({ "uri": at["uri"] }));
        assert_eq!(diagnostics["uri"], canonical.as_str());
    }
    // Servers see the canonical spelling only.
    let requests = stage.bench.received("fake", "textDocument/references");
    assert!(requests.iter().all(|message| message["params"]["textDocument"]["uri"] == canonical.as_str()));
}
