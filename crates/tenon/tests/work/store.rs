//! `tenon store`: migrate, check, export and import.

use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tenon_testkit::{Sandbox, postgres};

use crate::{planned, tenon, text, transcript};

fn export(sandbox: &Sandbox, store: &str) -> String {
    let output = sandbox.tenon().args(["store", "export"]).env("TENON_WORK_STORE", store).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout)
}

fn import(sandbox: &Sandbox, store: &str, input: &[u8]) -> Output {
    let mut command = sandbox.tenon();
    command.args(["store", "import", "--json"]).env("TENON_WORK_STORE", store);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    // The program stops reading after an error, which breaks the pipe.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

#[test]
fn export_and_import_between_backends_keep_the_same_bytes() {
    let sandbox = planned();
    let first = text(&tenon(&sandbox, &["store", "export"]).stdout);
    assert!(first.starts_with("{\"format\":\"tenon-store\""), "{first}");
    let there = sandbox.folder().join("other.db").display().to_string();
    let mut from = first.clone();
    for store in [postgres::database(), there, postgres::database()] {
        let output = import(&sandbox, &store, from.as_bytes());
        assert!(output.status.success(), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report, json!({"workspaces": 1, "rows": first.lines().count() - 2}));
        from = export(&sandbox, &store);
        assert_eq!(from, first, "{store}");
        let mut command = sandbox.tenon();
        let output = command.args(["store", "check"]).env("TENON_WORK_STORE", &store).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        // The imported store answers like the original.
        let listed = sandbox.tenon().args(["tasks"]).env("TENON_WORK_STORE", &store).output().unwrap();
        assert_eq!(listed.stdout, tenon(&sandbox, &["tasks"]).stdout);
    }
}

#[test]
fn import_is_atomic() {
    let sandbox = planned();
    let export_here = text(&tenon(&sandbox, &["store", "export"]).stdout);
    for (number, store) in
        [sandbox.folder().join("new.db").display().to_string(), postgres::database()].iter().enumerate()
    {
        let empty_export = export(&sandbox, store);
        let half: String = export_here.split_inclusive('\n').take(12).collect();
        // Well-formed, but no event has set this title.
        let forged = export_here.replacen("\"title\":\"Build\"", "\"title\":\"Forged\"", 1);
        let twice = export_here.repeat(2);
        for broken in
            [&b""[..], b"\xff\xfe", b"not an export\n", half.as_bytes(), forged.as_bytes(), twice.as_bytes()]
        {
            let output = import(&sandbox, store, broken);
            assert_eq!(output.status.code(), Some(1), "{number}: {output:?}");
            assert!(text(&output.stderr).starts_with("error: line "), "{output:?}");
            assert!(output.stdout.is_empty());
            assert_eq!(export(&sandbox, store), empty_export);
        }
        assert!(import(&sandbox, store, export_here.as_bytes()).status.success());
        let again = import(&sandbox, store, export_here.as_bytes());
        assert_eq!(again.status.code(), Some(1));
        let printed = text(&again.stderr);
        let hint = "already exists\n  hint: import into a store without this workspace\n";
        assert!(printed.starts_with("error: workspace `w-") && printed.ends_with(hint), "{printed}");
        assert_eq!(export(&sandbox, store), export_here);
    }
}

#[test]
fn import_reads_a_named_file() {
    let sandbox = planned();
    sandbox.tree().write("backup.jsonl", &text(&tenon(&sandbox, &["store", "export"]).stdout));
    let mut command = sandbox.tenon();
    command
        .args(["store", "import", "backup.jsonl"])
        .env("TENON_WORK_STORE", sandbox.folder().join("new.db"));
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(text(&output.stderr).starts_with("imported: 1 workspaces, "));
    insta::assert_snapshot!(transcript(&sandbox, &["store", "import", "nowhere.jsonl"]), @"
    exit: 2
    --- stderr
    error: cannot read `nowhere.jsonl`
      caused by: No such file or directory (os error 2)
    ");
}

#[test]
fn migrate_creates_the_store_once() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(transcript(&sandbox, &["store", "migrate"]), @"
    exit: 0
    --- stdout
    store: [SANDBOX]/data/tenon/work.sqlite3
    engine: sqlite
    schema: 5
    --- stderr
    migrated from 0
    ");
    let again = tenon(&sandbox, &["store", "migrate", "--json"]);
    let report: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(
        (&report["engine"], &report["schema"], &report["was"]),
        (&json!("sqlite"), &json!(5), &json!(5))
    );
}

#[test]
fn check_exits_1_on_problems() {
    let sandbox = planned();
    let good = tenon(&sandbox, &["store", "check", "--json"]);
    let report: Value = serde_json::from_slice(&good.stdout).unwrap();
    assert_eq!(
        (good.status.code(), &report["good"], &report["problems"]),
        (Some(0), &json!(true), &json!([]))
    );
    // Corrupt a page in the middle of the file.
    let migrated: Value =
        serde_json::from_slice(&tenon(&sandbox, &["store", "migrate", "--json"]).stdout).unwrap();
    let file = migrated["store"].as_str().unwrap();
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0x5a);
    fs::write(file, bytes).unwrap();
    let output = tenon(&sandbox, &["store", "check"]);
    assert!([Some(1), Some(6)].contains(&output.status.code()), "{output:?}");
}

#[test]
fn unreachable_store_error_does_not_reveal_the_password() {
    let sandbox = Sandbox::with_tree("//- file\nx\n");
    let secret = "correct-horse-battery";
    for store in [
        format!("postgres://ada:{secret}@127.0.0.1:1/plans"),
        format!("postgres://ada@127.0.0.1:1/plans?password={secret}"),
        format!("postgres://ada@127.0.0.1:1/plans?passwd={secret}"),
        format!("postgres://ada:{secret}@127.0.0.1:notaport/plans"),
        format!("postgress://ada:{secret}@127.0.0.1:1/plans"),
        format!("mysql://ada:{secret}@127.0.0.1:1/plans"),
        format!("{}/file/{secret}-is-a-path.db", sandbox.root().display()),
    ] {
        for line in [&["store", "check"][..], &["store", "migrate"], &["tasks", "list"], &["tasks", "--json"]]
        {
            let output = sandbox.tenon().args(line).env("TENON_WORK_STORE", &store).output().unwrap();
            assert_eq!(output.status.code(), Some(6), "{line:?} {store}: {output:?}");
            assert!(output.stderr.starts_with(b"error: "), "{output:?}");
            let printed = text(&output.stdout) + &text(&output.stderr);
            assert!(store.contains("-is-a-path") || !printed.contains(secret), "{printed}");
        }
    }
}

#[test]
fn invalid_store_location_is_rejected_with_a_hint() {
    let sandbox = Sandbox::with_tree("//- file\nx\n");
    let printed = |store: &str| {
        let mut command = sandbox.tenon();
        let output = command.args(["store", "migrate"]).env("TENON_WORK_STORE", store).output().unwrap();
        format!("{:?}\n{}", output.status.code(), text(&output.stderr))
    };
    insta::assert_snapshot!(printed("postgress://ada:secret@db/tenon"), @"
    Some(6)
    error: the `store` setting is a URL of a scheme other than `postgres`
      hint: give the absolute path of an SQLite file, or a URL that begins with `postgres://`
    ");
    insta::assert_snapshot!(printed("plans.db"), @"
    Some(3)
    error: `work.store` must be an absolute path, start with `~/`, or be a `postgres://` URL (the environment variable `TENON_WORK_STORE`)
    ");
    // No file was created.
    let left: Vec<_> =
        fs::read_dir(sandbox.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["file"]);
}

#[test]
fn newer_export_is_rejected_with_a_hint() {
    let sandbox = planned();
    let export =
        text(&tenon(&sandbox, &["store", "export"]).stdout).replacen("\"schema\":5", "\"schema\":9", 1);
    let output = import(&sandbox, &sandbox.folder().join("new.db").display().to_string(), export.as_bytes());
    assert_eq!(output.status.code(), Some(6));
    insta::assert_snapshot!(text(&output.stderr), @"
    error: the store has schema 9, this program knows 5
      hint: upgrade tenon, or use the version that wrote this store
    ");
}
