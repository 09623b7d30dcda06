//! `tenon servers`: the list, and installation with a scripted package manager.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tenon_testkit::Sandbox;

use crate::{json, tenon, transcript};

/// A sandbox whose PATH has only a scripted npm.
struct Machine(Sandbox);

impl Machine {
    fn new(npm: &str) -> Self {
        let sandbox =
            Sandbox::with_tree("//- tenon.toml\n//- a.css\n.a { color: red }\n//- a.go\npackage a\n");
        let path = sandbox.dir("home").join("npm");
        std::fs::write(&path, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{npm}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self(sandbox)
    }

    fn tenon(&self, args: &[&str]) -> Command {
        let mut command = self.0.tenon();
        command.args(args).env("PATH", self.0.dir("home"));
        command
    }

    fn output(&self, args: &[&str]) -> String {
        let text = transcript(&self.0, &mut self.tenon(args));
        // The folder's name contains a hash of the lock files.
        text.split('\n')
            .map(|line| match line.rsplit_once("4.10.0-") {
                Some((before, _)) => format!("{before}4.10.0-[HASH]"),
                None => line.to_owned(),
            })
            .collect::<Vec<_>>()
            .join("\n")
    }
}

const MAKES_SERVERS: &str = "for name in css html json eslint; do
  mkdir -p node_modules/.bin
  echo '#!/bin/sh' > node_modules/.bin/vscode-$name-language-server
  chmod +x node_modules/.bin/vscode-$name-language-server
done";

#[test]
fn server_is_installed_listed_and_removed() {
    let machine = Machine::new(MAKES_SERVERS);
    insta::assert_snapshot!(machine.output(&["servers", "install", "--for", "."]), @r#"
    exit: 0
    --- stdout
    installed: vscode-langservers 4.10.0 in [SANDBOX]/data/tenon/servers/vscode-langservers-4.10.0-[HASH]
    --- stderr
    to be installed in [SANDBOX]/data/tenon/servers:
      vscode-langservers 4.10.0 for 1 CSS file: 121 MB, with npm
    not installed:
      gopls for 1 Go file: Tenon does not install it
        hint: run `go install golang.org/x/tools/gopls@latest`
    "#);
    insta::assert_snapshot!(machine.output(&["servers", "install", "css"]), @r#"
    exit: 0
    --- stdout
    already installed: vscode-langservers 4.10.0 in [SANDBOX]/data/tenon/servers/vscode-langservers-4.10.0-[HASH]
    "#);
    insta::assert_snapshot!(machine.output(&["servers", "install", "--for", "."]), @r#"
    exit: 0
    --- stderr
    not installed:
      gopls for 1 Go file: Tenon does not install it
        hint: run `go install golang.org/x/tools/gopls@latest`
    "#);
    let listed: serde_json::Value =
        serde_json::from_slice(&machine.tenon(&["servers", "list", "--json"]).output().unwrap().stdout)
            .unwrap();
    let css = listed["servers"].as_array().unwrap().iter().find(|one| one["id"] == "css").unwrap();
    assert_eq!((&css["state"], &css["installed"]), (&"found".into(), &["4.10.0"].into()));
    insta::assert_snapshot!(machine.output(&["servers", "remove", "css", "json"]), @r#"
    exit: 0
    --- stdout
    removed: vscode-langservers 4.10.0
    "#);
    insta::assert_snapshot!(machine.output(&["servers", "remove", "css"]), @r#"
    exit: 1
    --- stderr
    nothing to remove: Tenon did not install these servers
    "#);
}

#[test]
fn failed_installation_prints_a_hint() {
    let machine = Machine::new("echo 'npm error code ENOTFOUND' >&2; exit 1");
    insta::assert_snapshot!(machine.output(&["servers", "install", "css"]), @r#"
    exit: 1
    --- stderr
    to be installed in [SANDBOX]/data/tenon/servers:
      vscode-langservers 4.10.0: 121 MB, with npm
    error: cannot install `vscode-langservers`
      caused by: `npm ci` cannot reach its package registry
      hint: connect, or point npm at a registry that can be reached, then try again
    "#);
    insta::assert_snapshot!(machine.output(&["servers", "install", "ruff"]), @r#"
    exit: 1
    --- stderr
    not installed:
      ruff: `python3` is not installed
        hint: install Python 3.9 or newer with venv with your system's package manager
    "#);
    insta::assert_snapshot!(machine.output(&["servers", "install", "gopls"]), @r#"
    exit: 1
    --- stderr
    not installed:
      gopls: Tenon does not install it
        hint: run `go install golang.org/x/tools/gopls@latest`
    "#);
    insta::assert_snapshot!(machine.output(&["servers", "install", "pyrihgt"]), @r#"
    exit: 2
    --- stderr
    error: no language server is called `pyrihgt`
      hint: did you mean `pyright`?
    "#);
}

#[test]
fn outdated_server_is_listed_and_replaced() {
    let machine = Machine::new(MAKES_SERVERS);
    insta::assert_snapshot!(machine.output(&["servers", "update"]), @r#"
    exit: 0
    --- stderr
    up to date: every installed server has the version that this Tenon pins
    "#);
    let old = machine.0.dir("data").join("tenon/servers/vscode-langservers-4.0.0-00000000");
    std::fs::create_dir_all(&old).unwrap();
    std::fs::write(old.join(".complete"), "").unwrap();
    let listed =
        String::from_utf8(machine.tenon(&["servers", "list", "--outdated"]).output().unwrap().stdout);
    let listed = listed.unwrap();
    assert_eq!(listed.lines().count(), 4, "css, eslint, html and json: {listed}");
    assert!(listed.contains("4.0.0") && listed.contains("4.10.0"), "{listed}");
    insta::assert_snapshot!(machine.output(&["servers", "update"]), @r#"
    exit: 0
    --- stdout
    installed: vscode-langservers 4.10.0 in [SANDBOX]/data/tenon/servers/vscode-langservers-4.10.0-[HASH]
    removed: vscode-langservers 4.0.0
    --- stderr
    to be updated in [SANDBOX]/data/tenon/servers:
      vscode-langservers 4.0.0 to 4.10.0: 121 MB, with npm
    "#);
    assert!(!old.exists());
    let listed = machine.tenon(&["servers", "list", "--outdated"]).output().unwrap();
    assert!(listed.stdout.is_empty() && listed.status.success(), "{listed:?}");

    // An old version beside the new one, as an interrupted update leaves it.
    std::fs::create_dir_all(&old).unwrap();
    std::fs::write(old.join(".complete"), "").unwrap();
    let listed = machine.output(&["servers", "list", "--outdated"]);
    assert!(listed.contains("css     old versions to be removed: 4.0.0"), "{listed}");
    assert!(listed.contains("hint: run `tenon servers update`"), "{listed}");
    assert!(machine.tenon(&["servers", "update"]).output().unwrap().status.success());
    assert!(!old.exists());
}

#[test]
fn failed_update_keeps_the_old_version() {
    let machine = Machine::new("echo 'npm error code E403' >&2; exit 1");
    let old = machine.0.dir("data").join("tenon/servers/vscode-langservers-4.0.0-00000000");
    std::fs::create_dir_all(&old).unwrap();
    std::fs::write(old.join(".complete"), "").unwrap();
    insta::assert_snapshot!(machine.output(&["servers", "update", "css"]), @r#"
    exit: 1
    --- stderr
    to be updated in [SANDBOX]/data/tenon/servers:
      vscode-langservers 4.0.0 to 4.10.0: 121 MB, with npm
    error: cannot install `vscode-langservers`
      caused by: `npm ci` failed: npm error code E403
    "#);
    assert!(old.join(".complete").exists());
}

#[test]
fn server_that_cannot_be_installed_does_not_stop_the_others() {
    let refuses =
        "if grep -q bash-language-server package.json; then echo 'npm error code E404' >&2; exit 1; fi";
    let machine = Machine::new(&format!("{refuses}\n{MAKES_SERVERS}"));
    insta::assert_snapshot!(machine.output(&["servers", "install", "bash", "ruff", "css"]), @r#"
    exit: 1
    --- stdout
    installed: vscode-langservers 4.10.0 in [SANDBOX]/data/tenon/servers/vscode-langservers-4.10.0-[HASH]
    --- stderr
    to be installed in [SANDBOX]/data/tenon/servers:
      bash-language-server 5.8.1: 36 MB, with npm
      vscode-langservers 4.10.0: 121 MB, with npm
    not installed:
      ruff: `python3` is not installed
        hint: install Python 3.9 or newer with venv with your system's package manager
    error: cannot install `bash-language-server`
      caused by: `npm ci` failed: npm error code E404
    "#);
}

#[test]
fn installation_needs_neither_root_nor_npm() {
    let sandbox = Sandbox::with_tree("//- tenon.toml\n//- a.css\n.a { color: red }\n").unprivileged();
    let mut command = sandbox.tenon();
    command.args(["servers", "install", "css", "rust-analyzer"]).env("PATH", sandbox.dir("home"));
    insta::assert_snapshot!(transcript(&sandbox, &mut command), @r#"
    exit: 1
    --- stderr
    not installed:
      css: `npm` is not installed
        hint: install Node.js 20 or newer with npm with your system's package manager
      rust-analyzer: `cargo` is not installed
        hint: install Rust with rustup: see https://rustup.rs; or run `rustup component add rust-analyzer`
    "#);
    let machine = Machine::new(MAKES_SERVERS);
    let machine = Machine(machine.0.unprivileged());
    insta::assert_snapshot!(machine.output(&["servers", "install", "css"]), @r#"
    exit: 0
    --- stdout
    installed: vscode-langservers 4.10.0 in [SANDBOX]/data/tenon/servers/vscode-langservers-4.10.0-[HASH]
    --- stderr
    to be installed in [SANDBOX]/data/tenon/servers:
      vscode-langservers 4.10.0: 121 MB, with npm
    "#);
}

#[test]
fn running_servers_are_listed_logged_and_restarted() {
    let sandbox = Sandbox::with_tree(
        "//- tenon.toml\n//- pyproject.toml\n[project]\nname = \"p\"\n//- a.py\nx: int = 1\n",
    );
    let output = |args: &[&str]| transcript(&sandbox, sandbox.tenon().args(args));
    insta::assert_snapshot!(output(&["servers", "logs", "pyright"]), @r#"
    exit: 5
    --- stderr
    error: no daemon serves this workspace
      hint: run `tenon up` to start it
    "#);
    insta::assert_snapshot!(output(&["servers", "restart", "pyrihgt"]), @r#"
    exit: 2
    --- stderr
    error: no language server is called `pyrihgt`
      hint: did you mean `pyright`?
    "#);
    assert!(tenon(&sandbox, &["up"]).status.success());
    let pyright = || {
        let listed = json(&sandbox, &["servers", "list", "--json"]);
        listed["servers"].as_array().unwrap().iter().find(|one| one["id"] == "pyright").unwrap().clone()
    };
    assert_eq!(pyright()["state"], "active");
    assert!(pyright()["detail"].as_str().unwrap().ends_with(", project ."), "{}", pyright());
    let log = String::from_utf8(tenon(&sandbox, &["servers", "logs", "pyright"]).stdout).unwrap();
    assert!(log.contains("source file"), "{log}");
    insta::assert_snapshot!(output(&["servers", "restart", "pyright"]), @r#"
    exit: 0
    --- stdout
    restarted: pyright
    "#);
    assert!(tenon(&sandbox, &["stop"]).status.success());
}

#[test]
fn list_shows_why_a_server_is_not_used() {
    let sandbox = Sandbox::with_tree("//- tenon.toml\n//- a.rs\nfn main() {}\n");
    let state = || {
        let listed = json(&sandbox, &["servers", "list", "--json"]);
        let servers = listed["servers"].as_array().unwrap().clone();
        move |id: &str| {
            let one = servers.iter().find(|one| one["id"] == id).unwrap();
            format!("{} {}", one["state"].as_str().unwrap(), one["detail"].as_str().unwrap())
        }
    };
    assert_eq!(state()("eslint"), "unavailable untrusted: run `tenon trust`");
    assert_eq!(state()("ty"), "disabled `pyright` serves its files");
    assert!(state()("pyright").ends_with("(PATH)"));
    assert!(tenon(&sandbox, &["trust"]).status.success());
    assert!(state()("eslint").ends_with("(PATH)"));
    let text = String::from_utf8(tenon(&sandbox, &["servers", "list"]).stdout).unwrap();
    assert!(text.lines().any(|line| line.starts_with("ty ")), "{text}");
}
