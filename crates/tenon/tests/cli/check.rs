//! `tenon check`: findings, formats and exit codes, with real language servers.

use std::io::Write;
use std::process::Stdio;

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
fn untrusted_repository_cannot_make_itself_clean() {
    let sandbox = workspace();
    sandbox
        .tree()
        .write("tenon.toml", "[workspace]\nignore = [\"bad.py\"]\n[check]\nseverities = [\"hint\"]\n");
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().arg("check")), @r#"
    exit: 2
    --- stderr
    no findings in 1 file
    note: `tenon.toml` sets `workspace.ignore` and `check.severities`, so the result may not show everything
      hint: read `tenon.toml`, then run `tenon trust`
    "#);
    assert!(tenon(&sandbox, &["trust"]).status.success());
    assert_eq!(tenon(&sandbox, &["check"]).status.code(), Some(0));
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

fn git(sandbox: &Sandbox, args: &[&str]) {
    let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
    let done = sandbox.command("git").args(identity).args(args).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

fn commit(sandbox: &Sandbox) {
    git(sandbox, &["init", "-q"]);
    git(sandbox, &["add", "."]);
    git(sandbox, &["commit", "-q", "-m", "first"]);
}

#[test]
fn changed_flag_checks_only_changed_files() {
    let sandbox = workspace();
    commit(&sandbox);
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
    error: not in a git repository
      hint: pass the files to check
    "#);
    insta::assert_snapshot!(transcript(&sandbox, sandbox.tenon().args(["check", "bad.py", "--wait", "0"])), @r#"
    exit: 2
    --- stderr
    not checked: `bad.py`: pyright: still loading the project
    not checked: `bad.py`: ruff: still loading the project
    no findings in 0 files, but the check is incomplete: 1 file unknown
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

/// Python and TypeScript with an old error each, and files that use one another.
fn repository() -> Sandbox {
    let sandbox = Sandbox::with_tree(
        "//- tenon.toml\n//- pyproject.toml\n[project]\nname = \"p\"\n\
         //- lib.py\ndef size(name: str) -> int:\n    return len(name)\n\ndef old() -> int:\n    return 'old'\n\
         //- use.py\nfrom lib import size\n\nn: int = size('a')\n\
         //- tsconfig.json\n{ \"compilerOptions\": { \"strict\": true, \"noEmit\": true }, \"include\": [\"*.ts\"] }\n\
         //- lib.ts\nexport const size = (name: string): number => name.length;\nexport const old: number = 'old';\n\
         //- use.ts\nimport { size } from './lib';\n\nexport const n: number = size('a');\n",
    );
    commit(&sandbox);
    sandbox
}

fn new_findings(sandbox: &Sandbox, args: &[&str]) -> (Option<i32>, Value) {
    let output =
        tenon(sandbox, &[&["check", "--new", "--severity", "error", "--format", "json"], args].concat());
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code(), report)
}

/// The files with new findings and their lines.
fn found(report: &Value) -> Vec<String> {
    let files = report["files"].as_array().unwrap().iter();
    let lines = |file: &Value| {
        let name = file["file"].as_str().unwrap_or_else(|| panic!("{file}")).to_owned();
        let found = file["diagnostics"].as_array().unwrap().clone();
        found.into_iter().map(move |one| format!("{name}:{}", one["line"]))
    };
    files.flat_map(lines).collect()
}

#[test]
fn new_flag_lists_what_the_working_files_introduced_and_never_old_errors() {
    let sandbox = repository();
    let (code, report) = new_findings(&sandbox, &["--no-daemon"]);
    assert_eq!((code, found(&report)), (Some(0), vec![]), "{report:#}");
    // An old error moves, and users of both files break.
    sandbox.tree().write(
        "lib.py",
        "import os\n\ndef size(name: int) -> int:\n    return name\n\ndef old() -> int:\n    return 'old'\n",
    );
    sandbox.tree().write(
        "lib.ts",
        "// moved\nexport const size = (name: number): number => name;\nexport const old: number = 'old';\n",
    );
    let (code, report) = new_findings(&sandbox, &["--no-daemon"]);
    assert_eq!(
        (code, found(&report)),
        (Some(1), vec!["use.py:3".to_owned(), "use.ts:3".to_owned()]),
        "{report:#}"
    );
    assert_eq!(report["compared"]["unchanged"], 2, "{report:#}");
    assert_eq!(report["complete"], true, "{report:#}");
    for (format, expected) in [
        ("text", "use.py:3:"),
        ("github", "::error file=use.ts,line=3"),
        ("sarif", "\"baselineState\":\"new\""),
    ] {
        let output = tenon(
            &sandbox,
            &["check", "--new", "HEAD", "--severity", "error", "--no-daemon", "--format", format],
        );
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
        assert!(stdout.contains(expected), "{stdout}");
        assert!(stderr.ends_with("2 new errors in 2 files; 0 gone, 2 unchanged\n"), "{stderr}");
    }
    git(&sandbox, &["commit", "-q", "-a", "-m", "second"]);
    assert_eq!(new_findings(&sandbox, &["--no-daemon"]).0, Some(0));
    let output = tenon(&sandbox, &["check", "--new", "HEAD~1", "--severity", "error", "--no-daemon"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let output = tenon(&sandbox, &["check", "--new", "no-such-branch"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("unknown revision `no-such-branch`"),
        "{output:?}"
    );
}

#[test]
fn new_flag_counts_users_of_deleted_files_and_works_with_the_daemon() {
    let sandbox = repository();
    sandbox.tree().write("new.py", "x: int = 'new'\n");
    std::fs::remove_file(sandbox.root().join("lib.py")).unwrap();
    let (code, alone) = new_findings(&sandbox, &["--no-daemon"]);
    assert_eq!(code, Some(1), "{alone:#}");
    assert_eq!(found(&alone), ["new.py:1", "use.py:1"], "{alone:#}");
    // The hook starts the daemon.
    let mut hook = sandbox.tenon();
    let mut hook = hook.args(["hook", "stop"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let event = json!({ "hook_event_name": "Stop", "cwd": sandbox.root() });
    hook.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    assert!(hook.wait().unwrap().success());
    let (code, with_daemon) = new_findings(&sandbox, &[]);
    assert_eq!((code, found(&with_daemon)), (Some(1), found(&alone)), "{with_daemon:#}");
    assert!(sandbox.tenon().arg("stop").status().unwrap().success());
}
