//! What a new user meets first: trust, permissions, settings, logs and empty workspaces.

use std::process::Stdio;

use tenon_testkit::Sandbox;

use crate::{connect, json, tenon, transcript};

#[test]
fn trust_of_an_idle_daemon_takes_effect_at_once() {
    let sandbox = Sandbox::with_tree("//- tenon.toml\n[http]\nport = 0\n");
    drop(connect(&sandbox, &[]));
    let before = json(&sandbox, &["status", "--json"]);
    crate::wait_for_status(&sandbox, "no client", |status| status["clients"] == 0);
    let said = transcript(&sandbox, sandbox.tenon().arg("trust"));
    assert!(said.contains("trusted: ") && said.contains("stopped: the idle daemon"), "{said}");
    drop(connect(&sandbox, &[]));
    let after = json(&sandbox, &["status", "--json"]);
    assert_ne!(before["pid"], after["pid"]);
    assert_eq!(after["outdated"], false);
    assert!(tenon(&sandbox, &["stop"]).status.success());
}

#[test]
fn folders_that_hold_everything_cannot_be_trusted() {
    let sandbox = Sandbox::new();
    let home = sandbox.dir("home");
    let above = sandbox.folder().to_owned();
    for (folder, why) in [
        ("/", "it is the whole file system"),
        (home.to_str().unwrap(), "it is your home folder"),
        (above.to_str().unwrap(), "it contains your home folder"),
    ] {
        let said = transcript(&sandbox, sandbox.tenon().args(["trust", folder]));
        assert!(said.starts_with("exit: 2") && said.contains(why), "{said}");
        assert!(said.contains("hint: run `tenon trust DIR`"), "{said}");
        let shown = tenon(&sandbox, &["trust", folder, "--show"]);
        assert!(String::from_utf8_lossy(&shown.stdout).starts_with("untrusted"), "{shown:?}");
    }
}

#[test]
fn edits_are_allowed_and_forbidden_by_a_command() {
    let sandbox = Sandbox::new();
    sandbox.write_user_config("# mine\n[edit] # edits\nwait_ms = 1000\n");
    let refused = transcript(&sandbox, sandbox.tenon().args(["mcp", "--surface", "edit", "--no-daemon"]));
    assert!(refused.contains("run `tenon allow-edit` in the workspace"), "{refused}");
    assert!(tenon(&sandbox, &["allow-edit"]).status.success());
    let written = std::fs::read_to_string(sandbox.dir("config").join("tenon/config.toml")).unwrap();
    let root = sandbox.root().display();
    assert_eq!(written, format!("# mine\n[edit] # edits\nallow = [\"{root}\"]\nwait_ms = 1000\n"));
    let mut client = connect(&sandbox, &["--surface", "edit", "--no-daemon"]);
    assert!(client.list_tools().contains(&"edit_file".to_owned()));
    drop(client);
    assert!(transcript(&sandbox, sandbox.tenon().arg("allow-edit")).contains("already allowed"));
    assert!(tenon(&sandbox, &["allow-edit", "--revoke"]).status.success());
    let refused = tenon(&sandbox, &["mcp", "--surface", "edit", "--no-daemon"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn settings_are_set_by_a_command_if_they_are_valid() {
    let sandbox = Sandbox::new();
    let file = sandbox.dir("config").join("tenon/config.toml");
    assert!(tenon(&sandbox, &["config", "set", "http.port", "7001"]).status.success());
    assert!(tenon(&sandbox, &["config", "set", "mcp.surfaces", "explore,tasks"]).status.success());
    assert!(tenon(&sandbox, &["config", "set", "daemon.idle", "20m"]).status.success());
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        written,
        "[http]\nport = 7001\n\n[mcp]\nsurfaces = [\"explore\", \"tasks\"]\n\n[daemon]\nidle = \"20m\"\n"
    );
    for (key, value, why) in [
        ("http.port", "many", "must be a whole number"),
        ("log.level", "loud", "must be `off`"),
        ("http.prot", "1", "http.prot"),
    ] {
        let said = transcript(&sandbox, sandbox.tenon().args(["config", "set", key, value]));
        assert!(said.starts_with("exit: 3") && said.contains(why), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
}

#[test]
fn status_tells_default_from_other_surfaces() {
    let sandbox = Sandbox::new();
    drop(connect(&sandbox, &[]));
    let said = String::from_utf8(tenon(&sandbox, &["status"]).stdout).unwrap();
    assert!(said.contains("\ndefault surfaces: explore, workspace\n"), "{said}");
    assert!(said.contains("\nother surfaces: code, nav, context, work, tasks, memory\n"), "{said}");
    assert!(tenon(&sandbox, &["stop"]).status.success());
}

#[test]
fn log_is_printed_and_daemon_is_restarted() {
    let sandbox = Sandbox::new();
    let none = transcript(&sandbox, sandbox.tenon().arg("logs"));
    assert!(none.starts_with("exit: 1") && none.contains("hint: "), "{none}");
    assert!(transcript(&sandbox, sandbox.tenon().arg("restart")).contains("started: "));
    let first = json(&sandbox, &["status", "--json"])["pid"].clone();
    assert!(transcript(&sandbox, sandbox.tenon().arg("restart")).contains("restarted: "));
    assert_ne!(json(&sandbox, &["status", "--json"])["pid"], first);
    let log = String::from_utf8(tenon(&sandbox, &["logs"]).stdout).unwrap();
    assert!(!log.is_empty() && log.lines().count() <= 50, "{log}");
    assert_eq!(tenon(&sandbox, &["logs", "-n", "1"]).stdout.iter().filter(|byte| **byte == b'\n').count(), 1);
    let version = json(&sandbox, &["version", "--json"]);
    assert_eq!(version["version"], version["daemon"]);
    assert!(tenon(&sandbox, &["stop"]).status.success());
    assert_eq!(json(&sandbox, &["version", "--json"])["daemon"], serde_json::Value::Null);
}

#[test]
fn workspace_without_plans_gives_no_warning() {
    let sandbox = Sandbox::new();
    for command in ["tasks", "memory"] {
        let output = tenon(&sandbox, &[command]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("warning"), "{said}");
    }
}

#[test]
fn port_of_http_is_kept_between_runs() {
    use std::io::{BufRead, BufReader};
    let sandbox = Sandbox::new();
    let serve = || {
        let mut command = sandbox.tenon();
        command.args(["serve", "--http"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        assert!(tenon(&sandbox, &["stop"]).status.success());
        process.wait().unwrap();
        url
    };
    let first = serve();
    assert!(first.starts_with("http://127.0.0.1:"), "{first}");
    assert_eq!(serve(), first);
}

#[test]
fn check_of_a_missing_file_and_without_changes_says_so() {
    let sandbox = Sandbox::with_tree("//- a.txt\nx\n");
    let missing = transcript(&sandbox, sandbox.tenon().args(["check", "nowhere.py"]));
    assert!(missing.contains("error: cannot check `[SANDBOX]/w/nowhere.py`"), "{missing}");
    assert!(missing.contains("no such file"), "{missing}");
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=n", "-c", "user.email=e@example.com"];
        assert!(sandbox.command("git").args(identity).args(args).output().unwrap().status.success());
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "first"]);
    let unchanged = transcript(&sandbox, sandbox.tenon().args(["check", "--changed"]));
    assert!(unchanged.contains("changed since the last commit"), "{unchanged}");
}

#[test]
fn default_token_says_which_surfaces_it_has() {
    let sandbox = Sandbox::new();
    let help = String::from_utf8(tenon(&sandbox, &["token", "rotate", "--help"]).stdout).unwrap();
    assert!(help.contains("[default: all except `edit`]"), "{help}");
}
