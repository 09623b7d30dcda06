//! Help, completions, `up` and `doctor`.

use tenon_testkit::Sandbox;

use crate::{connect, json, tenon, transcript};

#[test]
fn every_command_has_help() {
    let sandbox = Sandbox::new();
    let overview = String::from_utf8(tenon(&sandbox, &["--help"]).stdout).unwrap();
    let listed = overview.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let named =
        listed.lines().filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let commands: Vec<&str> = named.map(|line| line.split_whitespace().next().unwrap()).collect();
    for expected in
        ["up", "mcp", "serve", "status", "stop", "trust", "config", "token", "doctor", "completions"]
    {
        assert!(commands.contains(&expected), "{expected}");
    }
    for command in commands.into_iter().filter(|command| *command != "help") {
        let output = tenon(&sandbox, &[command, "--help"]);
        assert!(output.status.success() && output.stdout.len() > 100, "{command}");
    }
}

#[test]
fn completions_exist_for_every_shell() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = String::from_utf8(tenon(&sandbox, &["completions", shell]).stdout).unwrap();
        assert!(script.contains("tenon") && script.contains("doctor"), "{shell}");
    }
}

#[test]
fn up_ends_with_the_command_that_connects_the_agents_found() {
    let sandbox = Sandbox::new();
    let up = json(&sandbox, &["up", "--json"]);
    assert_eq!(up["root"], sandbox.root().to_str().unwrap());
    assert!(!up["tools"].as_array().unwrap().is_empty());
    assert_eq!(up["agents"], serde_json::json!([]));
    let printed = |sandbox: &Sandbox| {
        let text = String::from_utf8(tenon(sandbox, &["up"]).stdout).unwrap();
        let (before, link) = text.trim_end().rsplit_once('\n').unwrap();
        assert!(
            link.starts_with("Console: http://127.0.0.1:") && link.contains("/console/-/open?code="),
            "{link}"
        );
        format!("{before}\n")
    };
    assert_eq!(printed(&sandbox), "Next: tenon connect AGENT\n");
    std::fs::create_dir(sandbox.dir("home").join(".claude")).unwrap();
    std::fs::create_dir(sandbox.dir("home").join(".codex")).unwrap();
    assert_eq!(printed(&sandbox), "Next: tenon connect claude\nNext: tenon connect codex\n");
    assert!(tenon(&sandbox, &["connect", "claude"]).status.success());
    assert_eq!(printed(&sandbox), "Next: tenon connect codex\n");
}

#[test]
fn doctor_reports_problems_with_hints() {
    let sandbox = Sandbox::with_tree("//- tenon.toml\n[limit]\n");
    let mut command = sandbox.tenon();
    command.arg("doctor").env("TENON_HTP_PORT", "1");
    // Kernels differ in what they can do for the sandbox.
    let printed = transcript(&sandbox, &mut command);
    let (sandboxed, others): (Vec<&str>, Vec<&str>) =
        printed.lines().partition(|line| line.contains("sandbox: ") || line.contains("Landlock"));
    assert!(!sandboxed.is_empty());
    insta::assert_snapshot!(others.join("\n"), @"
        exit: 1
        --- stdout
        ok       version: 0.1.0
        warning  environment: unknown variable `TENON_HTP_PORT`
                 hint: did you mean `TENON_HTTP_PORT`?
        ok       state: [SANDBOX]/state/tenon
        ok       tokens: 0 valid
        ok       workspace: [SANDBOX]/w
        error    settings: unknown key `limit` ([SANDBOX]/w/tenon.toml:1)
                 hint: did you mean `limits`?
        info     daemon: not running; the first client starts it
        ");
    sandbox.tree().write("tenon.toml", "");
    assert!(tenon(&sandbox, &["doctor"]).status.success());
    drop(connect(&sandbox, &[]));
    let findings = json(&sandbox, &["doctor", "--json"]);
    assert_eq!(findings["good"], true);
}
