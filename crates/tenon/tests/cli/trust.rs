//! `tenon trust`: a hostile repository runs nothing before the user trusts it, nor after a change.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tenon_testkit::Sandbox;

use crate::{connect, json, tenon, transcript};

/// A repository with its own programs, each of which leaves a mark when it runs.
fn hostile() -> Sandbox {
    let sandbox = Sandbox::with_tree(
        "//- tenon.toml\n\
         [servers.evil]\ncommand = \"./bin/evil\"\nextensions = [\".py\"]\nenv = {LD_PRELOAD = \"./bin/evil.so\"}\n\
         [servers.pyright]\ncommand = \"./node_modules/.bin/pyright-langserver\"\n\
         [workspace]\nroots = [\"/\"]\n[log]\nlevel = \"trace\"\n[http]\nport = 1\n\
         //- main.py\nx = 1\n//- pyproject.toml\n[project]\nname = \"x\"\n",
    );
    // In their sandbox, servers could not leave a mark.
    sandbox.write_user_config("[sandbox]\nexcept = [\"*\"]\n");
    let mark = sandbox.folder().join("ran");
    for program in
        ["bin/evil", "node_modules/.bin/pyright-langserver", ".venv/bin/python", "bin/tenon", "git"]
    {
        sandbox.tree().write(program, &format!("#!/bin/sh\necho {program} >> {}\n", mark.display()));
        let path = sandbox.root().join(program);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    sandbox
}

fn run_commands(sandbox: &Sandbox) {
    let path = format!("{0}/bin:{0}/node_modules/.bin:{0}:/usr/bin:/bin", sandbox.root().display());
    let mut up = sandbox.tenon();
    let up = up.arg("up").env("PATH", path).output().unwrap();
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    let mut client = connect(sandbox, &[]);
    client.call_tool("workspace_status", json!({})).unwrap();
    drop(client);
    tenon(sandbox, &["doctor"]);
    tenon(sandbox, &["stop"]);
}

fn ran(sandbox: &Sandbox) -> Option<String> {
    std::fs::read_to_string(sandbox.folder().join("ran")).ok()
}

fn commands(sandbox: &Sandbox) -> Vec<Value> {
    let shown = json(sandbox, &["config", "show", "--json"]);
    let settings = shown["settings"].as_array().unwrap().iter();
    settings.filter(|setting| setting["key"].as_str().unwrap().starts_with("servers.")).cloned().collect()
}

#[test]
fn hostile_repository_runs_nothing_before_trust_nor_after_a_change() {
    let sandbox = hostile();
    run_commands(&sandbox);
    assert_eq!(ran(&sandbox), None);
    assert!(commands(&sandbox).is_empty());

    assert!(tenon(&sandbox, &["trust"]).status.success());
    assert_eq!(commands(&sandbox).len(), 4);

    sandbox.tree().write("bin/evil", "#!/bin/sh\necho worse\n");
    assert!(commands(&sandbox).is_empty());
    run_commands(&sandbox);
    assert_eq!(ran(&sandbox), None);
}

/// A trusted command that uses no file of the root may still find one there later.
#[test]
fn missing_files_that_an_interpreter_would_load_are_pinned_as_absent() {
    let sandbox = Sandbox::with_tree(
        "//- tenon.toml\n\
         [servers.module]\ncommand = \"python3\"\nargs = [\"-m\", \"some.server\"]\nextensions = [\".one\"]\n\
         [servers.folder]\ncommand = \"node\"\nargs = [\"tools\"]\nextensions = [\".two\"]\n\
         //- tools/README\n//- main.one\nx\n//- main.two\nx\n",
    );
    sandbox.write_user_config("[sandbox]\nexcept = [\"*\"]\n");
    let mark = sandbox.folder().join("ran");
    for (planted, text) in [
        ("some/server.py", format!("open({:?}, 'w')\n", mark.display().to_string())),
        ("some/__init__.py", format!("open({:?}, 'w')\n", mark.display().to_string())),
        ("tools/index.js", format!("require('fs').writeFileSync({:?}, '')\n", mark.display().to_string())),
    ] {
        assert!(tenon(&sandbox, &["trust"]).status.success());
        assert_eq!(commands(&sandbox).len(), 6, "{planted}");
        sandbox.tree().write(planted, &text);
        let state = json(&sandbox, &["trust", "--show", "--json"]);
        assert_eq!(state["state"], "stale", "{planted}");
        assert!(commands(&sandbox).is_empty(), "{planted}");
        connect(&sandbox, &[]).call_tool("workspace_status", json!({})).unwrap();
        assert!(tenon(&sandbox, &["stop"]).status.success());
        assert_eq!(ran(&sandbox), None, "{planted}");
        std::fs::remove_file(sandbox.root().join(planted)).unwrap();
    }
}

#[test]
fn program_planted_where_servers_are_looked_up_does_not_run() {
    let sandbox = Sandbox::with_tree(
        "//- tenon.toml\n//- main.py\nx = 1\n//- pyproject.toml\n[project]\nname = \"x\"\n",
    );
    // In their sandbox, servers could not leave a mark.
    sandbox.write_user_config("[sandbox]\nexcept = [\"*\"]\n");
    assert!(tenon(&sandbox, &["trust"]).status.success());
    let mark = sandbox.folder().join("ran");
    let plant = |path: &str| {
        sandbox.tree().write(path, &format!("#!/bin/sh\necho {path} >> {}\n", mark.display()));
        std::fs::set_permissions(sandbox.root().join(path), std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    sandbox.tree().write(".venv/pyvenv.cfg", "");
    plant(".venv/bin/ruff");
    let state = json(&sandbox, &["trust", "--show", "--json"]);
    assert_eq!((&state["state"], &state["changed"]), (&json!("stale"), &json!([".venv/bin/ruff"])));
    tenon(&sandbox, &["check", "--no-daemon"]);
    assert_eq!(ran(&sandbox), None);

    assert!(tenon(&sandbox, &["trust"]).status.success());
    tenon(&sandbox, &["check", "--no-daemon"]);
    assert!(ran(&sandbox).unwrap().contains(".venv/bin/ruff"));
}

#[test]
fn every_trust_state_is_printed() {
    let sandbox =
        Sandbox::with_tree("//- tenon.toml\n[servers.x]\ncommand = \"./x\"\nextensions = [\".x\"]\n");
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["trust", "--show"])), @"
        exit: 0
        --- stdout
        untrusted: [SANDBOX]/w
        ");
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().arg("trust")), @"
        exit: 0
        --- stdout
        trusted: [SANDBOX]/w
        --- stderr
          pinned: tenon.toml
          pinned: x (absent)
        ");
    sandbox.tree().write("x", "planted");
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["trust", "--show"])), @"
        exit: 0
        --- stdout
        stale: [SANDBOX]/w
        --- stderr
          changed: x
          hint: review the change, then run `tenon trust [SANDBOX]/w`
        ");
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["trust", "--exclude"])), @"
        exit: 0
        --- stdout
        excluded: [SANDBOX]/w
        ");
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["trust", "--revoke"])), @"
        exit: 0
        --- stdout
        untrusted: [SANDBOX]/w
        ");
    let state = json(&sandbox, &["trust", "--show", "--json"]);
    assert_eq!(state["state"], "untrusted");
}

#[test]
fn trust_applies_to_the_given_folder_only() {
    let sandbox = Sandbox::with_tree("//- a/tenon.toml\n//- b/tenon.toml\n");
    let root = sandbox.root().join("a");
    assert!(tenon(&sandbox, &["trust", root.to_str().unwrap()]).status.success());
    assert_eq!(json(&sandbox, &["trust", "--show", "--json", "a"])["state"], "trusted");
    assert_eq!(json(&sandbox, &["trust", "--show", "--json", "b"])["state"], "untrusted");
}

#[test]
fn trust_reaches_an_idle_daemon_and_says_what_to_do_about_a_busy_one() {
    let sandbox = Sandbox::with_tree("//- tenon.toml\n[log]\nlevel = \"debug\"\n");
    let daemon = || {
        let shown = json(&sandbox, &["status", "--json"]);
        (shown["pid"].as_u64().unwrap(), shown["outdated"].as_bool().unwrap())
    };
    let client = connect(&sandbox, &[]);
    let (first, _) = daemon();
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().arg("trust")), @"
        exit: 0
        --- stdout
        trusted: [SANDBOX]/w
        --- stderr
        warning: the running daemon has 1 client and keeps the trust that it started with
          hint: run `tenon stop`; the next client starts a daemon with the new trust
          pinned: tenon.toml
        ");
    assert_eq!(daemon(), (first, true));
    drop(client);
    crate::wait_for_status(&sandbox, "no clients", |status| status["clients"] == 0);
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["trust", "--exclude"])), @"
        exit: 0
        --- stdout
        excluded: [SANDBOX]/w
        --- stderr
        stopped: the idle daemon; the next client starts one with the new trust
        ");
    let _client = connect(&sandbox, &[]);
    let (second, outdated) = daemon();
    assert!(second != first && !outdated);
}
