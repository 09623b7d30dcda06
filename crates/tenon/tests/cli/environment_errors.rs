//! Invalid roots, folders and arguments: the message and the exit code of each.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use tenon_testkit::Sandbox;

use crate::{connect, tenon, transcript};

#[test]
fn missing_root_is_an_error() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["mcp", "--root", "nowhere"])), @"
        exit: 4
        --- stderr
        error: there is no folder `nowhere`
        ");
    sandbox.tree().write("file", "");
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["status", "--root", "file"])), @"
        exit: 4
        --- stderr
        error: there is no folder `file`
        ");
}

#[test]
fn unreadable_root_is_an_error() {
    let sandbox = Sandbox::with_tree("//- locked/inside.txt\nx\n").unprivileged();
    fs::set_permissions(sandbox.root().join("locked"), Permissions::from_mode(0o000)).unwrap();
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["mcp", "--root", "locked"])), @"
        exit: 4
        --- stderr
        error: cannot read folder `locked`
          caused by: Permission denied (os error 13)
        ");
    fs::set_permissions(sandbox.root().join("locked"), Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn socket_folder_that_is_a_link_is_rejected() {
    let sandbox = Sandbox::new();
    symlink(sandbox.dir("tmp"), sandbox.dir("run").join("tenon")).unwrap();
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().arg("mcp")), @"
        exit: 5
        --- stderr
        root: [SANDBOX]/w
        error: socket folder `[SANDBOX]/run/tenon` is a link
          hint: remove `[SANDBOX]/run/tenon`, or set `TENON_RUNTIME_DIR` to another folder
          hint: `tenon mcp --no-daemon` works without a daemon
        ");
    drop(connect(&sandbox, &["--no-daemon"]));
}

#[test]
fn socket_folder_open_to_other_users_is_rejected() {
    let sandbox = Sandbox::new();
    let folder = sandbox.dir("run").join("tenon");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().arg("status")), @"
        exit: 5
        --- stderr
        error: socket folder `[SANDBOX]/run/tenon` is open to other users
          hint: run `chmod 700 [SANDBOX]/run/tenon`, or set `TENON_RUNTIME_DIR` to another folder
          hint: `tenon mcp --no-daemon` works without a daemon
        ");
}

#[test]
fn socket_folder_of_another_user_is_rejected() {
    let sandbox = Sandbox::new();
    let folder = sandbox.dir("run").join("tenon");
    fs::create_dir(&folder).unwrap();
    // Only root can change the owner; for every other user, `/` belongs to another user.
    let changed = chown(&folder, Some(65_534), None).is_ok();
    let folder = if changed { folder } else { "/".into() };
    let output = sandbox.tenon().arg("up").env("TENON_RUNTIME_DIR", folder).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("belongs to another user"), "{stderr}");
}

#[test]
fn socket_folder_with_too_long_a_path_is_rejected() {
    let sandbox = Sandbox::new();
    let long = sandbox.dir("run").join("x".repeat(90));
    let output = sandbox.tenon().arg("up").env("TENON_RUNTIME_DIR", long).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&output.stderr).contains("TENON_RUNTIME_DIR"));
}

#[test]
fn unknown_surface_is_a_usage_error() {
    let sandbox = Sandbox::new();
    for mode in [&[][..], &["--no-daemon"]] {
        let output = tenon(&sandbox, &[&["mcp", "--surface", "nope"], mode].concat());
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("error: unknown surface `nope`; available: "), "{stderr}");
    }
}

#[test]
fn invalid_command_line_is_a_usage_error() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().arg("stauts")), @"
        exit: 2
        --- stderr
        error: unrecognized subcommand 'stauts'

          tip: some similar subcommands exist: 'trust', 'tasks', 'restart', 'status'

        Usage: tenon [OPTIONS] <COMMAND>

        For more information, try '--help'.
        ");
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["serve", "--port", "1"])), @"
        exit: 2
        --- stderr
        error: the following required arguments were not provided:
          --http

        Usage: tenon serve --http --port <PORT>

        For more information, try '--help'.
        ");
}

#[test]
fn relative_state_folder_is_rejected() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.tenon();
    command.env("TENON_STATE_DIR", "relative").arg("trust");
    insta::assert_snapshot!(transcript(&sandbox, &mut command), @"
        exit: 3
        --- stderr
        error: `TENON_STATE_DIR` must be an absolute path, not `relative`
        ");
}
