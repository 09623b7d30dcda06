//! Rejected edits: each returns an error code and changes no file.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tenon_contract::id::sha256_hex;
use tenon_testkit::small_disk::SmallDisk;
use tenon_testkit::{McpClient, Sandbox};

use crate::workspace::{Workspace, code, edit, error, write};

/// The name, type, mode and content hash of everything below a folder.
fn snapshot(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = match metadata.file_type() {
                kind if kind.is_dir() => {
                    open.push(path.clone());
                    String::new()
                }
                kind if kind.is_symlink() => path.read_link().unwrap().display().to_string(),
                kind if kind.is_file() => sha256_hex(std::fs::read(&path).unwrap()),
                _ => "special".to_owned(),
            };
            all.push(format!("{} {:o} {content}", path.display(), metadata.permissions().mode()));
        }
    }
    all.sort();
    all
}

/// Tries to edit and to write a file; the error codes of both.
fn rejected(client: &mut McpClient, file: &str, before: Option<&str>) -> (String, String) {
    let edited = edit(client, file, "one", "two");
    let written = write(client, file, "two\n", before);
    (code(&edited), code(&written))
}

#[test]
fn outside_and_protected_files_are_never_changed() {
    let workspace = Workspace::new(
        "//- src/a.txt\none\n//- .git/config\none\n//- .git/hooks/pre-commit\none\n//- sub/.git\none\n\
         //- tenon.toml\n# one\n//- .claude/settings.json\none\n//- .mcp.json\none\n//- .vscode/settings.json\none\n\
         //- .husky/pre-commit\none\n//- .cursor/mcp.json\none\n//- .codex/config.toml\none\n//- opencode.json\none\n",
    );
    let (tree, outside) = (workspace.sandbox.tree(), workspace.sandbox.dir("home").join("secret.txt"));
    std::fs::write(&outside, "one\n").unwrap();
    let link = |to: &Path, from: &str| std::os::unix::fs::symlink(to, tree.path(from)).unwrap();
    link(&outside, "out.txt");
    link(&workspace.sandbox.dir("home"), "outfolder");
    link(&tree.path(".git/config"), "innocent.txt");
    link(Path::new("nowhere.txt"), "dangling.txt");
    link(&workspace.sandbox.dir("home").join("new.txt"), "dangling-out.txt");
    let protected = [
        ".git/config",
        ".git/hooks/pre-commit",
        ".GIT/hooks/pre-commit",
        "sub/.git",
        "src/../.git/config",
        "innocent.txt",
        "tenon.toml",
        "TENON.toml",
        "packages/new/tenon.toml",
        ".claude/settings.json",
        ".claude/hooks/new.sh",
        ".mcp.json",
        ".vscode/settings.json",
        ".husky/pre-commit",
        ".cursor/mcp.json",
        ".codex/config.toml",
        "opencode.json",
    ];
    let away = outside.to_str().unwrap();
    let outside_paths = [
        away,
        "../home/secret.txt",
        "src/../../home/secret.txt",
        "out.txt",
        "outfolder/secret.txt",
        "outfolder/new.txt",
        "dangling-out.txt",
        "/etc/hostname",
        "/nowhere/at/all",
    ];
    let before = snapshot(workspace.sandbox.folder());
    let mut client = workspace.client();
    for file in protected {
        assert_eq!(rejected(&mut client, file, None), ("PROTECTED".into(), "PROTECTED".into()), "{file}");
    }
    for file in outside_paths {
        assert_eq!(rejected(&mut client, file, None), ("OUTSIDE".into(), "OUTSIDE".into()), "{file}");
    }
    for (file, expected) in [
        ("", "INVALID_INPUT"),
        ("src", "NOT_A_FILE"),
        ("src/", "NOT_A_FILE"),
        ("src/a.txt/b", "NOT_FOUND"),
        ("a\0b", "INVALID_PATH"),
    ] {
        assert_eq!(rejected(&mut client, file, None), (expected.into(), expected.into()), "{file:?}");
    }
    assert_eq!(code(&edit(&mut client, "src/absent.txt", "one", "two")), "NOT_FOUND");
    assert_eq!(code(&edit(&mut client, "none/absent.txt", "one", "two")), "NOT_FOUND");
    drop(client);
    let mut after = snapshot(workspace.sandbox.folder());
    // The program writes its own state there.
    let is_state =
        |line: &String| line.contains("/state") || line.contains("/run") || line.contains("/cache");
    after.retain(|line| !is_state(line));
    assert_eq!(after, before.into_iter().filter(|line| !is_state(line)).collect::<Vec<_>>());
}

#[test]
fn tenon_state_inside_the_workspace_is_protected() {
    let workspace = Workspace::new("//- a.txt\none\n");
    let (root, store) = (
        workspace.sandbox.root().canonicalize().unwrap(),
        workspace.sandbox.tree().path("mine/work.sqlite3"),
    );
    workspace.set_settings(&json!({ "edit": { "allow": [root] }, "work": { "store": store } }));
    assert_eq!(code(&write(&mut workspace.client(), "mine/work.sqlite3", "x", None)), "PROTECTED");
    // The home folder is the workspace.
    let home = Workspace::in_sandbox(Sandbox::new());
    let mut command = home.sandbox.tenon();
    let folder = home.sandbox.folder().canonicalize().unwrap();
    home.set_settings(&json!({ "edit": { "allow": [folder] } }));
    command.args(["mcp", "--no-daemon", "--surface", "edit", "--root"]).arg(home.sandbox.folder());
    let mut client = McpClient::connect(&mut command);
    for file in ["config/tenon/config.toml", "state/tenon/tokens.json", "data/tenon/servers/x"] {
        assert_eq!(code(&write(&mut client, file, "x", None)), "PROTECTED", "{file}");
    }
}

#[test]
fn unexpected_hash_is_rejected() {
    let workspace = Workspace::new("//- a.txt\none\n");
    let mut client = workspace.client();
    let actual = workspace.sha256("a.txt");
    let stale = sha256_hex("zero\n");
    let mismatch = error(&write(&mut client, "a.txt", "two\n", Some(&stale)));
    assert_eq!((&mismatch["code"], &mismatch["actual_sha256"]), (&json!("HASH_MISMATCH"), &json!(actual)));
    let required = error(&write(&mut client, "a.txt", "two\n", None));
    assert_eq!((&required["code"], &required["actual_sha256"]), (&json!("HASH_REQUIRED"), &json!(actual)));
    let arguments =
        json!({ "file": "a.txt", "old_text": "one", "new_text": "two", "expected_sha256": stale });
    assert_eq!(code(&client.call_tool("edit_file", arguments).unwrap()), "HASH_MISMATCH");
    let missing = error(&write(&mut client, "gone.txt", "two\n", Some(&stale)));
    assert_eq!((&missing["code"], &missing["actual_sha256"]), (&json!("HASH_MISMATCH"), &Value::Null));
    assert_eq!(code(&write(&mut client, "none/gone.txt", "two\n", Some(&stale))), "HASH_MISMATCH");
    for wrong in ["", "abc", &"z".repeat(64)] {
        assert_eq!(code(&write(&mut client, "a.txt", "two\n", Some(wrong))), "INVALID_INPUT");
    }
    assert_eq!(workspace.bytes("a.txt"), b"one\n");
    assert!(!workspace.sandbox.tree().path("none").exists());
}

#[test]
fn file_deleted_after_an_edit_is_not_found() {
    let workspace = Workspace::new("//- a.txt\none\n");
    let mut client = workspace.client();
    edit(&mut client, "a.txt", "one", "two");
    std::fs::remove_file(workspace.sandbox.tree().path("a.txt")).unwrap();
    assert_eq!(code(&edit(&mut client, "a.txt", "two", "three")), "NOT_FOUND");
}

#[test]
fn binary_large_and_special_files_are_rejected() {
    let workspace = Workspace::new("//- a.txt\n");
    let tree = workspace.sandbox.tree();
    let large = 8 * 1024 * 1024 + 1;
    let files: [(&str, Vec<u8>, &str); 4] = [
        ("program", b"one\0two".to_vec(), "NOT_TEXT"),
        ("latin.txt", b"one \xe4".to_vec(), "NOT_TEXT"),
        ("wide.txt", "one".encode_utf16().flat_map(u16::to_le_bytes).collect(), "NOT_TEXT"),
        ("large.txt", vec![b'a'; large], "TOO_LARGE"),
    ];
    let mut client = workspace.client();
    for (name, bytes, expected) in files {
        std::fs::write(tree.path(name), &bytes).unwrap();
        let hash = sha256_hex(&bytes);
        assert_eq!(rejected(&mut client, name, Some(&hash)), (expected.into(), expected.into()), "{name}");
        assert!(workspace.bytes(name) == bytes, "{name}");
    }
    std::process::Command::new("mkfifo").arg(tree.path("pipe")).status().unwrap();
    assert_eq!(rejected(&mut client, "pipe", None), ("NOT_A_FILE".into(), "NOT_A_FILE".into()));
}

#[test]
fn read_only_file_is_rejected() {
    let workspace =
        Workspace::in_sandbox(Sandbox::with_tree("//- a.txt\none\n//- locked/b.txt\none\n").unprivileged());
    let tree = workspace.sandbox.tree();
    let mode = |file: &str, mode: u32| {
        std::fs::set_permissions(tree.path(file), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("a.txt", 0o444);
    mode("locked", 0o555);
    let before = (snapshot(workspace.sandbox.root()), workspace.sha256("a.txt"));
    let mut client = workspace.client();
    assert_eq!(rejected(&mut client, "a.txt", Some(&before.1)), ("READ_ONLY".into(), "READ_ONLY".into()));
    assert_eq!(
        rejected(&mut client, "locked/b.txt", Some(&before.1)),
        ("READ_ONLY".into(), "READ_ONLY".into())
    );
    assert_eq!(code(&write(&mut client, "locked/new/c.txt", "", None)), "READ_ONLY");
    assert_eq!(snapshot(workspace.sandbox.root()), before.0);
    drop(client);
    mode("locked", 0o755);
    // Root does not overwrite a read-only file either.
    let workspace = Workspace::new("//- a.txt\none\n");
    std::fs::set_permissions(workspace.sandbox.tree().path("a.txt"), std::fs::Permissions::from_mode(0o400))
        .unwrap();
    assert_eq!(code(&edit(&mut workspace.client(), "a.txt", "one", "two")), "READ_ONLY");
    assert_eq!(workspace.bytes("a.txt"), b"one\n");
}

#[test]
fn full_disk_changes_no_file() {
    let Some(disk) = SmallDisk::mount(256) else { return };
    let sandbox = Sandbox::new();
    let root = disk.path().join("w");
    std::fs::create_dir(&root).unwrap();
    let text = "one\n".to_owned() + &"x".repeat(100 * 1024);
    std::fs::write(root.join("a.txt"), &text).unwrap();
    let workspace = Workspace::in_sandbox(sandbox);
    workspace.set_settings(&json!({ "edit": { "allow": [root] } }));
    let mut command = workspace.sandbox.tenon();
    command.args(["mcp", "--no-daemon", "--surface", "edit", "--root"]).arg(&root);
    let mut client = McpClient::connect(&mut command);
    let filler = disk.fill();
    let before = snapshot(&root);
    let hash = sha256_hex(&text);
    assert_eq!(rejected(&mut client, "a.txt", Some(&hash)).0, "DISK_FULL");
    assert_eq!(code(&write(&mut client, "deep/new.txt", &"y".repeat(64 * 1024), None)), "DISK_FULL");
    assert_eq!(snapshot(&root), before, "a full disk left a partial file or folder");
    std::fs::remove_file(filler).unwrap();
    assert!(!edit(&mut client, "a.txt", "one", "two").is_error);
}
