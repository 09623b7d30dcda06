//! The JSON formats: one line of canonical JSON, independent of the locale, and exit codes.

use serde_json::{Value, json};
use tenon_contract::json::canonical_value;
use tenon_testkit::Sandbox;

use crate::{compose, compose_stdin, workspace};

#[test]
fn json_is_canonical_and_pretty_has_the_same_value() {
    let sandbox = Sandbox::new();
    sandbox.tree().write("good.json", &workspace(&["/a", "/b"]).to_string());
    let output = compose(&sandbox, &["good.json"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(text, canonical_value(&value) + "\n");
    assert_eq!((&value["ok"], value["composition"]["routes"].as_array().unwrap().len()), (&json!(true), 2));

    let output = compose(&sandbox, &["good.json", "--format", "pretty"]);
    assert!(output.stdout.iter().filter(|byte| **byte == b'\n').count() > 20);
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), value);
}

#[test]
fn exit_code_distinguishes_success_errors_and_unreadable_input() {
    let sandbox = Sandbox::new();
    for (input, code) in [
        (workspace(&["/a"]).to_string(), 0),
        (workspace(&["/a", "/a"]).to_string(), 1),
        ("[]".to_owned(), 1),
        ("".to_owned(), 2),
        ("{".to_owned(), 2),
        ("[".repeat(10_000), 2),
        ("{\"a\":1,\"a\":2}".to_owned(), 2),
    ] {
        for args in [&[][..], &["-"], &["--format", "pretty"], &["--format", "text"]] {
            let output = compose_stdin(&sandbox, args, input.as_bytes());
            assert_eq!(output.status.code(), Some(code), "{args:?} {output:?}");
            // Unreadable input leaves stdout empty.
            assert!(code != 2 || output.stdout.is_empty());
        }
    }
    assert_eq!(compose(&sandbox, &["--format", "yaml"]).status.code(), Some(2));
    assert_eq!(compose(&sandbox, &["/"]).status.code(), Some(2));
}

#[test]
fn locale_does_not_change_the_output() {
    let sandbox = Sandbox::new();
    sandbox.tree().write("input.json", &workspace(&["/a", "/I", "/i", "/a"]).to_string());
    let run = |locale: &str| {
        let mut command = sandbox.tenon();
        command.args(["compose", "input.json"]).envs([("LC_ALL", locale), ("LANG", locale), ("TZ", locale)]);
        command.output().unwrap().stdout
    };
    let plain = run("C");
    assert!(!plain.is_empty());
    for locale in ["tr_TR.UTF-8", "de_DE.UTF-8", "ja_JP.eucJP"] {
        assert_eq!(run(locale), plain);
    }
}

#[test]
fn saved_diagnostics_give_the_exit_code_of_their_composition() {
    let sandbox = Sandbox::new();
    for (paths, code) in [(&["/a"][..], 0), (&["/a", "/a"], 1)] {
        let output = compose_stdin(&sandbox, &[], workspace(paths).to_string().as_bytes());
        let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
        for saved in [outcome.to_string(), outcome["diagnostics"].to_string()] {
            let shown = compose_stdin(&sandbox, &["diagnostics", "-"], saved.as_bytes());
            assert_eq!(shown.status.code(), Some(code));
            let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
            assert_eq!(shown, json!({"ok": code == 0, "diagnostics": outcome["diagnostics"]}));
        }
    }
    assert_eq!(compose_stdin(&sandbox, &["diagnostics", "-"], b"7").status.code(), Some(2));
}
