//! What a change does to a file, and what stays.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::{Value, json};
use tenon_contract::id::sha256_hex;

use crate::stage::{Stage, block, code, edit, error, text, write};

#[test]
fn an_edit_says_what_it_changed() {
    let stage = Stage::new("//- notes.txt\none\ntwo\nthree\n");
    let mut client = stage.client();
    let before = stage.sha256("notes.txt");
    let result = edit(&mut client, "notes.txt", "two\n", "2\n2½\n");
    assert_eq!(stage.bytes("notes.txt"), "one\n2\n2½\nthree\n".as_bytes());
    let after = stage.sha256("notes.txt");
    assert_eq!(text(&result), format!("Changed `notes.txt`: line 2 became lines 2 to 3. SHA-256 {after}"));
    let expected = json!({
        "file": "notes.txt", "created": false, "sha256_before": before, "sha256_after": after,
        "replaced": { "first": 2, "last": 2 }, "lines": { "first": 2, "last": 3 },
        "complete": true, "pending": [], "in_this_file": [], "in_other_files": [],
    });
    assert_eq!(result.structured, expected);
}

#[test]
fn a_file_is_made_with_its_folders_and_overwritten_when_it_is_the_one_that_is_meant() {
    let stage = Stage::new("//- a.txt\n");
    let mut client = stage.client();
    let made = write(&mut client, "deep/er/new.txt", "one\n", None);
    assert_eq!(
        (&made.structured["created"], &made.structured["sha256_before"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(made.structured["replaced"], Value::Null);
    assert_eq!(made.structured["sha256_after"], sha256_hex("one\n"));
    assert_eq!(block(&made), "", "no server knows it, and nothing is said about that");
    let mode = |file: &str| stage.sandbox.tree().path(file).metadata().unwrap().mode() & 0o777;
    stage.sandbox.tree().write("plain.txt", "");
    assert_eq!(mode("deep/er/new.txt"), mode("plain.txt"), "as any program would make it");
    let again = write(&mut client, "deep/er/new.txt", "two\n", Some(&sha256_hex("one\n")));
    assert_eq!(again.structured["created"], false);
    assert_eq!(stage.bytes("deep/er/new.txt"), b"two\n");
    // The same text once more changes nothing, not even the file's time.
    let inode = || stage.sandbox.tree().path("deep/er/new.txt").metadata().unwrap().ino();
    let before = inode();
    let same = write(&mut client, "deep/er/new.txt", "two\n", Some(&sha256_hex("two\n").to_uppercase()));
    assert_eq!(same.structured["sha256_before"], same.structured["sha256_after"]);
    assert_eq!(inode(), before);
    let emptied = write(&mut client, "deep/er/new.txt", "", Some(&sha256_hex("two\n")));
    assert!(!emptied.is_error && stage.bytes("deep/er/new.txt").is_empty());
    let filled = edit(&mut client, "deep/er/new.txt", "", "x");
    assert!(!filled.is_error && stage.bytes("deep/er/new.txt") == b"x");
}

#[test]
fn line_endings_the_byte_order_mark_and_the_mode_stay() {
    let stage = Stage::new("//- a.txt\n");
    let path = stage.sandbox.tree().path("dos.txt");
    std::fs::write(&path, "\u{feff}one\r\ntwo\r\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    let mut client = stage.client();
    edit(&mut client, "dos.txt", "one\ntwo", "1\n2\n3");
    assert_eq!(stage.bytes("dos.txt"), "\u{feff}1\r\n2\r\n3\r\n".as_bytes());
    write(&mut client, "dos.txt", "new\nlines\n", Some(&stage.sha256("dos.txt")));
    assert_eq!(stage.bytes("dos.txt"), "\u{feff}new\r\nlines\r\n".as_bytes());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o751);
}

#[test]
fn files_of_a_hundred_thousand_lines_are_files_like_others() {
    let stage = Stage::new("//- a.txt\n");
    let lines: String = (1..=100_000).map(|n| format!("line number {n}\r\n")).collect();
    stage.sandbox.tree().write("long.fake", &lines);
    let stage = stage.server(
        "fake",
        json!([
            { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
            { "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] },
        ]),
    );
    let mut client = stage.client();
    let result = edit(&mut client, "long.fake", "number 99999\nline", "number bad\nline");
    assert_eq!(result.structured["lines"], json!({ "first": 99_999, "last": 100_000 }));
    assert_eq!(block(&result).lines().nth(2), Some("ERROR [99999:13] this is bad"));
    assert_eq!(stage.bytes("long.fake"), lines.replace("number 99999", "number bad").as_bytes());
}

#[test]
fn a_link_inside_the_workspace_means_the_file_it_leads_to() {
    let stage = Stage::new("//- real/a.txt\none\n");
    let tree = stage.sandbox.tree();
    std::os::unix::fs::symlink("real/a.txt", tree.path("link.txt")).unwrap();
    let mut client = stage.client();
    let result = edit(&mut client, "link.txt", "one", "two");
    assert_eq!(result.structured["file"], "real/a.txt");
    assert_eq!(tree.read("real/a.txt"), "two\n");
    assert!(tree.path("link.txt").symlink_metadata().unwrap().is_symlink());
}

#[test]
fn leftovers_of_a_process_that_died_are_removed() {
    let stage = Stage::new("//- sub/a.txt\none\n//- sub/.tenon-edit-0123\nhalf\n");
    edit(&mut stage.client(), "sub/a.txt", "one", "two");
    let names: Vec<_> = std::fs::read_dir(stage.sandbox.tree().path("sub")).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn what_is_quoted_must_be_one_place() {
    let stage = Stage::new("//- a.txt\none\ntwo\none\n\none\n");
    let mut client = stage.client();
    let twice = error(&edit(&mut client, "a.txt", "one", "1"));
    assert_eq!(
        (&twice["code"], &twice["count"], &twice["lines"]),
        (&json!("OLD_TEXT_AMBIGUOUS"), &json!(3), &json!([1, 3, 5]))
    );
    assert_eq!(code(&edit(&mut client, "a.txt", "three", "3")), "OLD_TEXT_ABSENT");
    assert_eq!(code(&edit(&mut client, "a.txt", "", "3")), "OLD_TEXT_EMPTY");
    assert_eq!(stage.bytes("a.txt"), b"one\ntwo\none\n\none\n");
}
