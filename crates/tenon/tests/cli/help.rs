//! What people read first: help, completions, `up` and `doctor`.

use serde_json::Value;
use tenon_testkit::{Client, Revision, Sandbox};

use crate::{connect, json, tenon, transcript};

#[test]
fn the_overview() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().arg("--help")), @"
        exit: 0
        --- stdout
        The joint between coding agents and a workspace.

        One local daemon per workspace answers every agent, editor and person on this machine: what the code
        says, what an edit broke, which documents fit the budget, what the plan is. `tenon up` in a
        workspace sets everything up and shows how to connect an agent.

        Usage: tenon [OPTIONS] <COMMAND>

        Commands:
          up           Start serving a workspace, check it, and show how to connect agents
          mcp          Serve MCP over stdin and stdout
          serve        Serve the workspace in the foreground, over HTTP if asked
          status       Say whether a daemon serves the workspace
          stop         End the workspace's daemon
          trust        Trust a workspace, or take that back
          config       Show settings and where they come from
          token        Show, add and revoke the tokens of HTTP clients
          doctor       Look for what is missing or wrong, and say how to fix it
          completions  Print the completion script of a shell
          help         Print this message or the help of the given subcommand(s)

        Options:
              --root <DIR>
                  The workspace root; otherwise the nearest folder above with a `tenon.toml` or under
                  version control
                  
                  [env: TENON_ROOT=]

          -h, --help
                  Print help (see a summary with '-h')

          -V, --version
                  Print version

        Settings: `tenon config show`. What a repository may do before it is trusted: nothing; see `tenon
        trust --help`.
        ");
}

#[test]
fn every_command_explains_itself() {
    let sandbox = Sandbox::new();
    for command in
        ["up", "mcp", "serve", "status", "stop", "trust", "config", "token", "doctor", "completions"]
    {
        let output = tenon(&sandbox, &[command, "--help"]);
        assert!(output.status.success() && output.stdout.len() > 100, "{command}");
    }
}

#[test]
fn completions_for_every_shell() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = String::from_utf8(tenon(&sandbox, &["completions", shell]).stdout).unwrap();
        assert!(script.contains("tenon") && script.contains("doctor"), "{shell}");
    }
}

/// The configurations are not just printed: each agent's own words, read back, start a server that answers.
#[test]
fn what_up_prints_connects_every_agent() {
    let sandbox = Sandbox::new();
    let up = json(&sandbox, &["up", "--json"]);
    assert_eq!(up["root"], sandbox.root().to_str().unwrap());
    assert!(!up["tools"].as_array().unwrap().is_empty());
    for agent in up["agents"].as_array().unwrap() {
        let text = agent["text"].as_str().unwrap();
        let settings: Value = match agent["file"].as_str().unwrap().ends_with(".toml") {
            true => toml::from_str(text).unwrap(),
            false => serde_json::from_str(text).unwrap(),
        };
        let server = settings.as_object().unwrap().values().next().unwrap()["tenon"].clone();
        let words = |value: &Value| match value {
            Value::Array(items) => items.iter().map(|item| item.as_str().unwrap().to_owned()).collect(),
            Value::String(word) => vec![word.clone()],
            _ => vec![],
        };
        let line: Vec<String> = [words(&server["command"]), words(&server["args"])].concat();
        let mut command = sandbox.command(&line[0]);
        command.args(&line[1..]).current_dir("/");
        let mut client = Client::over_pipes(&mut command, Revision::Sessions);
        client.initialize();
        assert_eq!(client.list_tools().len(), up["tools"].as_array().unwrap().len(), "{}", agent["name"]);
    }
}

#[test]
fn doctor_finds_what_is_wrong_and_says_how_to_fix_it() {
    let sandbox = Sandbox::with_tree("//- tenon.toml\n[limit]\n");
    let mut command = sandbox.tenon();
    command.arg("doctor").env("TENON_HTP_PORT", "1");
    insta::assert_snapshot!(transcript(&sandbox, &mut command), @"
        exit: 1
        --- stdout
        good     version: 0.1.0
        warning  environment: `TENON_HTP_PORT` means nothing
                 hint: did you mean `TENON_HTTP_PORT`?
        good     state: [SANDBOX]/state/tenon
        good     tokens: 0 valid
        good     workspace: [SANDBOX]/w
        bad      settings: unknown key `limit` ([SANDBOX]/w/tenon.toml:1)
                 hint: did you mean `limits`?
        good     daemon: not running; the first client starts it
        ");
    sandbox.tree().write("tenon.toml", "");
    assert!(tenon(&sandbox, &["doctor"]).status.success());
    drop(connect(&sandbox, &[]));
    let findings = json(&sandbox, &["doctor", "--json"]);
    assert_eq!(findings["good"], true);
}
