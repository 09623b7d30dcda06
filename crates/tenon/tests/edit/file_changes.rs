//! How an edit changes a file, and what it preserves.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::{Value, json};
use tenon_contract::id::sha256_hex;

use crate::workspace::{Workspace, code, delta, edit, error, text, write};

#[test]
fn edit_reports_changed_lines_and_hashes() {
    let workspace = Workspace::new("//- notes.txt\none\ntwo\nthree\n");
    let mut client = workspace.client();
    let before = workspace.sha256("notes.txt");
    let result = edit(&mut client, "notes.txt", "two\n", "2\n2½\n");
    assert_eq!(workspace.bytes("notes.txt"), "one\n2\n2½\nthree\n".as_bytes());
    let after = workspace.sha256("notes.txt");
    assert_eq!(text(&result), "edited notes.txt:2-3\nnot checked: no language server for notes.txt");
    let expected = json!({
        "file": "notes.txt", "created": false, "sha256_before": before, "sha256_after": after,
        "replaced": { "first": 2, "last": 2 }, "lines": { "first": 2, "last": 3 },
        "complete": false, "pending": [], "unchecked": 0, "new": [], "new_count": null, "gone": [], "gone_count": null,
        "unchanged_count": null,
    });
    assert_eq!(result.structured, expected);
}

#[test]
fn write_creates_folders_and_overwrites_only_with_the_expected_hash() {
    let workspace = Workspace::new("//- a.txt\n");
    let mut client = workspace.client();
    let created = write(&mut client, "deep/er/new.txt", "one\n", None);
    assert_eq!(
        (&created.structured["created"], &created.structured["sha256_before"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(created.structured["replaced"], Value::Null);
    assert_eq!(created.structured["sha256_after"], sha256_hex("one\n"));
    assert_eq!(
        text(&created),
        "created deep/er/new.txt:1\nnot checked: no language server for deep/er/new.txt"
    );
    let mode = |file: &str| workspace.sandbox.tree().path(file).metadata().unwrap().mode() & 0o777;
    workspace.sandbox.tree().write("plain.txt", "");
    assert_eq!(mode("deep/er/new.txt"), mode("plain.txt"), "the file mode ignores the umask");
    let again = write(&mut client, "deep/er/new.txt", "two\n", Some(&sha256_hex("one\n")));
    assert_eq!(again.structured["created"], false);
    assert_eq!(workspace.bytes("deep/er/new.txt"), b"two\n");
    // Writing the same text again does not replace the file.
    let inode = || workspace.sandbox.tree().path("deep/er/new.txt").metadata().unwrap().ino();
    let before = inode();
    let same = write(&mut client, "deep/er/new.txt", "two\n", Some(&sha256_hex("two\n").to_uppercase()));
    assert_eq!(same.structured["sha256_before"], same.structured["sha256_after"]);
    assert_eq!(inode(), before);
    let emptied = write(&mut client, "deep/er/new.txt", "", Some(&sha256_hex("two\n")));
    assert!(!emptied.is_error && workspace.bytes("deep/er/new.txt").is_empty());
    let filled = edit(&mut client, "deep/er/new.txt", "", "x");
    assert!(!filled.is_error && workspace.bytes("deep/er/new.txt") == b"x");
}

#[test]
fn line_endings_byte_order_mark_and_mode_are_preserved() {
    let workspace = Workspace::new("//- a.txt\n");
    let path = workspace.sandbox.tree().path("dos.txt");
    std::fs::write(&path, "\u{feff}one\r\ntwo\r\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    let mut client = workspace.client();
    edit(&mut client, "dos.txt", "one\ntwo", "1\n2\n3");
    assert_eq!(workspace.bytes("dos.txt"), "\u{feff}1\r\n2\r\n3\r\n".as_bytes());
    write(&mut client, "dos.txt", "new\nlines\n", Some(&workspace.sha256("dos.txt")));
    assert_eq!(workspace.bytes("dos.txt"), "\u{feff}new\r\nlines\r\n".as_bytes());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o751);
}

#[test]
fn file_with_a_hundred_thousand_lines_is_edited() {
    let workspace = Workspace::new("//- a.txt\n");
    let lines: String = (1..=100_000).map(|n| format!("line number {n}\r\n")).collect();
    workspace.sandbox.tree().write("long.fake", &lines);
    let workspace = workspace.server(
        "fake",
        json!([
            { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
            { "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] },
        ]),
    );
    let mut client = workspace.client();
    let result = edit(&mut client, "long.fake", "number 99999\nline", "number bad\nline");
    assert_eq!(result.structured["lines"], json!({ "first": 99_999, "last": 100_000 }));
    assert_eq!(delta(&result), "1 new, 0 gone, 0 unchanged\nNEW error long.fake:99999:13: this is bad");
    assert_eq!(workspace.bytes("long.fake"), lines.replace("number 99999", "number bad").as_bytes());
}

#[test]
fn edit_through_a_link_changes_its_target() {
    let workspace = Workspace::new("//- real/a.txt\none\n");
    let tree = workspace.sandbox.tree();
    std::os::unix::fs::symlink("real/a.txt", tree.path("link.txt")).unwrap();
    let mut client = workspace.client();
    let result = edit(&mut client, "link.txt", "one", "two");
    assert_eq!(result.structured["file"], "real/a.txt");
    assert_eq!(tree.read("real/a.txt"), "two\n");
    assert!(tree.path("link.txt").symlink_metadata().unwrap().is_symlink());
}

#[test]
fn stale_temporary_files_are_removed() {
    let workspace = Workspace::new("//- sub/a.txt\none\n//- sub/.tenon-edit-0123\nhalf\n");
    edit(&mut workspace.client(), "sub/a.txt", "one", "two");
    let names: Vec<_> = std::fs::read_dir(workspace.sandbox.tree().path("sub")).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn old_text_must_match_exactly_once() {
    let workspace = Workspace::new("//- a.txt\none\ntwo\none\n\none\n");
    let mut client = workspace.client();
    let twice = error(&edit(&mut client, "a.txt", "one", "1"));
    assert_eq!(
        (&twice["code"], &twice["count"], &twice["lines"]),
        (&json!("OLD_TEXT_AMBIGUOUS"), &json!(3), &json!([1, 3, 5]))
    );
    assert_eq!(code(&edit(&mut client, "a.txt", "three", "3")), "OLD_TEXT_ABSENT");
    assert_eq!(code(&edit(&mut client, "a.txt", "", "3")), "OLD_TEXT_EMPTY");
    assert_eq!(workspace.bytes("a.txt"), b"one\ntwo\none\n\none\n");
}
