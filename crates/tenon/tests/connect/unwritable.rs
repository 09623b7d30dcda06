//! Files and folders that cannot be read or written: the message of each, and that nothing is half written.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use tenon_testkit::Sandbox;

use crate::{connect, sandbox, transcript};

#[test]
fn read_only_file_is_refused() {
    let sandbox = sandbox("//- .mcp.json\n{}\n");
    fs::set_permissions(sandbox.root().join(".mcp.json"), Permissions::from_mode(0o444)).unwrap();
    let said = transcript(&sandbox, &["claude"]);
    assert!(said.contains("error: `[SANDBOX]/w/.mcp.json` is read-only\n  hint: run `chmod u+w "), "{said}");
    assert!(said.contains("hint: nothing was changed"), "{said}");
    assert_eq!(sandbox.tree().read(".mcp.json"), "{}\n");
    assert!(!sandbox.root().join(".claude").exists());
}

/// The hooks' file cannot be written: the MCP server's file, which comes first, is restored.
#[test]
fn first_file_is_restored_if_the_second_cannot_be_written() {
    let sandbox = sandbox("//- .mcp.json\n{}\n//- .claude/settings.json\n{ }\n");
    fs::set_permissions(sandbox.root().join(".claude/settings.json"), Permissions::from_mode(0o444)).unwrap();
    let output = connect(&sandbox, &["claude"]).output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    assert_eq!(sandbox.tree().read(".mcp.json"), "{}\n");
    assert_eq!(sandbox.tree().read(".claude/settings.json"), "{ }\n");
    assert_eq!(fs::read_dir(sandbox.dir("state").join("tenon/connect")).unwrap().count(), 0);
}

#[test]
fn folder_in_place_of_a_file_is_refused() {
    let sandbox = sandbox("//- .mcp.json/\n");
    let said = transcript(&sandbox, &["claude"]);
    assert!(said.contains("error: `[SANDBOX]/w/.mcp.json` is a folder, not a file"), "{said}");
    assert!(!sandbox.root().join(".claude").exists());
}

#[test]
fn file_in_place_of_a_folder_is_refused() {
    let sandbox = sandbox("//- .claude\nx\n");
    let said = transcript(&sandbox, &["claude"]);
    assert!(said.starts_with("exit: 6") && said.contains("[SANDBOX]/w/.claude/settings.json"), "{said}");
    assert!(!sandbox.root().join(".mcp.json").exists(), "{said}");
}

#[test]
fn pipe_in_place_of_a_file_is_refused_without_waiting() {
    let sandbox = sandbox("");
    nix::unistd::mkfifo(&sandbox.root().join(".mcp.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let said = transcript(&sandbox, &["claude"]);
    assert!(said.contains("error: `[SANDBOX]/w/.mcp.json` is not a regular file"), "{said}");
}

#[test]
fn dangling_link_is_refused() {
    let sandbox = sandbox("");
    symlink("nowhere.json", sandbox.root().join(".mcp.json")).unwrap();
    let said = transcript(&sandbox, &["claude"]);
    assert!(said.contains("error: `[SANDBOX]/w/.mcp.json` is a link to a missing file"), "{said}");
    assert!(sandbox.root().join(".mcp.json").is_symlink());
}

fn unprivileged(tree: &str) -> Sandbox {
    Sandbox::with_tree(&format!("//- tenon.toml\n{tree}")).unprivileged()
}

fn failed(sandbox: &Sandbox, args: &[&str]) -> String {
    let output = sandbox.tenon().arg("connect").args(args).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    tenon_testkit::transcript(sandbox, &output)
}

#[test]
fn read_only_home_is_refused_before_anything_is_written() {
    let sandbox = unprivileged("//- .mcp.json\n{}\n");
    let state = sandbox.dir("state");
    fs::set_permissions(&state, Permissions::from_mode(0o500)).unwrap();
    let said = failed(&sandbox, &["claude"]);
    assert!(said.starts_with("exit: 6") && said.contains("caused by: Permission denied"), "{said}");
    assert!(said.contains("hint: check who owns the file"), "{said}");
    assert_eq!(sandbox.tree().read(".mcp.json"), "{}\n");
    fs::set_permissions(&state, Permissions::from_mode(0o700)).unwrap();
    let home = sandbox.dir("home");
    fs::set_permissions(&home, Permissions::from_mode(0o500)).unwrap();
    let said = failed(&sandbox, &["windsurf"]);
    assert!(
        said.contains("error: cannot write `[SANDBOX]/home/.codeium/windsurf/mcp_config.json`"),
        "{said}"
    );
    fs::set_permissions(&home, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
}

#[test]
fn root_without_write_permission_is_refused() {
    let sandbox = unprivileged("");
    fs::set_permissions(sandbox.root(), Permissions::from_mode(0o555)).unwrap();
    let said = failed(&sandbox, &["claude"]);
    assert!(said.contains("error: cannot write `[SANDBOX]/w/.mcp.json`"), "{said}");
    assert!(said.contains("hint: nothing was changed"), "{said}");
    fs::set_permissions(sandbox.root(), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(fs::read_dir(sandbox.root()).unwrap().count(), 1, "only `tenon.toml`");
}

/// Without `HOME`, the home folder of this user is the one in the user database, which does not exist.
#[test]
fn missing_home_is_an_error_with_a_hint() {
    let sandbox = unprivileged("");
    let output = sandbox.tenon().args(["connect", "windsurf"]).env_remove("HOME").output().unwrap();
    let said = tenon_testkit::transcript(&sandbox, &output);
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("error: there is no home folder") || said.contains("error: cannot write `/"),
        "{said}"
    );
    assert!(said.contains("hint: "), "{said}");
}
