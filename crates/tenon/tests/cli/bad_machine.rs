//! Machines that lack something: each command says what to do, and leaves nothing half written.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use tenon_testkit::Sandbox;

use crate::{tenon, transcript};

const SOURCES: &str = "//- tenon.toml\n//- a.css\n.a { color: red }\n//- a.py\nx = 1\n";

/// `tenon` without the variables that name the user's folders, so that the home folder decides.
fn with_home(sandbox: &Sandbox, home: Option<&Path>, args: &[&str]) -> Command {
    let mut command = sandbox.tenon();
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
        command.env_remove(name);
    }
    command.envs(home.map(|home| ("HOME", home))).args(args);
    command
}

fn assert_says_what_to_do(said: &str) {
    assert!(!said.starts_with("exit: 0") && said.contains("error: "), "{said}");
    assert!(said.contains("hint: "), "{said}");
}

#[test]
fn up_without_npm_and_python_names_both_and_starts_the_daemon() {
    let sandbox = Sandbox::with_tree(SOURCES);
    let mut up = sandbox.tenon();
    up.args(["up", "--yes", "--no-wait"]).env("PATH", sandbox.dir("home"));
    let said = transcript(&sandbox, &mut up);
    assert!(said.starts_with("exit: 0"), "{said}");
    for missing in ["`npm` is not installed", "`python3` is not installed"] {
        assert!(said.contains(missing), "{said}");
    }
    assert!(said.contains("hint: install ") && said.contains("Next: tenon connect "), "{said}");
    let servers = sandbox.dir("data").join("tenon/servers");
    assert!(!servers.exists() || fs::read_dir(servers).unwrap().count() == 0);
    assert!(tenon(&sandbox, &["stop"]).status.success());
}

#[test]
fn refusing_proxy_is_named_and_nothing_is_left() {
    let sandbox = Sandbox::with_tree(SOURCES);
    let npm = sandbox.dir("home").join("npm");
    let text = "#!/bin/sh\necho 'npm error code ECONNREFUSED' >&2\necho 'npm error If you are behind a proxy' >&2\nexit 1\n";
    fs::write(&npm, text).unwrap();
    fs::set_permissions(&npm, Permissions::from_mode(0o755)).unwrap();
    let mut install = sandbox.tenon();
    install.args(["servers", "install", "css"]).env("PATH", sandbox.dir("home"));
    install.env("HTTPS_PROXY", "http://127.0.0.1:9");
    let said = transcript(&sandbox, &mut install);
    assert!(said.starts_with("exit: 1"), "{said}");
    let hint = "hint: check the proxy that `HTTPS_PROXY` names, or point npm at a registry that it reaches";
    assert!(said.contains("caused by: `npm ci` cannot reach its package registry"), "{said}");
    assert!(said.contains(hint), "{said}");
    let left = fs::read_dir(sandbox.dir("data").join("tenon/servers")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("vscode-langservers-4")), "{left:?}");
}

/// `up` serves without a log; what has to be stored fails with a hint.
fn check_home(sandbox: &Sandbox, home: Option<&Path>) {
    let said = |args: &[&str]| transcript(sandbox, &mut with_home(sandbox, home, args));
    let up = said(&["up", "--no-install", "--no-wait"]);
    assert!(up.starts_with("exit: 0") && up.contains("Next: tenon connect "), "{up}");
    assert_says_what_to_do(&said(&["trust"]));
    assert_says_what_to_do(&said(&["config", "set", "http.port", "1"]));
    assert_says_what_to_do(&said(&["connect", "windsurf"]));
    let doctor = said(&["doctor", "--no-start"]);
    assert!(doctor.contains("error    state: cannot write to "), "{doctor}");
    assert!(doctor.contains("hint: set `TENON_STATE_DIR` to another folder"), "{doctor}");
    assert!(said(&["stop"]).starts_with("exit: 0"));
}

/// Without `HOME`, the home folder of the unprivileged user is the one in the user database, which does not exist.
#[test]
fn missing_home_serves_and_stores_nothing() {
    let sandbox = Sandbox::with_tree(SOURCES).unprivileged();
    check_home(&sandbox, None);
    assert_eq!(fs::read_dir(sandbox.dir("home")).unwrap().count(), 0);
}

#[test]
fn read_only_home_serves_and_stores_nothing() {
    let sandbox = Sandbox::with_tree(SOURCES).unprivileged();
    let home = sandbox.dir("home");
    fs::set_permissions(&home, Permissions::from_mode(0o500)).unwrap();
    check_home(&sandbox, Some(&home));
    fs::set_permissions(&home, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(fs::read_dir(home).unwrap().count(), 0);
}

#[test]
fn root_of_another_user_is_served_and_left_alone() {
    let sandbox = Sandbox::with_tree(SOURCES).unprivileged();
    // Only root can change the owner; for every other user this is a folder without write permission.
    let _ = chown(sandbox.root(), Some(0), Some(0));
    fs::set_permissions(sandbox.root(), Permissions::from_mode(0o555)).unwrap();
    let up = transcript(&sandbox, sandbox.tenon().args(["up", "--no-install", "--no-wait"]));
    assert!(up.starts_with("exit: 0"), "{up}");
    let connect = transcript(&sandbox, sandbox.tenon().args(["connect", "claude"]));
    assert_says_what_to_do(&connect);
    assert!(connect.contains("hint: nothing was changed"), "{connect}");
    assert!(tenon(&sandbox, &["stop"]).status.success());
    assert_eq!(fs::read_dir(sandbox.root()).unwrap().count(), 3, "the files of the test");
    fs::set_permissions(sandbox.root(), Permissions::from_mode(0o755)).unwrap();
}
