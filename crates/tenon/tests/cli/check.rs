//! `tenon check`: findings, formats and exit codes, with real language servers.

use serde_json::{Value, json};
use tenon_testkit::{Sandbox, program};

use crate::{tenon, transcript};

fn workspace() -> Sandbox {
    Sandbox::with_tree(
        "//- tenon.toml\n//- pyproject.toml\n[project]\nname = \"p\"\n\
         //- good.py\nx: int = 1\n\
         //- bad.py\nx: int = 'one'\n\
         //- notes.txt\nnothing\n",
    )
}

#[test]
fn findings_are_printed_with_source_lines() {
    let sandbox = workspace();
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().arg("check")), @r#"
    exit: 1
    --- stdout
    error[reportAssignmentType]: Type "Literal['one']" is not assignable to declared type "int"
                                   "Literal['one']" is not assignable to "int" (Pyright)
     --> bad.py:1:10
      |
    1 | x: int = 'one'
      |          ^^^^^

    --- stderr
    1 error in 1 file
    "#);
}

#[test]
fn clean_file_exits_with_0_and_file_without_a_server_with_2() {
    let sandbox = workspace();
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["check", "good.py"])), @r#"
    exit: 0
    --- stderr
    no findings in 1 file
    "#);
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["check", "notes.txt"])), @r#"
    exit: 2
    --- stderr
    note: no language server for `notes.txt`
    no findings in 0 files, but the check is incomplete
    "#);
}

#[test]
fn machine_formats_are_printed_on_stdout() {
    let sandbox = workspace();
    let output = tenon(&sandbox, &["check", "--format", "json", "bad.py"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["complete"], &report["counts"]["error"]), (&true.into(), &1.into()));
    assert_eq!(report["files"][0]["diagnostics"][0]["line"], 1);

    let output = tenon(&sandbox, &["check", "--format", "sarif"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["runs"][0]["results"][0]["ruleId"], "Pyright/reportAssignmentType");

    let output = tenon(&sandbox, &["check", "--format", "github", "--severity", "hint"]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"".as_slice()));
}

/// Validates against the published SARIF schema.
#[test]
fn sarif_output_matches_its_schema() {
    let schema = program::node_modules().join("@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json");
    // The schema's language pattern has an unbalanced bracket.
    let schema = std::fs::read_to_string(schema).unwrap().replace("-[a-zA-Z]{2}]?$", "-[a-zA-Z]{2}$");
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let sandbox = workspace();
    sandbox.tree().write("über #1 %.py", "import os\nx: int = '😀'\ny = x +\n");
    for (args, code) in
        [(&["--severity", "error,warning,info,hint"][..], 1), (&["good.py"], 0), (&["--wait", "0"], 2)]
    {
        let output = tenon(&sandbox, &[&["check", "--format", "sarif"], args].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let errors: Vec<String> = schema.iter_errors(&report).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}\n{report:#}");
    }
    assert!(!schema.is_valid(&json!({ "version": "2.1.0" })), "the schema accepts an invalid report");
}

#[test]
fn changed_flag_checks_only_changed_files() {
    let sandbox = workspace();
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        let done = sandbox.command("git").args(identity).args(args).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    assert_eq!(tenon(&sandbox, &["check", "--changed"]).status.code(), Some(0));
    sandbox.tree().write("good.py", "x: int = 'two'\n");
    let output = tenon(&sandbox, &["check", "--changed", "--format", "github"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("::error file=good.py,line=1,") && text.lines().count() == 1, "{text}");
}

#[test]
fn incomplete_check_exits_with_2() {
    let sandbox = workspace();
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["check", "/etc/passwd"])), @r#"
    exit: 2
    --- stderr
    error: cannot check `/etc/passwd`
      caused by: outside the allowed roots
      hint: pass another workspace with `--root DIR`
    "#);
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["check", "--changed"])), @r#"
    exit: 2
    --- stderr
    error: `git` failed: fatal: not a git repository (or any of the parent directories): .git
      hint: pass the files to check instead of `--changed`
    "#);
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["check", "bad.py", "--wait", "0"])), @r#"
    exit: 2
    --- stderr
    not checked: `bad.py`: pyright: still loading the project
    not checked: `bad.py`: ruff: still loading the project
    no findings in 0 files, but the check is incomplete
    "#);
    sandbox.tree().write("tenon.toml", "nonsense = 1\n");
    assert_eq!(tenon(&sandbox, &["check"]).status.code(), Some(2));
    sandbox.tree().write("tenon.toml", "");

    let mut without = sandbox.tenon();
    insta::assert_snapshot!(transcript(&sandbox, without.args(["check", "bad.py"]).env("PATH", "/usr/bin:/bin")), @r#"
    exit: 2
    --- stderr
    note: `pyright` did not check 1 file: not found
      hint: run `tenon servers install pyright`
    note: `ruff` did not check 1 file: not found
      hint: run `tenon servers install ruff`
    no findings in 0 files, but the check is incomplete
    "#);
}
