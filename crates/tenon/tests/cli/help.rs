//! What people read first: help, completions, `up` and `doctor`.

use serde_json::Value;
use tenon_testkit::{Client, Revision, Sandbox};

use crate::{connect, json, tenon, transcript};

#[test]
fn every_command_explains_itself() {
    let sandbox = Sandbox::new();
    let overview = String::from_utf8(tenon(&sandbox, &["--help"]).stdout).unwrap();
    let listed = overview.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let named =
        listed.lines().filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let commands: Vec<&str> = named.map(|line| line.split_whitespace().next().unwrap()).collect();
    for ours in ["up", "mcp", "serve", "status", "stop", "trust", "config", "token", "doctor", "completions"]
    {
        assert!(commands.contains(&ours), "{ours}");
    }
    for command in commands.into_iter().filter(|command| *command != "help") {
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
